//! Span: one operation on one message, by the semantic conventions of messaging.
//!
//! A span is a child of the span in which the message was made, so all spans of a message are in
//! the trace of its sender.

use std::sync::Arc;

use broker::{DeadLettering, LockToken};
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span as OtlpSpan, Status};

use super::attribute::{integer, text};
use super::endpoints::Endpoints;
use super::traced_message::TracedMessage;

/// The flag of a sampled trace. [OTLP: SpanFlags]
const SAMPLED: u32 = 1;
/// What separates the path of a topic from the name of a subscription.
const SUBSCRIPTIONS: &str = "/Subscriptions/";

/// The operation of a span.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    /// From the arrival of the message to the commit that stores it.
    Send,
    /// From the enqueued time of the message, in milliseconds, to its delivery.
    Receive {
        delivery_count: u32,
        enqueued_ms: u64,
    },
    /// From the arrival of the disposition to the commit that carries it out.
    Settle(&'static str),
}

/// One operation on one message.
#[derive(Clone, Debug)]
pub struct Span {
    pub message: TracedMessage,
    pub id: u64,
    pub operation: Operation,
    pub entity: Arc<str>,
    /// The client and the server, where they are known.
    pub endpoints: Option<Endpoints>,
    /// The lock that the operation ends.
    pub lock: Option<LockToken>,
    /// Nanoseconds of the Unix epoch.
    pub start: u64,
    pub end: u64,
    /// Why the operation has made a dead letter, if it has.
    pub dead_letter: Option<DeadLettering>,
    /// Why it failed.
    pub error: Option<String>,
}

impl Span {
    /// As OTLP has it.
    pub fn encode(&self) -> OtlpSpan {
        let (kind, name) = match self.operation {
            Operation::Send => ("send", "send"),
            Operation::Receive { .. } => ("receive", "receive"),
            Operation::Settle(name) => ("settle", name),
        };
        let mut attributes = vec![
            text("messaging.system", "servicebus"),
            text("messaging.operation.type", kind),
            text("messaging.operation.name", name),
            text("messaging.destination.name", &self.entity),
        ];
        if let Some(endpoints) = &self.endpoints {
            let peer = endpoints.peer;
            attributes.push(text("network.peer.address", &peer.ip().to_string()));
            attributes.push(integer("network.peer.port", peer.port()));
            let (server, port) = endpoints.server();
            attributes.extend(server.map(|server| text("server.address", &server)));
            attributes.extend(port.map(|port| integer("server.port", port)));
        }
        let id = self.message.id.iter();
        attributes.extend(id.map(|id| text("messaging.message.id", id)));
        if let Some((_, name)) = self.entity.split_once(SUBSCRIPTIONS) {
            attributes.push(text("messaging.destination.subscription.name", name));
        }
        match self.operation {
            Operation::Receive {
                delivery_count,
                enqueued_ms,
            } => {
                let key = "messaging.servicebus.message.delivery_count";
                attributes.push(integer(key, delivery_count));
                let key = "messaging.servicebus.message.enqueued_time";
                let seconds = i64::try_from(enqueued_ms / 1_000).unwrap_or(i64::MAX);
                attributes.push(integer(key, seconds));
            }
            Operation::Settle(name) => {
                attributes.push(text("messaging.servicebus.disposition_status", name));
            }
            Operation::Send => {}
        }
        attributes.extend(self.error.iter().map(|error| text("error.type", error)));
        let status = self.error.clone().map(|message| Status {
            message,
            code: StatusCode::Error.into(),
        });
        let context = &self.message.context;
        OtlpSpan {
            trace_id: context.trace.to_be_bytes().into(),
            span_id: self.id.to_be_bytes().into(),
            parent_span_id: context.parent.to_be_bytes().into(),
            flags: SAMPLED,
            name: format!("{name} {}", self.entity),
            kind: SpanKind::Server.into(),
            start_time_unix_nano: self.start,
            end_time_unix_nano: self.end,
            attributes,
            events: self.dead_letter_event().into_iter().collect(),
            status,
            ..OtlpSpan::default()
        }
    }

    fn dead_letter_event(&self) -> Option<Event> {
        let dead = self.dead_letter.as_ref()?;
        let words = [("reason", &dead.reason), ("description", &dead.description)];
        let known = words.into_iter();
        let known = known.filter_map(|(key, value)| Some(text(key, value.as_deref()?)));
        Some(Event {
            name: "dead-letter".to_owned(),
            time_unix_nano: self.end,
            attributes: known.collect(),
            ..Event::default()
        })
    }
}

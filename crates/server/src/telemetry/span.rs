//! Span: one operation on one message, by the semantic conventions of messaging.
//!
//! A span is a child of the span in which the message was made, so all spans of a message are in
//! the trace of its sender.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::trace_context::TraceContext;
use super::{integer, text};

/// A span of a server. [OTLP: SpanKind]
const SERVER: u8 = 2;
/// The status of a failed span. [OTLP: StatusCode]
const ERROR: u8 = 2;
/// What separates the path of a topic from the name of a subscription.
const SUBSCRIPTIONS: &str = "/Subscriptions/";

/// The operation of a span.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    /// From the arrival of the message to the commit that stores it.
    Send,
    /// From the enqueued time of the message to its delivery.
    Receive { delivery_count: u32 },
    /// From the arrival of the disposition to the commit that carries it out.
    Settle(&'static str),
}

/// One operation on one message.
#[derive(Clone, Debug)]
pub struct Span {
    pub context: TraceContext,
    pub id: u64,
    pub operation: Operation,
    pub entity: Arc<str>,
    /// The client, where it is known.
    pub peer: Option<SocketAddr>,
    /// Nanoseconds of the Unix epoch.
    pub start: u64,
    pub end: u64,
    /// The reason and description of a dead letter.
    pub dead_letter: Option<[Option<String>; 2]>,
    /// Why it failed.
    pub error: Option<String>,
}

impl Span {
    /// As OTLP has it.
    pub fn encode(&self) -> Json {
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
        if let Some(peer) = self.peer {
            attributes.push(text("network.peer.address", &peer.ip().to_string()));
            attributes.push(integer("network.peer.port", peer.port().into()));
        }
        if let Some((_, name)) = self.entity.split_once(SUBSCRIPTIONS) {
            attributes.push(text("messaging.destination.subscription.name", name));
        }
        match self.operation {
            Operation::Receive { delivery_count } => {
                let key = "messaging.servicebus.message.delivery_count";
                attributes.push(integer(key, delivery_count.into()));
            }
            Operation::Settle(name) => {
                attributes.push(text("messaging.servicebus.disposition_status", name));
            }
            Operation::Send => {}
        }
        let mut span = json!({
            "traceId": format!("{:032x}", self.context.trace),
            "spanId": format!("{:016x}", self.id),
            "parentSpanId": format!("{:016x}", self.context.parent),
            "flags": 1,
            "name": format!("{name} {}", self.entity),
            "kind": SERVER,
            "startTimeUnixNano": self.start.to_string(),
            "endTimeUnixNano": self.end.to_string(),
        });
        if let Some(error) = &self.error {
            attributes.push(text("error.type", error));
            span["status"] = json!({ "code": ERROR, "message": error });
        }
        if let Some(reasons) = &self.dead_letter {
            let keys = ["reason", "description"];
            let reasons = keys.into_iter().zip(reasons);
            let known = reasons.filter_map(|(key, value)| Some(text(key, value.as_deref()?)));
            span["events"] = json!([{
                "name": "dead-letter",
                "timeUnixNano": self.end.to_string(),
                "attributes": known.collect::<Vec<_>>(),
            }]);
        }
        span["attributes"] = attributes.into();
        span
    }
}

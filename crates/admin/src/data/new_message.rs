//! New message: a message as its sender describes it, encoded as an AMQP message with one data
//! section. (docs/spec/admin.md#11)

use amqp::message::{Header, Properties, encode_map_section};
use amqp::{Symbol, Value, descriptor, encode};
use broker::Wall;
use bytes::{Bytes, BytesMut};
use http::{Request, header};

use super::broker_properties::SenderProperties;
use super::property;
use crate::error::Error;

const BROKER_PROPERTIES: &str = "brokerproperties";

/// A message that is to be sent.
#[derive(Debug, Default)]
pub(super) struct NewMessage {
    pub broker_properties: SenderProperties,
    pub content_type: Option<String>,
    pub properties: Vec<(Value, Value)>,
    pub body: Bytes,
}

impl NewMessage {
    /// The message that a request holds.
    pub(super) fn of(request: &Request<Bytes>) -> Result<Self, Error> {
        let headers = request.headers();
        let text = |name| {
            let value = headers.get(name).map(http::HeaderValue::as_bytes);
            value.map(String::from_utf8_lossy)
        };
        let broker_properties = text(BROKER_PROPERTIES);
        Ok(Self {
            broker_properties: broker_properties
                .map_or(Ok(SenderProperties::default()), |text| {
                    SenderProperties::parse(&text)
                })?,
            content_type: text(header::CONTENT_TYPE.as_str()).map(Into::into),
            properties: property::read_all(headers),
            body: request.body().clone(),
        })
    }

    /// The encoded message. A message without an id gets one later, like all messages.
    pub(super) fn encode(self, now: Wall) -> Result<Bytes, Error> {
        let ttl = self.broker_properties.time_to_live()?;
        let scheduled = self.broker_properties.scheduled()?;
        let mut out = BytesMut::with_capacity(self.body.len() + 256);
        header_of(ttl).encode(&mut out);
        let annotations = annotations(&self.broker_properties, scheduled);
        if !annotations.is_empty() {
            encode_map_section(&mut out, descriptor::MESSAGE_ANNOTATIONS, &annotations);
        }
        properties(self.broker_properties, self.content_type, ttl, now).encode(&mut out);
        if !self.properties.is_empty() {
            encode_map_section(
                &mut out,
                descriptor::APPLICATION_PROPERTIES,
                &self.properties,
            );
        }
        encode::descriptor(&mut out, 0x75);
        encode::binary(&mut out, &self.body);
        Ok(out.freeze())
    }
}

fn header_of(ttl: Option<u64>) -> Header {
    Header {
        ttl: ttl.map(|ttl| u32::try_from(ttl).unwrap_or(u32::MAX)),
        ..Header::default()
    }
}

fn annotations(
    broker_properties: &SenderProperties,
    scheduled: Option<i64>,
) -> Vec<(Value, Value)> {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let annotations = [
        (
            "x-opt-partition-key",
            text(&broker_properties.partition_key),
        ),
        (
            "x-opt-via-partition-key",
            text(&broker_properties.via_partition_key),
        ),
        (
            "x-opt-scheduled-enqueue-time",
            scheduled.map(Value::Timestamp),
        ),
    ];
    let annotations = annotations.into_iter();
    annotations
        .filter_map(|(name, value)| Some((Value::Symbol(Symbol::new(name)), value?)))
        .collect()
}

/// A time to live that is too long for a header is written as the times of the properties.
/// (docs/spec/entities.md#7.1)
fn properties(
    broker_properties: SenderProperties,
    content_type: Option<String>,
    ttl: Option<u64>,
    now: Wall,
) -> Properties {
    let text = |text: Option<String>| text.map(Value::String);
    let long = ttl.filter(|ttl| *ttl >= u32::MAX.into());
    let time = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
    Properties {
        message_id: text(broker_properties.message_id),
        to: text(broker_properties.to),
        subject: broker_properties.label,
        reply_to: text(broker_properties.reply_to),
        correlation_id: text(broker_properties.correlation_id),
        content_type: content_type.map(Symbol::from),
        creation_time: long.map(|_| time(now.0)),
        absolute_expiry_time: long.map(|ttl| time(now.0.saturating_add(ttl))),
        group_id: broker_properties.session_id,
        reply_to_group_id: broker_properties.reply_to_session_id,
        ..Properties::default()
    }
}

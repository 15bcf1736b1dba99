//! A message in JSON, as a sender would describe it, and the properties that filters see.
//!
//! Filters see it as its topic sees it when it is published. Properties that are not given and
//! that the broker would know have the values of the topic's first message, published now.

use std::collections::BTreeMap;

use amqp::message::{Header, Properties, descriptor, encode_map_section};
use amqp::{Symbol, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::{Bytes, BytesMut};
use filter::{Facts, Property};
use serde::{Deserialize, Deserializer, de};

use super::TypedValue;
use super::typed_value::duration_of;
use crate::{duration, time};

/// A message. Everything is optional; an unknown member is an error.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MessageDescription {
    message_id: Option<TypedValue>,
    correlation_id: Option<TypedValue>,
    to: Option<String>,
    reply_to: Option<String>,
    #[serde(alias = "label")]
    subject: Option<String>,
    #[serde(deserialize_with = "ascii")]
    content_type: Option<String>,
    session_id: Option<String>,
    reply_to_session_id: Option<String>,
    durable: Option<bool>,
    priority: Option<u8>,
    #[serde(deserialize_with = "user_id")]
    user_id: Option<Vec<u8>>,
    #[serde(deserialize_with = "ascii")]
    content_encoding: Option<String>,
    group_sequence: Option<u32>,
    /// The sender's own.
    annotations: BTreeMap<String, TypedValue>,
    partition_key: Option<String>,
    via_partition_key: Option<String>,
    time_to_live: Option<Span>,
    scheduled_enqueue_time: Option<Moment>,
    /// The application's.
    properties: BTreeMap<String, TypedValue>,
    /// Filters do not see it, but it counts in the message's size.
    body: String,
    /// Instead of a text.
    #[serde(deserialize_with = "bytes")]
    body_base64: Option<Vec<u8>>,
    body_type: Option<BodyType>,
    enqueued_time: Option<Moment>,
    sequence_number: Option<i64>,
    enqueued_sequence_number: Option<i64>,
    dead_letter_source: Option<String>,
}

/// The type of a body that is an AMQP value. Without it the body is data.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BodyType {
    String,
    Binary,
}

/// Milliseconds; in ISO 8601.
#[derive(Clone, Copy, Debug)]
struct Span(i64);

/// Milliseconds since the Unix epoch; in RFC 3339.
#[derive(Clone, Copy, Debug)]
struct Moment(i64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let millis = duration::parse(&text).map_err(de::Error::custom)?;
        // What is longer is "never", as a sender tells it.
        Ok(Self(i64::try_from(millis).unwrap_or(i64::MAX)))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || {
            let text = format!("`{text}` is not a time such as 2026-11-22T12:00:00Z");
            de::Error::custom(text)
        };
        time::ms(&text).map(Self).ok_or_else(wrong)
    }
}

/// AMQP's type of a content type has no other characters. [AMQP 3.2.4]
fn ascii<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    if text.as_ref().is_some_and(|text| !text.is_ascii()) {
        return Err(de::Error::custom(
            "a content type or encoding has ASCII characters only",
        ));
    }
    Ok(text)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    of_base64("body-base64", deserializer)
}

fn user_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    of_base64("user-id", deserializer)
}

fn of_base64<'de, D: Deserializer<'de>>(
    name: &str,
    deserializer: D,
) -> Result<Option<Vec<u8>>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let bytes = text.map(|text| BASE64.decode(text)).transpose();
    bytes.map_err(|_| de::Error::custom(format!("{name}: the text is not in base 64")))
}

impl MessageDescription {
    /// Whether it contradicts itself.
    ///
    /// # Errors
    /// How it does.
    pub fn check(&self) -> Result<(), &'static str> {
        match (&self.body_base64, self.body_type) {
            (Some(_), _) if !self.body.is_empty() => {
                Err("a message has body or body-base64, and not both")
            }
            (Some(bytes), Some(BodyType::String)) if std::str::from_utf8(bytes).is_err() => {
                Err("body-type: a body of the type string is text in UTF-8")
            }
            _ if !self.annotations.keys().all(|key| key.is_ascii()) => {
                Err("annotations: a name has ASCII characters only")
            }
            _ => Ok(()),
        }
    }

    /// Whether its sender wants it to become available later.
    #[must_use]
    pub fn is_scheduled(&self) -> bool {
        self.scheduled_enqueue_time.is_some()
    }

    /// The message as it goes over the wire.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let bytes = self.body_base64.as_deref();
        self.encode_with(bytes.unwrap_or(self.body.as_bytes()))
    }

    /// The same with another body, which need not be a text.
    #[must_use]
    pub fn encode_with(&self, body: &[u8]) -> Bytes {
        let mut out = BytesMut::new();
        self.header(&mut out);
        self.annotations(&mut out);
        self.sender_properties(&mut out);
        let properties = self.properties.iter();
        let properties: Vec<_> = properties
            .map(|(name, TypedValue(value))| (Value::from(name.as_str()), value.clone()))
            .collect();
        if !properties.is_empty() {
            encode_map_section(&mut out, descriptor::APPLICATION_PROPERTIES, &properties);
        }
        self.encode_body(&mut out, body);
        out.freeze()
    }

    /// What the broker would know of it if it was published at `now`, in milliseconds since the
    /// Unix epoch.
    #[must_use]
    pub fn facts(&self, now: i64) -> Facts<'_> {
        let enqueued = self.enqueued_time.map_or(now, |time| time.0);
        let number = self.sequence_number.unwrap_or(1);
        Facts {
            enqueued_time_ms: Some(enqueued),
            expires_at_ms: self
                .time_to_live
                .and_then(|ttl| enqueued.checked_add(ttl.0)),
            sequence_number: Some(number),
            enqueued_sequence_number: self.enqueued_sequence_number,
            delivery_count: Some(0),
            state: Some(0),
            dead_letter_source: self.dead_letter_source.as_deref(),
            ..Facts::default()
        }
    }

    /// An application property, by its exact name.
    pub(super) fn property(&self, name: &str) -> Option<&TypedValue> {
        self.properties.get(name)
    }

    /// A property that actions can change.
    pub(super) fn system(&self, property: Property) -> Option<TypedValue> {
        let text = match property {
            Property::MessageId => return self.message_id.clone(),
            Property::CorrelationId => return self.correlation_id.clone(),
            Property::TimeToLive => {
                let ttl = self.time_to_live?;
                return Some(TypedValue(duration_of(ttl.0)));
            }
            Property::To => &self.to,
            Property::ReplyTo => &self.reply_to,
            Property::Label => &self.subject,
            Property::ContentType => &self.content_type,
            Property::SessionId => &self.session_id,
            Property::ReplyToSessionId => &self.reply_to_session_id,
            Property::PartitionKey => &self.partition_key,
            _ => return None,
        };
        text.as_deref().map(|text| TypedValue(Value::from(text)))
    }

    fn header(&self, out: &mut BytesMut) {
        let ttl = self.time_to_live;
        let header = Header {
            durable: self.durable,
            priority: self.priority,
            ttl: ttl.map(|Span(ttl)| u32::try_from(ttl).unwrap_or(u32::MAX)),
            ..Header::default()
        };
        if header != Header::default() {
            header.encode(out);
        }
    }

    fn annotations(&self, out: &mut BytesMut) {
        let text = |key, text: &Option<String>| Some((key, Value::from(text.as_deref()?)));
        let due = self.scheduled_enqueue_time;
        let entries = [
            text("x-opt-partition-key", &self.partition_key),
            text("x-opt-via-partition-key", &self.via_partition_key),
            due.map(|due| ("x-opt-scheduled-enqueue-time", Value::Timestamp(due.0))),
        ];
        let own = self.annotations.iter();
        let own = own.map(|(key, TypedValue(value))| (Symbol::from(key.clone()), value.clone()));
        let entries = entries.into_iter().flatten();
        let entries = entries.map(|(key, value)| (Symbol::new(key), value));
        let entries: Vec<_> = entries
            .chain(own)
            .map(|(key, value)| (Value::Symbol(key), value))
            .collect();
        if !entries.is_empty() {
            encode_map_section(out, descriptor::MESSAGE_ANNOTATIONS, &entries);
        }
    }

    fn sender_properties(&self, out: &mut BytesMut) {
        let typed = |value: &Option<TypedValue>| value.clone().map(|TypedValue(value)| value);
        let text = |value: &Option<String>| value.as_deref().map(Value::from);
        // More than a header can tell stands in the properties. (docs/spec/entities.md#7.1)
        let long = self.time_to_live.map(|ttl| ttl.0);
        let long = long.filter(|ttl| *ttl > u32::MAX.into());
        Properties {
            message_id: typed(&self.message_id),
            correlation_id: typed(&self.correlation_id),
            to: text(&self.to),
            reply_to: text(&self.reply_to),
            subject: self.subject.clone(),
            user_id: self.user_id.clone().map(Bytes::from),
            content_type: self.content_type.clone().map(Symbol::from),
            content_encoding: self.content_encoding.clone().map(Symbol::from),
            group_sequence: self.group_sequence,
            group_id: self.session_id.clone(),
            reply_to_group_id: self.reply_to_session_id.clone(),
            creation_time: long.map(|_| 0),
            absolute_expiry_time: long,
        }
        .encode(out);
    }

    /// Appends a body of one section. [AMQP 3.2.6, 3.2.8]
    fn encode_body(&self, out: &mut BytesMut, body: &[u8]) {
        let bytes = || Value::Binary(Bytes::copy_from_slice(body));
        let (descriptor, value) = match self.body_type {
            None => (descriptor::DATA, bytes()),
            Some(BodyType::Binary) => (descriptor::VALUE, bytes()),
            Some(BodyType::String) => (
                descriptor::VALUE,
                Value::from(&*String::from_utf8_lossy(body)),
            ),
        };
        amqp::encode::value(out, &Value::described(descriptor, value));
    }
}

//! Decoded messages: the body of a message, and all of it as JSON. Used for messages received or
//! browsed over AMQP and for messages shown over HTTP.

use amqp::decode::DecodeError;
use amqp::message::{BodyKind, Header, Properties, Sections, batch_parts, decode_map_section};
use amqp::{Map, Value, value::lookup};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map as Object, Value as Json};

use entity::duration;
use entity::rules::TypedValue;

/// The most parts of a body that are joined; few senders use more than one.
const MOST_PARTS: usize = 4_096;

/// What is known of a message.
#[derive(Debug)]
pub struct DecodedMessage {
    facts: Object<String, Json>,
    body: Vec<u8>,
}

impl DecodedMessage {
    /// Reads an encoded message.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(payload: &Bytes) -> Result<Self, DecodeError> {
        let sections = Sections::scan(payload)?;
        let mut facts = Object::new();
        if !sections.header.is_empty() {
            let header = Header::decode(&payload[sections.header.clone()])?;
            insert(&mut facts, "delivery-count", header.delivery_count);
            let lifetime = header.ttl.map(|ms| duration::text(ms.into()));
            insert(&mut facts, "time-to-live", lifetime);
        }
        annotations(&mut facts, &map(payload, &sections.message_annotations)?);
        if !sections.properties.is_empty() {
            let section = payload.slice(sections.properties.clone());
            properties(&mut facts, Properties::decode(&section)?);
        }
        let application: Object<_, _> = map(payload, &sections.application_properties)?
            .into_iter()
            .filter_map(|(name, value)| Some((name.as_text()?.to_owned(), json(value))))
            .collect();
        if !application.is_empty() {
            facts.insert("properties".to_owned(), application.into());
        }
        let body = body(payload, &sections)?;
        Ok(Self { facts, body })
    }

    /// The bytes of its body, or the text that shows it.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// An object. A body that is no text is in base 64, under a name of its own; of one with more
    /// than `most` bytes only their number is told.
    #[must_use]
    pub fn json(&self, most: usize) -> Object<String, Json> {
        let mut object = self.facts.clone();
        match std::str::from_utf8(&self.body) {
            _ if self.body.len() > most => insert(&mut object, "body-bytes", Some(self.body.len())),
            Ok(text) => insert(&mut object, "body", Some(text)),
            Err(_) => insert(&mut object, "body-base64", Some(BASE64.encode(&self.body))),
        }
        object
    }
}

/// The number that the broker has given to a message.
#[must_use]
pub fn sequence_number(payload: &Bytes) -> Option<u64> {
    let sections = Sections::scan(payload).ok()?;
    let annotations = map(payload, &sections.message_annotations).ok()?;
    let number = lookup(&annotations, "x-opt-sequence-number")?;
    u64::try_from(number.as_integer()?).ok()
}

fn map(payload: &Bytes, range: &std::ops::Range<usize>) -> Result<Map, DecodeError> {
    if range.is_empty() {
        return Ok(Map::new());
    }
    decode_map_section(&payload.slice(range.clone()))
}

fn insert(object: &mut Object<String, Json>, name: &str, value: Option<impl Serialize>) {
    let value = value.and_then(|value| serde_json::to_value(value).ok());
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
}

/// A value as messages in JSON have it; null if that cannot say it.
fn json(value: Value) -> Json {
    serde_json::to_value(TypedValue(value)).unwrap_or_default()
}

fn annotations(facts: &mut Object<String, Json>, annotations: &Map) {
    for (key, name) in [
        ("x-opt-sequence-number", "sequence-number"),
        ("x-opt-enqueue-sequence-number", "enqueued-sequence-number"),
        ("x-opt-partition-key", "partition-key"),
        ("x-opt-deadletter-source", "dead-letter-source"),
    ] {
        let value = lookup(annotations, key).cloned();
        insert(facts, name, value.map(json));
    }
    insert(facts, "state", state(annotations));
    for (key, name) in [
        ("x-opt-enqueued-time", "enqueued-time"),
        ("x-opt-scheduled-enqueue-time", "scheduled-enqueue-time"),
        ("x-opt-locked-until", "locked-until"),
    ] {
        let millis = lookup(annotations, key).and_then(Value::as_integer);
        insert(facts, name, millis.and_then(entity::time::text_of_ms));
    }
}

/// In words, of the numbers that annotations have. (docs/spec/amqp.md#4.2)
fn state(annotations: &Map) -> Option<&'static str> {
    match lookup(annotations, "x-opt-message-state")?.as_integer()? {
        0 => Some("active"),
        1 => Some("deferred"),
        2 => Some("scheduled"),
        _ => None,
    }
}

fn properties(facts: &mut Object<String, Json>, properties: Properties) {
    for (name, value) in [
        ("message-id", properties.message_id),
        ("correlation-id", properties.correlation_id),
        ("to", properties.to),
        ("reply-to", properties.reply_to),
    ] {
        insert(facts, name, value.map(json));
    }
    let content_type = properties.content_type.map(|it| it.as_str().to_owned());
    for (name, text) in [
        ("subject", properties.subject),
        ("content-type", content_type),
        ("session-id", properties.group_id),
        ("reply-to-session-id", properties.reply_to_group_id),
    ] {
        insert(facts, name, text);
    }
}

/// Data as it is, a value that is a text likewise, and any other as JSON.
fn body(payload: &Bytes, sections: &Sections) -> Result<Vec<u8>, DecodeError> {
    match sections.body_kind {
        BodyKind::None => Ok(Vec::new()),
        BodyKind::Data => Ok(batch_parts(payload, sections, MOST_PARTS)?.concat()),
        BodyKind::Value | BodyKind::Sequence => {
            let mut rest = payload.slice(sections.body.clone());
            let value = match amqp::decode::take_value(&mut rest)? {
                Value::Described(described) => described.1,
                value => value,
            };
            Ok(match value {
                Value::String(text) => text.into_bytes(),
                Value::Binary(bytes) => bytes.to_vec(),
                value => match serde_json::to_string(&TypedValue(value.clone())) {
                    Ok(json) => json.into_bytes(),
                    // Lists and maps have no form in JSON that would be theirs alone.
                    Err(_) => format!("{value:?}").into_bytes(),
                },
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entity::rules::MessageDescription;
    use serde_json::json;

    fn message(json: Json) -> Bytes {
        let description: MessageDescription = serde_json::from_value(json).unwrap();
        description.encode()
    }

    #[test]
    fn a_message_is_shown_as_it_was_described() {
        let facts = json!({
            "message-id": "1", "subject": "red", "session-id": "s", "content-type": "text/plain",
            "properties": {"n": 5, "level": {"type": "int", "value": 7}}, "body": "hello",
        });
        let shown = DecodedMessage::read(&message(facts.clone())).unwrap();
        assert_eq!(Json::Object(shown.json(5)), facts);
        assert_eq!(shown.body, b"hello");
    }

    #[test]
    fn a_body_that_is_no_text_is_told_apart() {
        let description = MessageDescription::default();
        let shown = DecodedMessage::read(&description.encode_with(&[0xff, 0])).unwrap();
        assert_eq!(Json::Object(shown.json(5)), json!({"body-base64": "/wA="}));
    }

    #[test]
    fn of_a_body_that_is_too_long_the_length_is_told() {
        let message = MessageDescription::default().encode_with(b"hello!");
        let shown = DecodedMessage::read(&message).unwrap();
        assert_eq!(Json::Object(shown.json(5)), json!({"body-bytes": 6}));
        assert_eq!(Json::Object(shown.json(6)), json!({"body": "hello!"}));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(DecodedMessage::read(&Bytes::from_static(b"\x00\x53\x75")).is_err());
        assert_eq!(sequence_number(&Bytes::from_static(b"hello")), None);
    }
}

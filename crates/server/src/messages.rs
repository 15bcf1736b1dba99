//! Decoded messages: the body of a message, and all of it as JSON. Used for messages received or
//! browsed over AMQP and for messages shown over HTTP.

use amqp::decode::DecodeError;
use amqp::message::{BodyKind, Header, Properties, Sections, batch_parts, decode_map_section};
use amqp::{Map, Value, value::lookup};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map as Object, Value as Json, json};

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
            insert(&mut facts, "durable", header.durable);
            insert(&mut facts, "priority", header.priority);
            insert(&mut facts, "first-acquirer", header.first_acquirer);
            insert(&mut facts, "delivery-count", header.delivery_count);
            let lifetime = header.ttl.map(|ms| duration::text(ms.into()));
            insert(&mut facts, "time-to-live", lifetime);
        }
        let of_hop = map(payload, &sections.delivery_annotations)?;
        insert_map(&mut facts, "delivery-annotations", of_hop);
        annotations(&mut facts, map(payload, &sections.message_annotations)?);
        if !sections.properties.is_empty() {
            let section = payload.slice(sections.properties.clone());
            properties(&mut facts, Properties::decode(&section)?);
        }
        let application = map(payload, &sections.application_properties)?;
        insert_map(&mut facts, "properties", application);
        insert_map(&mut facts, "footer", map(payload, &sections.footer)?);
        let (body, body_type) = body(payload, &sections)?;
        insert(&mut facts, "body-type", body_type);
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

fn insert_map(object: &mut Object<String, Json>, name: &str, map: Map) {
    let entries = map.into_iter();
    let entries: Object<_, _> = entries
        .filter_map(|(key, value)| Some((key.as_text()?.to_owned(), json(value))))
        .collect();
    if !entries.is_empty() {
        object.insert(name.to_owned(), entries.into());
    }
}

/// A value as messages in JSON have it. Lists, arrays and maps, which a message in JSON cannot
/// have, are shown with their values; a map by its pairs, since its keys have types too.
fn json(value: Value) -> Json {
    let list = |values: Vec<Value>| values.into_iter().map(json).collect::<Vec<_>>();
    let (kind, value): (&str, Json) = match value {
        Value::List(values) => ("list", list(values).into()),
        Value::Array(values) => ("array", list(values).into()),
        Value::Map(map) => {
            let pairs = map
                .into_iter()
                .map(|(key, value)| json!([json(key), json(value)]));
            ("map", pairs.collect::<Vec<_>>().into())
        }
        value => {
            let shown = serde_json::to_value(TypedValue(value.clone()));
            return shown.unwrap_or_else(
                |_| json!({"type": type_name(&value), "value": format!("{value:?}")}),
            );
        }
    };
    json!({"type": kind, "value": value})
}

/// The name of a value's type, as `TypedValue` has it.
fn type_name(value: &Value) -> String {
    let plain = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Long(_) => "long",
        Value::Double(_) => "double",
        Value::String(_) => "string",
        Value::List(_) => "list",
        Value::Array(_) => "array",
        Value::Map(_) => "map",
        Value::Decimal32(_) => "decimal32",
        Value::Decimal64(_) => "decimal64",
        Value::Decimal128(_) => "decimal128",
        other => {
            let typed = serde_json::to_value(TypedValue(other.clone())).unwrap_or_default();
            let name = typed.get("type").and_then(Json::as_str);
            return name.unwrap_or("described").to_owned();
        }
    };
    plain.to_owned()
}

/// Annotations that have members of their own, or are about a lock.
const OWN_ANNOTATIONS: [&str; 10] = [
    "x-opt-sequence-number",
    "x-opt-enqueue-sequence-number",
    "x-opt-partition-key",
    "x-opt-via-partition-key",
    "x-opt-deadletter-source",
    "x-opt-message-state",
    "x-opt-enqueued-time",
    "x-opt-scheduled-enqueue-time",
    "x-opt-locked-until",
    "x-opt-lock-token",
];

fn annotations(facts: &mut Object<String, Json>, annotations: Map) {
    for (key, name) in [
        ("x-opt-sequence-number", "sequence-number"),
        ("x-opt-enqueue-sequence-number", "enqueued-sequence-number"),
        ("x-opt-partition-key", "partition-key"),
        ("x-opt-via-partition-key", "via-partition-key"),
        ("x-opt-deadletter-source", "dead-letter-source"),
    ] {
        let value = lookup(&annotations, key).cloned();
        insert(facts, name, value.map(json));
    }
    insert(facts, "state", state(&annotations));
    for (key, name) in [
        ("x-opt-enqueued-time", "enqueued-time"),
        ("x-opt-scheduled-enqueue-time", "scheduled-enqueue-time"),
        ("x-opt-locked-until", "locked-until"),
    ] {
        let millis = lookup(&annotations, key).and_then(Value::as_integer);
        insert(facts, name, millis.and_then(entity::time::text_of_ms));
    }
    let is_own = |key: &Value| {
        key.as_text()
            .is_some_and(|it| OWN_ANNOTATIONS.contains(&it))
    };
    let others = annotations.into_iter().filter(|(key, _)| !is_own(key));
    insert_map(facts, "annotations", others.collect());
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
    insert(
        facts,
        "user-id",
        properties.user_id.map(|it| BASE64.encode(it)),
    );
    for (name, time) in [
        ("absolute-expiry-time", properties.absolute_expiry_time),
        ("creation-time", properties.creation_time),
    ] {
        insert(facts, name, time.and_then(entity::time::text_of_ms));
    }
    insert(facts, "group-sequence", properties.group_sequence);
    let [content_type, content_encoding] = [properties.content_type, properties.content_encoding]
        .map(|symbol| symbol.map(|it| it.as_str().to_owned()));
    for (name, text) in [
        ("subject", properties.subject),
        ("content-type", content_type),
        ("content-encoding", content_encoding),
        ("session-id", properties.group_id),
        ("reply-to-session-id", properties.reply_to_group_id),
    ] {
        insert(facts, name, text);
    }
}

/// The bytes of a body and, unless it is data, the type of its value. A value that is a text or
/// bytes is as it is, any other as JSON, and so are the lists of all sequences.
fn body(payload: &Bytes, sections: &Sections) -> Result<(Vec<u8>, Option<String>), DecodeError> {
    let mut rest = payload.slice(sections.body.clone());
    let mut next = || {
        amqp::decode::take_value(&mut rest).map(|value| match value {
            Value::Described(described) => described.1,
            value => value,
        })
    };
    Ok(match sections.body_kind {
        BodyKind::None => (Vec::new(), None),
        BodyKind::Data => (batch_parts(payload, sections, MOST_PARTS)?.concat(), None),
        BodyKind::Value => {
            let value = next()?;
            let kind = type_name(&value);
            let bytes = match value {
                Value::String(text) => text.into_bytes(),
                Value::Binary(bytes) => bytes.to_vec(),
                value => json(value).to_string().into_bytes(),
            };
            (bytes, Some(kind))
        }
        BodyKind::Sequence => {
            let lists = (0..sections.body_sections.min(MOST_PARTS)).map(|_| Ok(json(next()?)));
            let lists = lists.collect::<Result<Vec<_>, DecodeError>>()?;
            let text = Json::from(lists).to_string();
            (text.into_bytes(), Some("sequence".to_owned()))
        }
    })
}

#[cfg(test)]
mod tests {
    use amqp::message::{descriptor, encode_map_section};
    use entity::rules::MessageDescription;

    use super::*;

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

    fn check_body(sections: &[Value], expected: (&str, &str)) {
        let mut payload = bytes::BytesMut::new();
        sections
            .iter()
            .for_each(|it| amqp::encode::value(&mut payload, it));
        let shown = DecodedMessage::read(&payload.freeze()).unwrap().json(1_000);
        let (kind, body) = expected;
        assert_eq!(
            Json::Object(shown),
            json!({"body-type": kind, "body": body})
        );
    }

    #[test]
    fn a_body_that_is_a_value_has_its_type() {
        let value = |value| [Value::described(descriptor::VALUE, value)];
        check_body(&value("hello".into()), ("string", "hello"));
        check_body(
            &value(Value::Binary(Bytes::from_static(b"raw"))),
            ("binary", "raw"),
        );
        check_body(
            &value(Value::Int(5)),
            ("int", r#"{"type":"int","value":5}"#),
        );
        check_body(&value(Value::Null), ("null", "null"));
        let map = Value::Map(vec![("a".into(), Value::List(vec![Value::Long(1)]))]);
        let shown = r#"{"type":"map","value":[["a",{"type":"list","value":[1]}]]}"#;
        check_body(&value(map), ("map", shown));
        let sequence =
            |n| Value::described(descriptor::SEQUENCE, Value::List(vec![Value::Long(n)]));
        let shown = r#"[{"type":"list","value":[1]},{"type":"list","value":[2]}]"#;
        check_body(&[sequence(1), sequence(2)], ("sequence", shown));
    }

    #[test]
    fn all_sections_are_shown() {
        let facts = json!({
            "durable": true, "priority": 9, "time-to-live": "PT1M", "user-id": "AQI=",
            "content-encoding": "gzip", "group-sequence": 3,
            "annotations": {"x-opt-foo": "a", "n": {"type": "int", "value": 7}},
            "body-type": "string", "body": "hello",
        });
        let mut payload = bytes::BytesMut::from(&message(facts.clone())[..]);
        let list = Value::List(vec![Value::Long(1)]);
        let footer = [(Value::Symbol("sum".into()), list)];
        encode_map_section(&mut payload, descriptor::FOOTER, &footer);
        let mut shown = DecodedMessage::read(&payload.freeze()).unwrap().json(5);
        let footer = shown.remove("footer");
        assert_eq!(footer, Some(json!({"sum": {"type": "list", "value": [1]}})));
        assert_eq!(Json::Object(shown), facts);
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

//! Received message: a message as headers and a body. (docs/spec/admin.md#11)

use amqp::message::{BodyKind, Properties, Sections, decode_map_section};
use amqp::{Value, decode};
use broker::{Browsed, GIVEN_ID, LockToken, MessageState};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use uuid::Uuid;

use super::broker_properties::ReceiverProperties;
use super::property::{self, ascii, http_time};

const BROKER_PROPERTIES: HeaderName = HeaderName::from_static("brokerproperties");
/// The time to live of a message without one: .NET's longest time span.
const FOR_EVER: f64 = 922_337_203_685.477_5;

/// The lock of a message.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    /// Its name.
    pub token: LockToken,
    /// In milliseconds since 1970, real time.
    pub until: u64,
}

/// The headers and the body of a message, which is locked unless it was received and deleted.
#[must_use]
pub fn received(message: &Browsed, lock: Option<Lock>) -> (HeaderMap, Bytes) {
    let payload = &message.payload;
    // A stored message was scanned on arrival.
    let sections = Sections::scan(payload).unwrap_or_default();
    let properties = payload.slice(sections.properties.clone());
    let properties = Properties::decode(&properties).unwrap_or_default();
    let annotations = map(&payload.slice(sections.message_annotations.clone()));
    let mut headers = HeaderMap::new();
    for (name, value) in application_properties(message, &sections) {
        if let Some((name, value)) = property::write(&name, &value) {
            headers.insert(name, value);
        }
    }
    let content_type = properties.content_type.as_ref();
    if let Some(kind) = content_type.and_then(|kind| HeaderValue::try_from(kind.as_str()).ok()) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    let broker_properties = broker_properties(message, lock, properties, &annotations);
    let broker_properties = serde_json::to_string(&broker_properties).map(|json| ascii(&json));
    if let Some(broker_properties) = broker_properties
        .ok()
        .and_then(|json| HeaderValue::try_from(json).ok())
    {
        headers.insert(BROKER_PROPERTIES, broker_properties);
    }
    (headers, body(payload, &sections))
}

fn map(section: &Bytes) -> Vec<(Value, Value)> {
    if section.is_empty() {
        return Vec::new();
    }
    decode_map_section(section).unwrap_or_default()
}

/// The properties as received, with the broker's changes.
fn application_properties(message: &Browsed, sections: &Sections) -> Vec<(String, Value)> {
    let section = message
        .payload
        .slice(sections.application_properties.clone());
    let sent = map(&section).into_iter();
    let sent = sent.filter_map(|(key, value)| Some((key.as_text()?.to_owned(), value)));
    let changes = message.changes().iter();
    let changes =
        changes.filter_map(|(name, value)| Some((name.clone(), decode::value(value).ok()?)));
    sent.chain(changes).collect()
}

fn broker_properties(
    message: &Browsed,
    lock: Option<Lock>,
    properties: Properties,
    annotations: &[(Value, Value)],
) -> ReceiverProperties {
    let time = |millis: u64| http_time(i64::try_from(millis).unwrap_or(i64::MAX));
    let annotation = |name| amqp::value::lookup(annotations, name);
    let annotated = |name| Some(annotation(name)?.as_text()?.to_owned());
    let scheduled = annotation("x-opt-scheduled-enqueue-time");
    #[allow(
        clippy::cast_precision_loss,
        reason = "a time to live of 285,000 years is not told to the millisecond"
    )]
    let time_to_live = |millis: u64| millis as f64 / 1_000.0;
    ReceiverProperties {
        // Here the first delivery is the first one. (docs/spec/admin.md#11)
        delivery_count: message.delivery_count.saturating_add(1),
        enqueued_sequence_number: message.enqueued_number.0,
        enqueued_time_utc: time(message.enqueued.0).unwrap_or_default(),
        lock_token: lock.map(|lock| Uuid::from_u128(lock.token.0).to_string()),
        locked_until_utc: lock.and_then(|lock| time(lock.until)),
        // A publisher of RabbitMQ's dialect may have given none: the broker's is beside it.
        message_id: properties
            .message_id
            .as_ref()
            .and_then(id)
            .or_else(|| annotated(GIVEN_ID))
            .or_else(|| Some(message.id_of_its_place())),
        correlation_id: properties.correlation_id.as_ref().and_then(id),
        label: properties.subject,
        to: properties.to.as_ref().and_then(id),
        reply_to: properties.reply_to.as_ref().and_then(id),
        session_id: properties.group_id,
        reply_to_session_id: properties.reply_to_group_id,
        partition_key: annotated("x-opt-partition-key"),
        via_partition_key: annotated("x-opt-via-partition-key"),
        scheduled_enqueue_time_utc: scheduled.and_then(Value::as_integer).and_then(http_time),
        sequence_number: message.number.0,
        state: match message.state {
            MessageState::Active => "Active",
            MessageState::Deferred => "Deferred",
            MessageState::Scheduled => "Scheduled",
        },
        time_to_live: message.ttl_ms.map_or(FOR_EVER, time_to_live),
    }
}

/// An id of any of AMQP's types, as text.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::Uuid(bytes) => Some(Uuid::from_bytes(*bytes).to_string()),
        Value::Binary(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        value => match value.as_text() {
            Some(text) => Some(text.to_owned()),
            None => Some(value.as_integer()?.to_string()),
        },
    }
}

/// The bytes of data sections, or a text; any other value is shown encoded.
fn body(payload: &Bytes, sections: &Sections) -> Bytes {
    let body = payload.slice(sections.body.clone());
    match sections.body_kind {
        BodyKind::None => Bytes::new(),
        BodyKind::Data => data(&body, sections.body_sections),
        BodyKind::Value | BodyKind::Sequence => match decode::value(&body) {
            Ok(Value::Described(section)) => match section.1 {
                Value::String(text) => Bytes::from(text),
                Value::Binary(bytes) => bytes,
                _ => body,
            },
            _ => body,
        },
    }
}

fn data(body: &Bytes, count: usize) -> Bytes {
    let mut rest = body.clone();
    let mut pieces = Vec::new();
    for _ in 0..count {
        let Some(piece) = next_data(&mut rest) else {
            return body.clone();
        };
        pieces.push(piece);
    }
    match &*pieces {
        [piece] => piece.clone(),
        pieces => {
            let mut whole = BytesMut::new();
            pieces
                .iter()
                .for_each(|piece| whole.extend_from_slice(piece));
            whole.freeze()
        }
    }
}

/// Takes one data section off the front: its descriptor in the shorter or the longer form, then a
/// binary of one of the two widths. [AMQP 3.2.6]
fn next_data(rest: &mut Bytes) -> Option<Bytes> {
    let descriptor = match rest.get(..2)? {
        [0x00, 0x53] => 3,
        [0x00, 0x80] => 10,
        _ => return None,
    };
    let (length, start) = match *rest.get(descriptor)? {
        0xa0 => (usize::from(*rest.get(descriptor + 1)?), descriptor + 2),
        0xb0 => {
            let length = rest.get(descriptor + 1..descriptor + 5)?;
            let length = u32::from_be_bytes(length.try_into().ok()?);
            (usize::try_from(length).ok()?, descriptor + 5)
        }
        _ => return None,
    };
    let end = start.checked_add(length).filter(|end| *end <= rest.len())?;
    let piece = rest.slice(start..end);
    *rest = rest.slice(end..);
    Some(piece)
}

#[cfg(test)]
mod tests {
    use amqp::message::encode_map_section;
    use amqp::{Symbol, descriptor};
    use broker::Wall;
    use store::{EntityId, SequenceNumber};

    use super::*;

    /// The id that is shown of a message whose properties section has `own`, and whose annotations
    /// have the one that the broker has `given`.
    fn shown_id(own: Option<&str>, given: Option<&str>) -> String {
        let mut payload = BytesMut::new();
        if let Some(given) = given {
            let key = Value::Symbol(Symbol::from(GIVEN_ID));
            let annotations = [(key, Value::from(given))];
            encode_map_section(&mut payload, descriptor::MESSAGE_ANNOTATIONS, &annotations);
        }
        if let Some(own) = own {
            let properties = Properties {
                message_id: Some(Value::from(own)),
                ..Properties::default()
            };
            properties.encode(&mut payload);
        }
        payload.extend_from_slice(b"\x00\x53\x75\xa0\x02hi");
        let message = Browsed {
            entity: EntityId(5),
            number: SequenceNumber(1),
            enqueued_number: SequenceNumber(1),
            was_forwarded: false,
            was_scheduled: false,
            lock: None,
            enqueued: Wall(1_700_000_000_000),
            ttl_ms: None,
            expires: None,
            acquired_count: 0,
            delivery_count: 0,
            state: MessageState::Active,
            payload: payload.freeze(),
            additions: None,
        };
        let (headers, body) = received(&message, None);
        assert_eq!(body, "hi");
        let shown = headers[BROKER_PROPERTIES].as_bytes();
        let shown: serde_json::Value = serde_json::from_slice(shown).unwrap();
        shown["MessageId"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_given_id_is_shown_where_a_publisher_gave_none() {
        assert_eq!(shown_id(None, Some("given")), "given");
        assert_eq!(shown_id(Some("own"), Some("given")), "own");
    }

    #[test]
    fn a_message_without_any_id_has_that_of_its_place() {
        assert_eq!(shown_id(None, None), "00000000000000050000000000000001");
    }
}

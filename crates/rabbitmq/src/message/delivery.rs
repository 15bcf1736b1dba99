//! Delivery: encodes a message for a consumer. (docs/spec/rabbitmq.md#10.2, #12.5, #16)
//!
//! Header and message annotations are written anew; the bare message is the bytes that its
//! publisher has sent, unless a Service Bus client has changed its application properties.

use amqp::items::{self, Items};
use amqp::message::{Header, Sections};
use amqp::{Symbol, Value, decode, encode};
use broker::Browsed;
use bytes::{Bytes, BytesMut};

use crate::message::{APPLICATION_PROPERTIES, EXCHANGE, MESSAGE_ANNOTATIONS, ROUTING_KEY};

/// Why a message is a dead letter, among its changed properties, and as annotations.
pub(crate) const REASON: &str = "DeadLetterReason";
const DESCRIPTION: &str = "DeadLetterErrorDescription";
const REASON_ANNOTATION: &str = "x-opt-dead-letter-reason";
const DESCRIPTION_ANNOTATION: &str = "x-opt-dead-letter-description";
const DELIVERY_COUNT: &str = "x-delivery-count";

/// Writes what is new of `message` into `head` (which is cleared first) and returns the two pieces
/// that make up the encoded message. `queue` is what the consumer reads.
pub(crate) fn encode<'a>(
    message: &'a Browsed,
    queue: &str,
    head: &'a mut BytesMut,
) -> [&'a [u8]; 2] {
    head.clear();
    let payload: &[u8] = &message.payload;
    // A stored message was scanned on arrival. If it does not scan now, it is sent as it is.
    let Ok(sections) = Sections::scan(payload) else {
        return [payload, &[]];
    };
    write_header(head, message, &payload[sections.header.clone()]);
    let section = &payload[sections.message_annotations.clone()];
    write_annotations(head, message, queue, section);
    let changes = || message.changes.iter().filter(|(name, _)| !is_why(name));
    if changes().next().is_none() {
        return [&head[..], &payload[sections.bare()]];
    }
    head.extend_from_slice(&payload[sections.properties.clone()]);
    let section = &payload[sections.application_properties.clone()];
    encode::descriptor(head, APPLICATION_PROPERTIES);
    let start = encode::map32_begin(head);
    let is_changed = |key: &str| changes().any(|(name, _)| name == key);
    let mut entries = copy(head, section, is_changed);
    for (name, value) in changes() {
        encode::string(head, name);
        head.extend_from_slice(value);
        entries += 1;
    }
    encode::map32_finish(head, start, entries);
    [&head[..], &payload[sections.body.start..]]
}

fn is_why(name: &str) -> bool {
    name == REASON || name == DESCRIPTION
}

/// The publisher's header, its time to live not counted down.
fn write_header(head: &mut BytesMut, message: &Browsed, section: &[u8]) {
    let sent = match section {
        [] => Header::default(),
        section => Header::decode(section).unwrap_or_default(),
    };
    let is_first = message.delivery_count == 0 && message.dead_letter_source.is_none();
    let header = Header {
        first_acquirer: Some(is_first),
        delivery_count: Some(message.delivery_count),
        ..sent
    };
    header.encode(head);
}

fn write_annotations(head: &mut BytesMut, message: &Browsed, queue: &str, section: &[u8]) {
    encode::descriptor(head, MESSAGE_ANNOTATIONS);
    let start = encode::map32_begin(head);
    let mut is_routed = false;
    let mut entries = copy(head, section, |key| {
        is_routed |= key == EXCHANGE;
        key == DELIVERY_COUNT
    });
    let mut put = |key: &str, write: &dyn Fn(&mut BytesMut)| {
        encode::symbol(head, key);
        write(head);
        entries += 1;
    };
    if !is_routed {
        put(EXCHANGE, &|out| encode::string(out, ""));
        put(ROUTING_KEY, &|out| encode::string(out, queue));
    }
    if message.delivery_count > 0 {
        let count = message.delivery_count.into();
        put(DELIVERY_COUNT, &|out| encode::long(out, count));
    }
    let names = [
        (REASON, REASON_ANNOTATION),
        (DESCRIPTION, DESCRIPTION_ANNOTATION),
    ];
    for (name, annotation) in names {
        let mut changes = message.changes.iter();
        if let Some((_, value)) = changes.find(|(key, _)| key == name) {
            put(annotation, &|out| out.extend_from_slice(value));
        }
    }
    if let Some(source) = &message.dead_letter_source {
        write_death(&mut put, message, source);
    }
    encode::map32_finish(head, start, entries);
}

/// What RabbitMQ tells of a message that was dead-lettered out of a queue. The broker remembers its
/// last death.
fn write_death(
    put: &mut impl FnMut(&str, &dyn Fn(&mut BytesMut)),
    message: &Browsed,
    source: &str,
) {
    let mut changes = message.changes.iter();
    let reason = changes.find(|(name, _)| name == REASON);
    let reason = reason.and_then(|(_, value)| decode::value(&Bytes::clone(value)).ok());
    let reason = reason_of(reason.as_ref().and_then(Value::as_text).unwrap_or_default());
    let time = i64::try_from(message.enqueued.0).unwrap_or(i64::MAX);
    let death = vec![
        ("queue", Value::from(source)),
        ("reason", Value::Symbol(Symbol::new(reason))),
        ("count", Value::Ulong(1)),
        ("first-time", Value::Timestamp(time)),
        ("last-time", Value::Timestamp(time)),
        ("exchange", Value::from("")),
        ("routing-keys", Value::Array(vec![Value::from(source)])),
    ];
    let death = death.into_iter();
    let death = death.map(|(key, value)| (Value::Symbol(Symbol::new(key)), value));
    let deaths = Value::Array(vec![Value::Map(death.collect())]);
    put("x-opt-deaths", &|out| encode::value(out, &deaths));
    for (queue_key, reason_key, exchange_key) in [
        (
            "x-first-death-queue",
            "x-first-death-reason",
            "x-first-death-exchange",
        ),
        (
            "x-last-death-queue",
            "x-last-death-reason",
            "x-last-death-exchange",
        ),
    ] {
        put(queue_key, &|out| encode::string(out, source));
        put(reason_key, &|out| encode::string(out, reason));
        put(exchange_key, &|out| encode::string(out, ""));
    }
}

/// RabbitMQ's word for the reason of a dead letter.
fn reason_of(reason: &str) -> &'static str {
    match reason {
        "TTLExpiredException" => "expired",
        "MaxDeliveryCountExceeded" => "delivery_limit",
        "MaxLengthExceeded" => "maxlen",
        _ => "rejected",
    }
}

/// Copies the entries of a section but those that are `left_out`, and counts them.
fn copy(head: &mut BytesMut, section: &[u8], mut left_out: impl FnMut(&str) -> bool) -> usize {
    let mut entries = 0;
    let mut fields = Items::of(section).unwrap_or(Items::NONE);
    while let Ok(Some((key, value))) = fields.next_entry() {
        if !items::text(key).is_some_and(&mut left_out) {
            head.extend_from_slice(key);
            head.extend_from_slice(value);
            entries += 1;
        }
    }
    entries
}

//! Delivery: encodes a message for a consumer. (docs/spec/rabbitmq.md#10.2, #12.5, #16)
//!
//! Header and message annotations are written anew; the bare message is the bytes that its
//! publisher has sent, unless a Service Bus client has changed its application properties. The id
//! that the broker gave a message without one is not shown.

use amqp::encode;
use amqp::items;
use amqp::message::{Header, Sections};
use broker::{Browsed, GIVEN_ID, ROUTER, ROUTING_KEY};
use bytes::BytesMut;

use crate::message::{APPLICATION_PROPERTIES, MESSAGE_ANNOTATIONS, deaths};

/// Why a message is a dead letter, among its changed properties, and as annotations.
pub(crate) const REASON: &str = "DeadLetterReason";
/// The reason of what a client rejects.
pub(crate) const REJECTED: &str = "rejected";
const DESCRIPTION: &str = "DeadLetterErrorDescription";
const REASON_ANNOTATION: &str = "x-opt-dead-letter-reason";
const DESCRIPTION_ANNOTATION: &str = "x-opt-dead-letter-description";
/// Reasons that deaths tell.
const REASONS: [&str; 4] = [
    REJECTED,
    "TTLExpiredException",
    "MaxDeliveryCountExceeded",
    "MaxLengthExceeded",
];
const DELIVERY_COUNT: &str = "x-delivery-count";
const ACQUIRED_COUNT: &str = "x-acquired-count";

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
    let changes = || message.changes().iter().filter(|(name, _)| !is_why(name));
    if changes().next().is_none() {
        return [&head[..], &payload[sections.bare()]];
    }
    head.extend_from_slice(&payload[sections.properties.clone()]);
    let section = &payload[sections.application_properties.clone()];
    encode::descriptor(head, APPLICATION_PROPERTIES);
    let start = encode::map32_begin(head);
    let mut entries = items::copy_entries(head, section, |key, _| {
        changes().any(|(name, _)| name == key)
    });
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

/// Failed deliveries in the queues that it has died in.
fn failed_before(message: &Browsed) -> u32 {
    message.deaths().map_or(0, |deaths| deaths.failed)
}

/// The publisher's header, its time to live not counted down.
fn write_header(head: &mut BytesMut, message: &Browsed, section: &[u8]) {
    let sent = match section {
        [] => Header::default(),
        section => Header::decode(section).unwrap_or_default(),
    };
    let deaths = message.deaths();
    let header = Header {
        // A message that has died has no time to live of its own any more.
        ttl: sent.ttl.filter(|_| deaths.is_none()),
        first_acquirer: Some(message.acquired_count == 0 && deaths.is_none()),
        delivery_count: Some(
            message
                .delivery_count
                .saturating_add(failed_before(message)),
        ),
        ..sent
    };
    header.encode(head);
}

fn write_annotations(head: &mut BytesMut, message: &Browsed, queue: &str, section: &[u8]) {
    encode::descriptor(head, MESSAGE_ANNOTATIONS);
    let start = encode::map32_begin(head);
    let changes = || message.annotations().iter();
    // A publisher may send a dead letter again, with the annotations that it was given.
    let has_died = message.deaths().is_some() || reason(message).is_some();
    let mut is_routed = changes().any(|(name, _)| name == ROUTER);
    let mut entries = items::copy_entries(head, section, |key, _| {
        is_routed |= key == ROUTER;
        matches!(key, ACQUIRED_COUNT | DELIVERY_COUNT | GIVEN_ID)
            || has_died && is_of_dead_letters(key)
            || changes().any(|(name, _)| name == key)
    });
    let mut put = |key: &str, write: &dyn Fn(&mut BytesMut)| {
        encode::symbol(head, key);
        write(head);
        entries += 1;
    };
    for (name, value) in changes().filter(|(_, value)| **value != [items::NULL]) {
        put(name, &|out| out.extend_from_slice(value));
    }
    if !is_routed {
        put(ROUTER, &|out| encode::string(out, ""));
        put(ROUTING_KEY, &|out| encode::string(out, queue));
    }
    let counts = [
        (ACQUIRED_COUNT, message.acquired_count),
        (DELIVERY_COUNT, message.delivery_count),
    ];
    for (name, count) in counts {
        let count = count.saturating_add(failed_before(message));
        if count > 0 {
            put(name, &|out| encode::long(out, count.into()));
        }
    }
    if let Some(deaths) = message.deaths() {
        deaths::write(&mut put, &deaths.list);
    }
    write_reason(&mut put, message);
    encode::map32_finish(head, start, entries);
}

/// Whether only the broker writes an annotation of a message that has died.
fn is_of_dead_letters(key: &str) -> bool {
    matches!(key, REASON_ANNOTATION | DESCRIPTION_ANNOTATION) || deaths::is_of_deaths(key)
}

/// Why a message is a dead letter, or was one, if that is a text.
fn reason(message: &Browsed) -> Option<&str> {
    let (_, value) = message.changes().iter().find(|(key, _)| key == REASON)?;
    items::text(value)
}

/// Why a message of a dead-letter queue is there; of one that has left it, what its deaths do not
/// say: a reason in the words of a client.
fn write_reason(put: &mut impl FnMut(&str, &dyn Fn(&mut BytesMut)), message: &Browsed) {
    let reason = reason(message);
    if message.deaths().is_some() && reason.is_none_or(|reason| REASONS.contains(&reason)) {
        return;
    }
    let names = [
        (REASON, REASON_ANNOTATION),
        (DESCRIPTION, DESCRIPTION_ANNOTATION),
    ];
    for (name, annotation) in names {
        let mut changes = message.changes().iter();
        if let Some((_, value)) = changes.find(|(key, _)| key == name) {
            put(annotation, &|out| out.extend_from_slice(value));
        }
    }
}

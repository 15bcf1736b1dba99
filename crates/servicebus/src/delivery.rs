//! Delivery: encoding a message for a receiver or browser. (Wire contract 4.1-4.4)
//!
//! Header and annotations are fresh; the bare message goes out as the bytes it came in. Only two
//! of its sections are ever rewritten, each by itself: the properties when the message expires
//! (absolute-expiry-time), the application properties when the broker changes some.
//! Everything is written directly into a buffer that its owner reuses.

use amqp::encode;
use amqp::message::{BodyKind, Header, Sections};
use broker::{Browsed, LockToken};
use bytes::{BufMut, Bytes, BytesMut};

use crate::fields::{self, Items};

/// A data section of nothing, for messages that came without a body. (Wire contract 4.1)
const EMPTY_DATA: &[u8] = b"\x00\x53\x75\xa0\x00";

/// Annotations that only the broker sets: each key encoded, with the format code of its value.
const LOCK_TOKEN: &[u8] = b"\xa3\x10x-opt-lock-token\x98";
const ENQUEUED_TIME: &[u8] = b"\xa3\x13x-opt-enqueued-time\x83";
const SEQUENCE_NUMBER: &[u8] = b"\xa3\x15x-opt-sequence-number\x81";
const ENQUEUE_SEQUENCE_NUMBER: &[u8] = b"\xa3\x1dx-opt-enqueue-sequence-number\x81";
const LOCKED_UNTIL: &[u8] = b"\xa3\x12x-opt-locked-until\x83";
const DEADLETTER_SOURCE: &[u8] = b"\xa3\x17x-opt-deadletter-source";
const MESSAGE_STATE: &[u8] = b"\xa3\x13x-opt-message-state\x54";

/// Annotations of a sender that are not passed on: the broker alone says these.
const OWN: [&str; 8] = [
    "x-opt-enqueued-time",
    "x-opt-sequence-number",
    "x-opt-enqueue-sequence-number",
    "x-opt-locked-until",
    "x-opt-message-state",
    "x-opt-lock-token",
    "x-opt-deadletter-source",
    "x-opt-partition-id",
];

/// Fields of the properties list, and where the time of expiry stands in it. [AMQP 3.2.4]
const PROPERTIES_FIELDS: usize = 13;
const ABSOLUTE_EXPIRY_TIME: usize = 8;

/// A lock that goes with a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    pub(crate) token: LockToken,
    /// Milliseconds since the Unix epoch on the machine's real clock; `None` when received and deleted.
    pub(crate) until: Option<u64>,
}

/// The token's 16 bytes as a delivery tag: a GUID as .NET lays it out. (Wire contract 4.3)
pub(crate) fn tag(token: LockToken) -> [u8; 16] {
    let mut bytes = token.0.to_be_bytes();
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

/// Writes what is new of `message` into `head` (which is cleared first) and returns the pieces that
/// make up the encoded message. `lock` is absent when browsing.
pub(crate) fn encode<'a>(
    message: &'a Browsed,
    lock: Option<Lock>,
    head: &'a mut BytesMut,
) -> [&'a [u8]; 4] {
    head.clear();
    let payload: &[u8] = &message.payload;
    // What is stored was scanned when it came in. Should it not scan now, it is handed out as it is.
    let Ok(sections) = Sections::scan(payload) else {
        return [payload, &[], &[], &[]];
    };
    write_header(head, message, &payload[sections.header.clone()]);
    if let Some(lock) = lock {
        write_delivery_annotations(head, lock.token);
    }
    let until = lock.and_then(|lock| lock.until);
    write_annotations(
        head,
        message,
        until,
        &payload[sections.message_annotations.clone()],
    );

    let ends = Ends::of(&sections, payload.len());
    let untouched = write_changed(head, message, payload, &sections, &ends);
    let body: &[u8] = if sections.body_kind == BodyKind::None {
        EMPTY_DATA
    } else {
        &[]
    };
    [
        &head[..],
        &payload[untouched..ends.body],
        body,
        &payload[ends.body..],
    ]
}

/// A message as browsers are shown it, encoded.
#[must_use]
pub fn browsed(message: &Browsed) -> Bytes {
    let mut head = BytesMut::new();
    let pieces = encode(message, None, &mut head);
    Bytes::from(pieces.concat())
}

/// Takes body and footer off a message for those who do not want them; it goes out as one that came
/// without a body.
pub(crate) fn remove_body(message: &mut Browsed) {
    if let Ok(sections) = Sections::scan(&message.payload) {
        let end = Ends::of(&sections, message.payload.len()).application_properties;
        message.payload.truncate(end);
    }
}

/// Where the parts of the bare message end, absent ones included.
struct Ends {
    annotations: usize,
    properties: usize,
    application_properties: usize,
    body: usize,
}

impl Ends {
    fn of(sections: &Sections, length: usize) -> Self {
        let ranges = [
            &sections.header,
            &sections.delivery_annotations,
            &sections.message_annotations,
        ];
        let annotations = ranges.iter().fold(0, |end, range| range.end.max(end));
        let properties = sections.properties.end.max(annotations);
        let application_properties = sections.application_properties.end.max(properties);
        let body = if sections.footer.is_empty() {
            length
        } else {
            sections.footer.start
        };
        Self {
            annotations,
            properties,
            application_properties,
            body,
        }
    }
}

/// Writes those sections of the bare message that change, with all before them, and says where
/// the rest begins.
fn write_changed(
    head: &mut BytesMut,
    message: &Browsed,
    payload: &[u8],
    sections: &Sections,
    ends: &Ends,
) -> usize {
    let mut untouched = ends.annotations;
    if let Some(expires) = message.expires.filter(|_| message.ttl_ms.is_some()) {
        write_properties(head, &payload[sections.properties.clone()], expires.0);
        untouched = ends.properties;
    }
    if !message.changes.is_empty() {
        head.extend_from_slice(&payload[untouched..ends.properties]);
        write_application_properties(
            head,
            &payload[sections.application_properties.clone()],
            &message.changes,
        );
        untouched = ends.application_properties;
    }
    untouched
}

/// All five fields. The count is of failures before this delivery, told also when it is 0. (Wire contract 4.4)
fn write_header(head: &mut BytesMut, message: &Browsed, section: &[u8]) {
    let sent = if section.is_empty() {
        Header::default()
    } else {
        Header::decode(section).unwrap_or_default()
    };
    let ttl = message
        .ttl_ms
        .map(|ttl| u32::try_from(ttl).unwrap_or(u32::MAX));
    let header = Header {
        ttl,
        delivery_count: Some(message.delivery_count),
        ..sent
    };
    header.encode(head);
}

fn write_delivery_annotations(head: &mut BytesMut, token: LockToken) {
    // One entry of known size: a map8 of key, format code and 16 bytes.
    let size = u8::try_from(1 + LOCK_TOKEN.len() + 16).expect("a short key");
    encode::descriptor(head, 0x71);
    head.extend_from_slice(&[0xc1, size, 2]);
    head.extend_from_slice(LOCK_TOKEN);
    head.put_u128(token.0);
}

/// The sender's own annotations, then the broker's.
fn write_annotations(head: &mut BytesMut, message: &Browsed, until: Option<u64>, section: &[u8]) {
    encode::descriptor(head, 0x72);
    let start = encode::map32_begin(head);
    let mut entries = copy_annotations(head, section);
    let number = signed(message.number.0);
    let times_and_numbers = [
        (ENQUEUED_TIME, Some(signed(message.enqueued.0))),
        (SEQUENCE_NUMBER, Some(number)),
        (
            ENQUEUE_SEQUENCE_NUMBER,
            Some(signed(message.enqueued_number.0)),
        ),
        (LOCKED_UNTIL, until.map(signed)),
    ];
    for (key, value) in times_and_numbers {
        if let Some(value) = value {
            head.extend_from_slice(key);
            head.put_i64(value);
            entries += 1;
        }
    }
    if let Some(source) = &message.dead_letter_source {
        head.extend_from_slice(DEADLETTER_SOURCE);
        encode::string(head, source);
        entries += 1;
    }
    head.extend_from_slice(MESSAGE_STATE);
    head.put_i8(message.state as i8);
    encode::map32_finish(head, start, entries + 1);
}

fn copy_annotations(head: &mut BytesMut, section: &[u8]) -> usize {
    let mut entries = 0;
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    while let Ok(Some((key, value))) = items.next_entry() {
        if !fields::text(key).is_some_and(|key| OWN.contains(&key)) {
            head.extend_from_slice(key);
            head.extend_from_slice(value);
            entries += 1;
        }
    }
    entries
}

/// The properties as they came, but for the time of expiry. All thirteen fields are written.
fn write_properties(head: &mut BytesMut, section: &[u8], expires: u64) {
    encode::descriptor(head, 0x73);
    let start = encode::list32_begin(head);
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    for position in 0..PROPERTIES_FIELDS {
        let item = items.next().ok().flatten().unwrap_or(&[fields::NULL]);
        if position == ABSOLUTE_EXPIRY_TIME {
            encode::timestamp(head, signed(expires));
        } else {
            head.extend_from_slice(item);
        }
    }
    encode::list32_finish(head, start, PROPERTIES_FIELDS);
}

/// The application properties as they came, with some added or overwritten.
fn write_application_properties(
    head: &mut BytesMut,
    section: &[u8],
    changes: &[(String, bytes::Bytes)],
) {
    encode::descriptor(head, 0x74);
    let start = encode::map32_begin(head);
    let mut entries = changes.len();
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    while let Ok(Some((key, value))) = items.next_entry() {
        let name = fields::text(key);
        if !changes
            .iter()
            .any(|(changed, _)| Some(changed.as_str()) == name)
        {
            head.extend_from_slice(key);
            head.extend_from_slice(value);
            entries += 1;
        }
    }
    for (name, value) in changes {
        encode::string(head, name);
        head.extend_from_slice(value);
    }
    encode::map32_finish(head, start, entries);
}

/// Times and numbers are signed on the wire; what does not fit is as far away as can be said.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;

//! Delivery: encodes a message for a receiver or browser. (docs/spec/amqp.md#4.1 to #4.4)
//!
//! Header and annotations are written anew; the bare message is sent as the bytes that were
//! received. Only two of its sections are ever rewritten, each by itself: the properties when the
//! message expires (creation-time and absolute-expiry-time) or has no id there, and the application
//! properties when the broker changes some of them. The output goes directly into a buffer that its
//! owner reuses.
//!
//! A message has no id among its properties if a publisher of RabbitMQ's dialect gave it none (then
//! its annotations have one), if an older version stored it so, or if a rule's action removed it.

use amqp::encode;
use amqp::message::{Header, Sections};
use broker::{Browsed, LockTime, LockToken};
use bytes::{Bytes, BytesMut};

mod annotations;

use amqp::items::{self, Items};

/// Fields of the properties list, and the positions of some of them. [AMQP 3.2.4]
const PROPERTIES_FIELDS: usize = 13;
const MESSAGE_ID: usize = 0;
const ABSOLUTE_EXPIRY_TIME: usize = 8;
const CREATION_TIME: usize = 9;

/// How a message is delivered, which decides the annotations of the broker.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View {
    /// Over a link: locked, or received and deleted, or browsed.
    Link(Option<Lock>),
    /// By its number: locked, or received and deleted.
    Deferred(Option<Lock>),
    /// By a peek, with the end of the message's lock.
    Peek(LockedUntil),
}

/// The lock of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    pub(crate) token: LockToken,
    pub(crate) until: LockedUntil,
}

/// When a lock ends, in milliseconds since the Unix epoch on the machine's real clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LockedUntil(pub(crate) i64);

impl LockedUntil {
    /// The year 1: the message is not locked, or its lock has no deadline.
    /// (docs/spec/entities.md#13)
    pub(crate) const UNLOCKED: Self = Self(-62_135_596_800_000);
    /// The end of the year 9999: as long as its session is held. (docs/spec/amqp.md#3.4)
    pub(crate) const LASTING: Self = Self(253_402_300_799_999);

    /// At `now`, in milliseconds since the Unix epoch.
    pub(crate) fn of(lock: Option<LockTime>, now: u64) -> Self {
        match lock {
            None | Some(LockTime::WithReceiver) => Self::UNLOCKED,
            Some(LockTime::Own(left)) => Self(signed(now.saturating_add(left))),
            Some(LockTime::WithSession(_)) => Self::LASTING,
        }
    }
}

/// The token's 16 bytes as a delivery tag: a GUID as .NET lays it out. (docs/spec/amqp.md#4.3)
pub(crate) fn tag(token: LockToken) -> [u8; 16] {
    let mut bytes = token.0.to_be_bytes();
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

/// Writes what is new of `message` into `head` (which is cleared first) and returns the two pieces
/// that make up the encoded message.
pub(crate) fn encode<'a>(
    message: &'a Browsed,
    view: View,
    head: &'a mut BytesMut,
) -> [&'a [u8]; 2] {
    head.clear();
    let payload: &[u8] = &message.payload;
    // A stored message was scanned on arrival. If it does not scan now, it is sent as it is.
    let Ok(sections) = Sections::scan(payload) else {
        return [payload, &[]];
    };
    write_header(head, message, &payload[sections.header.clone()]);
    annotations::write_delivery(head, view, &payload[sections.delivery_annotations.clone()]);
    let sent = &payload[sections.message_annotations.clone()];
    let given_id = annotations::write_message(head, message, view, sent);

    let ends = SectionEnds::of(&sections);
    let untouched = write_changed(head, message, given_id, payload, &sections, &ends);
    [&head[..], &payload[untouched..]]
}

/// An unlocked message as a peek returns it, encoded.
#[must_use]
pub fn browsed(message: &Browsed) -> Bytes {
    let mut head = BytesMut::new();
    let pieces = encode(message, View::Peek(LockedUntil::UNLOCKED), &mut head);
    Bytes::from(pieces.concat())
}

/// Removes the body sections; all others stay, the footer included. (docs/spec/amqp.md#4.1)
pub(crate) fn remove_body(message: &mut Browsed) {
    if let Ok(sections) = Sections::scan(&message.payload) {
        let before = &message.payload[..SectionEnds::of(&sections).application_properties];
        let footer = &message.payload[sections.footer];
        message.payload = Bytes::from([before, footer].concat());
    }
}

/// Where the parts of the bare message end, absent ones included.
struct SectionEnds {
    annotations: usize,
    properties: usize,
    application_properties: usize,
}

impl SectionEnds {
    fn of(sections: &Sections) -> Self {
        let ranges = [
            &sections.header,
            &sections.delivery_annotations,
            &sections.message_annotations,
        ];
        let annotations = ranges.iter().fold(0, |end, range| range.end.max(end));
        let properties = sections.properties.end.max(annotations);
        let application_properties = sections.application_properties.end.max(properties);
        Self {
            annotations,
            properties,
            application_properties,
        }
    }
}

/// Writes those sections of the bare message that change, with all before them, and says where
/// the rest begins.
fn write_changed(
    head: &mut BytesMut,
    message: &Browsed,
    given_id: Option<&[u8]>,
    payload: &[u8],
    sections: &Sections,
    ends: &SectionEnds,
) -> usize {
    let mut untouched = ends.annotations;
    let section = &payload[sections.properties.clone()];
    let id_of_its_place;
    let given_id = if !lacks_message_id(section) {
        None
    } else if given_id.is_some() {
        given_id
    } else {
        id_of_its_place = encoded_id(message);
        Some(&id_of_its_place[..])
    };
    if message.ttl_ms.is_some() || given_id.is_some() {
        write_properties(head, section, message, given_id);
        untouched = ends.properties;
    }
    if !message.changes().is_empty() {
        head.extend_from_slice(&payload[untouched..ends.properties]);
        write_application_properties(
            head,
            &payload[sections.application_properties.clone()],
            message.changes(),
        );
        untouched = ends.application_properties;
    }
    untouched
}

/// All five fields. The count is of failures before this delivery, written also when it is 0.
/// (docs/spec/amqp.md#4.4)
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

/// The properties as they came, but for the id that the broker gave, if any, and for the time of
/// expiry of a message with a time to live: its time of creation plus the time to live. Without a
/// creation time the enqueued time counts. All thirteen fields are written.
/// (docs/spec/entities.md#7.1)
fn write_properties(
    head: &mut BytesMut,
    section: &[u8],
    message: &Browsed,
    given_id: Option<&[u8]>,
) {
    let times = message.ttl_ms.map(|ttl| {
        let created = creation_time(section).unwrap_or(signed(message.enqueued.0));
        (created, created.saturating_add(signed(ttl)))
    });
    encode::descriptor(head, 0x73);
    let start = encode::list32_begin(head);
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    for position in 0..PROPERTIES_FIELDS {
        let item = items.next().ok().flatten().unwrap_or(&[items::NULL]);
        match (position, given_id, times) {
            (MESSAGE_ID, Some(id), _) => head.extend_from_slice(id),
            (ABSOLUTE_EXPIRY_TIME, _, Some((_, expires))) => encode::timestamp(head, expires),
            (CREATION_TIME, _, Some((created, _))) => encode::timestamp(head, created),
            _ => head.extend_from_slice(item),
        }
    }
    encode::list32_finish(head, start, PROPERTIES_FIELDS);
}

/// Whether properties have no id. Those that cannot be read are left as they are.
fn lacks_message_id(section: &[u8]) -> bool {
    let first = Items::of(section).and_then(|mut items| items.next());
    first.is_ok_and(|first| first.is_none_or(|id| id == [items::NULL]))
}

/// The id of a message that has none.
fn encoded_id(message: &Browsed) -> BytesMut {
    let mut id = BytesMut::new();
    encode::string(&mut id, &message.id_of_its_place());
    id
}

fn creation_time(section: &[u8]) -> Option<i64> {
    let mut items = Items::of(section).ok()?;
    for _ in 0..CREATION_TIME {
        items.next().ok()??;
    }
    items::integer(items.next().ok()??)
}

/// The application properties as they came, with some added or overwritten.
fn write_application_properties(head: &mut BytesMut, section: &[u8], changes: &[(String, Bytes)]) {
    encode::descriptor(head, 0x74);
    let start = encode::map32_begin(head);
    let mut entries = changes.len();
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    while let Ok(Some((key, value))) = items.next_entry() {
        let name = items::text(key);
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

/// Times and numbers are signed on the wire; a larger value becomes the maximum.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;

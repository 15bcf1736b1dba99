//! Values: the encoding of rows, heads, definitions and chunks of bodies.
//!
//! A message's row leaves out fields with their usual value, so most take 13 bytes, and 29 more
//! with the location of the body that came with it. Decoding trusts nothing and never panics.

use bytes::Bytes;
use store::{
    BodyPointer, EntityId, EntityRow, Head, MessageRow, NamespaceId, Part, PartHead,
    SequenceNumber, StoreError,
};

use crate::chunk::LOCATION;
use crate::key::{self, KeyKind};

/// The version of the layout of the store: with 2 came the journal, with 3 large bodies in files of
/// their own, with 4 the places of bodies in rows, with 5 the periods of remembered message ids,
/// with 6 records that tell whether everything before them was synced, with 7 session ids that are
/// folded, with 8 routers, with 9 namespaces, with 10 copies of entities.
pub const FORMAT: u32 = 10;

/// Set in a row's first byte where a field follows that is not at its usual value.
mod tag {
    pub const BODY: u8 = 1;
    pub const TTL: u8 = 2;
    pub const EXPIRES: u8 = 4;
    pub const SESSION: u8 = 8;
    pub const FLAGS: u8 = 16;
    pub const ENQUEUED_NUMBER: u8 = 32;
    /// The place of the message's own body, behind all else.
    pub const LOCATION: u8 = 64;
    pub const ALL: u8 = 127;
}

/// Where a head goes on with something else than a part.
mod field {
    /// Before format 5: ids were remembered from this moment on.
    pub const DUPLICATES_FROM: u8 = 0x81;
    pub const SCHEDULE_FROM: u8 = 0x82;
    pub const SESSION_STATES: u8 = 0x83;
    pub const ACCESSED: u8 = 0x84;
    pub const PERIODS: u8 = 0x85;
}

/// A short value on the stack.
pub struct ShortValue {
    bytes: [u8; 96],
    len: usize,
}

impl ShortValue {
    fn new() -> Self {
        Self {
            bytes: [0; 96],
            len: 0,
        }
    }

    fn add<const N: usize>(&mut self, field: [u8; N]) {
        self.bytes[self.len..self.len + N].copy_from_slice(&field);
        self.len += N;
    }
}

impl AsRef<[u8]> for ShortValue {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Encodes the row of a message at its place: a pointer to its own number is left out.
pub fn encode_row(entity: EntityId, number: SequenceNumber, row: &MessageRow) -> ShortValue {
    let own = BodyPointer {
        home: entity,
        number,
    };
    let mut value = ShortValue::new();
    value.add([0]);
    value.add(row.enqueued_ms.to_be_bytes());
    value.add(row.size.to_be_bytes());
    let mut tags = 0;
    if row.body != own {
        tags |= tag::BODY;
        value.add(row.body.home.0.to_be_bytes());
        value.add(row.body.number.0.to_be_bytes());
    }
    if row.ttl_ms != u64::MAX {
        tags |= tag::TTL;
        value.add(row.ttl_ms.to_be_bytes());
    }
    if row.expires_ms != u64::MAX {
        tags |= tag::EXPIRES;
        value.add(row.expires_ms.to_be_bytes());
    }
    if row.session_hash != 0 {
        tags |= tag::SESSION;
        value.add(row.session_hash.to_be_bytes());
    }
    if row.flags != 0 {
        tags |= tag::FLAGS;
        value.add(row.flags.to_be_bytes());
    }
    if row.enqueued_number != 0 {
        tags |= tag::ENQUEUED_NUMBER;
        value.add(row.enqueued_number.to_be_bytes());
    }
    value.bytes[0] = tags;
    value
}

/// Adds the place of the message's own body to its row.
pub fn add_location(row: &mut ShortValue, location: [u8; LOCATION]) {
    row.bytes[0] |= tag::LOCATION;
    row.add(location);
}

/// The place of the message's own body in its row, as a value of the `body` family.
pub fn location_in_row(value: &[u8]) -> Option<&[u8; LOCATION]> {
    let has_place = value.first()? & tag::LOCATION != 0;
    has_place.then(|| value.last_chunk()).flatten()
}

/// Decodes the row of the message at its place.
pub fn decode_row(
    entity: EntityId,
    number: SequenceNumber,
    value: &[u8],
) -> Result<MessageRow, StoreError> {
    let detail = || format!("{entity:?} {number}: {} bytes", value.len());
    parse_row(entity, number, value).ok_or_else(|| damaged("a message's row", detail()))
}

fn parse_row(entity: EntityId, number: SequenceNumber, value: &[u8]) -> Option<MessageRow> {
    let mut fields = Fields(value);
    let tags = fields.u8()?;
    let has = |tag| tags & tag != 0;
    let mut row = MessageRow {
        enqueued_ms: fields.u64()?,
        size: fields.u32()?,
        ttl_ms: u64::MAX,
        expires_ms: u64::MAX,
        flags: 0,
        session_hash: 0,
        enqueued_number: 0,
        body: BodyPointer {
            home: entity,
            number,
        },
    };
    if has(tag::BODY) {
        let (home, number) = (EntityId(fields.u64()?), SequenceNumber(fields.u64()?));
        row.body = BodyPointer { home, number };
    }
    if has(tag::TTL) {
        row.ttl_ms = fields.u64()?;
    }
    if has(tag::EXPIRES) {
        row.expires_ms = fields.u64()?;
    }
    if has(tag::SESSION) {
        row.session_hash = fields.u64()?;
    }
    if has(tag::FLAGS) {
        row.flags = fields.u32()?;
    }
    if has(tag::ENQUEUED_NUMBER) {
        row.enqueued_number = fields.u64()?;
    }
    let rest = if has(tag::LOCATION) { LOCATION } else { 0 };
    (fields.0.len() == rest && tags & !tag::ALL == 0).then_some(row)
}

/// Encodes a head into `value`; parts that never had a message take no space.
pub fn encode_head(head: &Head, value: &mut Vec<u8>) {
    value.clear();
    value.extend_from_slice(&head.next_number.0.to_be_bytes());
    value.extend_from_slice(&head.last_enqueued_ms.to_be_bytes());
    for (index, part) in (0_u8..).zip(head.parts.iter()) {
        if *part != PartHead::default() {
            value.push(index);
            encode_part(part, value);
        }
    }
    encode_periods(&head.periods, value);
    if head.schedule_from != Head::empty().schedule_from {
        let (due_ms, number) = head.schedule_from;
        value.push(field::SCHEDULE_FROM);
        value.extend_from_slice(&due_ms.to_be_bytes());
        value.extend_from_slice(&number.0.to_be_bytes());
    }
    if head.session_state_bytes != 0 {
        value.push(field::SESSION_STATES);
        value.extend_from_slice(&head.session_state_bytes.to_be_bytes());
    }
    if head.accessed_ms != 0 {
        value.push(field::ACCESSED);
        value.extend_from_slice(&head.accessed_ms.to_be_bytes());
    }
}

/// Always there, since a head without them is of an earlier format.
fn encode_periods(periods: &[u64], value: &mut Vec<u8>) {
    let count = u8::try_from(periods.len()).expect("a head has few periods");
    value.extend_from_slice(&[field::PERIODS, count]);
    for start in periods {
        value.extend_from_slice(&start.to_be_bytes());
    }
}

fn encode_part(part: &PartHead, value: &mut Vec<u8>) {
    let stragglers = u16::try_from(part.stragglers.len());
    let stragglers = stragglers.expect("a head has few stragglers");
    value.extend_from_slice(&part.count.to_be_bytes());
    value.extend_from_slice(&part.bytes.to_be_bytes());
    value.extend_from_slice(&part.resume.to_be_bytes());
    value.extend_from_slice(&stragglers.to_be_bytes());
    for number in &part.stragglers {
        value.extend_from_slice(&number.0.to_be_bytes());
    }
}

/// Decodes a head.
pub fn decode_head(entity: EntityId, value: &[u8]) -> Result<Head, StoreError> {
    parse_head(value).ok_or_else(|| damaged("a head", format!("{entity:?}")))
}

fn parse_head(value: &[u8]) -> Option<Head> {
    let mut fields = Fields(value);
    let mut head = Head::empty();
    head.next_number = SequenceNumber(fields.u64()?);
    head.last_enqueued_ms = fields.u64()?;
    // What an earlier format remembers is a period of its own.
    head.periods = vec![0];
    while !fields.0.is_empty() {
        match fields.u8()? {
            field::DUPLICATES_FROM => drop(fields.u64()?),
            field::PERIODS => head.periods = parse_periods(&mut fields)?,
            field::SCHEDULE_FROM => {
                head.schedule_from = (fields.u64()?, SequenceNumber(fields.u64()?));
            }
            field::SESSION_STATES => head.session_state_bytes = fields.u64()?,
            field::ACCESSED => head.accessed_ms = fields.u64()?,
            part => parse_part(
                head.part_mut(*Part::ALL.get(usize::from(part))?),
                &mut fields,
            )?,
        }
    }
    is_sound(&head).then_some(head)
}

fn parse_periods(fields: &mut Fields<'_>) -> Option<Vec<u64>> {
    (0..fields.u8()?).map(|_| fields.u64()).collect()
}

fn parse_part(part: &mut PartHead, fields: &mut Fields<'_>) -> Option<()> {
    part.count = fields.u64()?;
    part.bytes = fields.u64()?;
    part.resume = fields.u64()?;
    for _ in 0..fields.u16()? {
        part.stragglers.push(SequenceNumber(fields.u64()?));
    }
    Some(())
}

/// What the broker relies on without looking: room for more numbers, stragglers that ascend, and
/// few periods that do too.
fn is_sound(head: &Head) -> bool {
    head.next_number < SequenceNumber::MAX
        && head.periods.len() <= Head::MAX_PERIODS
        && head.periods.is_sorted_by(|one, other| one < other)
        && head.parts.iter().all(|part| {
            part.resume < u64::MAX && part.stragglers.is_sorted_by(|one, other| one < other)
        })
}

/// Encodes a definition.
pub fn encode_entity(row: &EntityRow) -> Vec<u8> {
    let path = u32::try_from(row.path.len()).expect("a path is short");
    let mut value = Vec::with_capacity(8 + row.path.len() + row.definition.len());
    value.extend_from_slice(&row.namespace.0.to_be_bytes());
    value.extend_from_slice(&path.to_be_bytes());
    value.extend_from_slice(row.path.as_bytes());
    value.extend_from_slice(&row.definition);
    value
}

/// Decodes a definition.
pub fn decode_entity(key: &[u8], value: &[u8]) -> Result<EntityRow, StoreError> {
    parse_entity(key, value).ok_or_else(|| damaged("a definition", format!("key {key:02x?}")))
}

fn parse_entity(key: &[u8], value: &[u8]) -> Option<EntityRow> {
    let mut fields = Fields(value);
    let id = key::parse_of_entity(KeyKind::Entity, key)?;
    let namespace = NamespaceId(fields.u32()?);
    let path = usize::try_from(fields.u32()?).ok()?;
    let (path, definition) = fields.0.split_at_checked(path)?;
    let path = String::from_utf8(path.to_vec()).ok()?;
    Some(EntityRow {
        id,
        namespace,
        path,
        definition: Bytes::copy_from_slice(definition),
    })
}

/// Decodes a `u32`, such as a delivery count.
pub fn decode_u32(what: &str, value: &[u8]) -> Result<u32, StoreError> {
    let word = value.try_into().map(u32::from_be_bytes);
    word.map_err(|_| damaged(what, format!("{} bytes", value.len())))
}

/// Decodes a `u64`, such as a deadline.
pub fn decode_u64(what: &str, value: &[u8]) -> Result<u64, StoreError> {
    let word = value.try_into().map(u64::from_be_bytes);
    word.map_err(|_| damaged(what, format!("{} bytes", value.len())))
}

/// The error for something on disk that cannot be right.
pub fn damaged(what: &str, detail: impl Into<String>) -> StoreError {
    StoreError::Corrupt {
        what: what.into(),
        detail: detail.into(),
    }
}

/// Takes big-endian fields off the front.
pub struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    pub fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AT: (EntityId, SequenceNumber) = (EntityId(3), SequenceNumber(4));

    fn usual_or_any(usual: u64) -> impl Strategy<Value = u64> {
        prop_oneof![Just(usual), any::<u64>()]
    }

    prop_compose! {
        fn row()(
            enqueued_ms: u64, size: u32, flags in prop_oneof![Just(0), any::<u32>()],
            ttl_ms in usual_or_any(u64::MAX), expires_ms in usual_or_any(u64::MAX),
            session_hash in usual_or_any(0), home in usual_or_any(3), number in usual_or_any(4),
            enqueued_number in usual_or_any(0),
        ) -> MessageRow {
            let body = BodyPointer { home: EntityId(home), number: SequenceNumber(number) };
            MessageRow {
                enqueued_ms, ttl_ms, expires_ms, size, flags, session_hash, enqueued_number, body,
            }
        }
    }

    proptest! {
        #[test]
        fn every_row_survives_the_disk(row in row()) {
            let value = encode_row(AT.0, AT.1, &row);
            prop_assert_eq!(decode_row(AT.0, AT.1, value.as_ref()), Ok(row));
            prop_assert_eq!(location_in_row(value.as_ref()), None);
        }

        #[test]
        fn the_place_of_its_body_stands_in_a_row(row in row(), location: [u8; LOCATION]) {
            let mut value = encode_row(AT.0, AT.1, &row);
            add_location(&mut value, location);
            prop_assert_eq!(decode_row(AT.0, AT.1, value.as_ref()), Ok(row));
            prop_assert_eq!(location_in_row(value.as_ref()), Some(&location));
        }

        #[test]
        fn damaged_values_are_refused_or_decoded_but_never_a_panic(
            value in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            drop(decode_row(AT.0, AT.1, &value));
            location_in_row(&value);
            drop(decode_head(AT.0, &value));
            drop(decode_entity(b"i00000000", &value));
        }
    }

    #[test]
    fn a_plain_row_takes_thirteen_bytes() {
        let body = BodyPointer {
            home: AT.0,
            number: AT.1,
        };
        let (ttl_ms, expires_ms) = (u64::MAX, u64::MAX);
        let row = MessageRow {
            enqueued_ms: 1,
            ttl_ms,
            expires_ms,
            size: 1_024,
            flags: 0,
            session_hash: 0,
            enqueued_number: 0,
            body,
        };
        assert_eq!(encode_row(AT.0, AT.1, &row).as_ref().len(), 13);
    }
}

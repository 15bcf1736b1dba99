//! Keys: fixed-width and big-endian, so that their order is the order of the numbers.
//!
//! Every key but an entry's is built on the stack. A scan needs the keys at both of its ends, so
//! there is a function for each kind of end and none for an entity's bare prefix.

use bytes::Bytes;
use store::{BodyPointer, EntityId, EntryKey, Index, Part, SequenceNumber};

/// Keys of which there is one in the `state` family.
pub mod single {
    /// The position of the newest group in the log.
    pub const POSITION: &[u8] = b"c";
    /// The version of the layout.
    pub const FORMAT: &[u8] = b"f";
    /// The greatest entity id ever given out.
    pub const LAST_ENTITY: &[u8] = b"l";
    /// That whatever is removed together with the row it came with stands in that row only.
    pub const INLINE_ONLY: &[u8] = b"r";
}

/// What a row of the `state` family is about: its key's first byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum KeyKind {
    /// Properties changed since arrival, by entity and number.
    Patch = b'a',
    /// How many chunks a body has, for those that have more than one, by home and number.
    LargeBody = b'b',
    /// By entity and number.
    DeliveryCount = b'd',
    /// By entity.
    Head = b'h',
    /// An entry, by entity, index, group and number.
    Entry = b'e',
    /// A definition, by entity.
    Entity = b'i',
    /// A body whose chunks are written, but not the set it belongs to, by home and number.
    PendingBody = b'p',
    /// How many copies are left of shared bodies, by home and page of neighbouring numbers.
    Share = b's',
    /// What is in a segment of the journal, by its id.
    Segment = b'j',
    /// A settled range whose tables are to be dropped, by its ends.
    RangeReclaim = b'g',
    /// The least deadline of a block, by entity, part and block.
    Expiry = b'x',
}

impl KeyKind {
    /// Both ends of all rows of this kind.
    pub const fn bounds(self) -> ([u8; 1], [u8; 1]) {
        ([self as u8], [self as u8 + 1])
    }
}

/// The key of a segment of the journal.
pub fn segment(id: u64) -> [u8; 9] {
    of_entity(KeyKind::Segment, EntityId(id))
}

/// The segment in such a key.
pub fn parse_segment(key: &[u8]) -> Option<u64> {
    parse_of_entity(KeyKind::Segment, key).map(|id| id.0)
}

/// The key of what an entity has one of: a definition, a head.
pub fn of_entity(kind: KeyKind, entity: EntityId) -> [u8; 9] {
    let mut key = [kind as u8; 9];
    key[1..].copy_from_slice(&entity.0.to_be_bytes());
    key
}

/// The entity in such a key.
pub fn parse_of_entity(kind: KeyKind, key: &[u8]) -> Option<EntityId> {
    let entity = key.strip_prefix(&[kind as u8])?.try_into().ok()?;
    Some(EntityId(u64::from_be_bytes(entity)))
}

/// The key of what belongs to a number: a patch, a delivery count, what is known of a body.
pub fn of_number(kind: KeyKind, entity: EntityId, number: SequenceNumber) -> [u8; 17] {
    let mut key = [kind as u8; 17];
    key[1..9].copy_from_slice(&entity.0.to_be_bytes());
    key[9..].copy_from_slice(&number.0.to_be_bytes());
    key
}

/// Both ends of what belongs to any number of an entity.
pub fn of_numbers(kind: KeyKind, entity: EntityId) -> ([u8; 17], [u8; 17]) {
    let first = SequenceNumber(0);
    (
        of_number(kind, entity, first),
        of_number(kind, after(entity), first),
    )
}

/// Parses such a key.
pub fn parse_of_number(kind: KeyKind, key: &[u8]) -> Option<(EntityId, SequenceNumber)> {
    let (entity, rest) = split_u64(key.strip_prefix(&[kind as u8])?)?;
    let (number, rest) = split_u64(rest)?;
    rest.is_empty()
        .then_some((EntityId(entity), SequenceNumber(number)))
}

/// The key of the counts of shared bodies that are neighbours.
pub fn share(home: EntityId, page: u64) -> [u8; 17] {
    of_number(KeyKind::Share, home, SequenceNumber(page))
}

/// The home and the page in such a key.
pub fn parse_share(key: &[u8]) -> Option<(EntityId, u64)> {
    let (home, SequenceNumber(page)) = parse_of_number(KeyKind::Share, key)?;
    Some((home, page))
}

/// The key of a message's row.
pub fn message(entity: EntityId, part: Part, number: SequenceNumber) -> [u8; 17] {
    let mut key = [part as u8; 17];
    key[..8].copy_from_slice(&entity.0.to_be_bytes());
    key[9..].copy_from_slice(&number.0.to_be_bytes());
    key
}

/// Both ends of one entity's rows.
pub fn messages_of(entity: EntityId) -> ([u8; 17], [u8; 17]) {
    let first = SequenceNumber(0);
    (
        message(entity, Part::Active, first),
        message(after(entity), Part::Active, first),
    )
}

/// Parses a message's key.
pub fn parse_message(key: &[u8]) -> Option<(EntityId, Part, SequenceNumber)> {
    let (entity, rest) = split_u64(key)?;
    let (part, rest) = rest.split_first()?;
    let (number, rest) = split_u64(rest)?;
    rest.is_empty()
        .then_some((EntityId(entity), parse_part(*part)?, SequenceNumber(number)))
}

/// The key of the row that a body came with.
pub fn own_row(pointer: BodyPointer) -> [u8; 17] {
    message(pointer.home, Part::Active, pointer.number)
}

/// The key of one chunk of a body.
pub fn body(pointer: BodyPointer, chunk: u32) -> [u8; 20] {
    let mut key = [0; 20];
    key[..8].copy_from_slice(&pointer.home.0.to_be_bytes());
    key[8..16].copy_from_slice(&pointer.number.0.to_be_bytes());
    key[16..].copy_from_slice(&chunk.to_be_bytes());
    key
}

/// Parses a chunk's key.
pub fn parse_body(key: &[u8]) -> Option<(BodyPointer, u32)> {
    let (home, rest) = split_u64(key)?;
    let (number, rest) = split_u64(rest)?;
    let chunk = u32::from_be_bytes(rest.try_into().ok()?);
    let pointer = BodyPointer {
        home: EntityId(home),
        number: SequenceNumber(number),
    };
    Some((pointer, chunk))
}

/// The key of a block's least deadline.
pub fn expiry(entity: EntityId, part: Part, block: u64) -> [u8; 18] {
    let mut key = [KeyKind::Expiry as u8; 18];
    key[1..9].copy_from_slice(&entity.0.to_be_bytes());
    key[9] = part as u8;
    key[10..].copy_from_slice(&block.to_be_bytes());
    key
}

/// Both ends of one entity's expiries.
pub fn expiries_of(entity: EntityId) -> ([u8; 18], [u8; 18]) {
    (
        expiry(entity, Part::Active, 0),
        expiry(after(entity), Part::Active, 0),
    )
}

/// Parses an expiry's key.
pub fn parse_expiry(key: &[u8]) -> Option<(EntityId, Part, u64)> {
    let (entity, rest) = split_u64(key.strip_prefix(&[KeyKind::Expiry as u8])?)?;
    let (part, rest) = rest.split_first()?;
    let (block, rest) = split_u64(rest)?;
    rest.is_empty()
        .then_some((EntityId(entity), parse_part(*part)?, block))
}

/// The longest group that a key has room for, far above what is kept.
pub const LONGEST_GROUP: usize = u16::MAX as usize;

/// The key of an entry: its group comes with its length, so that shorter groups come first.
pub fn entry(entity: EntityId, index: Index, entry_key: &EntryKey) -> Vec<u8> {
    let mut key = Vec::with_capacity(20 + entry_key.group.len());
    append_entry(entity, index, entry_key, &mut key);
    key
}

/// The same behind what is there.
pub fn append_entry(entity: EntityId, index: Index, entry_key: &EntryKey, key: &mut Vec<u8>) {
    key.extend_from_slice(&index_of(entity, index));
    let len = u16::try_from(entry_key.group.len()).expect("a group is shorter than its bound");
    key.extend_from_slice(&len.to_be_bytes());
    key.extend_from_slice(&entry_key.group);
    key.extend_from_slice(&entry_key.number.0.to_be_bytes());
}

/// What the keys of all entries of an index begin with.
pub fn index_of(entity: EntityId, index: Index) -> [u8; 10] {
    let mut key = [KeyKind::Entry as u8; 10];
    key[1..9].copy_from_slice(&entity.0.to_be_bytes());
    key[9] = index as u8;
    key
}

/// Above all entries of an index.
pub fn after_index(entity: EntityId, index: Index) -> [u8; 10] {
    let mut key = index_of(entity, index);
    key[9] += 1;
    key
}

/// Both ends of one entity's entries.
pub fn entries_of(entity: EntityId) -> ([u8; 10], [u8; 10]) {
    let first = Index::ALL[0];
    (index_of(entity, first), index_of(after(entity), first))
}

/// Parses an entry's key.
pub fn parse_entry(key: &[u8]) -> Option<(EntityId, Index, EntryKey)> {
    let (entity, rest) = split_u64(key.strip_prefix(&[KeyKind::Entry as u8])?)?;
    let (index, rest) = rest.split_first()?;
    let (len, rest) = rest.split_first_chunk()?;
    let (group, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    let (number, rest) = split_u64(rest)?;
    let index = *Index::ALL.get(usize::from(*index))?;
    let entry_key = EntryKey::new(Bytes::copy_from_slice(group), SequenceNumber(number));
    rest.is_empty()
        .then_some((EntityId(entity), index, entry_key))
}

/// The id after an entity's; ids are given out one by one and never reach the last.
pub fn after(entity: EntityId) -> EntityId {
    EntityId(entity.0.saturating_add(1))
}

/// The number after a message's; the last is above every number in use.
pub fn after_number(number: SequenceNumber) -> SequenceNumber {
    SequenceNumber(number.0.saturating_add(1))
}

fn parse_part(part: u8) -> Option<Part> {
    Part::ALL.get(usize::from(part)).copied()
}

fn split_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*word), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part() -> impl Strategy<Value = Part> {
        (0..Part::ALL.len()).prop_map(|index| Part::ALL[index])
    }

    proptest! {
        #[test]
        fn message_keys_sort_as_what_they_say(
            one in (any::<u64>(), part(), any::<u64>()),
            two in (any::<u64>(), part(), any::<u64>()),
        ) {
            let key = |(entity, part, number)| message(EntityId(entity), part, SequenceNumber(number));
            prop_assert_eq!(key(one).cmp(&key(two)), one.cmp(&two));
            let parsed = parse_message(&key(one));
            prop_assert_eq!(parsed, Some((EntityId(one.0), one.1, SequenceNumber(one.2))));
        }

        #[test]
        fn other_keys_say_what_they_were_made_of(home: u64, n: u64, chunk: u32, part in part()) {
            let pointer = BodyPointer { home: EntityId(home), number: SequenceNumber(n) };
            prop_assert_eq!(parse_body(&body(pointer, chunk)), Some((pointer, chunk)));
            let key = of_number(KeyKind::Patch, pointer.home, pointer.number);
            prop_assert_eq!(parse_of_number(KeyKind::Patch, &key), Some((pointer.home, pointer.number)));
            prop_assert_eq!(parse_of_number(KeyKind::DeliveryCount, &key), None);
            prop_assert_eq!(parse_share(&share(pointer.home, n)), Some((pointer.home, n)));
            let key = of_entity(KeyKind::Head, pointer.home);
            prop_assert_eq!(parse_of_entity(KeyKind::Head, &key), Some(pointer.home));
            prop_assert_eq!(parse_of_entity(KeyKind::Entity, &key), None);
            prop_assert_eq!(parse_expiry(&expiry(pointer.home, part, n)), Some((pointer.home, part, n)));
        }

        #[test]
        fn entries_sort_by_index_length_of_group_group_and_number(
            one in (0..Index::ALL.len(), prop::collection::vec(any::<u8>(), 0..4), any::<u64>()),
            two in (0..Index::ALL.len(), prop::collection::vec(any::<u8>(), 0..4), any::<u64>()),
        ) {
            let entry_key = |(index, group, number): (usize, Vec<u8>, u64)| {
                (Index::ALL[index], EntryKey::new(group, SequenceNumber(number)))
            };
            let (one, two) = (entry_key(one), entry_key(two));
            let key = |(index, entry_key): &(Index, EntryKey)| entry(EntityId(7), *index, entry_key);
            prop_assert_eq!(key(&one).cmp(&key(&two)), one.cmp(&two));
            prop_assert_eq!(parse_entry(&key(&one)), Some((EntityId(7), one.0, one.1)));
        }

        #[test]
        fn foreign_bytes_are_not_taken_for_keys(key in prop::collection::vec(any::<u8>(), 0..30)) {
            if let Some((entity, part, number)) = parse_message(&key) {
                prop_assert_eq!(&message(entity, part, number)[..], &key[..]);
            }
            if let Some((entity, index, entry_key)) = parse_entry(&key) {
                prop_assert_eq!(&entry(entity, index, &entry_key)[..], &key[..]);
            }
            if let Some((entity, part, block)) = parse_expiry(&key) {
                prop_assert_eq!(&expiry(entity, part, block)[..], &key[..]);
            }
        }
    }
}

//! Message ids: gives an id to a message that arrives without one, before the broker sees it.
//! (docs/spec/amqp.md#4.2, docs/spec/rabbitmq.md#16)
//!
//! The id is 32 hexadecimal digits and becomes part of the message, so every delivery, copy and
//! dead letter has the same one, and rules see it. It is no key of duplicate detection, since no
//! other message has it. Messages with an id, including an empty one, are not changed.
//!
//! A dialect that may change the properties of a message writes the id there
//! ([`MessageIds::give`]). One that may not writes it as the annotation [`broker::GIVEN_ID`].

use amqp::encode;
use amqp::items::{Items, NULL};
use amqp::message::Sections;
use bytes::{Bytes, BytesMut};

/// Fields of the properties list [AMQP 3.2.4]. All are written, since older Python SDKs read them
/// by their positions. (docs/spec/amqp.md#rule-3)
const FIELDS: usize = 13;
/// Hexadecimal digits of an id.
const DIGITS: usize = 32;
/// The bytes before the digits of a properties section with only an id: descriptor,
/// list8 with its size and count, str8 with its size.
const HEAD: [u8; 8] = [0x00, 0x53, 0x73, 0xc0, 47, FIELDS as u8, 0xa1, DIGITS as u8];
/// The bytes after them: the other fields, all null.
const TAIL: [u8; FIELDS - 1] = [NULL; FIELDS - 1];
/// Most bytes that a message grows by: a properties section with an id and nothing else.
const GROWTH: usize = broker::MAX_GROWTH as usize;
/// Steps between the states of the two halves: odd, so that no state comes twice.
const STEPS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];

/// An id that a message was given, in ASCII.
pub type GivenId = [u8; DIGITS];

/// Makes message ids, no two equal.
#[derive(Debug)]
pub struct MessageIds {
    state: [u64; 2],
    /// The buffer for messages with their new ids. Empty between two reads of a connection.
    room: BytesMut,
    /// How many bytes of messages may still come with this read.
    expected: usize,
}

impl MessageIds {
    /// Ids that differ from those of every other seed, if seeds are random.
    #[must_use]
    pub fn new(seed: [u8; 16]) -> Self {
        let seed = u128::from_be_bytes(seed);
        Self {
            state: [(seed >> 64) as u64, seed as u64],
            room: BytesMut::new(),
            expected: 0,
        }
    }

    /// Announces that `bytes` of messages come at once: those that get ids share their memory.
    pub fn expect(&mut self, bytes: usize) {
        self.expected = bytes;
    }

    /// Lets go of the memory that was left over.
    pub fn release(&mut self) {
        self.room = BytesMut::new();
    }

    /// `message`, which has these `sections` and no id, with one in its properties.
    pub fn give(&mut self, message: &[u8], sections: &Sections) -> Bytes {
        self.make_room(message.len() + GROWTH);
        let id = self.next_id();
        let properties = sections.properties.clone();
        let room = &mut self.room;
        room.extend_from_slice(&message[..properties.start]);
        if properties.is_empty() {
            room.extend_from_slice(&alone(&id));
        } else {
            write_properties(room, &message[properties.clone()], &id);
        }
        room.extend_from_slice(&message[properties.end..]);
        room.split().freeze()
    }

    fn make_room(&mut self, bytes: usize) {
        let left = self.room.capacity() - self.room.len();
        if left < bytes {
            self.room = BytesMut::with_capacity(bytes.max(self.expected));
        }
        self.expected = self.expected.saturating_sub(bytes);
    }

    /// An id that no message and no error has had.
    pub fn next_id(&mut self) -> GivenId {
        let mut id = [0; DIGITS];
        let halves = id.chunks_exact_mut(DIGITS / 2);
        for ((half, state), step) in halves.zip(&mut self.state).zip(STEPS) {
            *state = state.wrapping_add(step);
            let value = mixed(*state);
            half[..8].copy_from_slice(&digits((value >> 32) as u32));
            half[8..].copy_from_slice(&digits(value as u32));
        }
        id
    }
}

/// The finalizer of SplitMix64: a bijection, so different states give different values.
fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// The eight hexadecimal digits of a value, all at once: each half of a byte is moved to a byte of
/// its own, and then made a digit.
fn digits(value: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let spread = u64::from(value);
    let spread = (spread & 0xffff_0000) << 16 | spread & 0xffff;
    let spread = (spread & 0x0000_ff00_0000_ff00) << 8 | spread & 0x0000_00ff_0000_00ff;
    let spread = (spread & 0x00f0_00f0_00f0_00f0) << 4 | spread & 0x000f_000f_000f_000f;
    let letters = (spread + 6 * ONES) >> 4 & ONES;
    let digits = spread + u64::from(b'0') * ONES + letters * u64::from(b'a' - b'9' - 1);
    digits.to_be_bytes()
}

/// A properties section with an id and nothing else.
fn alone(id: &[u8; DIGITS]) -> [u8; HEAD.len() + DIGITS + TAIL.len()] {
    let mut section = [0; HEAD.len() + DIGITS + TAIL.len()];
    let (head, rest) = section.split_at_mut(HEAD.len());
    let (text, tail) = rest.split_at_mut(DIGITS);
    head.copy_from_slice(&HEAD);
    text.copy_from_slice(id);
    tail.copy_from_slice(&TAIL);
    section
}

/// The properties as they came, with an id. All thirteen fields are written.
fn write_properties(out: &mut BytesMut, section: &[u8], id: &[u8; DIGITS]) {
    encode::descriptor(out, 0x73);
    let start = encode::list_begin(out, FIELDS);
    out.extend_from_slice(&HEAD[HEAD.len() - 2..]);
    out.extend_from_slice(id);
    let mut items = Items::of(section).unwrap_or(Items::NONE);
    let mut next = || items.next().ok().flatten().unwrap_or(&[NULL]);
    next();
    for _ in 1..FIELDS {
        out.extend_from_slice(next());
    }
    encode::list_finish(out, start);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use amqp::Value;
    use amqp::message::Properties;

    use super::*;

    const BODY: &[u8] = b"\x00\x53\x75\xa0\x02hi";

    fn given(message: &[u8]) -> (Bytes, Properties) {
        let sections = Sections::scan(message).unwrap();
        let given = MessageIds::new([7; 16]).give(message, &sections);
        let sections = Sections::scan(&given).unwrap();
        let properties = Properties::decode(&given.slice(sections.properties.clone())).unwrap();
        (given, properties)
    }

    fn has_id(properties: &Properties) -> bool {
        let Some(Value::String(id)) = &properties.message_id else {
            return false;
        };
        id.len() == DIGITS && id.bytes().all(|digit| digit.is_ascii_hexdigit())
    }

    #[test]
    fn a_message_without_properties_gets_some_with_an_id() {
        let (given, properties) = given(BODY);
        assert!(has_id(&properties));
        let expected = Properties {
            message_id: properties.message_id.clone(),
            ..Properties::default()
        };
        assert_eq!(properties, expected);
        assert_eq!(given[5], FIELDS as u8, "nulls at the end are written too");
        assert!(given.ends_with(BODY));
        assert!(given.len() <= BODY.len() + GROWTH);
    }

    #[test]
    fn the_other_properties_and_sections_stay_as_they_are() {
        let header: &[u8] = b"\x00\x53\x70\xc0\x04\x03\x40\x40\x40";
        let mut message = BytesMut::from(header);
        let sent = Properties {
            subject: Some("s".repeat(300)),
            group_id: Some("g".to_owned()),
            ..Properties::default()
        };
        sent.encode(&mut message);
        message.extend_from_slice(BODY);
        let (given, properties) = given(&message);
        assert!(has_id(&properties));
        let expected = Properties {
            message_id: properties.message_id.clone(),
            ..sent
        };
        assert_eq!(properties, expected);
        assert!(given.starts_with(header) && given.ends_with(BODY));
    }

    #[test]
    fn short_lists_of_properties_are_filled_up() {
        for short in [
            b"\x00\x53\x73\x45".as_slice(),
            b"\x00\x53\x73\xc0\x02\x01\x40",
            b"\x00\x53\x73\xc0\x03\x02\x40\x40",
        ] {
            let (_, properties) = given(&[short, BODY].concat());
            assert!(has_id(&properties), "{short:?}");
        }
    }

    #[test]
    fn digits_are_those_of_the_value() {
        for value in [0, 1, 0x0123_4567, 0x89ab_cdef, u32::MAX, 0xa0b9_00ff] {
            assert_eq!(digits(value), format!("{value:08x}").as_bytes());
        }
    }

    #[test]
    fn no_two_ids_are_equal() {
        let mut seen = BTreeSet::new();
        for seed in 0..4 {
            let mut ids = MessageIds::new([seed; 16]);
            for _ in 0..10_000 {
                assert!(seen.insert(ids.next_id()));
            }
        }
    }

    #[test]
    fn messages_of_one_read_share_their_memory() {
        let mut ids = MessageIds::new([0; 16]);
        let sections = Sections::scan(BODY).unwrap();
        ids.expect(4_096);
        let first = ids.give(BODY, &sections);
        let second = ids.give(BODY, &sections);
        assert_eq!(first.as_ptr().wrapping_add(first.len()), second.as_ptr());
        ids.release();
        assert_eq!(ids.room.capacity(), 0);
    }
}

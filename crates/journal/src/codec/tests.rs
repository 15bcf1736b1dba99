//! Encoded writes are decoded again, and foreign bytes are refused.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use store::{
    BodyPointer, EntityId, EntityRow, EntryKey, Head, Index, MessageRow, NamespaceId, Part,
    SequenceNumber, Write,
};

use super::*;
use crate::chunk;
use crate::journal_location::{self, JournalLocation};
use crate::key;
use crate::staged::{STAGED_FROM, StagedBodies, StagedFiles};

const ENTITY: EntityId = EntityId(3);
const NUMBER: SequenceNumber = SequenceNumber(4);
const POINTER: BodyPointer = BodyPointer {
    home: ENTITY,
    number: NUMBER,
};

fn every_write() -> Vec<Write> {
    let (entity, number, pointer) = (ENTITY, NUMBER, POINTER);
    let (part, block) = (Part::Scheduled, 9);
    let row = MessageRow {
        enqueued_ms: 1,
        ttl_ms: 2,
        expires_ms: 3,
        size: 4,
        flags: 5,
        session_hash: 6,
        enqueued_number: 7,
        body: BodyPointer {
            home: EntityId(8),
            number: SequenceNumber(9),
        },
    };
    let mut head = Head::empty();
    head.part_mut(part).stragglers = vec![SequenceNumber(2), SequenceNumber(5)];
    head.periods = vec![6, 7];
    let (index, key) = (Index::Rule, EntryKey::new(&b"a group"[..], number));
    vec![
        Write::PutEntity(EntityRow {
            id: entity,
            namespace: NamespaceId(1),
            path: "orders".to_owned(),
            definition: Bytes::from_static(b"definition"),
        }),
        Write::RemoveEntity(entity),
        Write::Copy {
            from: EntityId(4),
            to: entity,
        },
        Write::PutHead { entity, head },
        Write::PutMessage {
            entity,
            part,
            number,
            row,
        },
        Write::RemoveMessage {
            entity,
            part,
            number,
        },
        Write::RemoveBody { pointer },
        Write::ShareBody { pointer, copies: 6 },
        Write::ReleaseBody { pointer },
        Write::PutDeliveryCount {
            entity,
            number,
            count: 5,
        },
        Write::RemoveDeliveryCount { entity, number },
        Write::PutPatch {
            entity,
            number,
            patch: Bytes::from_static(b"patch"),
        },
        Write::RemovePatch { entity, number },
        Write::PutExpiry {
            entity,
            part,
            block,
            due_ms: 8,
        },
        Write::RemoveExpiry {
            entity,
            part,
            block,
        },
        Write::PutEntry {
            entity,
            index,
            key: key.clone(),
            value: Bytes::from_static(b"value"),
        },
        Write::RemoveEntry {
            entity,
            index,
            key: key.clone(),
        },
        Write::RemoveEntries {
            entity,
            index,
            keys: Box::new(key..EntryKey::new(&b"a later group"[..], SequenceNumber(9))),
        },
    ]
}

fn encoded(writes: &[Write], moved: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let none = StagedFiles::default();
    let mut encoder = Encoder::new(&mut out, &none);
    for write in writes {
        encoder.add(write).expect("it is short");
    }
    if let Some(body) = moved {
        encoder.add_move(POINTER, body).expect("it is short");
    }
    out
}

#[test]
fn every_write_comes_back() {
    let writes = every_write();
    let decoded = decode(&encoded(&writes, None), 1, 1_000).expect("ours");
    assert_eq!(decoded.set.into_vec(), writes);
    assert!(decoded.moves.is_empty() && decoded.bodies.is_empty());
}

#[test]
fn a_group_that_no_key_has_room_for_is_refused() {
    let put = |length: usize| Write::PutEntry {
        entity: ENTITY,
        index: Index::Session,
        key: EntryKey::new(vec![b'g'; length], NUMBER),
        value: Bytes::from_static(b"value"),
    };
    let longest = key::LONGEST_GROUP;
    assert!(decode(&encoded(&[put(longest)], None), 1, 1_000).is_some());
    assert!(decode(&encoded(&[put(longest + 1)], None), 1, 1_000).is_none());
    let remove = |length: usize| Write::RemoveEntries {
        entity: ENTITY,
        index: Index::Session,
        keys: Box::new(EntryKey::new(&b"g"[..], NUMBER)..EntryKey::new(vec![b'g'; length], NUMBER)),
    };
    assert!(decode(&encoded(&[remove(longest)], None), 1, 1_000).is_some());
    assert!(decode(&encoded(&[remove(longest + 1)], None), 1, 1_000).is_none());
}

#[test]
fn bodies_come_back_as_places_one_behind_the_other() {
    let body = Bytes::from_static(b"hello");
    let put = Write::PutBody {
        pointer: POINTER,
        body: body.clone(),
    };
    let decoded = decode(&encoded(&[put], Some(b"moved")), 7, 1_000).expect("ours");
    let location = |offset, body| JournalLocation {
        segment: 7,
        offset,
        len: 5,
        checksum: journal_location::checksum(POINTER, body),
    };
    let locations = [location(1_000, b"hello"), location(1_005, b"moved")];
    let recorded = locations.map(|location| RecordedBody {
        pointer: POINTER,
        location,
    });
    assert_eq!(decoded.bodies, recorded);
    let value = |location| Bytes::copy_from_slice(&chunk::encode_location(POINTER, location));
    let put = Write::PutBody {
        pointer: POINTER,
        body: value(locations[0]),
    };
    assert_eq!(decoded.set.into_vec(), [put]);
    assert_eq!(decoded.moves, [(POINTER, value(locations[1]))]);
}

#[test]
fn a_staged_body_comes_back_as_a_place_in_its_own_file() {
    let staged = Arc::new(StagedBodies::after(8));
    let body = Bytes::from(vec![1; STAGED_FROM]);
    let crc = crc32c::crc32c(&body);
    let body = staged.ready(staged.begin(), body, crc).expect("it is new");
    let staged_files = StagedFiles::of(&staged, [&body].into_iter());
    let location = staged_files
        .get(&body)
        .expect("it is staged")
        .location(POINTER);
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, &staged_files);
    let put = |body| Write::PutBody {
        pointer: POINTER,
        body,
    };
    encoder.add(&put(body)).expect("it is short");
    assert!(encoder.checksums.is_empty());
    let decoded = decode(&out, 7, 1_000).expect("ours");
    assert!(decoded.bodies.is_empty());
    assert_eq!(decoded.staged.len(), 1);
    assert_eq!(decoded.staged[0].location, location);
    let value = Bytes::copy_from_slice(&chunk::encode_location(POINTER, location));
    assert_eq!(decoded.set.into_vec(), [put(value)]);
    // A segment that holds such a place is none of ours.
    let marked = out.len() - JournalLocation::BYTES;
    out[marked] ^= 0x80;
    assert!(decode(&out, 7, 1_000).is_none());
}

proptest! {
    #[test]
    fn what_is_not_ours_is_refused_or_decoded_but_never_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0_usize..400, flip in 0_usize..400,
    ) {
        drop(decode(&bytes, 1, 0));
        let mut whole = encoded(&every_write(), Some(b"body"));
        drop(decode(&whole[..cut.min(whole.len())], 1, 0));
        let at = flip % whole.len();
        whole[at] ^= 1 << (cut % 8);
        drop(decode(&whole, 1, u64::MAX - 1));
    }
}

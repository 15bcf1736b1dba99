//! Codec: writes as bytes of a record, one after the other, each with a tag first.
//!
//! A body is not among them: its write tells its length and its checksum, and the bodies of a
//! record lie behind all writes in the same order. Read back, a write has in the place of its
//! body where that lies, which is how the index takes it.

use bytes::Bytes;
use store::{
    BodyPointer, EntityId, EntityRow, EntryKey, Index, Part, SequenceNumber, Write, WriteSet,
};

use super::Moves;
use super::place::{self, Place};
use crate::chunk;
use crate::key::{self, Kind};
use crate::value::{self, Fields};

mod tag {
    pub const PUT_ENTITY: u8 = 1;
    pub const REMOVE_ENTITY: u8 = 2;
    pub const PUT_HEAD: u8 = 3;
    pub const PUT_MESSAGE: u8 = 4;
    pub const REMOVE_MESSAGE: u8 = 5;
    pub const PUT_BODY: u8 = 6;
    pub const REMOVE_BODY: u8 = 7;
    pub const SHARE_BODY: u8 = 8;
    pub const RELEASE_BODY: u8 = 9;
    pub const PUT_DELIVERY_COUNT: u8 = 10;
    pub const REMOVE_DELIVERY_COUNT: u8 = 11;
    pub const PUT_PATCH: u8 = 12;
    pub const REMOVE_PATCH: u8 = 13;
    pub const PUT_EXPIRY: u8 = 14;
    pub const REMOVE_EXPIRY: u8 = 15;
    pub const PUT_ENTRY: u8 = 16;
    pub const REMOVE_ENTRY: u8 = 17;
    pub const MOVE_BODY: u8 = 18;
}

/// Writes one after the other.
pub(super) struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    /// Of the bodies, in their order.
    pub checksums: Vec<u32>,
    scratch: Vec<u8>,
}

impl<'a> Encoder<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            checksums: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Adds a write. Nothing is added if it is longer than a record can tell.
    pub fn add(&mut self, write: &Write) -> Option<()> {
        match write {
            Write::PutEntity(row) => self.put_entity(row)?,
            Write::RemoveEntity(entity) => self.start(tag::REMOVE_ENTITY, *entity),
            Write::PutHead { entity, head } => {
                self.start(tag::PUT_HEAD, *entity);
                value::encode_head(head, &mut self.scratch);
                add_bytes(self.out, &self.scratch)?;
            }
            Write::PutMessage {
                entity,
                part,
                number,
                row,
            } => {
                self.message(tag::PUT_MESSAGE, *entity, *part, *number);
                let row = value::encode_row(*entity, *number, row);
                add_bytes(self.out, row.as_ref())?;
            }
            Write::RemoveMessage {
                entity,
                part,
                number,
            } => self.message(tag::REMOVE_MESSAGE, *entity, *part, *number),
            Write::PutBody { pointer, body } => self.with_body(tag::PUT_BODY, *pointer, body)?,
            Write::RemoveBody { pointer } => self.body(tag::REMOVE_BODY, *pointer),
            Write::ShareBody { pointer, copies } => {
                self.body(tag::SHARE_BODY, *pointer);
                self.u32(*copies);
            }
            Write::ReleaseBody { pointer } => self.body(tag::RELEASE_BODY, *pointer),
            Write::PutDeliveryCount {
                entity,
                number,
                count,
            } => {
                self.number(tag::PUT_DELIVERY_COUNT, *entity, *number);
                self.u32(*count);
            }
            Write::RemoveDeliveryCount { entity, number } => {
                self.number(tag::REMOVE_DELIVERY_COUNT, *entity, *number);
            }
            Write::PutPatch {
                entity,
                number,
                patch,
            } => {
                self.number(tag::PUT_PATCH, *entity, *number);
                add_bytes(self.out, patch)?;
            }
            Write::RemovePatch { entity, number } => {
                self.number(tag::REMOVE_PATCH, *entity, *number);
            }
            Write::PutExpiry {
                entity,
                part,
                block,
                due_ms,
            } => {
                self.message(tag::PUT_EXPIRY, *entity, *part, SequenceNumber(*block));
                self.u64(*due_ms);
            }
            Write::RemoveExpiry {
                entity,
                part,
                block,
            } => self.message(tag::REMOVE_EXPIRY, *entity, *part, SequenceNumber(*block)),
            Write::PutEntry {
                entity,
                index,
                key,
                value,
            } => {
                self.entry(tag::PUT_ENTRY, *entity, *index, key)?;
                add_bytes(self.out, value)?;
            }
            Write::RemoveEntry { entity, index, key } => {
                self.entry(tag::REMOVE_ENTRY, *entity, *index, key)?;
            }
        }
        Some(())
    }

    /// Adds that a body is here now, if it is still there at all.
    pub fn add_move(&mut self, pointer: BodyPointer, body: &[u8]) -> Option<()> {
        self.with_body(tag::MOVE_BODY, pointer, body)
    }

    fn with_body(&mut self, tag: u8, pointer: BodyPointer, body: &[u8]) -> Option<()> {
        let len = u32::try_from(body.len()).ok()?;
        let checksum = place::checksum(pointer, body);
        self.body(tag, pointer);
        self.u32(len);
        self.u32(checksum);
        self.checksums.push(checksum);
        Some(())
    }

    fn put_entity(&mut self, row: &EntityRow) -> Option<()> {
        self.start(tag::PUT_ENTITY, row.id);
        add_bytes(self.out, &value::encode_entity(row))
    }

    fn start(&mut self, tag: u8, entity: EntityId) {
        self.out.push(tag);
        self.u64(entity.0);
    }

    fn number(&mut self, tag: u8, entity: EntityId, number: SequenceNumber) {
        self.start(tag, entity);
        self.u64(number.0);
    }

    fn body(&mut self, tag: u8, pointer: BodyPointer) {
        self.number(tag, pointer.home, pointer.number);
    }

    fn message(&mut self, tag: u8, entity: EntityId, part: Part, number: SequenceNumber) {
        self.number(tag, entity, number);
        self.out.push(part as u8);
    }

    fn entry(&mut self, tag: u8, entity: EntityId, index: Index, key: &EntryKey) -> Option<()> {
        self.number(tag, entity, key.number);
        self.out.push(index as u8);
        add_bytes(self.out, &key.group)
    }

    fn u32(&mut self, field: u32) {
        self.out.extend_from_slice(&field.to_be_bytes());
    }

    fn u64(&mut self, field: u64) {
        self.out.extend_from_slice(&field.to_be_bytes());
    }
}

fn add_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    let len = u32::try_from(bytes.len()).ok()?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Some(())
}

/// A body that a record says it has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Told {
    pub pointer: BodyPointer,
    pub place: Place,
}

/// What a record says.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub set: WriteSet,
    /// New places of bodies.
    pub moves: Moves,
    /// Everything the record has, put or moved, in its order.
    pub bodies: Vec<Told>,
}

/// Reads what an [`Encoder`] wrote. `bodies_at` is where the record's bodies begin. Returns nothing
/// if these are no writes of ours.
pub(super) fn decode(writes: &[u8], segment: u64, bodies_at: u64) -> Option<Decoded> {
    let mut decoder = Decoder {
        fields: Fields(writes),
        segment,
        next: bodies_at,
        decoded: Decoded::default(),
    };
    while !decoder.fields.0.is_empty() {
        decoder.next_write()?;
    }
    Some(decoder.decoded)
}

struct Decoder<'a> {
    fields: Fields<'a>,
    segment: u64,
    /// Where the next body is.
    next: u64,
    decoded: Decoded,
}

impl Decoder<'_> {
    fn next_write(&mut self) -> Option<()> {
        let tag = self.fields.u8()?;
        let entity = EntityId(self.fields.u64()?);
        if tag == tag::MOVE_BODY {
            let number = SequenceNumber(self.fields.u64()?);
            let pointer = BodyPointer {
                home: entity,
                number,
            };
            let place = self.place(pointer)?;
            self.decoded.moves.push((pointer, place));
            return Some(());
        }
        let write = self.write(tag, entity)?;
        self.decoded.set.push(write);
        Some(())
    }

    fn write(&mut self, tag: u8, entity: EntityId) -> Option<Write> {
        Some(match tag {
            tag::PUT_ENTITY => {
                let row = self.bytes()?;
                let key = key::of_entity(Kind::Entity, entity);
                Write::PutEntity(value::decode_entity(&key, row).ok()?)
            }
            tag::REMOVE_ENTITY => Write::RemoveEntity(entity),
            tag::PUT_HEAD => {
                let head = value::decode_head(entity, self.bytes()?).ok()?;
                Write::PutHead { entity, head }
            }
            _ => self.numbered(tag, entity)?,
        })
    }

    /// Those that go on with a number.
    fn numbered(&mut self, tag: u8, entity: EntityId) -> Option<Write> {
        let number = SequenceNumber(self.fields.u64()?);
        let pointer = BodyPointer {
            home: entity,
            number,
        };
        Some(match tag {
            tag::PUT_BODY => {
                let body = self.place(pointer)?;
                Write::PutBody { pointer, body }
            }
            tag::REMOVE_BODY => Write::RemoveBody { pointer },
            tag::SHARE_BODY => {
                let copies = self.fields.u32()?;
                Write::ShareBody { pointer, copies }
            }
            tag::RELEASE_BODY => Write::ReleaseBody { pointer },
            tag::PUT_DELIVERY_COUNT => Write::PutDeliveryCount {
                entity,
                number,
                count: self.fields.u32()?,
            },
            tag::REMOVE_DELIVERY_COUNT => Write::RemoveDeliveryCount { entity, number },
            tag::PUT_PATCH => Write::PutPatch {
                entity,
                number,
                patch: Bytes::copy_from_slice(self.bytes()?),
            },
            tag::REMOVE_PATCH => Write::RemovePatch { entity, number },
            tag::PUT_ENTRY | tag::REMOVE_ENTRY => self.entry(tag, entity, number)?,
            _ => self.of_part(tag, entity, number)?,
        })
    }

    /// The place of the next body, as a value of the index.
    fn place(&mut self, pointer: BodyPointer) -> Option<Bytes> {
        let place = Place {
            segment: self.segment,
            offset: self.next,
            len: self.fields.u32()?,
            checksum: self.fields.u32()?,
        };
        self.next = place.end();
        self.decoded.bodies.push(Told { pointer, place });
        Some(Bytes::copy_from_slice(&chunk::encode_place(pointer, place)))
    }

    fn entry(&mut self, tag: u8, entity: EntityId, number: SequenceNumber) -> Option<Write> {
        let index = *Index::ALL.get(usize::from(self.fields.u8()?))?;
        let key = EntryKey::new(Bytes::copy_from_slice(self.bytes()?), number);
        if tag == tag::REMOVE_ENTRY {
            return Some(Write::RemoveEntry { entity, index, key });
        }
        let value = Bytes::copy_from_slice(self.bytes()?);
        Some(Write::PutEntry {
            entity,
            index,
            key,
            value,
        })
    }

    /// Those of one part of an entity.
    fn of_part(&mut self, tag: u8, entity: EntityId, number: SequenceNumber) -> Option<Write> {
        let part = *Part::ALL.get(usize::from(self.fields.u8()?))?;
        let block = number.0;
        Some(match tag {
            tag::PUT_MESSAGE => Write::PutMessage {
                entity,
                part,
                number,
                row: value::decode_row(entity, number, self.bytes()?).ok()?,
            },
            tag::REMOVE_MESSAGE => Write::RemoveMessage {
                entity,
                part,
                number,
            },
            tag::PUT_EXPIRY => Write::PutExpiry {
                entity,
                part,
                block,
                due_ms: self.fields.u64()?,
            },
            tag::REMOVE_EXPIRY => Write::RemoveExpiry {
                entity,
                part,
                block,
            },
            _ => return None,
        })
    }

    fn bytes(&mut self) -> Option<&[u8]> {
        let len = self.fields.u32()? as usize;
        let (bytes, rest) = self.fields.0.split_at_checked(len)?;
        self.fields.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::{Head, MessageRow, NamespaceId};

    use super::*;

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
        let (index, key) = (Index::Rule, EntryKey::new(&b"a group"[..], number));
        vec![
            Write::PutEntity(EntityRow {
                id: entity,
                namespace: NamespaceId(1),
                path: "orders".to_owned(),
                definition: Bytes::from_static(b"definition"),
            }),
            Write::RemoveEntity(entity),
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
            Write::RemoveEntry { entity, index, key },
        ]
    }

    fn encoded(writes: &[Write], moved: Option<&[u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out);
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
    fn bodies_come_back_as_places_one_behind_the_other() {
        let body = Bytes::from_static(b"hello");
        let put = Write::PutBody {
            pointer: POINTER,
            body: body.clone(),
        };
        let decoded = decode(&encoded(&[put], Some(b"moved")), 7, 1_000).expect("ours");
        let place = |offset, body| Place {
            segment: 7,
            offset,
            len: 5,
            checksum: place::checksum(POINTER, body),
        };
        let places = [place(1_000, b"hello"), place(1_005, b"moved")];
        let told = places.map(|place| Told {
            pointer: POINTER,
            place,
        });
        assert_eq!(decoded.bodies, told);
        let value = |place| Bytes::copy_from_slice(&chunk::encode_place(POINTER, place));
        let put = Write::PutBody {
            pointer: POINTER,
            body: value(places[0]),
        };
        assert_eq!(decoded.set.into_vec(), [put]);
        assert_eq!(decoded.moves, [(POINTER, value(places[1]))]);
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
}

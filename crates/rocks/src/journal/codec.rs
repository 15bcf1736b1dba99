//! Codec: writes as bytes of a record, one after the other, each with a tag first.
//!
//! A body is not among them: its write tells its length and its checksum, and the bodies of a
//! record lie behind all writes in the same order. Read back, a write has in the place of its
//! body where that lies, which is how the index takes it.

use bytes::Bytes;
use store::{
    BodyPointer, EntityId, EntityRow, EntryKey, Index, Part, SequenceNumber, Write, WriteSet,
};

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
            Write::PutBody { pointer, body } => {
                let len = u32::try_from(body.len()).ok()?;
                self.body(tag::PUT_BODY, *pointer);
                self.u32(len);
                let checksum = place::checksum(*pointer, body);
                self.u32(checksum);
                self.checksums.push(checksum);
            }
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

/// Reads what an [`Encoder`] wrote. `bodies_at` is where the record's bodies begin. Returns the
/// writes and the bodies, or nothing if these are no writes of ours.
pub(super) fn decode(writes: &[u8], segment: u64, bodies_at: u64) -> Option<(WriteSet, Vec<Told>)> {
    let mut decoder = Decoder {
        fields: Fields(writes),
        segment,
        next: bodies_at,
        bodies: Vec::new(),
    };
    let mut set = WriteSet::default();
    while !decoder.fields.0.is_empty() {
        set.push(decoder.next_write()?);
    }
    Some((set, decoder.bodies))
}

struct Decoder<'a> {
    fields: Fields<'a>,
    segment: u64,
    /// Where the next body is.
    next: u64,
    bodies: Vec<Told>,
}

impl Decoder<'_> {
    fn next_write(&mut self) -> Option<Write> {
        let tag = self.fields.u8()?;
        let entity = EntityId(self.fields.u64()?);
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
            tag::PUT_BODY => self.put_body(pointer)?,
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

    fn put_body(&mut self, pointer: BodyPointer) -> Option<Write> {
        let place = Place {
            segment: self.segment,
            offset: self.next,
            len: self.fields.u32()?,
            checksum: self.fields.u32()?,
        };
        self.next = place.end();
        self.bodies.push(Told { pointer, place });
        let body = Bytes::copy_from_slice(&chunk::encode_place(pointer, place));
        Some(Write::PutBody { pointer, body })
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

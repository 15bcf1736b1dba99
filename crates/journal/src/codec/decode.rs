//! Decode: the writes of a record, as the index takes them.
//!
//! The inverse of `encode`, but for bodies: a decoded write has the place of its body. Nothing is
//! trusted: bytes that are no writes give nothing, and no length in them reserves memory.

use bytes::Bytes;
use store::{BodyPointer, EntityId, EntryKey, Index, Part, SequenceNumber, Write, WriteSet};

use super::tag;
use crate::chunk;
use crate::journal_location::{JournalLocation, Moves};
use crate::key::{self, KeyKind};
use crate::staged::is_staged;
use crate::value::{self, Fields};

/// A body of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RecordedBody {
    pub pointer: BodyPointer,
    pub location: JournalLocation,
}

/// A decoded record.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub set: WriteSet,
    /// New places of bodies.
    pub moves: Moves,
    /// Everything the record has, put or moved, in its order.
    pub bodies: Vec<RecordedBody>,
    /// What was put and has a file of its own.
    pub staged: Vec<RecordedBody>,
}

/// Reads what an `Encoder` wrote. `bodies_at` is where the record's bodies begin. Returns nothing
/// if these are no writes of ours.
pub(crate) fn decode(writes: &[u8], segment: u64, bodies_at: u64) -> Option<Decoded> {
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
            let location = self.location(pointer)?;
            self.decoded.moves.push((pointer, location));
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
                let key = key::of_entity(KeyKind::Entity, entity);
                Write::PutEntity(value::decode_entity(&key, row).ok()?)
            }
            tag::REMOVE_ENTITY => Write::RemoveEntity(entity),
            tag::COPY => Write::Copy {
                from: EntityId(self.fields.u64()?),
                to: entity,
            },
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
                let body = self.location(pointer)?;
                Write::PutBody { pointer, body }
            }
            tag::PUT_STAGED_BODY => {
                let body = self.staged_location(pointer)?;
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
            tag::PUT_ENTRY | tag::REMOVE_ENTRY | tag::REMOVE_ENTRIES => {
                self.entry(tag, entity, number)?
            }
            _ => self.of_part(tag, entity, number)?,
        })
    }

    /// The place of the next body, as a value of the index.
    fn location(&mut self, pointer: BodyPointer) -> Option<Bytes> {
        let location = JournalLocation {
            segment: self.segment,
            offset: self.next,
            len: self.fields.u32()?,
            checksum: self.fields.u32()?,
        };
        self.next = location.end();
        self.decoded.bodies.push(RecordedBody { pointer, location });
        Some(Bytes::copy_from_slice(&chunk::encode_location(
            pointer, location,
        )))
    }

    /// The place of a body with a file of its own, as a value of the index.
    fn staged_location(&mut self, pointer: BodyPointer) -> Option<Bytes> {
        let location = JournalLocation::parse(&mut self.fields)?;
        if !is_staged(location.segment) {
            return None;
        }
        self.decoded.staged.push(RecordedBody { pointer, location });
        Some(Bytes::copy_from_slice(&chunk::encode_location(
            pointer, location,
        )))
    }

    fn entry(&mut self, tag: u8, entity: EntityId, number: SequenceNumber) -> Option<Write> {
        let index = *Index::ALL.get(usize::from(self.fields.u8()?))?;
        let key = self.entry_key(number)?;
        Some(match tag {
            tag::REMOVE_ENTRY => Write::RemoveEntry { entity, index, key },
            tag::REMOVE_ENTRIES => {
                let number = SequenceNumber(self.fields.u64()?);
                let keys = Box::new(key..self.entry_key(number)?);
                Write::RemoveEntries {
                    entity,
                    index,
                    keys,
                }
            }
            _ => Write::PutEntry {
                entity,
                index,
                key,
                value: Bytes::copy_from_slice(self.bytes()?),
            },
        })
    }

    fn entry_key(&mut self, number: SequenceNumber) -> Option<EntryKey> {
        // The key that it will have in the index has no room for more.
        let group = Some(self.bytes()?).filter(|group| group.len() <= key::LONGEST_GROUP)?;
        Some(EntryKey::new(Bytes::copy_from_slice(group), number))
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

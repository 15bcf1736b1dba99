//! Encode: the writes of a group as bytes, one after the other, each with its tag first.
//!
//! Of a body only its length and checksum are here: the writer puts bodies behind all writes, but
//! for staged ones, which have files of their own. docs/storage.md lists the tags.

use bytes::Bytes;
use store::{BodyPointer, EntityId, EntityRow, EntryKey, Index, Part, SequenceNumber, Write};

use super::tag;
use crate::journal_location;
use crate::staged::StagedFiles;
use crate::value;

/// Writes one after the other.
pub(crate) struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    /// The bodies that are elsewhere already.
    staged: &'a StagedFiles,
    /// Of the other bodies, in their order.
    pub checksums: Vec<u32>,
    scratch: Vec<u8>,
}

impl<'a> Encoder<'a> {
    pub fn new(out: &'a mut Vec<u8>, staged: &'a StagedFiles) -> Self {
        Self {
            out,
            staged,
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
            Write::PutBody { pointer, body } => self.put_body(*pointer, body)?,
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
            Write::RemoveEntries {
                entity,
                index,
                keys,
            } => {
                self.entry(tag::REMOVE_ENTRIES, *entity, *index, &keys.start)?;
                self.u64(keys.end.number.0);
                add_bytes(self.out, &keys.end.group)?;
            }
            Write::Copy { from, to } => {
                self.start(tag::COPY, *to);
                self.u64(from.0);
            }
        }
        Some(())
    }

    /// Adds that a body is here now, if it is still there at all.
    pub fn add_move(&mut self, pointer: BodyPointer, body: &[u8]) -> Option<()> {
        self.with_body(tag::MOVE_BODY, pointer, body)
    }

    fn put_body(&mut self, pointer: BodyPointer, body: &Bytes) -> Option<()> {
        let Some(claim) = self.staged.get(body) else {
            return self.with_body(tag::PUT_BODY, pointer, body);
        };
        self.body(tag::PUT_STAGED_BODY, pointer);
        self.out
            .extend_from_slice(&claim.location(pointer).encode());
        Some(())
    }

    fn with_body(&mut self, tag: u8, pointer: BodyPointer, body: &[u8]) -> Option<()> {
        let len = u32::try_from(body.len()).ok()?;
        let checksum = journal_location::checksum(pointer, body);
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

//! Volatile entities: what they would have in a store, in memory.
//!
//! A dynamic node is an entity like any other, with the same rules, but its writes and reads end
//! here. A turn that is about such entities alone is no commit, so nothing waits for a disk. Reads
//! are answered within the step, or the next one, as if they came back from a store.
//! Invariant: nothing of a volatile entity is ever submitted to the store.

use std::collections::VecDeque;

use bytes::Bytes;
use store::{Found, Head, Image, Query, SequenceNumber, StoreError, Write};

use crate::api::id::ReadId;

/// What an entity takes of memory besides its messages, in bytes.
const ENTITY: u64 = 4_096;
/// What a message takes besides its body, in bytes.
const MESSAGE: u64 = 512;

/// The content of all volatile entities.
#[derive(Debug, Default)]
pub(crate) struct Volatile {
    image: Image,
    reads: VecDeque<(ReadId, Query)>,
    bytes: u64,
}

impl Volatile {
    /// Bytes that all volatile entities take, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether reads wait for their answers.
    pub(crate) fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// How many reads wait for their answers.
    pub(crate) fn reads(&self) -> usize {
        self.reads.len()
    }

    /// An entity is there.
    pub(crate) fn add_entity(&mut self) {
        self.bytes += ENTITY;
    }

    /// An entity is gone with all that was in it, by its head.
    pub(crate) fn remove_entity(&mut self, head: &Head) {
        let parts = head.parts.iter();
        let messages: u64 = parts.map(|part| part.count * MESSAGE + part.bytes).sum();
        self.subtract(ENTITY + messages);
    }

    /// A message has come, or gone.
    pub(crate) fn weigh(&mut self, body: u32, came: bool) {
        let bytes = MESSAGE + u64::from(body);
        if came {
            self.bytes += bytes;
        } else {
            self.subtract(bytes);
        }
    }

    fn subtract(&mut self, bytes: u64) {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.expect("what goes was counted when it came");
    }

    /// Makes `write` true.
    pub(crate) fn apply(&mut self, write: Write) {
        let write = match write {
            // They are for a restart, which no volatile entity sees.
            Write::PutEntity(_) | Write::PutHead { .. } => return,
            // The slice keeps all bytes alive that its connection read at once.
            Write::PutBody { pointer, body } => Write::PutBody {
                pointer,
                body: Bytes::copy_from_slice(&body),
            },
            write => write,
        };
        let before = self.patch_bytes(&write);
        let applied = self.image.apply(&write);
        applied.expect("what the core writes keeps the contract of a store");
        self.bytes += self.patch_bytes(&write);
        self.subtract(before);
    }

    /// Bytes of the patches that `write` puts, replaces or removes, as far as they are there.
    fn patch_bytes(&self, write: &Write) -> u64 {
        let (entity, first, last) = match write {
            Write::PutPatch { entity, number, .. } | Write::RemovePatch { entity, number } => {
                (*entity, *number, *number)
            }
            Write::RemoveEntity(entity) => (*entity, SequenceNumber(0), SequenceNumber::MAX),
            _ => return 0,
        };
        let patches = self.image.patches.range((entity, first)..=(entity, last));
        patches.map(|(_, patch)| patch.len() as u64).sum()
    }

    /// Asks for what is there.
    pub(crate) fn ask(&mut self, read: ReadId, query: Query) {
        self.reads.push_back((read, query));
    }

    /// The answer to the read that has waited longest.
    pub(crate) fn answer(&mut self) -> Option<(ReadId, Result<Found, StoreError>)> {
        let (read, query) = self.reads.pop_front()?;
        Some((read, self.image.read(&query)))
    }
}

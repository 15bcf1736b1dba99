//! Group: write sets that become durable together, and their size.

use journal::Moves;
use store::{CommitId, Write, WriteSet};

/// A group ends at this many bytes of bodies and of whatever else may be long.
const GROUP_BYTES: usize = 8 << 20;
/// A group of no more than this is a small one.
const SMALL_BYTES: usize = 32 << 10;
const SMALL_WRITES: usize = 64;
/// A group of no more than this is a moderate one.
const MODERATE_BYTES: usize = 1 << 20;
const MODERATE_WRITES: usize = 4_096;
/// A group ends at this many sets.
const GROUP_SETS: usize = 16_384;

/// What becomes durable together.
#[derive(Default)]
pub(crate) struct Group {
    pub sets: Vec<WriteSet>,
    pub moves: Moves,
    pub last: CommitId,
    pub writes: usize,
    pub messages: usize,
    /// Of bodies.
    pub bytes: usize,
    /// Of what else a write may have much of.
    pub others: usize,
}

impl Group {
    /// Adds a set, which is the newest one.
    pub fn add(&mut self, id: CommitId, set: WriteSet) {
        self.writes += set.as_slice().len();
        for write in set.as_slice() {
            match write {
                Write::PutBody { body, .. } => {
                    self.messages += 1;
                    self.bytes += body.len();
                }
                Write::PutPatch { patch, .. } => self.others += patch.len(),
                Write::PutEntry { value, .. } => self.others += value.len(),
                Write::PutEntity(row) => self.others += row.definition.len(),
                _ => {}
            }
        }
        self.last = id;
        self.sets.push(set);
    }

    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.moves.is_empty()
    }

    /// Whether copying it takes hardly longer than waking a thread that does.
    pub fn is_moderate(&self) -> bool {
        self.bytes + self.others <= MODERATE_BYTES && self.writes <= MODERATE_WRITES
    }

    /// Whether writing it takes hardly longer than syncing it.
    pub fn is_small(&self) -> bool {
        self.bytes + self.others <= SMALL_BYTES && self.writes <= SMALL_WRITES
    }

    /// Whether it is worth syncing without waiting for more.
    pub fn is_full(&self) -> bool {
        self.bytes + self.others >= GROUP_BYTES || self.sets.len() >= GROUP_SETS
    }
}

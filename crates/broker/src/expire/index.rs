//! Expiry index: when the next message of an entity may have to leave.
//!
//! Kept per block of 1,024 numbers, not per message: the least deadline of the block. It may be
//! too early (what made it so has left since), never too late: a block that is due is looked
//! through and gets a new deadline. What is stored is never later than what is known here, so
//! that a crash, which ends all locks, forgets no deadline.

use std::collections::{BTreeMap, BTreeSet};

use store::record::EXPIRY_BLOCK;
use store::{EntityId, Part, SequenceNumber, Write};

const NEVER: u64 = u64::MAX;

/// Why there is a block that was taken up.
const LOOKED_THROUGH: &str = "a block stays while it is looked through";

#[derive(Clone, Copy, Debug)]
struct Block {
    /// When to look; `NEVER` while it is being looked through.
    due: u64,
    /// As the store has it.
    stored: u64,
}

/// The blocks of an entity's active part that hold something with a deadline.
#[derive(Debug, Default)]
pub(crate) struct ExpiryIndex {
    blocks: BTreeMap<u64, Block>,
    order: BTreeSet<(u64, u64)>,
    /// The next block that is to be looked through whatever it has, and where that ends.
    recheck: Option<(u64, u64)>,
    /// Not before this moment, after one of them could not be read.
    recheck_at: u64,
}

/// What was found when a block was looked through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// The least deadline of what remains and is not locked.
    pub remaining: u64,
    /// When to look again after those which could not leave now.
    pub again: Option<u64>,
}

/// The block a number is in.
fn block_of(number: SequenceNumber) -> u64 {
    number.0 / EXPIRY_BLOCK
}

/// The numbers of a block.
pub(crate) fn bounds_of(block: u64) -> (SequenceNumber, SequenceNumber) {
    let first = block.saturating_mul(EXPIRY_BLOCK);
    let end = first.saturating_add(EXPIRY_BLOCK);
    (SequenceNumber(first), SequenceNumber(end))
}

impl ExpiryIndex {
    /// A block as the store had it at the start.
    pub(crate) fn recover(&mut self, block: u64, due: u64) {
        self.blocks.insert(block, Block { due, stored: due });
        self.order.insert((due, block));
    }

    /// Every block and its deadline, as a start after a crash would find them.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        let stored = self.blocks.iter().map(|(id, block)| (*id, block.stored));
        stored.filter(|(_, due)| *due != NEVER)
    }

    /// A message with a deadline is there. Returns what has to be stored.
    pub(crate) fn lower(
        &mut self,
        entity: EntityId,
        number: SequenceNumber,
        expires: u64,
    ) -> Option<Write> {
        if expires == NEVER {
            return None;
        }
        let id = block_of(number);
        let block = self.blocks.entry(id).or_insert(Block {
            due: NEVER,
            stored: NEVER,
        });
        if expires < block.due {
            self.order.remove(&(block.due, id));
            self.order.insert((expires, id));
            block.due = expires;
        }
        (expires < block.stored).then(|| {
            block.stored = expires;
            put(entity, id, expires)
        })
    }

    /// The messages below `end` have other deadlines than were noted: their blocks are due, one
    /// after the other. A crash forgets that, so a start says it again.
    pub(crate) fn recheck(&mut self, first: SequenceNumber, end: SequenceNumber) {
        self.recheck = Some((block_of(first), block_of(end)));
    }

    /// When the next block is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let recheck = self.recheck.map(|_| self.recheck_at);
        let first = self.order.first().map(|(due, _)| *due);
        first.into_iter().chain(recheck).min()
    }

    /// Takes up a block that is due, to be looked through.
    pub(crate) fn start(&mut self, now: u64) -> Option<u64> {
        let due = self.order.first().filter(|(due, _)| *due <= now);
        let Some(&(_, id)) = due else {
            return self.start_recheck(now);
        };
        self.order.pop_first();
        let block = self.blocks.get_mut(&id);
        block.expect("each due time is that of a block").due = NEVER;
        Some(id)
    }

    /// Where the blocks end that are looked through whatever they have, if this is the one before
    /// the next of them.
    pub(crate) fn recheck_behind(&self, block: u64) -> Option<SequenceNumber> {
        let (next, last) = self.recheck?;
        (next == block + 1).then(|| bounds_of(last).1)
    }

    /// From the next block that is to be looked through there is no message before `number`.
    pub(crate) fn skip_to(&mut self, number: SequenceNumber) {
        let skipped = |(next, last): (u64, u64)| (block_of(number).max(next), last);
        self.recheck = self
            .recheck
            .map(skipped)
            .filter(|(next, last)| next <= last);
    }

    /// Takes up the next block that is to be looked through whatever it has.
    fn start_recheck(&mut self, now: u64) -> Option<u64> {
        let (next, last) = self.recheck.filter(|_| self.recheck_at <= now)?;
        self.recheck = (next < last).then_some((next + 1, last));
        let block = self.blocks.entry(next).or_insert(Block {
            due: NEVER,
            stored: NEVER,
        });
        self.order.remove(&(block.due, next));
        block.due = NEVER;
        Some(next)
    }

    /// The wall clock went back: every block is due again by its own messages, not by when they
    /// were to be looked at again.
    pub(crate) fn clock_went_back(&mut self) {
        self.recheck_at = 0;
        for (id, block) in &mut self.blocks {
            if block.stored < block.due && block.due != NEVER {
                self.order.remove(&(block.due, *id));
                self.order.insert((block.stored, *id));
                block.due = block.stored;
            }
        }
    }

    /// A block could not be read, nor can those behind it that are to be looked through: they are
    /// tried again at `due`.
    pub(crate) fn rest(&mut self, id: u64, due: u64) {
        self.postpone(id, due);
        self.recheck_at = due;
    }

    /// A block could not be looked through; it will be tried again at `due`.
    pub(crate) fn postpone(&mut self, id: u64, due: u64) {
        let block = self.blocks.get_mut(&id).expect(LOOKED_THROUGH);
        if due < block.due {
            self.order.remove(&(block.due, id));
            self.order.insert((due, id));
            block.due = due;
        }
    }

    /// A block was looked through. Returns what has to be stored.
    pub(crate) fn finish(&mut self, entity: EntityId, id: u64, outcome: Outcome) -> Option<Write> {
        self.postpone(id, outcome.remaining);
        if let Some(again) = outcome.again {
            self.postpone(id, again);
            // The store keeps the old deadline: it is that of a message which is still there.
            return None;
        }
        let block = self.blocks.get_mut(&id).expect(LOOKED_THROUGH);
        if block.due == NEVER {
            self.blocks.remove(&id);
            return Some(Write::RemoveExpiry {
                entity,
                part: Part::Active,
                block: id,
            });
        }
        (block.stored != block.due).then(|| {
            block.stored = block.due;
            put(entity, id, block.due)
        })
    }
}

fn put(entity: EntityId, block: u64, due_ms: u64) -> Write {
    Write::PutExpiry {
        entity,
        part: Part::Active,
        block,
        due_ms,
    }
}

//! Merge: turns the write sets of a group into one batch for the tables.
//!
//! First come all puts of rows and bodies in the order of their keys, so that a memtable finds the
//! place of a neighbour without a search, then their removals, in runs; interleaved they cost a
//! microsecond more per message. What the order of the group decides for a row is known before: a
//! message that waits for its next delivery leaves its place and comes back under its number, and
//! of a removal and a put the later counts (`removal.rs`). Entries come index by index, sorted if
//! their keys are in no order (`entries.rs`). Other writes keep their order, but of several heads
//! of one entity only the last is written, and so it is with counts of copies. A message that is
//! sent and settled within the group is not written at all. Bodies are in the journal already; for
//! a body its location is put, mostly in the row that came with it (`inline_location.rs`).

mod copy;
mod entries;
mod inline_location;
mod put;
mod remove;

use std::collections::BTreeMap;

use journal::Moves;
use journal::key::single;
use store::{EntityId, Head, MessageRow, Part, SequenceNumber, StoreError, Write, WriteSet};

use crate::range_reclaim::RangeReclaim;
use crate::removal::{Place, Removals};
use crate::settled::SettledRanges;
use crate::shares::Shares;
use crate::tables::{Batch, Family, Tables};
use entries::Entries;
use inline_location::LocatedBody;

/// What a write takes in a batch apart from a body, about.
const WRITE_BYTES: usize = 64;

/// What the tables hold, as far as a merger has to know it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    pub last_entity: Option<EntityId>,
    /// Whether there may be bodies of several chunks.
    pub large_bodies: bool,
    /// Whether no body whose row still exists has a row of its own.
    pub inline_only: bool,
}

/// The state that outlives one group.
pub struct Merger {
    last_entity: Option<EntityId>,
    large_bodies: bool,
    inline_only: bool,
    copy_bytes: usize,
    rows: Removals<(EntityId, Part)>,
    bodies: Removals<EntityId>,
    shares: Shares,
    settled_rows: SettledRanges<(EntityId, Part)>,
    settled_bodies: SettledRanges<EntityId>,
    scratch: Vec<u8>,
}

/// From what on a merger does what is worth its cost only then, and what it keeps in memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A settled range is reclaimed when it has grown by this much.
    pub reclaimed_numbers: u64,
    pub reclaimed_bytes: u64,
    /// A copy is written in batches of about this.
    pub copy_bytes: usize,
    /// Pages of counts that are kept.
    pub pages: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reclaimed_numbers: 65_536,
            reclaimed_bytes: 64 << 20,
            copy_bytes: 8 << 20,
            // A million counts, in six megabytes.
            pages: 16_384,
        }
    }
}

/// A group, ready to be written.
pub struct MergedGroup<B> {
    pub batch: B,
    /// Ranges whose tables may be dropped as soon as the batch is permanent.
    pub reclaims: Vec<RangeReclaim>,
}

impl Merger {
    /// For a store as it was found at opening.
    pub fn new(found: Found, limits: Limits) -> Self {
        Self {
            last_entity: found.last_entity,
            large_bodies: found.large_bodies,
            inline_only: found.inline_only,
            copy_bytes: limits.copy_bytes,
            rows: Removals::new(),
            bodies: Removals::new(),
            shares: Shares::new(limits.pages),
            settled_rows: SettledRanges::new(limits),
            settled_bodies: SettledRanges::new(limits),
            scratch: Vec::new(),
        }
    }

    /// A control: a test that never fails with it would not see the loss of messages.
    pub fn drop_what_comes_back(&mut self) {
        self.rows.drop_returned();
    }

    /// The bodies that are known to be removed.
    pub fn settled(&self) -> &SettledRanges<EntityId> {
        &self.settled_bodies
    }

    /// Makes one batch of `sets` and `moves`, which end at `position` in the journal.
    pub fn merge<'t, T: Tables>(
        &mut self,
        sets: &[WriteSet],
        moves: &Moves,
        position: u64,
        tables: &'t T,
    ) -> Result<MergedGroup<T::Batch<'t>>, StoreError> {
        let bytes = self.survey(sets, tables)?;
        let mut merge = Merge {
            merger: self,
            tables,
            batch: tables.batch(bytes),
            rows: Vec::new(),
            bodies: Vec::new(),
            heads: BTreeMap::new(),
            entries: Entries::default(),
            removed_entities: Vec::new(),
            reclaims: Vec::new(),
        };
        for (at, write) in placed(sets) {
            merge.put(at, write);
        }
        for set in sets.iter().filter(|set| set.has_copy()) {
            merge.copy_entities(set)?;
        }
        for (pointer, location) in moves {
            merge.move_body(*pointer, location)?;
        }
        merge.merger.rows.forget_returned();
        merge.separate_bodies()?;
        merge.put_rows()?;
        merge.put_bodies();
        merge.write_entries();
        merge.put_heads();
        merge.merger.shares.write(&mut merge.batch);
        let batch = &mut merge.batch;
        batch.put(Family::State, single::POSITION, position.to_be_bytes());
        merge.remove_rows();
        merge.remove_bodies()?;
        merge.remove_entities();
        Ok(MergedGroup {
            batch: merge.batch,
            reclaims: merge.reclaims,
        })
    }

    /// Collects what is removed, and returns how large the batch will be at most, about.
    fn survey(&mut self, sets: &[WriteSet], tables: &impl Tables) -> Result<usize, StoreError> {
        self.rows.clear();
        self.bodies.clear();
        self.shares.clear();
        let mut bytes = 256;
        for (at, write) in placed(sets) {
            bytes += WRITE_BYTES;
            match write {
                Write::RemoveMessage {
                    entity,
                    part,
                    number,
                } => {
                    self.rows.add((*entity, *part), number.0, at);
                }
                Write::RemoveBody { pointer } => {
                    self.bodies.add(pointer.home, pointer.number.0, at);
                }
                Write::ShareBody { pointer, copies } => self.shares.share(*pointer, *copies),
                Write::ReleaseBody { pointer } => self.shares.release(*pointer),
                Write::PutBody { body, .. } => bytes += body.len(),
                Write::PutPatch { patch, .. } => bytes += patch.len(),
                Write::PutEntry { key, value, .. } => bytes += key.group.len() + value.len(),
                Write::RemoveEntries { keys, .. } => {
                    bytes += keys.start.group.len() + keys.end.group.len();
                }
                Write::PutHead { .. } => bytes += 4 * WRITE_BYTES,
                _ => {}
            }
        }
        self.shares.settle(tables)?;
        for pointer in self.shares.gone() {
            self.bodies.add(pointer.home, pointer.number.0, Place::MAX);
        }
        self.rows.seal();
        self.bodies.seal();
        Ok(bytes)
    }
}

/// The writes of a group, with their places in it.
fn placed(sets: &[WriteSet]) -> impl Iterator<Item = (Place, &Write)> {
    (0..).zip(sets.iter().flat_map(WriteSet::as_slice))
}

type RowKey = (EntityId, Part, SequenceNumber);

/// One group being merged.
struct Merge<'a, 't, T: Tables + 't> {
    merger: &'a mut Merger,
    tables: &'t T,
    batch: T::Batch<'t>,
    rows: Vec<(RowKey, &'a MessageRow)>,
    bodies: Vec<LocatedBody>,
    heads: BTreeMap<EntityId, &'a Head>,
    entries: Entries<'a>,
    removed_entities: Vec<EntityId>,
    reclaims: Vec<RangeReclaim>,
}

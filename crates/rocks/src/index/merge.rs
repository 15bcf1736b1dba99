//! Merge: turns the write sets of a group into one batch for RocksDB.
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
use rocksdb::WriteBatch;
use store::{EntityId, Head, MessageRow, Part, SequenceNumber, StoreError, Write, WriteSet};

use crate::index::database::{Database, Families};
use crate::index::range_reclaim::RangeReclaim;
use crate::index::removal::{Place, Removals};
use crate::index::settled::SettledRanges;
use crate::index::shares::Shares;
use entries::Entries;
use inline_location::LocatedBody;

/// What a write takes in a batch apart from a body, about.
const WRITE_BYTES: usize = 64;

/// The state that outlives one group.
pub(crate) struct Merger {
    last_entity: Option<EntityId>,
    /// Whether there may be bodies of several chunks.
    large_bodies: bool,
    /// Whether no body whose row still exists has a row of its own.
    inline_only: bool,
    rows: Removals<(EntityId, Part)>,
    bodies: Removals<EntityId>,
    shares: Shares,
    settled_rows: SettledRanges<(EntityId, Part)>,
    settled_bodies: SettledRanges<EntityId>,
    scratch: Vec<u8>,
}

/// A group, ready to be written.
pub(crate) struct MergedGroup {
    pub batch: WriteBatch,
    /// Ranges whose tables may be dropped as soon as the batch is permanent.
    pub reclaims: Vec<RangeReclaim>,
}

impl Merger {
    /// For a store as it was found at opening.
    pub fn new(last_entity: Option<EntityId>, large_bodies: bool, inline_only: bool) -> Self {
        Self {
            last_entity,
            large_bodies,
            inline_only,
            rows: Removals::new(),
            bodies: Removals::new(),
            shares: Shares::new(),
            settled_rows: SettledRanges::new(),
            settled_bodies: SettledRanges::new(),
            scratch: Vec::new(),
        }
    }

    /// The bodies that are known to be removed.
    pub fn settled(&self) -> &SettledRanges<EntityId> {
        &self.settled_bodies
    }

    /// Makes one batch of `sets` and `moves`, which end at `position` in the journal.
    pub fn merge(
        &mut self,
        sets: &[WriteSet],
        moves: &Moves,
        position: u64,
        database: &Database,
    ) -> Result<MergedGroup, StoreError> {
        let bytes = self.survey(sets, database)?;
        let mut merge = Merge {
            merger: self,
            families: database.families(),
            batch: WriteBatch::with_capacity_bytes(bytes),
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
            merge.copy_entities(set, database)?;
        }
        for (pointer, location) in moves {
            merge.move_body(*pointer, location, database)?;
        }
        merge.merger.rows.forget_returned();
        merge.separate_bodies(database)?;
        merge.put_rows(database)?;
        merge.put_bodies();
        merge.write_entries();
        merge.put_heads();
        merge
            .merger
            .shares
            .write(merge.families.state, &mut merge.batch);
        merge.batch.put_cf(
            merge.families.state,
            single::POSITION,
            position.to_be_bytes(),
        );
        merge.remove_rows();
        merge.remove_bodies(&database.db)?;
        merge.remove_entities();
        Ok(MergedGroup {
            batch: merge.batch,
            reclaims: merge.reclaims,
        })
    }

    /// Collects what is removed, and returns how large the batch will be at most, about.
    fn survey(&mut self, sets: &[WriteSet], database: &Database) -> Result<usize, StoreError> {
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
        self.shares.settle(database)?;
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
struct Merge<'a> {
    merger: &'a mut Merger,
    families: Families<'a>,
    batch: WriteBatch,
    rows: Vec<(RowKey, &'a MessageRow)>,
    bodies: Vec<LocatedBody>,
    heads: BTreeMap<EntityId, &'a Head>,
    entries: Entries<'a>,
    removed_entities: Vec<EntityId>,
    reclaims: Vec<RangeReclaim>,
}

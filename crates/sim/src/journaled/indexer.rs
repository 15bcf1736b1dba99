//! Indexer: what the store's thread of that name does, one step at a time.
//!
//! It applies durable groups to model tables by the store's own merge, many together, has the files
//! of settled ranges dropped, and finds out which segments nothing needs any more.

use std::collections::BTreeMap;
use std::mem;

use index::liveness::{LivenessCheck, ScanStart};
use index::model::ModelTables;
use index::range_reclaim::PendingReclaims;
use index::{Batch, Family, Index, Limits, Tables};
use journal::{JournalLocation, Moves, SealedSegment, key};
use store::{BodyPointer, StoreError, WriteSet};

/// Small, so that a run has ranges that are dropped, copies in several batches and counts that are
/// read again.
pub(super) const LIMITS: Limits = Limits {
    reclaimed_numbers: 6,
    reclaimed_bytes: 1 << 20,
    copy_bytes: 512,
    pages: 8,
};
/// Rows that are checked for one segment at a time.
const MAX_ROWS: usize = 8;

/// A record that is in the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub sets: Vec<WriteSet>,
    pub moves: Moves,
    pub position: u64,
    /// Segments that ended.
    pub sealed: Vec<SealedSegment>,
}

/// The index while the store is open.
pub(super) struct Indexer {
    index: Index<ModelTables>,
    reclaims: PendingReclaims,
    segments: BTreeMap<u64, Retained>,
    /// The position of the newest group in the index.
    applied: u64,
}

/// A segment that ended.
struct Retained {
    sealed: SealedSegment,
    from: ScanStart,
    /// When nothing in it was needed any more.
    dead_at: Option<u64>,
}

impl Indexer {
    /// Goes on where a start ended.
    pub fn new(index: Index<ModelTables>, sealed: Vec<SealedSegment>, applied: u64) -> Self {
        let mut indexer = Self {
            index,
            reclaims: PendingReclaims::default(),
            segments: BTreeMap::new(),
            applied,
        };
        indexer.retain(sealed);
        indexer
    }

    pub fn tables(&self) -> &ModelTables {
        &self.index.tables
    }

    fn retain(&mut self, sealed: Vec<SealedSegment>) {
        for sealed in sealed {
            let retained = Retained {
                from: ScanStart::default(),
                dead_at: None,
                sealed,
            };
            self.segments.insert(retained.sealed.id, retained);
        }
    }

    /// Applies groups, together as far as none copies an entity.
    pub fn apply(&mut self, groups: Vec<Group>) -> Result<(), StoreError> {
        let mut together = Vec::new();
        for group in groups {
            let has_copy = group.sets.iter().any(WriteSet::has_copy);
            if has_copy {
                self.apply_together(mem::take(&mut together))?;
            }
            together.push(group);
            if has_copy {
                self.apply_together(mem::take(&mut together))?;
            }
        }
        self.apply_together(together)
    }

    fn apply_together(&mut self, groups: Vec<Group>) -> Result<(), StoreError> {
        let Some(position) = groups.last().map(|group| group.position) else {
            return Ok(());
        };
        let (mut sets, mut moves, mut sealed) = (Vec::new(), Moves::new(), Vec::new());
        for group in groups {
            sets.extend(group.sets);
            moves.extend(group.moves);
            sealed.extend(group.sealed);
        }
        let reclaims = self.index.apply(&sets, &moves, position, &sealed)?;
        self.reclaims.add(position, reclaims);
        self.applied = position;
        self.retain(sealed);
        Ok(())
    }

    /// Has the files of settled ranges dropped. Returns whether there were any.
    pub fn reclaim(&mut self) -> Result<bool, StoreError> {
        let permanent = self.tables().permanent_position()?;
        let has_due = self.reclaims.has_due(permanent);
        if has_due {
            self.reclaims.drop_due(permanent, &*self.index.tables)?;
        }
        Ok(has_due)
    }

    /// The segments that nothing needs, even after a crash.
    pub fn dead(&mut self) -> Result<Vec<u64>, StoreError> {
        let permanent = self.index.tables.permanent_position()?;
        let check = LivenessCheck {
            tables: &*self.index.tables,
            settled: self.index.merger.settled(),
        };
        for retained in self.segments.values_mut() {
            if retained.dead_at.is_none()
                && !check.is_alive(&retained.sealed, &mut retained.from, MAX_ROWS)?
            {
                retained.dead_at = Some(self.applied);
            }
        }
        let is_dead = |retained: &Retained| retained.dead_at.is_some_and(|at| at <= permanent);
        let segments = self.segments.iter();
        let dead = segments.filter(|(_, retained)| is_dead(retained));
        Ok(dead.map(|(id, _)| *id).collect())
    }

    /// A segment is gone.
    pub fn forget(&mut self, id: u64) -> Result<(), StoreError> {
        self.segments.remove(&id);
        let mut batch = self.index.tables.batch(0);
        batch.delete(Family::State, key::segment(id));
        self.index.tables.write(batch)
    }

    /// The segments that are there and not dead.
    pub fn segments(&self) -> Vec<u64> {
        let alive = |(_, retained): &(&u64, &Retained)| retained.dead_at.is_none();
        let segments = self.segments.iter().filter(alive);
        segments.map(|(id, _)| *id).collect()
    }

    /// The bodies that are left in a segment, if they are few.
    pub fn left_in(&self, id: u64) -> Result<Vec<(BodyPointer, JournalLocation)>, StoreError> {
        let Some(retained) = self.segments.get(&id) else {
            return Ok(Vec::new());
        };
        let check = LivenessCheck {
            tables: &*self.index.tables,
            settled: self.index.merger.settled(),
        };
        check.left_in(&retained.sealed)
    }
}

//! Apply: what is durable in the journal comes into the tables, in order.
//!
//! Groups that came one after the other are merged together, at run time those of about a second,
//! and at a start all that the tables have not made permanent. A set that copies an entity is
//! merged alone: what it copies is read from the tables.

use std::sync::Arc;

use journal::key;
use journal::{Moves, SealedSegment};
use store::{StoreError, WriteSet};

use crate::merge::{Limits, Merger};
use crate::opening;
use crate::range_reclaim::RangeReclaim;
use crate::tables::{Batch, Family, Tables};

/// The index, as it is written to.
pub struct Index<T> {
    pub tables: Arc<T>,
    pub merger: Merger,
}

impl<T: Tables> Index<T> {
    /// Goes on with what is in `tables`.
    pub fn open(tables: Arc<T>, limits: Limits) -> Result<Self, StoreError> {
        let merger = Merger::new(opening::find(&*tables)?, limits);
        Ok(Self { tables, merger })
    }

    /// Applies `sets` and `moves`, which end at `position`, and notes the segments that ended.
    pub fn apply(
        &mut self,
        sets: &[WriteSet],
        moves: &Moves,
        position: u64,
        sealed: &[SealedSegment],
    ) -> Result<Vec<RangeReclaim>, StoreError> {
        let mut merged = self.merger.merge(sets, moves, position, &*self.tables)?;
        for segment in sealed {
            let key = key::segment(segment.id);
            merged.batch.put(Family::State, key, segment.encode());
        }
        self.tables.write(merged.batch)?;
        Ok(merged.reclaims)
    }
}

/// What a start finds in the journal and has not applied yet.
pub struct Catchup<'a, T> {
    index: &'a mut Index<T>,
    /// Writes that are applied at once.
    most: usize,
    sets: Vec<WriteSet>,
    writes: usize,
    until: u64,
}

impl<'a, T: Tables> Catchup<'a, T> {
    /// That applies about `most` writes at once.
    pub fn new(index: &'a mut Index<T>, most: usize) -> Self {
        Self {
            index,
            most,
            sets: Vec::new(),
            writes: 0,
            until: 0,
        }
    }

    /// Takes what a record has, and applies it with what came before if that is enough.
    pub fn add(&mut self, position: u64, set: WriteSet, moves: &Moves) -> Result<(), StoreError> {
        let has_copy = set.has_copy();
        if has_copy {
            self.finish()?;
        }
        self.writes += set.as_slice().len();
        self.sets.push(set);
        self.until = position;
        if self.writes < self.most && moves.is_empty() && !has_copy {
            return Ok(());
        }
        self.apply(moves)
    }

    /// Applies what is left.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        if self.sets.is_empty() {
            return Ok(());
        }
        self.apply(&Moves::new())
    }

    /// What is to be dropped of it is marked, and deleted once more behind it.
    fn apply(&mut self, moves: &Moves) -> Result<(), StoreError> {
        let applied = self.index.apply(&self.sets, moves, self.until, &[]);
        self.sets.clear();
        self.writes = 0;
        applied.map(drop)
    }
}

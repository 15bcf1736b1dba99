//! Retention: which segments of the journal are still needed.
//!
//! A segment is removed when the index has no body in it any more, leaving out bodies that are
//! known to be settled, and when the permanent part of the index has none either: then no crash
//! brings back a row that needs it. Bodies mostly go in the order in which they came, so the first
//! body that was still there is remembered for each segment; one look at it usually shows that the
//! segment stays. The same goes for the file of a staged body, but that is never moved.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use index::key_search::unless_damaged;
use index::liveness::{LivenessCheck, ScanStart};
use index::settled::SettledRanges;
use index::{Batch, Family, Tables};
use journal::key;
use journal::{Files, JournalLocation, Moves, SealedSegment, is_staged};
use store::{BodyPointer, EntityId, StoreError};

use crate::index::database::Database;
use crate::index::writer_lock::WriterLock;

/// Rows of the index that are checked for one segment at a time.
const MAX_ROWS: usize = 4_096;

/// Segments waiting for a flush that make it worth its cost, however busy the store is: draining a
/// backlog writes little, and its space should be freed.
const FLUSH_FROM_SEGMENTS: u64 = 4;
/// The weight of a segment in that sum.
const WEIGHT: u64 = 256;
/// Large bodies that are checked at once, and the most that are removed at once: readers wait
/// meanwhile.
const MAX_STAGED: usize = 1_024;
const MAX_RELEASED: usize = 64;
/// How long readers go first before files are removed.
const READER_PRIORITY: Duration = Duration::from_secs(2);

/// The intervals of retention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetentionTiming {
    /// The shortest time between two checks of all segments.
    pub check_interval: Duration,
    /// The time between counting one segment and the next.
    pub count_interval: Duration,
    /// How long the number of bodies in a segment has to be unchanged before they are moved.
    pub unchanged_for: Duration,
}

impl Default for RetentionTiming {
    fn default() -> Self {
        Self {
            check_interval: Duration::from_millis(250),
            count_interval: Duration::from_secs(1),
            unchanged_for: Duration::from_secs(30),
        }
    }
}

/// The segments that get no more records.
pub(crate) struct Retention {
    database: Arc<Database>,
    files: Arc<Files>,
    /// The length that a recycled file keeps.
    segment_bytes: u64,
    segments: BTreeMap<u64, RetainedFile>,
    /// What was applied last.
    applied: u64,
    /// The large body that was looked at last, unless all were.
    staged_until: u64,
    /// The segment that was counted last, and when.
    counted: (u64, Instant),
    /// What had been applied when a flush was asked for; it becomes permanent.
    flushing: u64,
    /// When all segments were looked at.
    looked_at: Instant,
    writer_lock: WriterLock,
    pub timing: RetentionTiming,
}

struct RetainedFile {
    sealed: SealedSegment,
    /// From where on the index may know a body in it.
    from: ScanStart,
    /// When nothing in it was needed any more.
    dead_at: Option<u64>,
    /// How many bodies were left when they were counted last, and since when; 0 if many.
    left: (usize, Instant),
    /// When they were counted last and nothing was to be done.
    checked_at: u64,
}

impl RetainedFile {
    fn new(sealed: SealedSegment) -> Self {
        Self {
            from: ScanStart::default(),
            dead_at: None,
            left: (0, Instant::now()),
            checked_at: 0,
            sealed,
        }
    }

    /// Whether it has one body and nothing else, which stays where it is.
    fn is_staged(&self) -> bool {
        is_staged(self.sealed.id)
    }

    /// What its space counts. A staged body counts as the part of a segment that it would take.
    fn weight(&self, segment_bytes: u64) -> u64 {
        if !self.is_staged() {
            return WEIGHT;
        }
        let parts = self.sealed.bytes.saturating_mul(WEIGHT) / segment_bytes.max(1);
        parts.max(1)
    }
}

impl Retention {
    pub fn new(
        database: Arc<Database>,
        files: Arc<Files>,
        segment_bytes: u64,
        sealed: Vec<SealedSegment>,
        applied: u64,
    ) -> Self {
        let mut retention = Self {
            database,
            files,
            segment_bytes,
            segments: BTreeMap::new(),
            applied,
            staged_until: 0,
            counted: (0, Instant::now()),
            timing: RetentionTiming::default(),
            flushing: 0,
            looked_at: Instant::now(),
            writer_lock: WriterLock::new(READER_PRIORITY),
        };
        retention.add(sealed, applied);
        retention
    }

    /// Adds segments that ended, all of whose records were applied by `applied`.
    pub fn add(&mut self, sealed: Vec<SealedSegment>, applied: u64) {
        self.applied = applied;
        for sealed in sealed {
            self.segments.insert(sealed.id, RetainedFile::new(sealed));
        }
    }

    /// Removes the staged bodies that were never put.
    pub fn remove_abandoned(&self) {
        if let Err(error) = self.files.remove_abandoned() {
            tracing::warn!(%error, "a large body that was never put stays on the disk for now");
        }
    }

    /// Whether a segment could go even if nothing is applied any more.
    pub fn has_work(&self) -> bool {
        let waits = |retained: &RetainedFile| {
            retained.dead_at.is_some() || retained.checked_at < self.applied
        };
        self.segments.values().any(waits) || self.files.staged.has_unnamed()
    }

    /// Removes files that are not needed; some bodies are known to be `settled`. Returns whether a
    /// flush is worth its cost: segments wait for nothing else then.
    pub fn collect(
        &mut self,
        is_idle: bool,
        settled: &SettledRanges<EntityId>,
    ) -> Result<bool, StoreError> {
        let is_time = is_idle || self.looked_at.elapsed() >= self.timing.check_interval;
        if self.segments.is_empty() || !is_time {
            return Ok(false);
        }
        self.looked_at = Instant::now();
        let permanent = self.database.permanent_position()?;
        let tables = &*self.database;
        let check = LivenessCheck { tables, settled };
        let mut staged = 0;
        let looked_at = std::mem::take(&mut self.staged_until);
        for (id, retained) in &mut self.segments {
            if retained.is_staged() {
                if *id <= looked_at {
                    continue;
                }
                staged += 1;
                if staged > MAX_STAGED {
                    break;
                }
                self.staged_until = *id;
                retained.checked_at = self.applied;
            }
            if retained.dead_at.is_none() {
                let is_alive = check.is_alive(&retained.sealed, &mut retained.from, MAX_ROWS);
                // What cannot be read may have a body there. Its receiver is told of it.
                if !unless_damaged(is_alive)?.unwrap_or(true) {
                    retained.dead_at = Some(self.applied);
                }
            }
        }
        if staged <= MAX_STAGED {
            // From the first again, the next time.
            self.staged_until = 0;
        }
        self.release(permanent)?;
        let (mut waiting, mut newest) = (0, 0);
        for retained in self.segments.values() {
            if let Some(dead_at) = retained.dead_at {
                waiting += retained.weight(self.segment_bytes);
                newest = dead_at.max(newest);
            }
        }
        let is_worth_it = waiting >= FLUSH_FROM_SEGMENTS * WEIGHT || is_idle && waiting > 0;
        // The flush that was asked for last has to be over, and was not for all of them.
        let flush = is_worth_it && self.flushing <= permanent && self.flushing < newest;
        if flush {
            self.flushing = self.applied;
        }
        Ok(flush)
    }

    /// Counts what is left in one more segment, and returns it if it is little and stays so. What
    /// has damage among it stays where it is.
    pub fn remaining_bodies(
        &mut self,
        settled: &SettledRanges<EntityId>,
    ) -> Result<Moves, StoreError> {
        let (last, when) = self.counted;
        if when.elapsed() < self.timing.count_interval {
            return Ok(Moves::new());
        }
        let applied = self.applied;
        let is_next = |retained: &&mut RetainedFile| {
            retained.dead_at.is_none() && retained.checked_at < applied && !retained.is_staged()
        };
        let after = self
            .segments
            .range_mut(last + 1..)
            .map(|(_, retained)| retained)
            .find(is_next);
        let Some(retained) = after else {
            // From the first again, the next time.
            self.counted = (0, when);
            return Ok(Moves::new());
        };
        self.counted = (retained.sealed.id, Instant::now());
        let tables = &*self.database;
        let left = LivenessCheck { tables, settled }.left_in(&retained.sealed);
        let left = unless_damaged(left)?.unwrap_or_default();
        if left.is_empty() {
            retained.left = (0, Instant::now());
            retained.checked_at = applied;
        } else if retained.left.0 != left.len() {
            retained.left = (left.len(), Instant::now());
        } else if retained.left.1.elapsed() >= self.timing.unchanged_for {
            retained.checked_at = applied;
            return self.read(left);
        }
        Ok(Moves::new())
    }

    fn read(&self, left: Vec<(BodyPointer, JournalLocation)>) -> Result<Moves, StoreError> {
        let wanted: Vec<_> = left.into_iter().map(Some).collect();
        let bodies = match self.files.read(&wanted) {
            Ok(bodies) => bodies,
            // One of them is damaged: all stay where they are, and a reader of it gets the error.
            Err(StoreError::Corrupt { .. }) => return Ok(Moves::new()),
            Err(error) => return Err(error),
        };
        let pointers = wanted.into_iter().flatten().map(|(pointer, _)| pointer);
        let moves = pointers.zip(bodies);
        Ok(moves
            .filter_map(|(pointer, body)| Some((pointer, body?)))
            .collect())
    }

    /// Removes dead files. While there are readers they wait for the next call, though not for
    /// ever.
    fn release(&mut self, permanent: u64) -> Result<(), StoreError> {
        let is_gone =
            |retained: &RetainedFile| retained.dead_at.is_some_and(|dead_at| dead_at <= permanent);
        if !self.segments.values().any(is_gone) {
            return Ok(());
        }
        let Some(_files) = self.writer_lock.try_acquire(&self.database.files) else {
            return Ok(());
        };
        let mut batch = self.database.batch(0);
        let mut count = 0;
        let may_go = |_: &u64, retained: &mut RetainedFile| {
            let goes = is_gone(retained) && count < MAX_RELEASED;
            count += usize::from(goes && retained.is_staged());
            goes
        };
        for (id, _) in self.segments.extract_if(.., may_go) {
            let released = self.files.release(id, self.segment_bytes);
            released.map_err(|error| StoreError::Io(format!("giving up segment {id}: {error}")))?;
            batch.delete(Family::State, key::segment(id));
        }
        self.database.write(batch)
    }
}

//! Retention: which segments of the journal are still needed.
//!
//! A segment goes when the index finds no body in it any more, where bodies are not known to be settled, and when even what the index has
//! made permanent knows none: whatever a crash takes away, nothing will ask for it. Bodies go
//! mostly in the order in which they came, so what is remembered of a segment is the first body that
//! was still there; one look at it usually tells that the segment stays. So it is with the file of a
//! staged body, but that never moves.

mod look;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rocksdb::WriteBatch;
use store::{BodyPointer, EntityId, StoreError};

use crate::database::Database;
use crate::journal::{Files, Moves, Place, Sealed, is_staged};
use crate::key;
use crate::patience::Patience;
use crate::settled::Settled;
use look::{From, Look};
pub(crate) use look::{is_needed, place_of};

/// Rows of the index that are looked at for one segment at a time.
const MOST_ROWS: usize = 4_096;

/// So many segments that wait for nothing but a flush are worth one, however busy the store is: a
/// backlog that is taken away writes little, and its space is wanted back.
const WORTH_A_FLUSH: u64 = 4;
/// What a segment counts then.
const WEIGHT: u64 = 256;
/// Large bodies that are looked at in one go, and how many of them go in one go: readers wait meanwhile.
const MOST_STAGED: usize = 1_024;
const MOST_GIVEN_UP: usize = 64;
/// For so long files do not go because somebody reads.
const HINDERED: Duration = Duration::from_secs(2);

/// How patient it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// All segments are looked at no more often than this.
    pub look_after: Duration,
    /// Between counting one segment and the next.
    pub count_after: Duration,
    /// For so long the number of bodies in a segment has not changed before they are moved.
    pub unchanged: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            look_after: Duration::from_millis(250),
            count_after: Duration::from_secs(1),
            unchanged: Duration::from_secs(30),
        }
    }
}

/// The segments that get no more records.
pub(crate) struct Retention {
    database: Arc<Database>,
    files: Arc<Files>,
    /// What is kept of a file for the next segment.
    segment_bytes: u64,
    segments: BTreeMap<u64, Kept>,
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
    patience: Patience,
    pub pace: Pace,
}

struct Kept {
    sealed: Sealed,
    /// From where on the index may know a body in it.
    from: From,
    /// When nothing in it was needed any more.
    dead_at: Option<u64>,
    /// How many bodies were left when they were counted last, and since when; 0 if many.
    left: (usize, Instant),
    /// When they were counted last and nothing was to be done.
    judged_at: u64,
}

impl Kept {
    fn new(sealed: Sealed) -> Self {
        Self {
            from: From::default(),
            dead_at: None,
            left: (0, Instant::now()),
            judged_at: 0,
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
        sealed: Vec<Sealed>,
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
            pace: Pace::default(),
            flushing: 0,
            looked_at: Instant::now(),
            patience: Patience::new(HINDERED),
        };
        retention.add(sealed, applied);
        retention
    }

    /// Adds segments that ended, all of whose records were applied by `applied`.
    pub fn add(&mut self, sealed: Vec<Sealed>, applied: u64) {
        self.applied = applied;
        for sealed in sealed {
            self.segments.insert(sealed.id, Kept::new(sealed));
        }
    }

    /// Removes the staged bodies that nobody put.
    pub fn remove_abandoned(&self) {
        if let Err(error) = self.files.remove_abandoned() {
            tracing::warn!(%error, "a large body that was never put stays on the disk for now");
        }
    }

    /// Whether a segment could go even if nothing is applied any more.
    pub fn has_work(&self) -> bool {
        let waits = |kept: &Kept| kept.dead_at.is_some() || kept.judged_at < self.applied;
        self.segments.values().any(waits) || self.files.staged.has_unnamed()
    }

    /// Gives up what is not needed, of which some is known to be `settled`. Returns whether a flush is worth its while: then segments wait
    /// for nothing else.
    pub fn collect(
        &mut self,
        is_idle: bool,
        settled: &Settled<EntityId>,
    ) -> Result<bool, StoreError> {
        let is_time = is_idle || self.looked_at.elapsed() >= self.pace.look_after;
        if self.segments.is_empty() || !is_time {
            return Ok(false);
        }
        self.looked_at = Instant::now();
        let permanent = self.database.permanent_position()?;
        let database = &self.database;
        let look = Look { database, settled };
        let mut staged = 0;
        let looked_at = std::mem::take(&mut self.staged_until);
        for (id, kept) in &mut self.segments {
            if kept.is_staged() {
                if *id <= looked_at {
                    continue;
                }
                staged += 1;
                if staged > MOST_STAGED {
                    break;
                }
                self.staged_until = *id;
                kept.judged_at = self.applied;
            }
            if kept.dead_at.is_none() && !look.is_alive(&kept.sealed, &mut kept.from, MOST_ROWS)? {
                kept.dead_at = Some(self.applied);
            }
        }
        if staged <= MOST_STAGED {
            // From the first again, the next time.
            self.staged_until = 0;
        }
        self.give_up(permanent)?;
        let (mut waiting, mut newest) = (0, 0);
        for kept in self.segments.values() {
            if let Some(dead_at) = kept.dead_at {
                waiting += kept.weight(self.segment_bytes);
                newest = dead_at.max(newest);
            }
        }
        let is_worth_it = waiting >= WORTH_A_FLUSH * WEIGHT || is_idle && waiting > 0;
        // The flush that was asked for last has to be over, and was not for all of them.
        let flush = is_worth_it && self.flushing <= permanent && self.flushing < newest;
        if flush {
            self.flushing = self.applied;
        }
        Ok(flush)
    }

    /// Counts what is left in one more segment, and returns it if it is little and stays so.
    pub fn stragglers(&mut self, settled: &Settled<EntityId>) -> Result<Moves, StoreError> {
        let (last, when) = self.counted;
        if when.elapsed() < self.pace.count_after {
            return Ok(Moves::new());
        }
        let applied = self.applied;
        let is_next = |kept: &&mut Kept| {
            kept.dead_at.is_none() && kept.judged_at < applied && !kept.is_staged()
        };
        let after = self
            .segments
            .range_mut(last + 1..)
            .map(|(_, kept)| kept)
            .find(is_next);
        let Some(kept) = after else {
            // From the first again, the next time.
            self.counted = (0, when);
            return Ok(Moves::new());
        };
        self.counted = (kept.sealed.id, Instant::now());
        let database = &self.database;
        let left = Look { database, settled }.left_in(&kept.sealed)?;
        if left.is_empty() {
            kept.left = (0, Instant::now());
            kept.judged_at = applied;
        } else if kept.left.0 != left.len() {
            kept.left = (left.len(), Instant::now());
        } else if kept.left.1.elapsed() >= self.pace.unchanged {
            kept.judged_at = applied;
            return self.read(left);
        }
        Ok(Moves::new())
    }

    fn read(&self, left: Vec<(BodyPointer, Place)>) -> Result<Moves, StoreError> {
        let wanted: Vec<_> = left.into_iter().map(Some).collect();
        let bodies = match self.files.read(&wanted) {
            Ok(bodies) => bodies,
            // One of them is damaged: all stay where they are, and whoever reads it is told.
            Err(StoreError::Corrupt { .. }) => return Ok(Moves::new()),
            Err(error) => return Err(error),
        };
        let pointers = wanted.into_iter().flatten().map(|(pointer, _)| pointer);
        let moves = pointers.zip(bodies);
        Ok(moves
            .filter_map(|(pointer, body)| Some((pointer, body?)))
            .collect())
    }

    /// While somebody reads, they wait for the next time, if that does not go on for ever.
    fn give_up(&mut self, permanent: u64) -> Result<(), StoreError> {
        let is_gone = |kept: &Kept| kept.dead_at.is_some_and(|dead_at| dead_at <= permanent);
        if !self.segments.values().any(is_gone) {
            return Ok(());
        }
        let Some(_files) = self.patience.alone(&self.database.files) else {
            return Ok(());
        };
        let mut batch = WriteBatch::default();
        let mut count = 0;
        let may_go = |_: &u64, kept: &mut Kept| {
            let goes = is_gone(kept) && count < MOST_GIVEN_UP;
            count += usize::from(goes && kept.is_staged());
            goes
        };
        for (id, _) in self.segments.extract_if(.., may_go) {
            let given_up = self.files.give_up(id, self.segment_bytes);
            given_up.map_err(|error| StoreError::Io(format!("giving up segment {id}: {error}")))?;
            batch.delete_cf(self.database.families().state, key::segment(id));
        }
        self.database.write(batch)
    }
}

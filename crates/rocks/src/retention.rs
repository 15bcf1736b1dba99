//! Retention: which segments of the journal are still needed.
//!
//! A segment goes when the index finds no body in it any more, and when even what the index has
//! made permanent knows none: whatever a crash takes away, nothing will ask for it. Bodies go
//! mostly in the order in which they came, so what is remembered of a segment is the first body that
//! was still there; one look at it usually tells that the segment stays.

use std::collections::BTreeMap;
use std::sync::Arc;

use rocksdb::WriteBatch;
use store::StoreError;

use crate::chunk::{self, Chunk};
use crate::database::Database;
use crate::journal::{Files, Sealed};
use crate::key;
use crate::scan::Scan;
use crate::value::damaged;

/// Rows of the index that are looked at for one segment at a time.
const MOST_ROWS: usize = 4_096;

/// The segments that get no more records.
pub(crate) struct Retention {
    database: Arc<Database>,
    files: Arc<Files>,
    /// What is kept of a file for the next segment.
    segment_bytes: u64,
    segments: BTreeMap<u64, Kept>,
    /// What was applied last, and when segments were last looked at.
    applied: u64,
    looked_at: u64,
    /// A flush was asked for, so that the position of then becomes permanent.
    flushing: u64,
}

struct Kept {
    sealed: Sealed,
    /// No body of the segment is before this key of the index.
    from: [u8; 20],
    /// When nothing in it was needed any more.
    dead_at: Option<u64>,
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
            looked_at: 0,
            flushing: 0,
        };
        retention.add(sealed, applied);
        retention
    }

    /// Adds segments that ended, all of whose records were applied by `applied`.
    pub fn add(&mut self, sealed: Vec<Sealed>, applied: u64) {
        self.applied = applied;
        for sealed in sealed {
            let kept = Kept {
                from: [0; 20],
                dead_at: None,
                sealed,
            };
            self.segments.insert(kept.sealed.id, kept);
        }
    }

    /// Whether a segment could go even if nothing is applied any more.
    pub fn has_work(&self) -> bool {
        !self.segments.is_empty() && self.looked_at < self.applied
            || self.segments.values().any(|kept| kept.dead_at.is_some())
    }

    /// Gives up what is not needed. Returns whether a flush is worth its while: then segments wait
    /// for nothing else.
    pub fn collect(&mut self, is_idle: bool) -> Result<bool, StoreError> {
        if self.segments.is_empty() {
            self.looked_at = self.applied;
            return Ok(false);
        }
        let permanent = self.database.permanent_position()?;
        for kept in self.segments.values_mut() {
            if kept.dead_at.is_none() && !is_alive(kept, &self.database)? {
                kept.dead_at = Some(self.applied);
            }
        }
        self.looked_at = self.applied;
        self.give_up(permanent)?;
        let waits = self.segments.values().any(|kept| kept.dead_at.is_some());
        let flush = is_idle && waits && self.flushing < self.applied;
        if flush {
            self.flushing = self.applied;
        }
        Ok(flush)
    }

    /// While somebody reads, they wait for the next time.
    fn give_up(&mut self, permanent: u64) -> Result<(), StoreError> {
        let is_gone = |kept: &Kept| kept.dead_at.is_some_and(|dead_at| dead_at <= permanent);
        if !self.segments.values().any(is_gone) {
            return Ok(());
        }
        let Ok(_files) = self.database.files.try_write() else {
            return Ok(());
        };
        let mut batch = WriteBatch::default();
        for (id, _) in self.segments.extract_if(.., |_, kept| is_gone(kept)) {
            let given_up = self.files.give_up(id, self.segment_bytes);
            given_up.map_err(|error| StoreError::Io(format!("giving up segment {id}: {error}")))?;
            batch.delete_cf(self.database.families().state, key::segment(id));
        }
        self.database.write(batch)
    }
}

/// Whether the index knows a body in the segment. More rows than are looked at count as one.
fn is_alive(kept: &mut Kept, database: &Database) -> Result<bool, StoreError> {
    let body = database.families().body;
    let mut rows = 0;
    for (first, last) in kept.sealed.homes.spans() {
        let until = key::body(last, u32::MAX);
        if kept.from > until {
            continue;
        }
        let from = kept.from.max(key::body(first, 0));
        let mut scan = Scan::new(&database.db, body, from, until);
        while let Some((key, value)) = scan.next()? {
            if is_in(kept.sealed.id, key, value)? || rows >= MOST_ROWS {
                kept.from = key.try_into().unwrap_or(from);
                return Ok(true);
            }
            rows += 1;
        }
        kept.from = until;
    }
    Ok(false)
}

/// Whether a row of the index has its body in the segment.
pub(crate) fn is_in(segment: u64, key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
    let Some((pointer, index)) = key::parse_body(key) else {
        return Err(damaged("a body's key", format!("{key:02x?}")));
    };
    match chunk::decode(pointer, index, value)? {
        Chunk::Elsewhere(place) => Ok(place.segment == segment),
        _ => Ok(false),
    }
}

/// Whether the index knows a body in a segment.
pub(crate) fn is_needed(sealed: &Sealed, database: &Database) -> Result<bool, StoreError> {
    let mut kept = Kept {
        sealed: sealed.clone(),
        from: [0; 20],
        dead_at: None,
    };
    is_alive(&mut kept, database)
}

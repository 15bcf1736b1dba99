//! Scan: an iterator that has both of its bounds.
//!
//! From an entity's bare prefix a seek walks over every tombstone of all earlier deletions there:
//! seconds after a million settlements. So this type alone touches RocksDB's iterators, and each
//! scan names its first and its last key. A long scan yields its processor at intervals.

use rocksdb::{ColumnFamily, DB, DBRawIterator, ReadOptions};
use store::StoreError;

use crate::index::database::unreadable;
use crate::index::yield_filter::TimeSlice;

/// A key and its value, valid until the next one is asked for.
pub(crate) type Entry<'a> = (&'a [u8], &'a [u8]);

/// Rows with `from <= key < until`, ascending.
pub(crate) struct Scan<'a> {
    iterator: DBRawIterator<'a>,
    state: State,
    time_slice: TimeSlice,
}

enum State {
    Fresh,
    /// It stands on a row that has not been given out.
    Sought,
    Running,
    Ended,
}

impl<'a> Scan<'a> {
    /// A scan of one family as it is now.
    pub fn new(
        db: &'a DB,
        family: &ColumnFamily,
        from: impl Into<Vec<u8>>,
        until: impl Into<Vec<u8>>,
    ) -> Self {
        Self::with(db, family, from, until, ReadOptions::default())
    }

    /// A scan with read options of its own, such as a snapshot.
    pub fn with(
        db: &'a DB,
        family: &ColumnFamily,
        from: impl Into<Vec<u8>>,
        until: impl Into<Vec<u8>>,
        mut options: ReadOptions,
    ) -> Self {
        let (from, until) = (from.into(), until.into());
        let state = if from < until {
            State::Fresh
        } else {
            State::Ended
        };
        options.set_iterate_lower_bound(from);
        options.set_iterate_upper_bound(until);
        Self {
            iterator: db.raw_iterator_cf_opt(family, options),
            state,
            time_slice: TimeSlice::begin(),
        }
    }

    /// Passes over what comes before `key`, which is not below what was seen.
    pub fn skip_to(&mut self, key: &[u8]) {
        if !matches!(self.state, State::Ended) {
            self.iterator.seek(key);
            self.state = State::Sought;
        }
    }

    /// The next row, or nothing at the end.
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, StoreError> {
        match self.state {
            State::Fresh => self.iterator.seek_to_first(),
            State::Sought => {}
            State::Running => self.iterator.next(),
            State::Ended => return Ok(None),
        }
        if self.iterator.valid() {
            self.state = State::Running;
            self.time_slice.step();
            return Ok(self.iterator.item());
        }
        self.state = State::Ended;
        self.iterator.status().map_err(unreadable)?;
        Ok(None)
    }
}

//! Yield filter: makes background work yield its processor at intervals.
//!
//! A thread that wakes up on a processor with such work waits until the system preempts it, which
//! can take some milliseconds; neither a lower priority nor a shorter slice changed that. So the
//! work yields by itself, which costs a microsecond if no other thread wants the processor. Unlike
//! a thread of the system's idle class, the work cannot block other threads for long: a compaction
//! holds no lock then, and a scan holds only the shared one that
//! [`WriterLock`](crate::index::writer_lock::WriterLock) takes exclusively.

use std::ffi::CStr;
use std::thread;
use std::time::{Duration, Instant};

use rocksdb::CompactionDecision;
use rocksdb::compaction_filter::CompactionFilter;
use rocksdb::compaction_filter_factory::{CompactionFilterContext, CompactionFilterFactory};

/// How long other threads may wait for the processor.
const TIME_SLICE: Duration = Duration::from_micros(500);
/// Steps of less than a microsecond between two readings of the clock.
const STEPS: u32 = 64;

/// The work between two yields.
#[derive(Debug)]
pub(crate) struct TimeSlice {
    began: Instant,
    steps: u32,
}

impl TimeSlice {
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
            steps: 0,
        }
    }

    /// Counts a step, and yields the processor at the end of a time slice.
    pub fn step(&mut self) {
        if self.is_over(Instant::now) {
            thread::yield_now();
            self.began = Instant::now();
        }
    }

    fn is_over(&mut self, now: impl FnOnce() -> Instant) -> bool {
        self.steps += 1;
        if self.steps < STEPS {
            return false;
        }
        self.steps = 0;
        now().duration_since(self.began) >= TIME_SLICE
    }
}

/// Makes compactions yield. RocksDB calls a filter for rows, in the thread that compacts, and
/// without a lock; this one keeps all rows.
pub(crate) struct YieldFilter;

const NAME: &CStr = c"railbus.manners";

impl CompactionFilterFactory for YieldFilter {
    type Filter = TimeSlice;

    fn create(&mut self, _: CompactionFilterContext) -> TimeSlice {
        TimeSlice::begin()
    }

    fn name(&self) -> &CStr {
        NAME
    }
}

impl CompactionFilter for TimeSlice {
    fn filter(&mut self, _: u32, _: &[u8], _: &[u8]) -> CompactionDecision {
        self.step();
        CompactionDecision::Keep
    }

    fn name(&self) -> &CStr {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rocksdb::{CompactOptions, DB};

    use super::*;
    use crate::index::database::Database;
    use crate::options::Options;

    #[test]
    fn all_families_have_manners_and_write_no_table_again_for_its_age() {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path(), &Options::default()).unwrap();
        let written = fs::read_dir(directory.path())
            .unwrap()
            .map(|file| file.unwrap().path());
        let options = written.filter(|path| path.to_string_lossy().contains("/OPTIONS-"));
        let options = fs::read_to_string(options.max().unwrap()).unwrap();
        drop(database);
        let (mut families, mut mannered, mut ageless) = (0, 0, 0);
        for line in options.lines().map(str::trim) {
            families += usize::from(line.starts_with("[CFOptions"));
            mannered += usize::from(line == "compaction_filter_factory=railbus.manners");
            ageless += usize::from(line == "periodic_compaction_seconds=0");
        }
        assert_eq!((families, mannered, ageless), (3, 3, 3), "{options}");
    }

    #[test]
    fn a_stint_is_over_once_its_time_has_passed_and_the_clock_was_looked_at() {
        let mut time_slice = TimeSlice::begin();
        let (began, early) = (time_slice.began, TIME_SLICE - Duration::from_nanos(1));
        let mut over_after = |passed: Duration| {
            let mut steps = 0..200;
            steps.position(|_| time_slice.is_over(|| began + passed))
        };
        assert_eq!(over_after(early), None);
        // Eight of the last two hundred steps were after a look.
        assert_eq!(over_after(TIME_SLICE), Some(64 - 8 - 1));
    }

    #[test]
    fn a_compaction_with_manners_keeps_all_rows() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = rocksdb::Options::default();
        options.create_if_missing(true);
        options.set_compaction_filter_factory(YieldFilter);
        let db = DB::open(&options, directory.path()).unwrap();
        let rows: Vec<[u8; 4]> = (0..10_000_u32).map(u32::to_be_bytes).collect();
        for half in rows.chunks(rows.len() / 2) {
            half.iter().for_each(|row| db.put(row, row).unwrap());
            db.put(rows[0], rows[0]).unwrap();
            db.flush().unwrap();
        }
        // Merged, not only handed to another level.
        let mut all = CompactOptions::default();
        all.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::Force);
        db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &all);
        let kept = db.iterator(rocksdb::IteratorMode::Start);
        let kept: Vec<_> = kept.map(|row| row.unwrap().0).collect();
        assert!(
            kept.iter()
                .map(|row| &row[..])
                .eq(rows.iter().map(|row| &row[..]))
        );
    }
}

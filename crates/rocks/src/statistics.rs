//! Statistics: the sizes and durations of groups and commits, for metrics.
//!
//! Plain counters that the committing thread increments; reading them costs nothing and is not
//! exact while a commit runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use store::Statistics as Snapshot;
use store::statistics::BUCKETS;

/// Counters since the store was opened.
#[derive(Debug, Default)]
pub struct Statistics {
    groups: AtomicU64,
    sets: AtomicU64,
    writes: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    damaged: AtomicU64,
    scrubbed: AtomicU64,
    commit_us_sum: AtomicU64,
    sync_us_sum: AtomicU64,
    commit_us: [AtomicU64; BUCKETS],
    group_sets: [AtomicU64; BUCKETS],
}

/// What was in one group; see [`Snapshot`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub sets: usize,
    pub writes: usize,
    pub messages: usize,
    pub bytes: usize,
    pub sync: Duration,
}

impl Statistics {
    /// Looks at all counters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            groups: load(&self.groups),
            sets: load(&self.sets),
            writes: load(&self.writes),
            messages: load(&self.messages),
            bytes: load(&self.bytes),
            damaged: load(&self.damaged),
            scrubbed: load(&self.scrubbed),
            commit_us_sum: load(&self.commit_us_sum),
            sync_us_sum: load(&self.sync_us_sum),
            commit_us: std::array::from_fn(|bucket| load(&self.commit_us[bucket])),
            group_sets: std::array::from_fn(|bucket| load(&self.group_sets[bucket])),
        }
    }

    pub(crate) fn count_damage(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_scrubbed(&self, bytes: u64) {
        self.scrubbed.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_group(&self, counts: Counts, took: Duration) {
        let add = |counter: &AtomicU64, count: u64| counter.fetch_add(count, Ordering::Relaxed);
        add(&self.groups, 1);
        add(&self.sets, counts.sets as u64);
        add(&self.writes, counts.writes as u64);
        add(&self.messages, counts.messages as u64);
        add(&self.bytes, counts.bytes as u64);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        add(&self.sync_us_sum, micros(counts.sync));
        let us = micros(took);
        add(&self.commit_us_sum, us);
        add(&self.commit_us[bucket(us)], 1);
        add(&self.group_sets[bucket(counts.sets as u64)], 1);
    }
}

fn bucket(value: u64) -> usize {
    let bits = (u64::BITS - value.leading_zeros()) as usize;
    bits.min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_below_its_power_of_two() {
        assert_eq!(
            [0, 1, 2, 3, 4, 1_023, 1_024].map(bucket),
            [0, 1, 2, 2, 3, 10, 11]
        );
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}

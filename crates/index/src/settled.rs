//! Settled numbers: the ranges whose tables can be dropped, and whose bodies need not be looked
//! for.
//!
//! Deleted rows take space until compaction meets them. Here the numbers that were removed one by
//! one grow into ranges; once one has grown by 65,536 numbers or about 64 MiB, it is deleted as a
//! whole and the files inside it are dropped at once.
//!
//! This is safe for bodies whose row moved to another part, number or entity: a range holds only
//! numbers whose body itself was removed, and a body is never put again. The body of a dead letter
//! ends a range instead of being inside it. A row that waits for its next delivery and comes back
//! under its number is in no range meanwhile. Nothing is derived from heads.

use std::collections::BTreeMap;

use crate::merge::Limits;

/// The most ranges of one scope that are followed; compaction takes care of the rest.
const MAX_RANGES: usize = 16;

/// The settled ranges of every scope. Forgotten when the process ends.
#[derive(Debug)]
pub struct SettledRanges<S> {
    scopes: BTreeMap<S, Vec<SettledRange>>,
    limits: Limits,
}

/// All numbers from `first` to `last` are removed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct SettledRange {
    first: u64,
    last: u64,
    /// Added since it was given back.
    fresh: u64,
    fresh_bytes: u64,
}

impl<S: Copy + Ord> Default for SettledRanges<S> {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl<S: Copy + Ord> SettledRanges<S> {
    /// No range is known, and one is reclaimed once it has grown by what `limits` say.
    pub fn new(limits: Limits) -> Self {
        Self {
            scopes: BTreeMap::new(),
            limits,
        }
    }

    /// Adds a removed run, with the count and bytes of its numbers that were on the disk. Returns
    /// the range to reclaim if it has grown enough.
    pub fn add(
        &mut self,
        scope: S,
        first: u64,
        last: u64,
        fresh: u64,
        bytes: u64,
    ) -> Option<(u64, u64)> {
        let ranges = self.scopes.entry(scope).or_default();
        let index = join(
            ranges,
            SettledRange {
                first,
                last,
                fresh,
                fresh_bytes: bytes,
            },
        );
        let range = &mut ranges[index];
        let Limits {
            reclaimed_numbers,
            reclaimed_bytes,
            ..
        } = self.limits;
        if range.fresh >= reclaimed_numbers || range.fresh_bytes >= reclaimed_bytes {
            range.fresh = 0;
            range.fresh_bytes = 0;
            return Some((range.first, range.last));
        }
        forget_shortest(ranges, index);
        None
    }

    /// Whether all numbers from `first` to `last` are known to be removed.
    pub fn covers(&self, scope: S, first: u64, last: u64) -> bool {
        let ranges = self.scopes.get(&scope).map_or(&[][..], Vec::as_slice);
        let index = ranges.partition_point(|range| range.last < last);
        ranges.get(index).is_some_and(|range| range.first <= first)
    }

    /// Forgets the scopes that a removed entity had.
    pub fn forget(&mut self, belongs: impl Fn(S) -> bool) {
        self.scopes.retain(|scope, _| !belongs(*scope));
    }
}

/// Joins `new` with its neighbours and returns where it is now.
fn join(ranges: &mut Vec<SettledRange>, new: SettledRange) -> usize {
    let from = ranges.partition_point(|range| range.last.saturating_add(1) < new.first);
    let until = ranges.partition_point(|range| range.first <= new.last.saturating_add(1));
    let joined = ranges[from..until]
        .iter()
        .fold(new, |one, two| SettledRange {
            first: one.first.min(two.first),
            last: one.last.max(two.last),
            fresh: one.fresh.saturating_add(two.fresh),
            fresh_bytes: one.fresh_bytes.saturating_add(two.fresh_bytes),
        });
    ranges.splice(from..until, [joined]);
    from
}

/// Forgets one other than that which has just grown, if there are too many.
fn forget_shortest(ranges: &mut Vec<SettledRange>, grown: usize) {
    if ranges.len() > MAX_RANGES {
        let others = (0..ranges.len()).filter(|index| *index != grown);
        let length = |index: &usize| ranges[*index].last - ranges[*index].first;
        if let Some(shortest) = others.min_by_key(length) {
            ranges.remove(shortest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(settled: &SettledRanges<u8>) -> Vec<(u64, u64)> {
        settled.scopes[&1]
            .iter()
            .map(|range| (range.first, range.last))
            .collect()
    }

    #[test]
    fn runs_grow_together_and_never_over_a_gap() {
        let mut settled = SettledRanges::default();
        for (first, last) in [(10, 19), (30, 39), (1, 5), (20, 25), (27, 29), (6, 9)] {
            assert_eq!(settled.add(1, first, last, last - first + 1, 0), None);
        }
        assert_eq!(ranges(&settled), [(1, 25), (27, 39)]);
        settled.add(1, 26, 26, 1, 0);
        assert_eq!(ranges(&settled), [(1, 39)]);
    }

    #[test]
    fn a_range_is_reclaimed_each_time_it_has_grown_enough() {
        let mut settled = SettledRanges::default();
        assert_eq!(settled.add(1, 1, 65_535, 65_535, 0), None);
        assert_eq!(settled.add(1, 65_536, 65_536, 1, 0), Some((1, 65_536)));
        assert_eq!(settled.add(1, 65_537, 65_540, 4, 0), None);
        assert_eq!(
            settled.add(1, 65_541, 65_541, 1, 64 << 20),
            Some((1, 65_541))
        );
    }

    #[test]
    fn what_was_never_on_the_disk_does_not_ripen_and_is_known_to_be_settled() {
        let mut settled = SettledRanges::default();
        for first in (1..1_000_001).step_by(1_000) {
            assert_eq!(settled.add(1, first, first + 999, 0, 0), None);
        }
        assert!(settled.covers(1, 1, 1_000_000));
        assert!(settled.covers(1, 17, 18));
        assert!(!settled.covers(1, 0, 5));
        assert!(!settled.covers(1, 999_999, 1_000_001));
        assert!(!settled.covers(2, 17, 18));
        settled.add(1, 1_000_002, 1_000_003, 2, 0);
        assert!(!settled.covers(1, 1_000_000, 1_000_002), "one is left");
        settled.forget(|scope| scope == 1);
        assert!(!settled.covers(1, 17, 18));
    }

    #[test]
    fn a_bounded_number_of_ranges_is_followed() {
        let mut settled = SettledRanges::default();
        settled.add(1, 1_000_000, 1_000_100, 101, 0);
        for number in 0..100 {
            settled.add(1, number * 2, number * 2, 1, 0);
        }
        assert_eq!(ranges(&settled).len(), MAX_RANGES);
        assert!(ranges(&settled).contains(&(1_000_000, 1_000_100)));
    }

    #[test]
    fn one_that_begins_to_grow_stays_though_there_are_many_longer_ones() {
        let mut settled = SettledRanges::default();
        for number in 0..20 {
            settled.add(1, number * 100, number * 100 + 50, 0, 0);
        }
        for number in 5_000..5_100 {
            settled.add(1, number, number, 0, 0);
        }
        assert!(settled.covers(1, 5_000, 5_099));
    }

    #[test]
    fn the_last_numbers_do_not_overflow() {
        let mut settled = SettledRanges::default();
        settled.add(1, u64::MAX, u64::MAX, 1, 0);
        settled.add(1, 0, 0, 1, u64::MAX);
        assert_eq!(
            settled.add(1, 1, u64::MAX - 1, u64::MAX - 1, 0),
            Some((0, u64::MAX))
        );
    }
}

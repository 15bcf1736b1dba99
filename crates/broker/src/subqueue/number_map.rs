//! Number map: what is known by sequence number, most of which come one after the other.
//!
//! Messages enter, are locked and are settled nearly in the order of their numbers, so most of them
//! stand in a *run*: a slot for each number from its first to its last, found without a search.
//! What lies too far from the run is in a tree, for it would stretch it, and shorten it again when
//! it goes. A run has at most four slots for each one that is taken, and 16 besides, so memory is
//! in proportion to the count of numbers, whatever the numbers are.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};

use store::SequenceNumber;

/// The most slots of a run for each that is taken, and the slots it may have besides. The latter is
/// also how far a number may be from a run to join it.
const SLOTS_EACH: usize = 4;
const SPARE: usize = 16;
/// Slots that an empty run keeps.
const KEPT: usize = 8;

/// A map by sequence number, in their order. [`SequenceNumber::MAX`] is above all of them.
#[derive(Debug)]
pub(crate) struct NumberMap<T> {
    /// The number of the run's first slot.
    base: u64,
    /// The first and the last slot are taken.
    run: VecDeque<Option<T>>,
    /// How many slots of the run are taken.
    taken: usize,
    /// What is before or behind the run.
    rest: BTreeMap<u64, T>,
}

impl<T> Default for NumberMap<T> {
    fn default() -> Self {
        Self {
            base: 0,
            run: VecDeque::new(),
            taken: 0,
            rest: BTreeMap::new(),
        }
    }
}

impl<T> NumberMap<T> {
    pub(crate) fn len(&self) -> usize {
        self.taken + self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn contains(&self, number: SequenceNumber) -> bool {
        self.get(number).is_some()
    }

    pub(crate) fn get(&self, number: SequenceNumber) -> Option<&T> {
        match self.slot(number.0) {
            Some(slot) => self.run[slot].as_ref(),
            None => self.rest.get(&number.0),
        }
    }

    pub(crate) fn get_mut(&mut self, number: SequenceNumber) -> Option<&mut T> {
        match self.slot(number.0) {
            Some(slot) => self.run[slot].as_mut(),
            None => self.rest.get_mut(&number.0),
        }
    }

    /// The one with the least number.
    pub(crate) fn first(&self) -> Option<(SequenceNumber, &T)> {
        let of_run = self.run.front().and_then(Option::as_ref);
        match (of_run, self.rest.first_key_value()) {
            (of_run, Some((number, value))) if of_run.is_none() || *number < self.base => {
                Some((SequenceNumber(*number), value))
            }
            (of_run, _) => Some((SequenceNumber(self.base), of_run?)),
        }
    }

    /// Those within a range of numbers, in order; none if it ends before it starts.
    pub(crate) fn range(
        &self,
        range: impl RangeBounds<SequenceNumber>,
    ) -> impl Iterator<Item = (SequenceNumber, &T)> {
        let (start, end) = ends(&range);
        let (base, behind) = (self.base, self.end());
        let before = self.rest.range(start.min(base)..end.min(base));
        let after = self.rest.range(start.max(behind)..end.max(behind));
        let slot = |number: u64| index(number.clamp(base, behind) - base);
        let slots = self.run.range(slot(start)..slot(end));
        let run = (start.clamp(base, behind)..).zip(slots);
        let run = run.filter_map(|(number, slot)| Some((number, slot.as_ref()?)));
        let rest = |(number, value): (&u64, _)| (*number, value);
        let all = before.map(rest).chain(run).chain(after.map(rest));
        all.map(|(number, value)| (SequenceNumber(number), value))
    }

    /// Puts a value there. Returns the one that was there.
    pub(crate) fn insert(&mut self, number: SequenceNumber, value: T) -> Option<T> {
        let number = number.0;
        if self.run.is_empty() {
            self.base = number;
            self.run.push_back(self.rest.remove(&number));
            self.taken = usize::from(self.run[0].is_some());
        }
        let is_behind = number >= self.end();
        if self.slot(number).is_none() && !self.reach(number) {
            return self.rest.insert(number, value);
        }
        let before = self.run[index(number - self.base)].replace(value);
        self.taken += usize::from(before.is_none());
        while self.is_sparse() {
            if is_behind {
                self.give_up_first();
            } else {
                self.give_up_last();
            }
        }
        before
    }

    pub(crate) fn remove(&mut self, number: SequenceNumber) -> Option<T> {
        let Some(slot) = self.slot(number.0) else {
            return self.rest.remove(&number.0);
        };
        let value = self.run[slot].take()?;
        self.taken -= 1;
        self.trim();
        while self.is_sparse() {
            self.give_up_first();
        }
        Some(value)
    }

    pub(crate) fn pop_first(&mut self) -> Option<(SequenceNumber, T)> {
        let (number, _) = self.first()?;
        Some((
            number,
            self.remove(number).expect("the first number is taken"),
        ))
    }

    pub(crate) fn pop_last(&mut self) -> Option<(SequenceNumber, T)> {
        let of_run = self.end().checked_sub(1).filter(|_| self.taken > 0);
        let of_rest = self.rest.last_key_value().map(|(number, _)| *number);
        let number = SequenceNumber(of_run.max(of_rest)?);
        Some((
            number,
            self.remove(number).expect("the last number is taken"),
        ))
    }

    /// The number behind the run.
    fn end(&self) -> u64 {
        self.base + self.run.len() as u64
    }

    fn slot(&self, number: u64) -> Option<usize> {
        let slot = usize::try_from(number.checked_sub(self.base)?).ok()?;
        (slot < self.run.len()).then_some(slot)
    }

    /// Extends the run to a number that has no slot, unless it is too far away.
    fn reach(&mut self, number: u64) -> bool {
        let (base, end) = (self.base, self.end());
        let most = SPARE as u64;
        let covered = if number >= end {
            if number - end > most {
                return false;
            }
            self.run.resize_with(index(number - base) + 1, || None);
            end..number + 1
        } else {
            if base - number > most {
                return false;
            }
            (number..base).for_each(|_| self.run.push_front(None));
            self.base = number;
            number..base
        };
        for (number, value) in self.rest.extract_if(covered, |_, _| true) {
            self.run[index(number - self.base)] = Some(value);
            self.taken += 1;
        }
        true
    }

    fn is_sparse(&self) -> bool {
        self.run.len() > SLOTS_EACH * self.taken + SPARE
    }

    fn give_up_first(&mut self) {
        if let Some(value) = self.run.pop_front().flatten() {
            self.rest.insert(self.base, value);
            self.taken -= 1;
        }
        self.base += 1;
        self.trim();
    }

    fn give_up_last(&mut self) {
        if let Some(value) = self.run.pop_back().flatten() {
            self.rest.insert(self.end(), value);
            self.taken -= 1;
        }
        self.trim();
    }

    /// Ends the run where slots are taken, and keeps no more memory than it may well need again.
    fn trim(&mut self) {
        while let Some(None) = self.run.front() {
            self.run.pop_front();
            self.base += 1;
        }
        while let Some(None) = self.run.back() {
            self.run.pop_back();
        }
        if self.run.capacity() > SLOTS_EACH * self.run.len() + KEPT {
            self.run.shrink_to(2 * self.run.len());
        }
    }
}

impl<T> Extend<(SequenceNumber, T)> for NumberMap<T> {
    fn extend<I: IntoIterator<Item = (SequenceNumber, T)>>(&mut self, values: I) {
        for (number, value) in values {
            self.insert(number, value);
        }
    }
}

/// Where a range begins, and the number behind it, which is not less.
fn ends(range: &impl RangeBounds<SequenceNumber>) -> (u64, u64) {
    let start = match range.start_bound() {
        Bound::Included(number) => number.0,
        Bound::Excluded(number) => number.0.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(number) => number.0.saturating_add(1),
        Bound::Excluded(number) => number.0,
        Bound::Unbounded => u64::MAX,
    };
    (start, end.max(start))
}

/// A distance within a run, which fits.
fn index(distance: u64) -> usize {
    usize::try_from(distance).expect("a run is in memory")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64),
        Remove(u64),
        Change(u64),
        PopFirst,
        PopLast,
        Look(u64, u64),
    }

    /// Numbers near one another, in two places that are far apart, and anywhere.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => 0..40_u64,
            4 => 100..700_u64,
            4 => 1_000_000..1_000_300_u64,
            1 => 0..u64::MAX,
        ]
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            8 => number().prop_map(Op::Insert),
            4 => number().prop_map(Op::Remove),
            1 => number().prop_map(Op::Change),
            1 => Just(Op::PopFirst),
            1 => Just(Op::PopLast),
            1 => (number(), number()).prop_map(|(one, other)| Op::Look(one, other)),
        ]
    }

    fn check(map: &NumberMap<u64>, model: &BTreeMap<SequenceNumber, u64>) {
        assert_eq!(map.len(), model.len());
        assert_eq!(map.is_empty(), model.is_empty());
        assert_eq!(
            map.first(),
            model.iter().next().map(|(n, value)| (*n, value))
        );
        let all: Vec<_> = map.range(..).collect();
        assert!(
            all.into_iter()
                .eq(model.iter().map(|(n, value)| (*n, value)))
        );
        assert!(!map.is_sparse(), "{} of {}", map.taken, map.run.len());
        let ends = [map.run.front(), map.run.back()];
        assert!(ends.into_iter().flatten().all(Option::is_some));
        let most = 2 * (SLOTS_EACH * (SLOTS_EACH * map.taken + SPARE) + SPARE);
        assert!(
            map.run.capacity() <= most,
            "room for {}",
            map.run.capacity()
        );
    }

    proptest! {
        #[test]
        fn it_holds_what_a_tree_holds(ops in prop::collection::vec(op(), 0..400)) {
            let (mut map, mut model) = (NumberMap::default(), BTreeMap::new());
            for (value, op) in (0..).zip(ops) {
                match op {
                    Op::Insert(n) => {
                        let n = SequenceNumber(n);
                        prop_assert_eq!(map.insert(n, value), model.insert(n, value));
                    }
                    Op::Remove(n) => {
                        let n = SequenceNumber(n);
                        prop_assert_eq!(map.remove(n), model.remove(&n));
                    }
                    Op::Change(n) => {
                        let n = SequenceNumber(n);
                        let (here, there) = (map.get_mut(n), model.get_mut(&n));
                        prop_assert_eq!(&here, &there);
                        if let (Some(here), Some(there)) = (here, there) {
                            (*here, *there) = (value, value);
                        }
                    }
                    Op::PopFirst => prop_assert_eq!(map.pop_first(), model.pop_first()),
                    Op::PopLast => prop_assert_eq!(map.pop_last(), model.pop_last()),
                    Op::Look(one, other) => {
                        let (one, other) = (SequenceNumber(one), SequenceNumber(other));
                        prop_assert_eq!(map.get(one), model.get(&one));
                        prop_assert_eq!(map.contains(other), model.contains_key(&other));
                        let found: Vec<_> = map.range(one..other).map(|(n, _)| n).collect();
                        let expected = model.range(one..other.max(one)).map(|(n, _)| *n);
                        prop_assert!(expected.eq(found));
                        let found: Vec<_> = map.range(one..=other).map(|(n, _)| n).collect();
                        let within = |n: &&SequenceNumber| one <= **n && **n <= other;
                        prop_assert!(model.keys().filter(within).copied().eq(found));
                    }
                }
                check(&map, &model);
            }
        }
    }

    #[test]
    fn one_that_stays_behind_does_not_stretch_the_run() {
        let mut map = NumberMap::default();
        map.insert(SequenceNumber(1), ());
        for number in 2..100_000 {
            map.insert(SequenceNumber(number), ());
            if number > 1_000 {
                map.remove(SequenceNumber(number - 500));
            }
        }
        assert!(map.run.capacity() <= 8_192, "{}", map.run.capacity());
        assert!(map.contains(SequenceNumber(1)));
    }

    #[test]
    fn an_empty_one_keeps_little_memory() {
        let mut map = NumberMap::default();
        map.extend((0..100_000).map(|number| (SequenceNumber(number), ())));
        while map.pop_first().is_some() {}
        assert!(map.run.capacity() <= KEPT, "{}", map.run.capacity());
    }
}

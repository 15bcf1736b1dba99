//! Unreadable: the numbers of a subqueue whose messages the store has, and cannot read.
//!
//! What is behind them is delivered. Its receivers are told once when the store finds that rows are
//! damaged, and no drain says that there is nothing left. A number is forgotten when its message
//! goes. Invariant: the ranges are not empty and do not touch each other.

use std::collections::BTreeMap;
use std::ops::Range;

use store::SequenceNumber;

use crate::api::error::Eviction;
use crate::context::clients::ReceiverSlot;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    /// The end of each range by its begin.
    ranges: BTreeMap<SequenceNumber, SequenceNumber>,
    /// What receivers have not been told yet.
    news: Option<Eviction>,
    /// Receivers whose drain is over, and that are told instead.
    drained: Vec<ReceiverSlot>,
}

impl Unreadable {
    /// Rows are damaged, which all receivers are told once.
    pub(crate) fn note_rows(&mut self, numbers: Range<SequenceNumber>) {
        if self.note(numbers.clone()) {
            self.news = eviction(&numbers);
        }
    }

    /// One message is damaged; it is set aside. Returns whether that was not known.
    pub(crate) fn note_message(&mut self, number: SequenceNumber) -> bool {
        self.note(number..number.next())
    }

    /// Adds a range. Returns whether some of it was not known.
    fn note(&mut self, mut numbers: Range<SequenceNumber>) -> bool {
        let before = self.ranges.range(..=numbers.start).next_back();
        if numbers.is_empty() || before.is_some_and(|(_, end)| *end >= numbers.end) {
            return false;
        }
        let touched = self.ranges.range(..=numbers.end).rev();
        let touched = touched.take_while(|(_, end)| **end >= numbers.start);
        let touched: Vec<_> = touched.map(|(start, end)| (*start, *end)).collect();
        for (start, end) in touched {
            self.ranges.remove(&start);
            numbers = numbers.start.min(start)..numbers.end.max(end);
        }
        self.ranges.insert(numbers.start, numbers.end);
        true
    }

    /// A message has gone, or can be read.
    pub(crate) fn forget(&mut self, number: SequenceNumber) {
        let Some((&start, &end)) = self.ranges.range(..=number).next_back() else {
            return;
        };
        if number >= end {
            return;
        }
        self.ranges.remove(&start);
        for rest in [start..number, number.next()..end] {
            if !rest.is_empty() {
                self.ranges.insert(rest.start, rest.end);
            }
        }
    }

    /// The first number from `number` on that is not known to be unreadable.
    pub(crate) fn readable_from(&self, number: SequenceNumber) -> SequenceNumber {
        let before = self.ranges.range(..=number).next_back();
        before.map_or(number, |(_, end)| number.max(*end))
    }

    /// Why a receiver cannot be told that there is nothing left, if so.
    pub(crate) fn eviction(&self) -> Option<Eviction> {
        let (start, end) = self.ranges.first_key_value()?;
        eviction(&(*start..*end))
    }

    /// The drain of a receiver is over.
    pub(crate) fn drained(&mut self, slot: ReceiverSlot) {
        self.drained.push(slot);
    }

    /// The receivers to which [`drained`](Self::drained) happened.
    pub(crate) fn take_drained(&mut self) -> Vec<ReceiverSlot> {
        std::mem::take(&mut self.drained)
    }

    /// What all receivers are to be told.
    pub(crate) fn take_news(&mut self) -> Option<Eviction> {
        self.news.take()
    }
}

/// What receivers are told of such numbers.
pub(crate) fn eviction(numbers: &Range<SequenceNumber>) -> Option<Eviction> {
    let last = numbers.end.0.checked_sub(1).map(SequenceNumber)?;
    Some(Eviction::Unreadable {
        first: numbers.start,
        last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(unreadable: &Unreadable) -> Vec<(u64, u64)> {
        let ranges = unreadable.ranges.iter();
        ranges.map(|(start, end)| (start.0, end.0)).collect()
    }

    fn note(unreadable: &mut Unreadable, start: u64, end: u64) -> bool {
        unreadable.note(SequenceNumber(start)..SequenceNumber(end))
    }

    #[test]
    fn ranges_that_touch_become_one_and_what_is_known_is_no_news() {
        let mut found = Unreadable::default();
        assert!(note(&mut found, 10, 20));
        assert!(!note(&mut found, 12, 20));
        assert!(!note(&mut found, 12, 12));
        assert!(note(&mut found, 30, 40));
        assert!(note(&mut found, 50, 60));
        assert_eq!(ranges(&found), [(10, 20), (30, 40), (50, 60)]);
        assert!(note(&mut found, 20, 31));
        assert_eq!(ranges(&found), [(10, 40), (50, 60)]);
        assert!(note(&mut found, 5, 55));
        assert_eq!(ranges(&found), [(5, 60)]);
    }

    #[test]
    fn what_goes_is_forgotten() {
        let mut found = Unreadable::default();
        note(&mut found, 10, 13);
        for number in [9, 13, 11] {
            found.forget(SequenceNumber(number));
        }
        assert_eq!(ranges(&found), [(10, 11), (12, 13)]);
        found.forget(SequenceNumber(10));
        found.forget(SequenceNumber(12));
        assert_eq!(found.eviction(), None);
    }
}

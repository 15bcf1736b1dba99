//! Journal: which messages of an entity were touched while a read was on its way.
//!
//! A row in an answer may be from before such a change; the code that asked leaves the touched ones
//! out. Nothing is noted while no read is under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use store::SequenceNumber;

use crate::api::id::ReadId;

#[derive(Debug, Default)]
pub(crate) struct Journal {
    touched: VecDeque<SequenceNumber>,
    /// How many notes were dropped from the front of `touched`.
    dropped: u64,
    /// For each read, how many notes came before it.
    readers: BTreeMap<ReadId, u64>,
    /// The lowest number that was scheduled since the first of the reads began.
    lowest_scheduled: Option<SequenceNumber>,
}

impl Journal {
    /// Notes everything from now on, for `read`.
    pub(crate) fn begin(&mut self, read: ReadId) {
        let seen = self.dropped + self.touched.len() as u64;
        self.readers.insert(read, seen);
    }

    /// A message left its part, or its lock ended.
    pub(crate) fn note(&mut self, number: SequenceNumber) {
        if !self.readers.is_empty() {
            self.touched.push_back(number);
        }
    }

    /// A message was scheduled.
    pub(crate) fn note_scheduled(&mut self, number: SequenceNumber) {
        if !self.readers.is_empty() {
            let lowest = self.lowest_scheduled.unwrap_or(number);
            self.lowest_scheduled = Some(lowest.min(number));
        }
    }

    /// What may have come to the scheduled part while a read that is not finished was on its way
    /// has no lower number than this.
    pub(crate) fn lowest_scheduled(&self) -> Option<SequenceNumber> {
        self.lowest_scheduled
    }

    /// What was touched since `read` began.
    pub(crate) fn finish(&mut self, read: ReadId) -> BTreeSet<SequenceNumber> {
        let seen = self.readers.remove(&read);
        let seen = seen.expect("a read is finished once, after it has begun");
        let skip = usize::try_from(seen - self.dropped).unwrap_or(usize::MAX);
        let touched = self.touched.iter().skip(skip).copied().collect();
        self.drop_unneeded();
        touched
    }

    fn drop_unneeded(&mut self) {
        match self.readers.values().min() {
            None => *self = Self::default(),
            Some(&needed) => {
                while self.dropped < needed && self.touched.pop_front().is_some() {
                    self.dropped += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_read_sees_what_was_touched_since_it_began() {
        let numbers = |numbers: &[u64]| numbers.iter().copied().map(SequenceNumber).collect();
        let mut journal = Journal::default();
        journal.note(SequenceNumber(1));
        journal.begin(ReadId(1));
        journal.note(SequenceNumber(2));
        journal.begin(ReadId(2));
        journal.note(SequenceNumber(3));
        assert_eq!(journal.finish(ReadId(1)), numbers(&[2, 3]));
        journal.note(SequenceNumber(4));
        assert_eq!(journal.finish(ReadId(2)), numbers(&[3, 4]));
        assert!(journal.touched.is_empty());
    }

    #[test]
    #[should_panic(expected = "a read is finished once")]
    fn a_read_that_has_not_begun_is_not_finished() {
        Journal::default().finish(ReadId(2));
    }
}

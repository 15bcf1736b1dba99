//! Page: a stretch of a subqueue that was read for its selections.
//!
//! Within its bounds it knows every available message, wherever the window ends; whatever happens
//! to one of them is noted here. Some that were read by number may stand outside. Bodies are kept
//! as those of the window are, within the broker's budget, so a page is small.

use std::collections::{BTreeMap, BTreeSet};

use store::SequenceNumber;

use crate::message::entry::Entry;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Page {
    from: SequenceNumber,
    until: SequenceNumber,
    entries: BTreeMap<SequenceNumber, Entry>,
    /// Available messages whose bodies cannot be read.
    unreadable: BTreeSet<SequenceNumber>,
}

impl Default for Page {
    fn default() -> Self {
        Self::new(SequenceNumber(0), SequenceNumber(0))
    }
}

impl Page {
    pub(super) fn new(from: SequenceNumber, until: SequenceNumber) -> Self {
        Self {
            from,
            until,
            entries: BTreeMap::new(),
            unreadable: BTreeSet::new(),
        }
    }

    pub(super) fn covers(&self, number: SequenceNumber) -> bool {
        self.from <= number && number < self.until
    }

    /// Where it ends.
    pub(super) fn until(&self) -> SequenceNumber {
        self.until
    }

    pub(super) fn get(&self, number: SequenceNumber) -> Option<&Entry> {
        self.entries.get(&number)
    }

    /// The first message at or above a number that it covers.
    pub(super) fn next(&self, from: SequenceNumber) -> Option<SequenceNumber> {
        let mut next = self.entries.range(from..self.until);
        next.next().map(|(number, _)| *number)
    }

    pub(super) fn put(&mut self, number: SequenceNumber, entry: Entry) {
        self.unreadable.remove(&number);
        self.entries.insert(number, entry);
    }

    /// A message has become available.
    pub(super) fn note_available(&mut self, number: SequenceNumber, entry: Entry) {
        if self.covers(number) {
            self.put(number, entry);
        }
    }

    /// A message is available no more.
    pub(super) fn remove(&mut self, number: SequenceNumber) {
        self.entries.remove(&number);
        self.unreadable.remove(&number);
    }

    pub(super) fn set_unreadable(&mut self, number: SequenceNumber) {
        self.unreadable.insert(number);
    }

    pub(super) fn is_unreadable(&self, number: SequenceNumber) -> bool {
        self.unreadable.contains(&number)
    }

    /// Forgets what stands outside its bounds.
    pub(super) fn drop_strays(&mut self) {
        let (from, until) = (self.from, self.until);
        let inside = |number: &SequenceNumber| (from..until).contains(number);
        self.entries.retain(|number, _| inside(number));
        self.unreadable.retain(inside);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (SequenceNumber, &Entry)> {
        self.entries.iter().map(|(number, entry)| (*number, entry))
    }
}

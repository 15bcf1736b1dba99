//! Selections: the available messages of a subqueue that receivers' selectors select.
//!
//! A selection is what all receivers with the same selector take from, in turn. It walks through
//! the subqueue once: everything below its cursor has been evaluated, and what becomes available
//! there again is kept by number, to be evaluated again. What is in memory is evaluated where it
//! is; for the rest a page is read, which all selections of the subqueue share. A message is
//! evaluated only when a receiver can take it if it is selected, so nothing is kept back from other
//! receivers.
//! Invariant: an available message that a selector may select is at or above its selection's
//! cursor, or among those that are to be evaluated again.

pub(crate) mod evaluate;
mod hand_out;
mod load;
mod page;
mod reading;
mod search;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use filter::Selector;
use store::SequenceNumber;

use crate::context::clients::{ReceiverSlot, SelectionId};
use crate::message::entry::Entry;

use page::Page;
use reading::Reading;

/// How long a search rests when the turn's budget is used up, in milliseconds.
pub(crate) const REST_MS: u64 = 1;

/// Most numbers that a selection keeps to evaluate them again; beyond it goes back to the first.
const MOST_AGAIN: usize = 4_096;

/// Why there is a selection.
const HAS_RECEIVERS: &str = "a selection is named by its receivers, and goes with the last of them";

/// See the head of this file.
#[derive(Debug)]
struct Selection {
    selector: Arc<Selector>,
    receivers: usize,
    /// Its receivers with credit, in the order of their turns.
    takers: VecDeque<ReceiverSlot>,
    cursor: SequenceNumber,
    again: BTreeSet<SequenceNumber>,
}

/// All selections of a subqueue.
#[derive(Debug, Default)]
pub(crate) struct Selections {
    all: BTreeMap<SelectionId, Selection>,
    by_text: BTreeMap<Box<str>, SelectionId>,
    /// Those that have takers.
    with_credit: BTreeSet<SelectionId>,
    /// Whose turn was the last.
    last: SelectionId,
    last_id: u64,
    page: Page,
    reading: Option<Reading>,
    /// After a read that met a damaged body: the number of messages that are read one at a time, to
    /// find it.
    cautious: usize,
    /// After a read that met damaged rows: how many can be read before the first of them.
    most_rows: Option<usize>,
    /// Whether the last message went to a receiver with a selector.
    pub had_turn: bool,
    /// How many messages may still be evaluated though the turn's budget is used up.
    grace: usize,
}

impl Selection {
    /// A message needs no more evaluating.
    fn pass(&mut self, number: SequenceNumber) {
        if !self.again.remove(&number) {
            self.cursor = number.next();
        }
    }

    fn available(&mut self, number: SequenceNumber) {
        if number >= self.cursor {
            return;
        }
        self.again.insert(number);
        if self.again.len() > MOST_AGAIN {
            self.start_over(number);
        }
    }

    /// Everything is evaluated again from `from` or the first of those that were to be anyway.
    fn start_over(&mut self, from: SequenceNumber) {
        let first = self.again.first().copied();
        self.cursor = first.unwrap_or(from).min(from);
        self.again.clear();
    }
}

impl Selections {
    /// Where a receiver with this selector takes from.
    pub(crate) fn join(&mut self, selector: Arc<Selector>) -> SelectionId {
        let text: Box<str> = selector.text().into();
        let id = *self.by_text.entry(text).or_insert_with(|| {
            self.last_id += 1;
            SelectionId(self.last_id)
        });
        let selection = self.all.entry(id).or_insert_with(|| Selection {
            selector,
            receivers: 0,
            takers: VecDeque::new(),
            cursor: SequenceNumber(0),
            again: BTreeSet::new(),
        });
        selection.receivers += 1;
        id
    }

    /// What the receivers of a selection are given.
    pub(crate) fn selector(&self, id: SelectionId) -> Arc<Selector> {
        let selection = self.all.get(&id).expect(HAS_RECEIVERS);
        Arc::clone(&selection.selector)
    }

    /// A receiver is gone, and with the last one its selection.
    pub(crate) fn leave(&mut self, id: SelectionId, slot: ReceiverSlot) {
        let selection = self.all.get_mut(&id).expect(HAS_RECEIVERS);
        selection.receivers -= 1;
        selection.takers.retain(|other| *other != slot);
        if selection.takers.is_empty() {
            self.with_credit.remove(&id);
        }
        if selection.receivers == 0 {
            self.by_text.remove(selection.selector.text());
            self.all.remove(&id);
        }
        if self.all.is_empty() {
            self.page = Page::default();
            self.reading = None;
            self.cautious = 0;
        }
    }

    /// A receiver has credit.
    pub(crate) fn invite(&mut self, id: SelectionId, slot: ReceiverSlot) {
        self.get_mut(id).takers.push_back(slot);
        self.with_credit.insert(id);
    }

    /// A message has become available: it arrived, or its lock ended.
    pub(crate) fn available(&mut self, number: SequenceNumber, entry: Entry) {
        for selection in self.all.values_mut() {
            selection.available(number);
        }
        self.page.note_available(number, entry);
        if let Some(reading) = &mut self.reading {
            reading.note(number, Some(entry));
        }
    }

    /// A message is available no more: it was locked, or has left its part.
    pub(crate) fn gone(&mut self, number: SequenceNumber) {
        if self.all.is_empty() {
            return;
        }
        for selection in self.all.values_mut() {
            selection.again.remove(&number);
        }
        self.page.remove(number);
        if let Some(reading) = &mut self.reading {
            reading.note(number, None);
        }
    }

    /// What has been evaluated by a clock that went back is evaluated again.
    pub(crate) fn start_over(&mut self) {
        for selection in self.all.values_mut() {
            selection.start_over(SequenceNumber(0));
        }
    }

    /// The budget's end is over.
    pub(crate) fn resume(&mut self) {
        /// As many are evaluated at least, so that each queue gets on.
        const LEAST: usize = 64;
        self.grace = LEAST;
    }

    /// Whether everything has been evaluated that is available below `end`.
    pub(crate) fn is_exhausted(&self, id: SelectionId, end: SequenceNumber) -> bool {
        let selection = self.get(id);
        selection.again.is_empty() && selection.cursor >= end
    }

    /// A selection that has receivers.
    fn get(&self, id: SelectionId) -> &Selection {
        self.all.get(&id).expect(HAS_RECEIVERS)
    }

    /// The same, to change.
    fn get_mut(&mut self, id: SelectionId) -> &mut Selection {
        self.all.get_mut(&id).expect(HAS_RECEIVERS)
    }

    /// The selection with takers whose turn it is after the last one.
    fn next_turn(&mut self) -> Option<SelectionId> {
        let behind = (Bound::Excluded(self.last), Bound::Unbounded);
        let next = self.with_credit.range(behind).next();
        let next = *next.or_else(|| self.with_credit.first())?;
        self.last = next;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(cursor: u64) -> Selection {
        Selection {
            selector: Arc::new(Selector::parse("n = 1").unwrap()),
            receivers: 1,
            takers: VecDeque::new(),
            cursor: SequenceNumber(cursor),
            again: BTreeSet::new(),
        }
    }

    #[test]
    fn what_becomes_available_behind_the_cursor_is_judged_again() {
        let mut selection = selection(5);
        for number in [3, 5, 9] {
            selection.available(SequenceNumber(number));
        }
        assert_eq!(selection.again, BTreeSet::from([SequenceNumber(3)]));
        selection.pass(SequenceNumber(3));
        assert_eq!(selection.cursor, SequenceNumber(5));
        selection.pass(SequenceNumber(5));
        assert_eq!(selection.cursor, SequenceNumber(6));
    }

    #[test]
    fn too_many_to_be_judged_again_send_the_cursor_back() {
        let mut selection = selection(1 << 20);
        let most = MOST_AGAIN as u64;
        for number in (10..=10 + most).rev() {
            selection.available(SequenceNumber(number));
        }
        assert_eq!(selection.cursor, SequenceNumber(10));
        assert!(selection.again.is_empty());
    }
}

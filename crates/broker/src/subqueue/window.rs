//! Window: the next available messages of a subqueue, as far as they are known in memory.
//!
//! What is below `end` is known: such a message is available here, locked (its lock knows it),
//! or one of the few stragglers that a restart left to be loaded. What lies at or above `end` is
//! on disk only; a refill brings the next of it. A refill ends where its request said it would,
//! and what changed meanwhile in its range is merged in, so its answer may come from any moment
//! since it was asked for.
//! Invariant: nothing is delivered out of order, forgotten, or known twice.

use std::collections::BTreeMap;
use std::ops::Range;

use store::SequenceNumber;

use crate::api::id::ReadId;
use crate::message::entry::Entry;
use crate::subqueue::number_map::NumberMap;

/// Most messages of one refill, so that taking them in does not keep others waiting.
const MOST_AT_ONCE: usize = 4_096;

/// What a window would like to read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Ask {
    /// The messages that a restart knows by number only.
    Stragglers(Vec<SequenceNumber>),
    /// The next ones from here on, and how many.
    From(SequenceNumber, usize),
}

impl Ask {
    /// Asks for `most` messages at most, if there is such a limit.
    pub(crate) fn shorten(&mut self, most: Option<usize>) {
        let Some(most) = most else { return };
        match self {
            Self::Stragglers(numbers) => numbers.truncate(most),
            Self::From(_, limit) => *limit = most.min(*limit),
        }
    }
}

/// A refill that is under way.
#[derive(Debug)]
struct Refill {
    read: ReadId,
    ask: Ask,
    /// Above every number in use when the refill was asked for.
    until: SequenceNumber,
    /// What became of messages of its range since: available as given, or gone.
    changed: BTreeMap<SequenceNumber, Option<Entry>>,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Window {
    limit: usize,
    available: NumberMap<Entry>,
    end: SequenceNumber,
    /// Below `end`, live and not locked; their rows are not loaded yet. Ascending.
    stragglers: Vec<SequenceNumber>,
    refill: Option<Refill>,
}

impl Window {
    /// A window that knows nothing but the stragglers; everything from `resume` on is on disk.
    pub(crate) fn new(
        limit: usize,
        resume: SequenceNumber,
        stragglers: Vec<SequenceNumber>,
    ) -> Self {
        Self {
            limit: limit.max(1),
            available: NumberMap::default(),
            end: resume,
            stragglers,
            refill: None,
        }
    }

    /// How many available messages it has room for.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// It has room for `more` more.
    pub(crate) fn widen(&mut self, more: usize) {
        self.limit += more;
    }

    /// How many messages it accounts for.
    pub(crate) fn len(&self) -> usize {
        self.available.len() + self.stragglers.len()
    }

    /// Everything below this number is known.
    pub(crate) fn end(&self) -> SequenceNumber {
        self.end
    }

    /// Whether all rows below `bound` are in memory.
    pub(crate) fn covers(&self, bound: SequenceNumber) -> bool {
        self.end >= bound && self.stragglers.is_empty()
    }

    /// The next message, unless an earlier one has yet to be loaded.
    pub(crate) fn first(&self) -> Option<(SequenceNumber, &Entry)> {
        if !self.stragglers.is_empty() {
            return None;
        }
        self.available.first()
    }

    /// An available message.
    pub(crate) fn get(&self, number: SequenceNumber) -> Option<&Entry> {
        self.available.get(number)
    }

    /// An available message, to change what is known of its body.
    pub(crate) fn get_mut(&mut self, number: SequenceNumber) -> Option<&mut Entry> {
        self.available.get_mut(number)
    }

    /// Available messages in order.
    pub(crate) fn range(
        &self,
        range: Range<SequenceNumber>,
    ) -> impl Iterator<Item = (SequenceNumber, &Entry)> {
        self.available.range(range)
    }

    /// Available messages and stragglers from `from` on, in order; sizes where they are known.
    pub(crate) fn known_from(
        &self,
        from: SequenceNumber,
    ) -> impl Iterator<Item = (SequenceNumber, Option<u32>)> {
        let mut stragglers = self.stragglers.iter().filter(move |n| **n >= from);
        let mut available = self.available.range(from..);
        let mut straggler = stragglers.next();
        let mut next = available.next();
        std::iter::from_fn(move || match (straggler, next) {
            (Some(s), Some((n, _))) if *s < n => {
                straggler = stragglers.next();
                Some((*s, None))
            }
            (Some(s), None) => {
                straggler = stragglers.next();
                Some((*s, None))
            }
            (_, Some((n, entry))) => {
                next = available.next();
                Some((n, Some(entry.row.size)))
            }
            (None, None) => None,
        })
    }

    /// Whether there are messages that a restart left to be loaded.
    pub(crate) fn has_stragglers(&self) -> bool {
        !self.stragglers.is_empty()
    }

    /// Whether the number is one of the stragglers.
    pub(crate) fn is_straggler(&self, number: SequenceNumber) -> bool {
        self.stragglers.binary_search(&number).is_ok()
    }

    /// A message has become available: it arrived, or its lock ended. `beyond` counts the others
    /// that are on disk only. Returns what had to go to keep the limit.
    pub(crate) fn insert(
        &mut self,
        number: SequenceNumber,
        entry: Entry,
        beyond: u64,
    ) -> Option<Entry> {
        if beyond == 0 {
            self.set_end(SequenceNumber::MAX);
        }
        if number >= self.end {
            if let Some(changed) = self.changed_at(number) {
                changed.insert(number, Some(entry));
            }
            return Some(entry);
        }
        let before = self.available.insert(number, entry);
        assert!(before.is_none(), "message {number} is available already");
        (self.available.len() > self.limit).then(|| self.spill_last())
    }

    /// Takes an available message out: to be locked, or to go.
    pub(crate) fn take(&mut self, number: SequenceNumber) -> Option<Entry> {
        self.available.remove(number)
    }

    /// Takes the next message out.
    pub(crate) fn take_first(&mut self) -> Option<(SequenceNumber, Entry)> {
        self.available.pop_first()
    }

    /// A message has left the subqueue's part for good.
    pub(crate) fn forget(&mut self, number: SequenceNumber) {
        if let Ok(index) = self.stragglers.binary_search(&number) {
            self.stragglers.remove(index);
        }
        if let Some(changed) = self.changed_at(number) {
            changed.insert(number, None);
        }
    }

    /// What to read next, if it is time. `beyond` counts the messages that are on disk only.
    pub(crate) fn wants(&self, beyond: u64, next_number: SequenceNumber) -> Option<Ask> {
        if self.refill.is_some() {
            return None;
        }
        if !self.stragglers.is_empty() {
            return Some(Ask::Stragglers(self.stragglers.clone()));
        }
        let more = beyond > 0 && self.end < next_number;
        let room = (self.limit - self.available.len()).min(MOST_AT_ONCE);
        (more && self.available.len() * 2 < self.limit).then_some(Ask::From(self.end, room))
    }

    /// Whether a refill is under way.
    pub(crate) fn is_refilling(&self) -> bool {
        self.refill.is_some()
    }

    /// What it wanted is being read. `until` is above every number in use.
    pub(crate) fn asked(&mut self, read: ReadId, ask: Ask, until: SequenceNumber) {
        self.refill = Some(Refill {
            read,
            ask,
            until,
            changed: BTreeMap::new(),
        });
    }

    /// What the refill under way asked for, if that is `read`.
    pub(crate) fn asked_by(&self, read: ReadId) -> Option<Ask> {
        let refill = self.refill.as_ref().filter(|refill| refill.read == read);
        refill.map(|refill| refill.ask.clone())
    }

    /// The refill did not succeed; it may be asked for again.
    pub(crate) fn failed(&mut self, read: ReadId) {
        self.refill.take_if(|refill| refill.read == read);
    }

    /// What was read, ascending; rows of locked messages are skipped. Returns what had to go to
    /// keep the limit. A read that is no longer waited for changes nothing.
    pub(crate) fn loaded(
        &mut self,
        read: ReadId,
        rows: Vec<(SequenceNumber, Entry)>,
        is_locked: impl Fn(SequenceNumber) -> bool,
    ) -> Vec<Entry> {
        // The end may have moved since, so that it is of no use any more.
        let Some(refill) = self.refill.take_if(|refill| refill.read == read) else {
            return rows.into_iter().map(|(_, entry)| entry).collect();
        };
        match &refill.ask {
            Ask::Stragglers(asked) => self.merge_stragglers(asked, rows),
            Ask::From(_, limit) => {
                let last = rows.last().map(|(number, _)| *number);
                let covered = match last {
                    Some(last) if rows.len() >= *limit => last.next(),
                    _ => refill.until,
                };
                self.merge(&refill, rows, covered, is_locked);
            }
        }
        self.spill()
    }

    /// As [`loaded`](Self::loaded), where the caller knows that all below `covered` was read.
    pub(crate) fn loaded_below(
        &mut self,
        read: ReadId,
        rows: Vec<(SequenceNumber, Entry)>,
        covered: SequenceNumber,
        is_locked: impl Fn(SequenceNumber) -> bool,
    ) -> Vec<Entry> {
        // The end may have moved since, so that it is of no use any more.
        let Some(refill) = self.refill.take_if(|refill| refill.read == read) else {
            return rows.into_iter().map(|(_, entry)| entry).collect();
        };
        self.merge(&refill, rows, covered.min(refill.until), is_locked);
        self.spill()
    }

    fn merge(
        &mut self,
        refill: &Refill,
        rows: Vec<(SequenceNumber, Entry)>,
        covered: SequenceNumber,
        is_locked: impl Fn(SequenceNumber) -> bool,
    ) {
        let unchanged = rows
            .into_iter()
            .filter(|(number, _)| !refill.changed.contains_key(number));
        let changed = refill.changed.iter();
        let arrived = changed.filter_map(|(n, entry)| entry.map(|entry| (*n, entry)));
        let next = unchanged
            .chain(arrived)
            .filter(|(n, _)| *n < covered && !is_locked(*n));
        self.available.extend(next);
        self.end = covered;
    }

    /// Those of `asked` that are stragglers still are known now, or there is no row of them.
    fn merge_stragglers(&mut self, asked: &[SequenceNumber], rows: Vec<(SequenceNumber, Entry)>) {
        let is_asked = |number: &mut SequenceNumber| asked.binary_search(number).is_ok();
        let still: Vec<_> = self.stragglers.extract_if(.., is_asked).collect();
        let rows = rows.into_iter();
        self.available
            .extend(rows.filter(|(number, _)| still.binary_search(number).is_ok()));
    }

    /// Where to note a change, if the number is in the range of a refill under way.
    fn changed_at(
        &mut self,
        number: SequenceNumber,
    ) -> Option<&mut BTreeMap<SequenceNumber, Option<Entry>>> {
        let refill = self.refill.as_mut()?;
        match refill.ask {
            Ask::From(from, _) if from <= number && number < refill.until => {
                Some(&mut refill.changed)
            }
            _ => None,
        }
    }

    /// A refill that starts elsewhere than at the end is of no use any more.
    fn set_end(&mut self, end: SequenceNumber) {
        if self.end != end {
            self.end = end;
            self.stragglers.retain(|number| *number < end);
            self.refill
                .take_if(|refill| matches!(refill.ask, Ask::From(..)));
        }
    }

    fn spill(&mut self) -> Vec<Entry> {
        let surplus = self.available.len().saturating_sub(self.limit);
        (0..surplus).map(|_| self.spill_last()).collect()
    }

    /// The last message is known no more: it is on disk like all behind it.
    fn spill_last(&mut self) -> Entry {
        let (number, entry) = self.available.pop_last().expect("more than the limit");
        self.set_end(number);
        entry
    }
}

#[cfg(test)]
mod tests;

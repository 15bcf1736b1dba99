//! Timetable: the next scheduled messages by due time, as far as they are known in memory.
//!
//! What comes before `end` is known; what comes at or after it is on disk only, and a refill
//! brings the next of it. What changed meanwhile in a refill's range is merged in, so its answer
//! may come from any moment since it was asked for. What cannot be read is passed over.
//! Invariant: nothing is taken out of order, forgotten, or known twice.

use std::collections::BTreeMap;

use store::{BodyPointer, MessageRow, SequenceNumber};

use crate::api::id::ReadId;
use crate::message::row;

/// A scheduled message's place: what is due at the same time goes by number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Due {
    /// Wall clock, milliseconds.
    pub at: u64,
    pub number: SequenceNumber,
}

/// What activation has to know of a scheduled message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Planned {
    pub ttl_ms: u64,
    pub size: u32,
    pub flags: u32,
    pub session_hash: u64,
    /// In a queue with sessions; an allocation of its own.
    pub session: Option<Box<[u8]>>,
    /// Of a message that was delivered before.
    pub waiting: Option<Box<Waiting>>,
    /// Of a message whose body has a number of its own; the entity's body under the number that the
    /// message was given otherwise.
    pub body: Option<Box<BodyPointer>>,
}

/// What an abandoned message is again when its time has come.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Waiting {
    pub row: MessageRow,
    pub delivery_count: u32,
}

/// A refill that is under way.
#[derive(Debug)]
struct Refill {
    read: ReadId,
    from: Due,
    limit: usize,
    /// Changes from here on were too many to be noted.
    until: Due,
    /// What became of its range since: scheduled as given, or gone.
    changed: BTreeMap<Due, Option<Planned>>,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Timetable {
    limit: usize,
    known: BTreeMap<Due, Planned>,
    end: Due,
    refill: Option<Refill>,
}

impl Due {
    /// After everything that can be scheduled.
    pub(crate) const MAX: Self = Self {
        at: u64::MAX,
        number: SequenceNumber::MAX,
    };

    pub(crate) fn next(self) -> Self {
        let number = SequenceNumber(self.number.0.saturating_add(1));
        Self { number, ..self }
    }
}

impl Planned {
    /// Of a row in the scheduled part.
    pub(crate) fn of(row: &MessageRow, session: Option<&[u8]>) -> Self {
        Self {
            ttl_ms: row.ttl_ms,
            size: row.size,
            flags: row.flags,
            session_hash: row.session_hash,
            session: session.map(Box::from),
            waiting: None,
            body: None,
        }
    }

    /// Of a message that is delivered again later.
    pub(crate) fn again(waiting: Waiting) -> Self {
        let mut planned = Self::of(&waiting.row, None);
        planned.flags |= row::WAITING;
        planned.waiting = Some(Box::new(waiting));
        planned
    }

    /// The row in the scheduled part. Time to live begins with activation, so nothing expires here;
    /// a message that waits for its next delivery is due at its deadline at the latest.
    pub(crate) fn row(&self, due_ms: u64, body: BodyPointer) -> MessageRow {
        let waiting = self.waiting.as_ref().map(|waiting| waiting.row);
        let body = self.body.as_deref().copied().unwrap_or(body);
        MessageRow {
            enqueued_ms: due_ms,
            ttl_ms: self.ttl_ms,
            expires_ms: u64::MAX,
            size: self.size,
            flags: self.flags,
            session_hash: self.session_hash,
            enqueued_number: waiting.map_or(0, |row| row.enqueued_number),
            body: waiting.map_or(body, |row| row.body),
        }
    }
}

impl Timetable {
    /// A timetable that knows nothing: everything from `start` on is on disk.
    pub(crate) fn new(limit: usize, start: Due) -> Self {
        Self {
            limit: limit.max(1),
            known: BTreeMap::new(),
            end: start,
            refill: None,
        }
    }

    /// How many messages it knows.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// The next message, if it is known.
    pub(crate) fn first(&self) -> Option<Due> {
        Some(*self.known.first_key_value()?.0)
    }

    /// Before this there is nothing.
    pub(crate) fn start(&self) -> Due {
        self.first().unwrap_or(self.end)
    }

    /// Takes the next message out.
    pub(crate) fn take_first(&mut self) -> Option<(Due, Planned)> {
        self.known.pop_first()
    }

    /// A message was scheduled. `beyond` counts the others that are on disk only.
    pub(crate) fn insert(&mut self, due: Due, planned: Planned, beyond: u64) {
        if beyond == 0 {
            self.set_end(Due::MAX);
        }
        if due >= self.end {
            return self.note(due, Some(planned));
        }
        self.known.insert(due, planned);
        self.spill();
    }

    /// A message was cancelled.
    pub(crate) fn forget(&mut self, due: Due) {
        self.known.remove(&due);
        self.note(due, None);
    }

    /// From where, and how many, it would like to read. `beyond` counts the messages that are on
    /// disk only.
    pub(crate) fn wants(&self, beyond: u64) -> Option<(Due, usize)> {
        let low = self.known.len() * 2 < self.limit;
        // Behind the end there is only what was passed over.
        let wants = self.refill.is_none() && low && beyond > 0 && self.end < Due::MAX;
        wants.then(|| (self.end, self.limit - self.known.len()))
    }

    /// What it wanted is being read.
    pub(crate) fn asked(&mut self, read: ReadId, from: Due, limit: usize) {
        self.refill = Some(Refill {
            read,
            from,
            limit,
            until: Due::MAX,
            changed: BTreeMap::new(),
        });
    }

    /// The refill did not succeed; it may be asked for again. Returns whether it was waited for.
    pub(crate) fn failed(&mut self, read: ReadId) -> bool {
        self.refill.take_if(|refill| refill.read == read).is_some()
    }

    /// What was read, ascending, and nothing of a message that cannot be understood. Returns those
    /// that are passed over. A read that is no longer waited for changes nothing.
    pub(crate) fn loaded(&mut self, read: ReadId, found: Vec<(Due, Option<Planned>)>) -> Vec<Due> {
        let Some(refill) = self.refill.take_if(|refill| refill.read == read) else {
            return Vec::new();
        };
        let covered = match found.last() {
            Some((last, _)) if found.len() >= refill.limit => last.next().min(refill.until),
            _ => refill.until,
        };
        self.merge(refill, found, covered)
    }

    /// What comes before `covered` cannot be read; what has come there since is known. Returns from
    /// where on, if the read was waited for.
    pub(crate) fn pass_over(&mut self, read: ReadId, covered: Due) -> Option<Due> {
        let refill = self.refill.take_if(|refill| refill.read == read)?;
        let from = refill.from;
        let covered = covered.max(from.next()).min(refill.until);
        self.merge(refill, Vec::new(), covered);
        Some(from)
    }

    /// Takes in what was found before `covered`, and what has come there since.
    fn merge(
        &mut self,
        refill: Refill,
        found: Vec<(Due, Option<Planned>)>,
        covered: Due,
    ) -> Vec<Due> {
        let mut passed = Vec::new();
        let unchanged = found
            .into_iter()
            .filter(|(due, _)| *due < covered && !refill.changed.contains_key(due));
        for (due, planned) in unchanged {
            match planned {
                Some(planned) => drop(self.known.insert(due, planned)),
                None => passed.push(due),
            }
        }
        let changed = refill.changed.into_iter();
        let arrived = changed.filter_map(|(due, planned)| Some((due, planned?)));
        self.known.extend(arrived.filter(|(due, _)| *due < covered));
        self.end = covered;
        self.spill();
        passed
    }

    /// Notes a change, if it is in the range of a refill under way.
    fn note(&mut self, due: Due, planned: Option<Planned>) {
        let Some(refill) = &mut self.refill else {
            return;
        };
        if refill.from <= due && due < refill.until {
            refill.changed.insert(due, planned);
        }
        if refill.changed.len() > self.limit {
            let last = refill.changed.pop_last();
            refill.until = last.expect("they are more than the limit").0;
        }
    }

    /// A refill that starts elsewhere than at the end is of no use any more.
    fn set_end(&mut self, end: Due) {
        if self.end != end {
            self.end = end;
            self.refill = None;
        }
    }

    /// What is beyond the limit is known no more: it is on disk like all behind it.
    fn spill(&mut self) {
        while self.known.len() > self.limit {
            let last = self.known.pop_last();
            self.set_end(last.expect("they are more than the limit").0);
        }
    }
}

#[cfg(test)]
mod tests;

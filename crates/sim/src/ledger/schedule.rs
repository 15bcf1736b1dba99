//! Schedule: messages that are accepted for later, and requests that take them back. (I10)
//!
//! The ledger knows from the sender when a message is due. It becomes available then and not
//! before, by the wall clock of the turn, under a new number, after everything of its queue that
//! was due before it; or it is taken back, together with all others that the request names.

use std::collections::{BTreeMap, BTreeSet};

use broker::{RequestError, RequestId};
use store::{CommitId, EntityId, Part, SequenceNumber};

use super::Ledger;
use super::answers::Asked;
use crate::books::{Changes, Move, Place};
use crate::message::MessageId;
use crate::violation::Violation;

/// A request to take messages back that has not been answered.
#[derive(Debug)]
struct Cancel {
    entity: EntityId,
    /// Which message each number was when it was asked for, if it was one that waits.
    numbers: BTreeMap<SequenceNumber, Option<MessageId>>,
    /// All of them were taken back together.
    done: bool,
}

impl Cancel {
    /// Whether both name the same message.
    fn shares(&self, other: &Self) -> bool {
        let mut numbers = self.numbers.keys();
        self.entity == other.entity && numbers.any(|number| other.numbers.contains_key(number))
    }
}

/// Requests about scheduled messages.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    cancels: BTreeMap<RequestId, Cancel>,
    /// Taken back, under that commit, and the client was not told so yet.
    cancelled: BTreeMap<(EntityId, SequenceNumber), CommitId>,
    /// What clients were told, by the index of the queue.
    known: BTreeSet<(usize, SequenceNumber, MessageId)>,
}

impl Schedules {
    pub(super) fn crashed(&mut self) {
        self.cancels.clear();
        self.cancelled.clear();
    }
}

/// Under which number a client knows a message.
pub type Scheduled = (SequenceNumber, MessageId);

impl Ledger {
    /// A client was told under which number its message waits.
    ///
    /// # Errors
    /// I10, when it is another one.
    pub fn scheduled(
        &mut self,
        queue: usize,
        number: SequenceNumber,
        id: MessageId,
    ) -> Result<(), Violation> {
        let Some(entry) = self.entries.get(&id) else {
            return Ok(());
        };
        // One whose time has been is available already, at its level, which is not told of all.
        let same = |arrived: SequenceNumber| arrived == number || arrived.arrival() == number;
        let known = entry.arrived.or(entry.duplicate_of);
        if !known.is_some_and(same) {
            let what = format!("message {id} is {known:?}, not {number}");
            return Err(Violation::new("I10", what));
        }
        if entry.arrived.is_some() {
            self.schedules.known.insert((queue, number, id));
        }
        Ok(())
    }

    /// At most `most` messages that clients have scheduled and not taken back. The newest `newer`
    /// of them are left out.
    #[must_use]
    pub fn known_scheduled(&self, queue: usize, newer: usize, most: usize) -> Vec<Scheduled> {
        let from = (queue, SequenceNumber(0), 0);
        let until = (queue, SequenceNumber::MAX, MessageId::MAX);
        let known = self.schedules.known.range(from..until).rev();
        let known = known.skip(newer).take(most);
        known.map(|(_, number, id)| (*number, *id)).collect()
    }

    /// A client asks to have messages back.
    pub fn cancel_asked(&mut self, messages: &[Scheduled]) {
        for (_, id) in messages {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.leaving += 1;
            }
        }
    }

    /// A client was told whether it has them back.
    ///
    /// # Errors
    /// I10, when it was told so and the shard never said it.
    pub fn cancel_answered(
        &mut self,
        queue: usize,
        messages: &[Scheduled],
        done: bool,
    ) -> Result<(), Violation> {
        for (number, id) in messages {
            let Some(entry) = self.entries.get_mut(id) else {
                continue;
            };
            if done && !entry.cancel_granted {
                let what = format!("a client was told that message {id} was taken back");
                return Err(Violation::new("I10", what));
            }
            entry.leaving -= 1;
            entry.gone |= done;
            self.schedules.known.remove(&(queue, *number, *id));
        }
        Ok(())
    }

    /// A client will never know whether it has them back.
    pub fn cancel_lost(&mut self, messages: &[Scheduled]) {
        for (_, id) in messages {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.leaving -= 1;
                entry.may_be_gone = true;
            }
        }
    }

    pub(super) fn observe_cancel(
        &mut self,
        request: RequestId,
        entity: EntityId,
        numbers: &[SequenceNumber],
    ) {
        self.answers.expect(request, Asked::Read(entity));
        let numbers = numbers
            .iter()
            .map(|number| (*number, self.waiting(entity, *number)));
        let cancel = Cancel {
            entity,
            numbers: numbers.collect(),
            done: false,
        };
        self.schedules.cancels.insert(request, cancel);
    }

    /// Which scheduled message has that number.
    fn waiting(&self, entity: EntityId, number: SequenceNumber) -> Option<MessageId> {
        self.books.message(Place {
            entity,
            part: Part::Scheduled,
            number,
        })
    }

    /// Notes which requests a set has fulfilled: all that they name was taken back by it.
    pub(super) fn note_cancelled(&mut self, changes: &Changes, commit: CommitId) {
        let gone = changes.moves.iter().filter(|moved| moved.to.is_none());
        let from = gone.filter_map(|moved| moved.from);
        let places = from.filter(|from| from.part == Part::Scheduled);
        let now: BTreeSet<_> = places.map(|from| (from.entity, from.number)).collect();
        if now.is_empty() {
            return;
        }
        for cancel in self.schedules.cancels.values_mut() {
            let mut numbers = cancel.numbers.keys();
            cancel.done |= numbers.all(|number| now.contains(&(cancel.entity, *number)));
        }
        let cancelled = now.into_iter().map(|place| (place, commit));
        self.schedules.cancelled.extend(cancelled);
    }

    /// A scheduled message goes when all that one request names go with it.
    pub(super) fn explain_cancellation(&self, id: MessageId, from: Place) -> Result<(), Violation> {
        let mut cancels = self.schedules.cancels.values();
        let asked = cancels.any(|cancel| {
            let names = cancel.numbers.contains_key(&from.number);
            cancel.done && cancel.entity == from.entity && names
        });
        if asked {
            return Ok(());
        }
        let what = format!("message {id}, {from:?}, was taken back, but not all of a request");
        Err(Violation::new("I10", what))
    }

    /// A scheduled message arrives and waits.
    pub(super) fn check_scheduled(&self, moved: &Move) -> Result<(), Violation> {
        let Move { id, row, .. } = *moved;
        let Some(entry) = self.entries.get(&id) else {
            return Ok(());
        };
        if (row.enqueued_ms, row.ttl_ms, row.expires_ms) != (entry.due, entry.ttl, u64::MAX)
            || row.size as usize != entry.payload.len()
        {
            let what = format!("message {id} is scheduled with a wrong row: {row:?}");
            return Err(Violation::new("I10", what));
        }
        Ok(())
    }

    /// A scheduled message becomes available.
    pub(super) fn explain_activation(
        &mut self,
        moved: &Move,
        from: Place,
        to: Place,
    ) -> Result<(), Violation> {
        let (entry, _) = self.entry_at(moved.id, from)?;
        let due = (entry.due, from.number);
        let what = if entry.due > self.turn.now.wall.0 {
            Some("became available before its time")
        } else if to.number.arrival() <= from.number {
            Some("became available under no new number")
        } else if self.turn.activated.get(&from.entity) >= Some(&due)
            || self
                .books
                .first_due(from.entity)
                .is_some_and(|first| first < due)
        {
            Some("became available before another")
        } else {
            None
        };
        if let Some(what) = what {
            let what = format!("message {}, due at {due:?}, {what}", moved.id);
            return Err(Violation::new("I10", what));
        }
        self.report.activated += 1;
        self.turn.activated.insert(from.entity, due);
        let wall = self.turn.now.wall;
        if let Some(entry) = self.entries.get_mut(&moved.id) {
            entry.number = Some(to.number);
            entry.enqueued = Some(to.number);
            entry.asked_wall = wall;
        }
        self.check_enqueued(moved)
    }

    /// The shard says whether it took messages back.
    pub(super) fn verify_cancelled(
        &mut self,
        request: RequestId,
        result: &Result<(), RequestError>,
        durable: CommitId,
    ) -> Result<(), Violation> {
        let Some(cancel) = self.schedules.cancels.remove(&request) else {
            return Ok(());
        };
        match result {
            Ok(()) => self.check_cancelled(&cancel, durable),
            Err(error) => self.check_not_cancelled(&cancel, error),
        }
    }

    fn check_cancelled(&mut self, cancel: &Cancel, durable: CommitId) -> Result<(), Violation> {
        for (number, id) in &cancel.numbers {
            let place = (cancel.entity, *number);
            let commit = self.schedules.cancelled.remove(&place);
            if commit.is_none_or(|commit| commit > durable) {
                let what = format!("{place:?} is said to be taken back, which is not durable");
                return Err(Violation::new("I10", what));
            }
            if let Some(entry) = id.and_then(|id| self.entries.get_mut(&id)) {
                entry.cancel_granted = true;
                self.report.cancelled += 1;
            }
        }
        // It was this request's doing and no other's.
        let others = self.schedules.cancels.values_mut();
        for other in others.filter(|other| other.shares(cancel)) {
            other.done = false;
        }
        Ok(())
    }

    /// Nothing was done, and what is said to be missing is.
    fn check_not_cancelled(&self, cancel: &Cancel, error: &RequestError) -> Result<(), Violation> {
        let mut others = self.schedules.cancels.values();
        if cancel.done && !others.any(|other| other.shares(cancel)) {
            let what = format!("{cancel:?} was refused and done");
            return Err(Violation::new("I10", what));
        }
        if let RequestError::MessageNotFound(number) = error {
            let asked = cancel.numbers.get(number).copied().flatten();
            // What waits for its next delivery is not to be had back.
            let entry = asked.and_then(|id| self.entries.get(&id));
            let waits = entry.is_some_and(|entry| entry.waited.is_some());
            if asked.is_some() && !waits && self.waiting(cancel.entity, *number) == asked {
                let what = format!("{number} was refused as missing and is there: {cancel:?}");
                return Err(Violation::new("I10", what));
            }
        }
        Ok(())
    }
}

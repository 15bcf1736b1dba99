//! Duplicates: of each message id, what was accepted first and counts for a window. (I11)
//!
//! The ledger knows the ids from the senders. What arrives must be the first of its window, and
//! what is said to be a duplicate must be one of a message that is durable; no id is forgotten
//! before its window is over. What a crash took from the store was never accepted.

use std::collections::BTreeMap;

use broker::{RequestId, Wall};
use store::{CommitId, EntityId, SequenceNumber};

use super::Ledger;
use crate::books::{Forgotten, Place};
use crate::message::MessageId;
use crate::violation::Violation;

/// How long after the end of its window an id may be remembered, in milliseconds.
const SWEPT_WITHIN: u64 = 60_000;

/// A message that was accepted with some id.
#[derive(Clone, Copy, Debug)]
struct Acceptance {
    at: u64,
    number: SequenceNumber,
    message: MessageId,
    /// Its window was over once, though the clock may have gone back since.
    forgotten: bool,
}

/// What was accepted, by queue and message id, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    accepted: BTreeMap<(usize, MessageId), Vec<Acceptance>>,
}

impl History {
    fn of(&mut self, queue: usize) -> impl Iterator<Item = &mut Vec<Acceptance>> {
        let of_queue = (queue, 0)..=(queue, MessageId::MAX);
        let histories = self.accepted.range_mut(of_queue);
        histories.map(|(_, history)| history)
    }
}

impl Ledger {
    /// A message has arrived: nothing with its id was accepted within the window.
    pub(super) fn note_accepted(&mut self, id: MessageId, to: Place) -> Result<(), Violation> {
        let Some(entry) = self.entries.get(&id) else {
            return Ok(());
        };
        let (index, key) = (entry.queue, entry.key);
        let Some(window) = self.queues[index].duplicate_window else {
            return Ok(());
        };
        let wall = self.turn.now.wall.0;
        let history = self.history.accepted.entry((index, key)).or_default();
        if let Some(first) = history.last()
            && !first.forgotten
            && wall < first.at.saturating_add(window)
        {
            let what = format!("message {id} is stored and a duplicate of {first:?}");
            return Err(Violation::new("I11", what));
        }
        let Some(at) = self.books.accepted_ms(to.entity, to.number) else {
            let what = format!("the id of message {id} is not remembered");
            return Err(Violation::new("I11", what));
        };
        if at < wall {
            let what = format!("the id of message {id} is remembered since {at}, not {wall}");
            return Err(Violation::new("I11", what));
        }
        history.push(Acceptance {
            at,
            number: to.number,
            message: id,
            forgotten: false,
        });
        Ok(())
    }

    /// The shard says that a message was dropped, since `number` came before it.
    pub(super) fn verify_duplicate(
        &mut self,
        id: MessageId,
        number: SequenceNumber,
        asked: Wall,
        durable: CommitId,
    ) -> Result<(), Violation> {
        let wrong = |what: String| Err(Violation::new("I11", what));
        let Some(entry) = self.entries.get_mut(&id) else {
            return Ok(());
        };
        let index = entry.queue;
        if entry.arrived.is_some() {
            return wrong(format!("message {id} is stored and called a duplicate"));
        }
        let history = self.history.accepted.get(&(index, entry.key));
        let mut first = history.into_iter().flatten().rev();
        let first = first.find(|first| first.number == number);
        let (Some(first), Some(window)) = (first, self.queues[index].duplicate_window) else {
            return wrong(format!("message {id} is called a duplicate of {number}"));
        };
        if asked.0 >= first.at.saturating_add(window) {
            return wrong(format!("message {id} came after the window of {first:?}"));
        }
        if self
            .undurable
            .get(&first.message)
            .is_some_and(|commit| *commit > durable)
        {
            let what = format!("message {id} was accepted before {first:?} was durable");
            return Err(Violation::new("I1", what));
        }
        entry.duplicate_of = Some(number);
        if let Some(first) = self.entries.get_mut(&first.message) {
            first.confirmed_by_duplicate = true;
        }
        self.report.duplicates += 1;
        Ok(())
    }

    /// The number of what was accepted with that id within the window that began before `asked`.
    pub(super) fn accepted_before(
        &self,
        queue: usize,
        key: MessageId,
        asked: Wall,
    ) -> Option<SequenceNumber> {
        let window = self.queues[queue].duplicate_window?;
        let history = self.history.accepted.get(&(queue, key))?;
        let mut counting = history.iter().rev();
        let first = counting.find(|first| asked.0 < first.at.saturating_add(window))?;
        Some(first.number)
    }

    /// A message was dropped for the sake of that one, which is therefore there.
    pub(super) fn confirm_by_duplicate(
        &mut self,
        place: (usize, MessageId),
        number: SequenceNumber,
    ) {
        let history = self.history.accepted.get(&place).into_iter().flatten();
        let first = history.filter(|first| first.number == number);
        for first in first.map(|first| first.message) {
            if let Some(first) = self.entries.get_mut(&first) {
                first.confirmed_by_duplicate = true;
            }
        }
    }

    /// The number for whose sake a message that comes now would be dropped.
    pub(super) fn first_accepted(&self, id: MessageId, queue: usize) -> Option<SequenceNumber> {
        let key = self.entries.get(&id)?.key;
        let window = self.queues[queue].duplicate_window?;
        let first = self.history.accepted.get(&(queue, key))?.last()?;
        let counts = self.turn.now.wall.0 < first.at.saturating_add(window);
        counts.then_some(first.number)
    }

    /// An id was forgotten: its window is over.
    pub(super) fn explain_forgotten(&mut self, forgotten: Forgotten) -> Result<(), Violation> {
        let (entity, at, number) = forgotten;
        let Some(queue) = self.queue_of(entity) else {
            return Ok(());
        };
        let window = self.queues[queue].duplicate_window.unwrap_or(0);
        if at.saturating_add(window) <= self.turn.now.wall.0 {
            for accepted in self.history.of(queue).flatten() {
                accepted.forgotten |= accepted.number == number;
            }
            return Ok(());
        }
        let what = format!("the id of {number} of {entity:?}, accepted at {at}, was forgotten");
        Err(Violation::new("I11", what))
    }

    /// Every id is forgotten some time after its window. For a time when nothing is under way.
    ///
    /// # Errors
    /// I11, when one is still there.
    pub fn nothing_remembered(&self, wall_ms: u64) -> Result<(), Violation> {
        for queue in &self.queues {
            let window = queue.duplicate_window.unwrap_or(0);
            let late = window.saturating_add(SWEPT_WITHIN);
            let oldest = self.books.oldest_id_ms(queue.id);
            // A restart takes the last message for one with an id. By a clock that has gone back
            // since, its time is still to come.
            let last = self.books.last_enqueued_ms(queue.id);
            if last.saturating_add(window) >= wall_ms {
                continue;
            }
            if oldest.is_some_and(|at| at.saturating_add(late) < wall_ms) {
                let what = format!("{} remembers an id of {oldest:?} for ever", queue.path);
                return Err(Violation::new("I11", what));
            }
        }
        Ok(())
    }

    /// What a crash took from the store was never accepted.
    pub(super) fn forget_lost(&mut self, queue: usize, next: SequenceNumber) {
        let entity = self.queues[queue].id;
        for history in self.history.of(queue) {
            history.retain(|accepted| accepted.number.arrival() < next);
            for accepted in history {
                let there = self.books.accepted_ms(entity, accepted.number);
                accepted.forgotten = there.is_none();
            }
        }
    }

    /// Whether sends to an entity may wait for what it remembers.
    pub(super) fn detects(&self, entity: EntityId) -> bool {
        let queue = self.queue_of(entity);
        queue.is_some_and(|index| self.queues[index].duplicate_window.is_some())
    }

    /// A message has arrived under that commit; no client may be told before that is durable.
    pub(super) fn check_durable(
        &self,
        request: RequestId,
        id: MessageId,
        durable: CommitId,
    ) -> Result<(), Violation> {
        match self.undurable.get(&id) {
            Some(commit) if *commit > durable => Err(Violation::new(
                "I1",
                format!("{request:?} was answered before message {id} was durable"),
            )),
            _ => Ok(()),
        }
    }
}

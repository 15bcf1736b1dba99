//! Forward: messages that go on to another queue by themselves. (I1, I6, I10, I12)
//!
//! A message leaves one queue and enters the other in one write set, in order, with its body
//! and, out of a dead-letter queue, with its reason and where it comes from. It is another
//! queue's message from then on; a crash may put it back. What is not forwarded is a duplicate
//! there, or past its deadline.

use std::collections::BTreeMap;

use broker::{Delivery, Mono};
use store::{EntityId, Part, SequenceNumber};

use super::deliveries::Way;
use super::moves::contains;
use super::watch::{check, cost};
use super::{Ledger, Queue, TurnEnd};
use crate::books::{Move, Place};
use crate::message::MessageId;
use crate::violation::Violation;

/// What cannot be forwarded is tried again after a second.
const LATEST_MS: u64 = 3_000;

/// Whether forwarding goes on.
#[derive(Debug, Default)]
pub(super) struct Forwarding {
    /// The next message of a place, since when it is so, and how much has been waited for it.
    next: BTreeMap<(EntityId, Part), (MessageId, Mono, u32)>,
}

impl Forwarding {
    /// Nothing went on, and nothing should have: the wait begins anew.
    pub(super) fn suspended(&mut self) {
        self.next.clear();
    }
}

impl Ledger {
    /// Where messages of a place go by themselves.
    pub(super) fn destination(&self, from: Place) -> Option<usize> {
        let queue = &self.queues[self.queue_of(from.entity)?];
        match from.part {
            Part::Active => queue.forwards_to,
            Part::DeadLetter => queue.forwards_dead_letters_to,
            _ => None,
        }
    }

    /// A message went to another queue.
    pub(super) fn explain_forwarding(
        &mut self,
        moved: &Move,
        from: Place,
        to: Place,
    ) -> Result<(), Violation> {
        let Move { id, row, .. } = *moved;
        let (entry, queue) = self.entry_at(id, from)?;
        let (dead, source) = (from.part == Part::DeadLetter, queue.path);
        let destination = self.destination(from);
        let arrives = destination.map(|index| (self.queues[index].id, Part::Active));
        let (Some(destination), true) = (destination, arrives == Some((to.entity, to.part))) else {
            let what = format!("message {id} went from {from:?} to {to:?}");
            return Err(Violation::new("I6", what));
        };
        let checks = [
            (dead || self.is_next(from), "I4", "before another"),
            (
                self.body_of(&row) == Some(&entry.payload),
                "I12",
                "and changed",
            ),
            (
                !dead || self.says_where_from(to, source),
                "I6",
                "and does not say why, or where from",
            ),
            (
                // It may have been locked where it is now, and come back, within the same turn.
                self.books.count(to) == 0 || self.books.count(to) == 1 && entry.deliveries == 0,
                "I5",
                "with the count of where it was",
            ),
            (
                Some(SequenceNumber(row.enqueued_number)) == entry.enqueued,
                "I8",
                "and forgot its first number",
            ),
        ];
        if let Some((_, invariant, what)) = checks.into_iter().find(|(holds, ..)| !holds) {
            let what = format!("message {id} went from {from:?} to {to:?} {what}");
            return Err(Violation::new(invariant, what));
        }
        self.check_not_locked(id, "forwarded")?;
        let ttl = entry.ttl.min(self.queues[destination].default_ttl);
        let wall = self.turn.now.wall;
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.record_forward(destination, dead.then_some(source), ttl, wall);
            entry.number = Some(to.number);
        }
        self.report.forwarded += 1;
        if !dead {
            self.turn.forwarded.insert(from.entity, from.number);
        }
        self.check_enqueued(moved)?;
        self.note_accepted(id, to)
    }

    /// Whether what went before is what came before.
    fn is_next(&self, from: Place) -> bool {
        let left = self.books.first_number(from.entity, from.part);
        let before = self.turn.forwarded.get(&from.entity);
        left.is_none_or(|left| from.number < left)
            && before.is_none_or(|before| *before < from.number)
    }

    fn says_where_from(&self, to: Place, source: &str) -> bool {
        let patch = self.books.patch(to).map_or(&[][..], |patch| patch);
        contains(patch, b"DeadLetterReason") && contains(patch, source.as_bytes())
    }

    /// A message that went nowhere is one that its destination has had.
    pub(super) fn is_dropped_on_the_way(&mut self, id: MessageId, from: Place) -> bool {
        let destination = self.destination(from);
        let first = destination.and_then(|to| self.first_accepted(id, to));
        if let (Some(number), Some(entry)) = (first, self.entries.get_mut(&id)) {
            entry.duplicate_of = Some(number);
        }
        first.is_some()
    }

    /// Whether a delivery is of a time before its message went on.
    ///
    /// # Errors
    /// I12, when it does not say where it comes from.
    pub(super) fn is_stale(
        &self,
        id: MessageId,
        delivery: &Delivery,
        way: Way,
    ) -> Result<bool, Violation> {
        let entry = &self.entries[&id];
        let message = &delivery.message;
        let here = self.queues[entry.queue].id;
        let over = match way {
            Way::Link(receiver) => self.clients.source(receiver).map(|source| source.0),
            Way::Number(..) => None,
        };
        let same = message.dead_letter_source() == entry.source;
        if over == Some(here) && !same {
            let what = format!("message {id} does not say that it was {:?}", entry.source);
            return Err(Violation::new("I12", what));
        }
        if same && Some(message.enqueued_number) != entry.enqueued {
            let what = format!("message {id} forgot its first number: {:?}", entry.enqueued);
            return Err(Violation::new("I8", what));
        }
        Ok(!same)
    }

    /// The next message that is to go on goes on.
    pub(super) fn watch_forwarding(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let before = std::mem::take(&mut self.forwarding.next);
        let now = self.turn.now.mono;
        let lets_go =
            |queue: &&Queue| self.books.is_live(queue.id) && queue.status.allows_receive();
        for queue in self.queues.iter().filter(lets_go) {
            for part in [Part::Active, Part::DeadLetter] {
                let place = Place {
                    entity: queue.id,
                    part,
                    number: SequenceNumber(0),
                };
                let publishes = queue.is_topic && part == Part::Active;
                let to = self.destination(place).map(|to| self.queues[to].id);
                let Some(to) = to.or(publishes.then_some(queue.id)) else {
                    continue;
                };
                let Some((first, _)) = self.books.rows(queue.id, part).next() else {
                    continue;
                };
                let seen = before.get(&(queue.id, part));
                let same = seen.filter(|(seen, ..)| *seen == first);
                let (since, waited) = same.map_or((now, 0), |(_, since, waited)| (*since, *waited));
                // What cannot go on is tried again in time; only then is it forgotten.
                let late = now.0 > since.0 + LATEST_MS;
                let look = cost(turn_end, queue.id).min(cost(turn_end, to));
                let waited = waited + if late { look } else { 0 };
                check("I14", waited, || {
                    format!("message {first} of {} does not go on", queue.path)
                })?;
                let next = (first, since, waited);
                self.forwarding.next.insert((queue.id, part), next);
            }
        }
        Ok(())
    }
}

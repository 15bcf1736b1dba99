//! Moves: why a message came, went elsewhere, or went, each explained by what was asked, by time,
//! or by a count. What has no explanation is a violation. (Invariants I1, I2, I3, I5, I6, I12)

use broker::Overflow;
use bytes::Bytes;
use store::{CommitId, EntityId, MessageRow, Part};

use super::entry::Entry;
use super::{Ask, Ledger, Queue};
use crate::books::{Changes, Counted, Move, Place};
use crate::message::{self, MessageId};
use crate::session::Session;
use crate::violation::Violation;

impl Ledger {
    /// Finds the reason of a move.
    pub(super) fn explain(
        &mut self,
        moved: &Move,
        changes: &Changes,
        commit: CommitId,
    ) -> Result<(), Violation> {
        match (moved.from, moved.to) {
            (None, Some(to)) => match moved.copy_of {
                Some(parent) if self.routing.is_published(parent) => {
                    self.explain_routed(moved, parent, to, commit)
                }
                Some(parent) => self.explain_copy(moved, parent, to, commit),
                None => self.explain_arrival(moved, to, commit),
            },
            // It was published or expired, which is seen by its copies; or its entity went.
            (Some(from), None) if self.is_topic(from) => Ok(()),
            (Some(from), None) if changes.removed.contains(&from.entity) => Ok(()),
            (Some(from), None) if !self.books.is_live(from.entity) => Ok(()),
            (Some(from), None) => self.explain_departure(moved, from, commit),
            // The reason of a dead letter and the body of a redriven one went with their entity.
            (Some(from), Some(to))
                if changes.removed.contains(&to.entity)
                    && [from.part, to.part].contains(&Part::DeadLetter) =>
            {
                Ok(())
            }
            (Some(from), Some(to)) => self.explain_step(moved, from, to, commit),
            (None, None) => Ok(()),
        }
    }

    /// Only what is sent arrives, once, as it was sent.
    fn explain_arrival(
        &mut self,
        moved: &Move,
        to: Place,
        commit: CommitId,
    ) -> Result<(), Violation> {
        let Move { id, row, .. } = *moved;
        let wrong = |invariant, what: &str| {
            let what = format!("message {id} in {to:?} {what}");
            Err(Violation::new(invariant, what))
        };
        let mut sent_to = self.sends.remove(&id);
        let mut promised = None;
        if sent_to.is_none()
            && let Some((entity, number)) = self.committed_send(id, commit)?
        {
            (sent_to, promised) = (Some(entity), number);
        }
        let (Some(entity), Some(entry)) = (sent_to, self.entries.get_mut(&id)) else {
            return wrong("I12", "is stored and was not sent");
        };
        if entry.arrived.is_some() {
            return wrong("I6", "is stored a second time");
        }
        if self.queues[entry.queue].sessions && Session::of(id).is_none() {
            return wrong("I4", "is stored and has no session");
        }
        let scheduled = entry.due > self.turn.now.wall.0;
        let part = if scheduled {
            Part::Scheduled
        } else {
            Part::Active
        };
        if (entity, part) != (to.entity, to.part) || self.queues[entry.queue].id != to.entity {
            return wrong("I6", "was sent to another place");
        }
        if scheduled && promised.is_some_and(|promised| promised != to.number) {
            return wrong("I8", "has not the number that was promised");
        }
        let payload = entry.payload.clone();
        entry.arrived = Some(to.number);
        entry.number = Some(to.number);
        entry.enqueued = Some(to.number);
        self.undurable.insert(id, commit);
        if self.body_of(&row) != Some(&payload) {
            return wrong("I12", "is stored changed");
        }
        if scheduled {
            self.check_scheduled(moved)?;
        } else {
            self.check_enqueued(moved)?;
        }
        self.note_accepted(id, to)
    }

    /// What a row points to, or pointed to within the write set.
    pub(super) fn body_of(&self, row: &MessageRow) -> Option<&Bytes> {
        let key = (row.body.home, row.body.number);
        self.books.body(row).or_else(|| self.turn.passed.get(&key))
    }

    /// A message that becomes available has its row from this moment on.
    pub(super) fn check_enqueued(&mut self, moved: &Move) -> Result<(), Violation> {
        let Move { id, row, .. } = *moved;
        let Some(entry) = self.entries.get(&id) else {
            return Ok(());
        };
        let last = &mut self.last_enqueued[entry.queue];
        if row.enqueued_ms < self.turn.now.wall.0.max(*last)
            || row.ttl_ms != entry.ttl
            || row.expires_ms != row.enqueued_ms.saturating_add(entry.ttl)
            || row.size as usize != entry.payload.len()
        {
            let what = format!("message {id} has a wrong row: {row:?}");
            return Err(Violation::new("I6", what));
        }
        *last = row.enqueued_ms;
        self.check_level(moved)
    }

    /// What is enqueued has a number of its level.
    fn check_level(&self, moved: &Move) -> Result<(), Violation> {
        let Some(to) = moved.to.filter(|to| to.part == Part::Active) else {
            return Ok(());
        };
        let queue = self.queue_of(to.entity).map(|queue| &self.queues[queue]);
        let Some(levels) = queue.and_then(|queue| queue.priorities) else {
            return Ok(());
        };
        let level = levels.level(message::priority_of(moved.id));
        if to.number != to.number.at_level(level) {
            let what = format!("message {} has {} and level {level}", moved.id, to.number);
            return Err(Violation::new("I8", what));
        }
        Ok(())
    }

    /// A message goes when it is completed, taken without a lock, or expired.
    fn explain_departure(
        &mut self,
        moved: &Move,
        from: Place,
        commit: CommitId,
    ) -> Result<(), Violation> {
        if from.part != Part::Scheduled && self.ended(moved.id, Ask::Complete, commit)? {
            // Its lock may have ended before, and a deletion have taken it.
            if self.wants_deleted(moved, from).is_some() {
                self.note_perhaps_deleted(moved, from);
                if let Some(entry) = self.entries.get_mut(&moved.id) {
                    entry.may_be_gone = true;
                }
            }
            return self.entry_at(moved.id, from).map(drop);
        }
        self.entry_at(moved.id, from)?;
        if from.part == Part::Scheduled {
            return self.explain_cancellation(moved.id, from);
        }
        let (_, queue) = self.entry_at(moved.id, from)?;
        let (dead_letters_expired, taken) = (queue.dead_letters_expired, queue.receive_and_delete);
        if !dead_letters_expired && self.expires(moved) {
            self.committed_end(moved.id, Ask::Abandon, commit)?;
            self.check_not_locked(moved.id, "expired")?;
            // Perhaps before its time, with its session.
            if let Some(entry) = self.entries.get_mut(&moved.id) {
                entry.may_be_gone = true;
            }
            self.note_perhaps_deleted(moved, from);
            return Ok(());
        }
        if from.part == Part::Active && taken {
            self.undelivered.push((commit, moved.id));
            return Ok(());
        }
        if self.is_dropped_on_the_way(moved.id, from) || self.is_dropped(moved, from, commit)? {
            self.note_perhaps_deleted(moved, from);
            return Ok(());
        }
        if self.is_deleted(moved, from, commit)? {
            return Ok(());
        }
        let what = format!(
            "message {} was removed from {from:?} for no reason",
            moved.id
        );
        Err(Violation::new("I1", what))
    }

    fn explain_step(
        &mut self,
        moved: &Move,
        from: Place,
        to: Place,
        commit: CommitId,
    ) -> Result<(), Violation> {
        if (from.entity, from.part, to.part) == (to.entity, Part::Scheduled, Part::Active) {
            if from.number == to.number {
                return self.explain_return(moved, from);
            }
            return self.explain_activation(moved, from, to);
        }
        if from.entity != to.entity {
            return self.explain_forwarding(moved, from, to);
        }
        if self.is_redriven(moved, from, to) {
            return self.explain_redrive(moved, from, to);
        }
        self.entry_at(moved.id, from)?;
        let deferred = match (from.part, to.part) {
            _ if (from.entity, from.number) != (to.entity, to.number) => false,
            (Part::Active | Part::Deferred, Part::DeadLetter) => {
                return self.explain_dead_letter(moved, from, to, commit);
            }
            (Part::Active, Part::Scheduled) => {
                return self.explain_wait(moved, from, to, commit);
            }
            (Part::Active, Part::Deferred) => {
                self.check_counted(moved.id, to)?;
                self.ended(moved.id, Ask::Defer, commit)?
            }
            (Part::DeadLetter, Part::DeadLetterDeferred)
            | (Part::Transfer, Part::TransferDeferred) => {
                self.ended(moved.id, Ask::Defer, commit)?
            }
            _ => false,
        };
        if deferred {
            return Ok(());
        }
        let what = format!("message {} went from {from:?} to {to:?}", moved.id);
        Err(Violation::new("I6", what))
    }

    /// Deferring a message counts its delivery. (I5)
    fn check_counted(&self, id: MessageId, to: Place) -> Result<(), Violation> {
        let last = self.entries.get(&id).map(|entry| entry.last_count);
        let count = self.books.count(to);
        if last.is_none_or(|last| last < count) {
            return Ok(());
        }
        let what = format!("message {id} was deferred and counts {count} after {last:?}");
        Err(Violation::new("I5", what))
    }

    /// A message is dead-lettered by its receiver, after too many deliveries, past its deadline, or
    /// from a queue that has too many, and says why.
    fn explain_dead_letter(
        &mut self,
        moved: &Move,
        from: Place,
        to: Place,
        commit: CommitId,
    ) -> Result<(), Violation> {
        let id = moved.id;
        let expires = self.expires(moved);
        self.entry_at(id, from)?;
        let patch = self.books.patch(to).cloned().unwrap_or_default();
        let says = |reason: &str| {
            contains(&patch, b"DeadLetterReason") && contains(&patch, reason.as_bytes())
        };
        let reasons = [
            "MaxDeliveryCountExceeded",
            "TTLExpiredException",
            "MaxLengthExceeded",
        ];
        let own = !reasons.into_iter().any(&says);
        if own && self.ended(id, Ask::DeadLetter, commit)? && says("") {
            return Ok(());
        }
        self.committed_end(id, Ask::Abandon, commit)?;
        let (_, queue) = self.entry_at(id, from)?;
        if self.books.count(to) >= queue.max_delivery_count && says("MaxDeliveryCountExceeded") {
            return self.check_not_locked(id, "given up");
        }
        if expires && queue.dead_letters_expired && says("TTLExpiredException") {
            return self.check_not_locked(id, "expired");
        }
        let drops = queue.max_length.is_some() && queue.overflow == Overflow::DropHead;
        if drops && from.part == Part::Active && says("MaxLengthExceeded") {
            return self.check_not_locked(id, "dropped");
        }
        let what = format!("message {id} was dead-lettered for no reason, or without saying it");
        Err(Violation::new("I6", what))
    }

    /// A count rises by one for each lock that ended without success.
    pub(super) fn explain_count(
        &mut self,
        counted: &Counted,
        commit: CommitId,
    ) -> Result<(), Violation> {
        let Counted { id, before, after } = *counted;
        if after != before && after != before + 1 {
            let what = format!("message {id} counted {before}, then {after}");
            return Err(Violation::new("I5", what));
        }
        if after > before {
            self.committed_end(id, Ask::Abandon, commit)?;
        }
        let place = self.books.place(id);
        let Some(entry) = self.entries.get_mut(&id) else {
            return Ok(());
        };
        let most = self.queues[entry.queue].max_delivery_count;
        if place.is_some_and(|place| entry.must_give_up(place.part, after, most)) {
            let what = format!("message {id} has used up its deliveries and stays");
            return Err(Violation::new("I6", what));
        }
        if after > before {
            if entry.is_locked(self.turn.now.mono) {
                let what = format!("the lock of message {id} was ended before its time");
                return Err(Violation::new("I3", what));
            }
            entry.free(self.turn.index);
        }
        Ok(())
    }

    /// What was taken without a lock was given to a receiver once that was durable.
    pub(super) fn check_undelivered(&mut self, durable: CommitId) -> Result<(), Violation> {
        let is_gone = |id: &MessageId| self.entries.get(id).is_some_and(|entry| entry.gone);
        let due = self
            .undelivered
            .iter()
            .filter(|(commit, _)| *commit <= durable);
        if let Some((_, id)) = due.into_iter().find(|(_, id)| !is_gone(id)) {
            let what = format!("message {id} was taken and given to no client");
            return Err(Violation::new("I1", what));
        }
        self.undelivered.retain(|(commit, _)| *commit > durable);
        Ok(())
    }

    pub(super) fn entry_at(
        &self,
        id: MessageId,
        from: Place,
    ) -> Result<(&Entry, &Queue), Violation> {
        let entry = self.entries.get(&id);
        let entry = entry.filter(|entry| self.queue_of(from.entity) == Some(entry.queue));
        let entry = entry.ok_or_else(|| {
            Violation::new("I6", format!("message {id} was in {from:?}, not its queue"))
        })?;
        Ok((entry, &self.queues[entry.queue]))
    }

    /// Whether a client that may hold the lock asked for that in this turn, or in a transaction
    /// that is being committed.
    pub(super) fn ended(
        &mut self,
        id: MessageId,
        ask: Ask,
        commit: CommitId,
    ) -> Result<bool, Violation> {
        let committed = self.committed_end(id, ask, commit)?;
        Ok(committed || self.turn.ends.contains(&(id, ask)))
    }

    /// Whether it would be a dead letter of a queue that has none: it was rejected, or given back
    /// too often.
    fn is_dropped(
        &mut self,
        moved: &Move,
        from: Place,
        commit: CommitId,
    ) -> Result<bool, Violation> {
        let (_, queue) = self.entry_at(moved.id, from)?;
        let failures = queue.max_delivery_count;
        if !queue.drops_dead_letters {
            return Ok(false);
        }
        if !self.ended(moved.id, Ask::DeadLetter, commit)? {
            self.committed_end(moved.id, Ask::Abandon, commit)?;
            // Its last failed delivery goes with it and is counted nowhere.
            if self.books.count(from).saturating_add(1) < failures {
                return Ok(false);
            }
            self.check_not_locked(moved.id, "given up")?;
        }
        if let Some(entry) = self.entries.get_mut(&moved.id) {
            entry.may_be_gone = true;
        }
        Ok(true)
    }

    /// Numbers that no message got are those that transactions were promised. Of an entity that
    /// goes with them the books do not know any more where it was.
    pub(super) fn explain_skips(&mut self, changes: &Changes) -> Result<(), Violation> {
        let stays = |entity: &EntityId| !changes.removed.contains(entity);
        for (entity, count) in changes.skipped.iter().filter(|(of, _)| stays(of)) {
            let promised = self.turn.reserved_numbers.entry(*entity).or_default();
            let Some(left) = promised.checked_sub(*count) else {
                let what = format!("{entity:?} left {count} numbers out");
                return Err(Violation::new("I8", what));
            };
            *promised = left;
        }
        Ok(())
    }

    pub(super) fn check_not_locked(&self, id: MessageId, what: &str) -> Result<(), Violation> {
        let entry = self.entries.get(&id);
        if entry.is_some_and(|entry| entry.is_locked(self.turn.now.mono)) {
            let what = format!("message {id} was {what} while it is locked");
            return Err(Violation::new("I3", what));
        }
        Ok(())
    }
}

pub(super) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}

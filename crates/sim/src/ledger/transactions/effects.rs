//! Effects: what a write set did for transactions that are being committed. (I7)
//!
//! Whatever was seen of a transaction was seen in one write set, and with it all the rest.

use bytes::Bytes;
use store::{CommitId, EntityId, SequenceNumber};

use super::{
    Ask, BTreeSet, Hold, Key, Ledger, MessageId, Part, Transaction, TransactionId, Violation, Wall,
    Work, wrong,
};

impl Transaction {
    /// Something of it was seen in a write set.
    fn seen(&mut self, id: TransactionId, commit: CommitId) -> Result<(), Violation> {
        let before = *self.commit.get_or_insert(commit);
        if before == commit {
            return Ok(());
        }
        let what = format!("{id:?} was done partly under {before:?} and partly under {commit:?}");
        Err(wrong(what))
    }
}

impl Ledger {
    /// Where a message was sent within a transaction that is being committed, and under which
    /// number it was to come, if that is known.
    pub(in crate::ledger) fn committed_send(
        &mut self,
        message: MessageId,
        commit: CommitId,
    ) -> Result<Option<(EntityId, Option<SequenceNumber>)>, Violation> {
        for (id, transaction) in self.transactions.committing() {
            let parts = transaction.parts.iter_mut();
            let mut parts = parts.filter(|part| part.is_possible());
            let found = parts.find_map(|part| match &part.work {
                Work::Send { entity, ids, first } => {
                    let index = ids.iter().position(|id| *id == message)?;
                    let number = first.map(|first| SequenceNumber(first.0 + index as u64));
                    part.done.insert(message);
                    part.seen = true;
                    Some((*entity, number))
                }
                _ => None,
            });
            if found.is_some() {
                transaction.seen(*id, commit)?;
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Whether a transaction that is being committed ends the lock of a message in this way.
    pub(in crate::ledger) fn committed_end(
        &mut self,
        message: MessageId,
        ask: Ask,
        commit: CommitId,
    ) -> Result<bool, Violation> {
        let Some(entry) = self.entries.get_mut(&message) else {
            return Ok(false);
        };
        let Some(lock) = entry.lock else {
            return Ok(false);
        };
        let wanted = (lock.token, message);
        let now = self.turn.now.mono;
        for (id, transaction) in self.transactions.committing() {
            let part = transaction.parts.iter_mut().find(|part| {
                let taken = part.is_possible();
                taken && matches!(&part.work, Work::Settle { locks, ask: its, .. } if *its == ask && locks.contains(&wanted))
            });
            let Some(part) = part else { continue };
            part.done.insert(message);
            // Otherwise it may have run out or been dropped with its connection, which looks the
            // same.
            let dropped = ask == Ask::Abandon && lock.hold == Hold::Ended;
            if now < lock.until && !dropped {
                part.seen = true;
                transaction.seen(*id, commit)?;
                entry.free(self.turn.index);
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether a transaction that is being committed sets a state.
    pub(in crate::ledger) fn committed_state(
        &mut self,
        key: Key,
        value: Option<&Bytes>,
        commit: CommitId,
    ) -> Result<bool, Violation> {
        for (id, transaction) in self.transactions.committing() {
            let part = transaction.parts.iter_mut().find(|part| {
                let open = part.is_possible() && !part.set;
                open && matches!(&part.work, Work::State { key: its, value: new } if *its == key && new.as_ref() == value)
            });
            let Some(part) = part else { continue };
            part.set = true;
            part.seen = true;
            transaction.seen(*id, commit)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// A write set that holds part of a transaction holds all of it.
    pub(in crate::ledger) fn check_whole(&mut self, commit: CommitId) -> Result<(), Violation> {
        let committing = self.transactions.committing();
        let seen = committing.filter(|(_, transaction)| transaction.commit == Some(commit));
        for id in seen.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.check_all_done(id, false)?;
        }
        Ok(())
    }

    /// Everything that certainly belongs to a transaction was done.
    pub(super) fn check_all_done(
        &mut self,
        id: TransactionId,
        told: bool,
    ) -> Result<(), Violation> {
        let Some(transaction) = self.transactions.all.get(&id) else {
            return Ok(());
        };
        let (asked, parts) = (transaction.asked, &transaction.parts);
        let certain = parts.iter().filter(|part| part.is_certain());
        let missing = certain
            .clone()
            .find_map(|part| self.missing_of(part, asked));
        if let Some(missing) = missing {
            let what = format!("{id:?} was committed without {missing}: {transaction:?}");
            return Err(wrong(what));
        }
        if told {
            let sends = certain.filter_map(|part| match &part.work {
                Work::Send { ids, .. } => Some(ids.difference_from(&part.done)),
                _ => None,
            });
            for message in sends.flatten().collect::<Vec<_>>() {
                self.note_dropped(message, asked);
            }
        }
        Ok(())
    }

    /// What of a part was not done.
    fn missing_of(&self, part: &Part, asked: Wall) -> Option<String> {
        match &part.work {
            Work::Send { ids, .. } => {
                let missing = ids.difference_from(&part.done).into_iter();
                let mut missing = missing.filter(|id| self.before(*id, asked).is_none());
                missing.next().map(|id| format!("message {id}"))
            }
            Work::Settle { locks, ask, .. } => {
                let mut open = locks.iter().filter(|(_, id)| !part.done.contains(id));
                let undone = open.find(|(_, id)| self.is_undone(*id, *ask));
                undone.map(|(_, id)| format!("{ask:?} of message {id}"))
            }
            Work::State { key, value } => {
                let nothing = value.is_none() && !self.states.is_there(*key);
                (!part.set && !nothing).then(|| format!("the state of {key:?}"))
            }
            Work::Other => None,
        }
    }

    /// Whether a message is still where it was, although that should show.
    fn is_undone(&self, id: MessageId, ask: Ask) -> bool {
        use store::Part::{Active, DeadLetter, Deferred};
        let part = self.books.place(id).map(|place| place.part);
        match ask {
            Ask::Complete => part.is_some(),
            Ask::DeadLetter => matches!(part, Some(Active | Deferred)),
            Ask::Defer => matches!(part, Some(Active | DeadLetter)),
            Ask::Abandon => matches!(part, Some(Active | Deferred)),
            Ask::Release => false,
        }
    }

    /// The number for whose sake a message was dropped.
    fn before(&self, id: MessageId, asked: Wall) -> Option<SequenceNumber> {
        let entry = self.entries.get(&id)?;
        if entry.arrived.is_some() {
            return None;
        }
        self.accepted_before(entry.queue, entry.key, asked)
    }

    fn note_dropped(&mut self, id: MessageId, asked: Wall) {
        let before = self.before(id, asked);
        if let (Some(number), Some(entry)) = (before, self.entries.get_mut(&id)) {
            entry.duplicate_of = Some(number);
            self.report.duplicates += 1;
            let key = (entry.queue, entry.key);
            self.confirm_by_duplicate(key, number);
        }
    }
}

trait Difference {
    fn difference_from(&self, done: &BTreeSet<MessageId>) -> Vec<MessageId>;
}

impl Difference for Vec<MessageId> {
    fn difference_from(&self, done: &BTreeSet<MessageId>) -> Vec<MessageId> {
        self.iter()
            .filter(|id| !done.contains(id))
            .copied()
            .collect()
    }
}

//! Transactions: which client has declared which, what is part of them, and how they end. (I7)
//!
//! What is enlisted does nothing before its commit. A commit that was answered did all of it, in
//! one write set (`transactions/effects.rs`); whatever else ends a transaction did nothing, and its
//! locks are as they were. No request outside of a transaction can end a lock that is part of it.
//! What is taken in is about one entity, wherever an operation says which.

use std::collections::{BTreeMap, BTreeSet};

use broker::{ConnectionId, LockToken, Mono, RequestId, TransactionError, TransactionId, Wall};
use bytes::Bytes;
use store::{CommitId, EntityId, SequenceNumber};

use super::answers::{Asked, LockState};
use super::entry::Hold;
use super::sessions::Key;
use super::settlements::ask_of;
use super::{Ask, Ledger};
use crate::message::MessageId;
use crate::session::Session;
use crate::violation::Violation;

mod effects;
mod enlist;

/// How long a transaction may take from its first operation to its discharge, in milliseconds.
pub const LIFE: u64 = 10_000;

/// What one operation is to do.
#[derive(Debug)]
pub(super) enum Work {
    Send {
        entity: EntityId,
        ids: Vec<MessageId>,
        /// The number of the first, if they are for later.
        first: Option<SequenceNumber>,
    },
    Settle {
        entity: EntityId,
        locks: Vec<(LockToken, MessageId)>,
        ask: Ask,
    },
    State {
        key: Key,
        value: Option<Bytes>,
    },
    /// Something else, of which nothing is known.
    Other,
}

/// A part of a transaction.
#[derive(Debug)]
pub(super) struct Part {
    pub work: Work,
    /// The entity that its transaction has to be about.
    scope: Option<EntityId>,
    /// Whether it should be taken in.
    lock_state: LockState,
    /// Whether the shard said that it was.
    taken: Option<bool>,
    /// Messages of it that were seen to have been dealt with.
    done: BTreeSet<MessageId>,
    /// Its state was seen to be set.
    set: bool,
    /// Something was seen that nothing else explains.
    seen: bool,
}

impl Part {
    /// Whether it may belong to its transaction.
    fn is_possible(&self) -> bool {
        self.taken.unwrap_or(self.lock_state != LockState::Lost)
    }

    /// The entity that its transaction is about, if the shard said that it is part of it.
    fn taken_scope(&self) -> Option<EntityId> {
        let says_which = match &self.work {
            Work::Send { ids, .. } => !ids.is_empty(),
            Work::Settle { locks, .. } => !locks.is_empty(),
            Work::State { .. } => true,
            Work::Other => false,
        };
        self.scope
            .filter(|_| says_which && self.taken == Some(true))
    }

    /// Whether it certainly belongs to its transaction.
    fn is_certain(&self) -> bool {
        self.taken.unwrap_or(self.lock_state == LockState::Held)
    }
}

/// How far a transaction is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    Open,
    /// It is to be committed, and was asked to at that time.
    Committing {
        late: bool,
    },
    Over,
}

/// One that was declared.
#[derive(Debug)]
pub(super) struct Transaction {
    connection: ConnectionId,
    coordinator: u32,
    stage: Stage,
    parts: Vec<Part>,
    /// Its connection has said that it lacks something.
    failed: bool,
    /// Its time is not up before this, if it has begun.
    until: Option<Mono>,
    /// The least that the wall clock has shown since it was to be committed.
    asked: Wall,
    /// Under which its effects were seen.
    commit: Option<CommitId>,
}

/// All transactions since the last crash.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    pub all: BTreeMap<TransactionId, Transaction>,
    declares: BTreeMap<RequestId, u32>,
    discharges: BTreeMap<RequestId, (TransactionId, bool)>,
}

impl Transaction {
    /// Whether its time runs from the first operation that could have begun it: that was taken.
    fn is_clock_sure(&self) -> bool {
        let mut parts = self.parts.iter();
        let first = parts.find(|part| part.lock_state != LockState::Lost);
        first.is_some_and(|part| part.taken == Some(true))
    }
}

impl Transactions {
    fn committing(&mut self) -> impl Iterator<Item = (&TransactionId, &mut Transaction)> {
        let all = self.all.iter_mut();
        all.filter(|(_, transaction)| matches!(transaction.stage, Stage::Committing { .. }))
    }

    /// The wall clock went back.
    pub(super) fn handle_earlier_clock(&mut self, wall: Wall) {
        for transaction in self.all.values_mut() {
            transaction.asked = transaction.asked.min(wall);
        }
    }
}

impl Ledger {
    pub(super) fn observe_declare(&mut self, request: RequestId, coordinator: u32) {
        self.transactions.declares.insert(request, coordinator);
        self.answers.expect(request, Asked::Declare);
    }

    pub(super) fn verify_declared(
        &mut self,
        request: RequestId,
        result: &Result<TransactionId, TransactionError>,
    ) -> Result<(), Violation> {
        let (Some(coordinator), Ok(id)) = (self.transactions.declares.remove(&request), result)
        else {
            return Ok(());
        };
        let gone = self.clients.is_gone(request.connection);
        let transaction = Transaction {
            connection: request.connection,
            coordinator,
            stage: if gone { Stage::Over } else { Stage::Open },
            parts: Vec::new(),
            failed: false,
            until: None,
            asked: Wall(u64::MAX),
            commit: None,
        };
        match self.transactions.all.insert(*id, transaction) {
            None => Ok(()),
            Some(_) => Err(wrong(format!("{id:?} was declared twice"))),
        }
    }

    /// A transaction lacks an operation that its client may take for done: it must not be
    /// committed.
    pub(super) fn observe_failure(&mut self, connection: ConnectionId, id: TransactionId) {
        let transaction = self.transactions.all.get_mut(&id);
        if let Some(transaction) = transaction
            && transaction.stage == Stage::Open
            && transaction.connection == connection
        {
            transaction.failed = true;
        }
    }

    /// A transaction is to end.
    pub(super) fn observe_discharge(&mut self, request: RequestId, id: TransactionId, fail: bool) {
        self.transactions.discharges.insert(request, (id, fail));
        self.answers.expect(request, Asked::Discharge);
        let now = self.turn.now;
        let transaction = self.transactions.all.get_mut(&id);
        let Some(transaction) = transaction.filter(|transaction| {
            transaction.stage == Stage::Open && transaction.connection == request.connection
        }) else {
            return;
        };
        if fail {
            return self.release(id, false);
        }
        let late = transaction.until.is_some_and(|until| until <= now.mono);
        transaction.stage = Stage::Committing { late };
        transaction.asked = now.wall;
        self.mark_locks_in_doubt(id);
    }

    /// A coordinator goes, or all of a connection's. What is to be committed goes on.
    pub(super) fn observe_end(&mut self, connection: ConnectionId, coordinator: Option<u32>) {
        let all = self.transactions.all.iter();
        let ending = all.filter(|(_, transaction)| {
            let its = coordinator.is_none_or(|link| link == transaction.coordinator);
            transaction.connection == connection && its && transaction.stage == Stage::Open
        });
        for id in ending.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.release(id, false);
        }
    }

    /// A transaction has come to its end.
    pub(super) fn verify_discharged(
        &mut self,
        request: RequestId,
        result: &Result<(), TransactionError>,
        durable: CommitId,
    ) -> Result<(), Violation> {
        let Some((id, fail)) = self.transactions.discharges.remove(&request) else {
            return Ok(());
        };
        let Some(transaction) = self.transactions.all.get(&id) else {
            return match result {
                Ok(()) => Err(wrong(format!("{id:?} is over, but never began"))),
                Err(_) => Ok(()),
            };
        };
        match (fail, result) {
            (true, _) => Ok(()),
            // Another discharge of it is under way, or it was over.
            (false, Err(TransactionError::Unknown)) => Ok(()),
            (false, Ok(())) => {
                let in_time = match transaction.stage {
                    Stage::Committing { late } => !late || !transaction.is_clock_sure(),
                    Stage::Open | Stage::Over => false,
                };
                if !in_time {
                    let stage = transaction.stage;
                    return Err(wrong(format!("{id:?} was committed and is {stage:?}")));
                }
                if transaction.failed {
                    return Err(wrong(format!("{id:?} was committed and lacks something")));
                }
                if transaction.commit.is_some_and(|commit| commit > durable) {
                    let what = format!("{id:?} was answered before it was durable");
                    return Err(Violation::new("I1", what));
                }
                self.check_all_done(id, true)?;
                self.report.committed += 1;
                self.confirm_effects(id);
                self.release(id, true);
                Ok(())
            }
            (false, Err(error)) => {
                self.check_rolled_back(id, error)?;
                self.release(id, false);
                Ok(())
            }
        }
    }

    /// A transaction took too long.
    pub(super) fn verify_timed_out(&mut self, id: TransactionId) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let transaction = self.transactions.all.get(&id);
        let Some(transaction) = transaction else {
            return Err(wrong(format!("{id:?} took too long and never began")));
        };
        let early = transaction.until.is_none_or(|until| now < until);
        let decided = transaction.stage == Stage::Committing { late: false };
        if early || decided || transaction.commit.is_some() {
            let what = format!("the time of {id:?} is not up: {transaction:?}");
            return Err(wrong(what));
        }
        self.report.timed_out += 1;
        self.release(id, false);
        Ok(())
    }

    /// What was refused did nothing, and was refused for a reason.
    fn check_rolled_back(
        &self,
        id: TransactionId,
        error: &TransactionError,
    ) -> Result<(), Violation> {
        let Some(transaction) = self.transactions.all.get(&id) else {
            return Ok(());
        };
        if let Some(commit) = transaction.commit {
            return Err(wrong(format!(
                "{id:?} was refused and done under {commit:?}"
            )));
        }
        let full = error.to_string().contains("nearly full");
        let can_fail = |part: &Part| !part.is_certain() || !matches!(part.work, Work::Send { .. });
        let reason = full || transaction.failed || transaction.parts.iter().any(can_fail);
        match error {
            TransactionError::TimedOut
                if transaction.stage == (Stage::Committing { late: false }) =>
            {
                Err(wrong(format!(
                    "the time of {id:?} was not up: {transaction:?}"
                )))
            }
            TransactionError::RolledBack(_) if !reason => {
                Err(wrong(format!("{id:?} was refused for no reason: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Locks that may be ended by a commit.
    fn mark_locks_in_doubt(&mut self, id: TransactionId) {
        for (token, message) in self.locks_of(id) {
            if let Some(lock) = self.lock_mut(message, token)
                && lock.hold == Hold::Held
            {
                lock.hold = Hold::InDoubt;
            }
        }
    }

    /// It is over: its locks are its holders' again, or have ended.
    fn release(&mut self, id: TransactionId, ended: bool) {
        let turn = self.turn.index;
        for (token, message) in self.locks_of(id) {
            let Some(entry) = self.entries.get_mut(&message) else {
                continue;
            };
            let Some(lock) = entry.lock.as_mut().filter(|lock| lock.token == token) else {
                continue;
            };
            if lock.enlisted == Some(id) {
                lock.enlisted = None;
                if ended {
                    entry.free(turn);
                } else if lock.hold == Hold::InDoubt {
                    lock.hold = Hold::Held;
                }
            }
        }
        if let Some(transaction) = self.transactions.all.get_mut(&id) {
            transaction.stage = Stage::Over;
        }
    }

    /// Locks that were taken into a transaction, or may have been.
    fn locks_of(&self, id: TransactionId) -> Vec<(LockToken, MessageId)> {
        let transaction = self.transactions.all.get(&id);
        let parts = transaction.map_or(&[][..], |transaction| &transaction.parts);
        let locks = parts.iter().filter(|part| part.taken != Some(false));
        let locks = locks.flat_map(|part| match &part.work {
            Work::Settle { locks, .. } => locks.as_slice(),
            _ => &[],
        });
        locks.copied().collect()
    }

    fn lock_mut(&mut self, id: MessageId, token: LockToken) -> Option<&mut super::entry::Lock> {
        let lock = self.entries.get_mut(&id)?.lock.as_mut();
        lock.filter(|lock| lock.token == token)
    }

    /// What a committed transaction did is promised.
    fn confirm_effects(&mut self, id: TransactionId) {
        let Some(transaction) = self.transactions.all.get_mut(&id) else {
            return;
        };
        let parts = std::mem::take(&mut transaction.parts);
        let taken = parts.iter().filter(|part| part.taken == Some(true));
        for part in taken {
            match &part.work {
                Work::Send { ids, .. } => {
                    for id in ids {
                        if let Some(entry) = self.entries.get_mut(id) {
                            entry.confirmed = true;
                        }
                    }
                }
                Work::Settle {
                    entity, locks, ask, ..
                } => {
                    let queue = self.queue_of(*entity);
                    for (_, id) in locks {
                        if let Some(entry) = self.entries.get_mut(id) {
                            entry.grant(*ask);
                            if *ask == Ask::DeadLetter {
                                entry.dead_lettered = queue;
                            }
                        }
                    }
                }
                Work::State { key, value } => self.confirm_state(*key, value),
                Work::Other => {}
            }
        }
        if let Some(transaction) = self.transactions.all.get_mut(&id) {
            transaction.parts = parts;
        }
    }

    /// Whether a lock is part of a transaction, so that no request outside of that can end it.
    pub(super) fn is_taken(&self, id: TransactionId) -> LockState {
        let Some(transaction) = self.transactions.all.get(&id) else {
            return LockState::Unknown;
        };
        let now = self.turn.now.mono;
        let lasts = transaction.until.is_some_and(|until| now < until);
        if transaction.stage == Stage::Open && lasts {
            LockState::Lost
        } else {
            LockState::Unknown
        }
    }
}

fn wrong(what: String) -> Violation {
    Violation::new("I7", what)
}

//! Settle: how locks end, by their holder's word or by running out.
//!
//! A token is good for its entity, whatever link or connection it comes over
//! (docs/spec/amqp.md#5.3), while the lock lives. The delivery count rises when a lock ends without
//! success: abandoned or run out or deferred, not released (docs/spec/amqp.md#4.4). In a
//! dead-letter queue it never does.

pub(crate) mod dead_letter;
pub(crate) mod redrive;
pub(crate) mod renew;

use crate::context::clients::HoldId;
use crate::subqueue::is_expired;
use bytes::Bytes;
use store::SequenceNumber;

use crate::api::command::Outcome;
use crate::api::id::{ConnectionId, LockToken, ReceiverId, RequestId, Subqueue, SubqueueId};
use crate::api::output::{Output, SettleError};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::patch::Changes;
use crate::queue::Queue;
use crate::subqueue::lock::{Lock, Origin};

/// A client that wants locks to end.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// Where the locks are said to be.
    subqueue: SubqueueId,
    /// The connection and the session that it says it holds, if it says so and wants an answer.
    session: Option<(ConnectionId, Bytes)>,
}

impl Asker {
    pub(crate) fn new(
        subqueue: SubqueueId,
        request: Option<RequestId>,
        session: Option<Bytes>,
    ) -> Self {
        let connection = request.map(|request| request.connection);
        Self {
            subqueue,
            session: connection.zip(session),
        }
    }
}

/// Ends one lock.
pub(crate) fn settle(
    directory: &mut Directory,
    request: Option<RequestId>,
    asker: &Asker,
    token: LockToken,
    outcome: Outcome,
    cx: &mut Context<'_>,
) {
    let result = match directory.get_mut(asker.subqueue.entity) {
        Some(queue) => queue.settle(asker, token, outcome, cx),
        None => Err(SettleError::LockLost),
    };
    if let Some(request) = request {
        cx.emit(Output::Settled { request, result });
    }
    if let Some(queue) = directory.get_mut(asker.subqueue.entity) {
        queue.run(cx);
    }
}

/// Ends several locks in the same way, all or none.
pub(crate) fn settle_many(
    directory: &mut Directory,
    request: RequestId,
    asker: &Asker,
    tokens: &[LockToken],
    outcome: &Outcome,
    cx: &mut Context<'_>,
) {
    let result = match directory.get_mut(asker.subqueue.entity) {
        Some(queue) => queue.settle_many(asker, tokens, outcome, cx),
        None => Err(SettleError::LockLost),
    };
    cx.emit(Output::Settled { request, result });
    if let Some(queue) = directory.get_mut(asker.subqueue.entity) {
        queue.run(cx);
    }
}

impl Queue {
    fn settle(
        &mut self,
        asker: &Asker,
        token: LockToken,
        outcome: Outcome,
        cx: &mut Context<'_>,
    ) -> Result<(), SettleError> {
        let (subqueue, number) = self.find_free_lock(token, asker, cx)?;
        check_allowed(subqueue, &outcome)?;
        self.note_access(cx);
        let lock = self.take_lock(subqueue, number, cx);
        assert!(!lock.enlisted, "its transaction alone ends such a lock");
        self.end_lock(subqueue, number, lock, outcome, cx);
        Ok(())
    }

    fn settle_many(
        &mut self,
        asker: &Asker,
        tokens: &[LockToken],
        outcome: &Outcome,
        cx: &mut Context<'_>,
    ) -> Result<(), SettleError> {
        for &token in tokens {
            let (subqueue, _) = self.find_free_lock(token, asker, cx)?;
            check_allowed(subqueue, outcome)?;
        }
        self.note_access(cx);
        for &token in tokens {
            // A token that was named twice finds nothing the second time.
            if let Some((subqueue, number)) = self.find_lock(token, cx) {
                let lock = self.take_lock(subqueue, number, cx);
                assert!(!lock.enlisted, "its transaction alone ends such a lock");
                self.end_lock(subqueue, number, lock, outcome.clone(), cx);
            }
        }
        Ok(())
    }

    /// What a token that names no lock has lost. In a queue with sessions messages are locked with
    /// their session: a client that does not hold its session has lost that.
    /// (docs/spec/amqp.md#5.2)
    fn lock_lost(&self, asker: &Asker, cx: &Context<'_>) -> SettleError {
        let by_session = self.sub(asker.subqueue.subqueue).by_session;
        let Some(sessions) = self.sessions.as_ref().filter(|_| by_session) else {
            return SettleError::LockLost;
        };
        let holds = |(connection, session): &(ConnectionId, Bytes)| {
            let held = sessions.held_session(*connection, session, cx.now.mono);
            held.is_ok()
        };
        if asker.session.as_ref().is_some_and(holds) {
            SettleError::LockLost
        } else {
            SettleError::SessionLockLost
        }
    }

    /// Where the lock is that a token names, if it lives.
    pub(crate) fn find_lock(
        &self,
        token: LockToken,
        cx: &Context<'_>,
    ) -> Option<(Subqueue, SequenceNumber)> {
        let number = cx.shared.tokens.number(token);
        let now = cx.now.mono;
        let find = |subqueue: Subqueue| self.sub(subqueue).locks.find(number, token, now);
        let mut found = Subqueue::ALL.into_iter();
        let (subqueue, lock) = found.find_map(|sub| Some((sub, find(sub)?)))?;
        let lives = |session| {
            let sessions = self.sessions.as_ref();
            sessions.is_some_and(|sessions| sessions.is_live(session, now))
        };
        lock.session.is_none_or(lives).then_some((subqueue, number))
    }

    /// Where the lock is that a token names, if it is its holder's to end: not while a transaction
    /// is to.
    pub(crate) fn find_free_lock(
        &self,
        token: LockToken,
        asker: &Asker,
        cx: &Context<'_>,
    ) -> Result<(Subqueue, SequenceNumber), SettleError> {
        let (subqueue, number) = self
            .find_lock(token, cx)
            .ok_or_else(|| self.lock_lost(asker, cx))?;
        if self.sub(subqueue).locks.is_enlisted(number) {
            return Err(SettleError::Enlisted);
        }
        Ok((subqueue, number))
    }

    /// Takes a lock that was found, whose end is about to be decided.
    pub(crate) fn take_lock(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        cx: &Context<'_>,
    ) -> Lock {
        let sub = self.sub_mut(subqueue);
        // Receivers that waited for room among the locks may go on.
        let was_full = sub.is_full_of_locks(&cx.shared.settings);
        sub.needs_pump |= was_full;
        let lock = sub.locks.take(number);
        self.rows.journal.note(number);
        if let Some((sessions, mut parts)) = self.by_session() {
            if was_full {
                sessions.mark_all_pending();
            }
            if let Some(session) = lock.session {
                sessions.unlocked(session, number, &mut parts);
            }
        }
        lock
    }

    pub(crate) fn end_lock(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        lock: Lock,
        outcome: Outcome,
        cx: &mut Context<'_>,
    ) {
        match outcome {
            Outcome::Complete => {
                self.rows.traffic.complete();
                let message = lock.into_message(subqueue, number);
                let patched = message.patch.is_some();
                self.erase(&message, patched, cx);
            }
            Outcome::Abandon { changes } => self.abandon(subqueue, number, lock, changes, cx),
            Outcome::Defer { changes } => self.defer(subqueue, number, lock, changes, cx),
            Outcome::DeadLetter { changes } => {
                self.reject(&lock.into_message(subqueue, number), changes, cx);
            }
            Outcome::Release => self.give_back(subqueue, number, lock, cx),
            Outcome::Undelivered => {
                let receiver = lock.receiver();
                self.give_back(subqueue, number, lock, cx);
                if let Some(receiver) = receiver {
                    self.give_credit_back(receiver, cx);
                }
            }
        }
    }

    /// A lock's time is up.
    pub(crate) fn expire_lock(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        cx: &mut Context<'_>,
    ) {
        let lock = self.take_lock(subqueue, number, cx);
        if lock.origin == Origin::Unreadable {
            self.give_back(subqueue, number, lock, cx);
        } else {
            self.abandon(subqueue, number, lock, Vec::new(), cx);
        }
    }

    pub(crate) fn abandon(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        mut lock: Lock,
        changes: Changes,
        cx: &mut Context<'_>,
    ) {
        let raise = subqueue == Subqueue::Main;
        if raise {
            lock.delivery_count = lock.delivery_count.saturating_add(1);
        }
        if !self.change(subqueue, number, &mut lock, changes, cx) {
            return;
        }
        if self.expires_now(subqueue, &lock, cx) {
            return self.expire_unlocked(&lock.into_message(subqueue, number), cx);
        }
        if raise && lock.delivery_count >= self.settings.max_delivery_count.max(1) {
            return self.give_up(&lock.into_message(subqueue, number), cx);
        }
        if raise {
            self.rows
                .put_delivery_count(number, lock.delivery_count, cx);
        }
        self.put_back(subqueue, number, &lock, cx);
    }

    fn defer(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        mut lock: Lock,
        changes: Changes,
        cx: &mut Context<'_>,
    ) {
        let raise = subqueue == Subqueue::Main;
        if raise {
            lock.delivery_count = lock.delivery_count.saturating_add(1);
        }
        if !self.change(subqueue, number, &mut lock, changes, cx) {
            return;
        }
        if raise {
            self.rows
                .put_delivery_count(number, lock.delivery_count, cx);
        }
        if lock.origin != Origin::Deferred {
            self.remove_row(subqueue.part(), number, &lock.row, cx);
            self.rows
                .put(subqueue.deferred_part(), number, lock.row, cx);
        }
    }

    /// Unlocks a message as it was.
    pub(crate) fn give_back(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        lock: Lock,
        cx: &mut Context<'_>,
    ) {
        if lock.origin == Origin::Available && self.expires_now(subqueue, &lock, cx) {
            self.expire_unlocked(&lock.into_message(subqueue, number), cx);
        } else {
            self.put_back(subqueue, number, &lock, cx);
        }
    }

    /// The message stands again where it stood before it was locked.
    fn put_back(
        &mut self,
        subqueue: Subqueue,
        number: SequenceNumber,
        lock: &Lock,
        cx: &mut Context<'_>,
    ) {
        if lock.origin != Origin::Deferred {
            let entry = Entry::written(lock.row, lock.delivery_count, cx.commit());
            match lock.session {
                Some(session) => self.return_to_session(session, number, entry, cx),
                None => self.re_enter(subqueue, number, entry, cx),
            }
        }
    }

    fn return_to_session(
        &mut self,
        session: HoldId,
        number: SequenceNumber,
        entry: Entry,
        cx: &mut Context<'_>,
    ) {
        self.rows.journal.note(number);
        self.note_deadline(number, entry.row.expires_ms, cx);
        let (sessions, mut parts) = self.sessions_mut();
        sessions.return_message(session, number, entry, &mut parts, cx);
    }

    /// Whether a message that was available expires instead of becoming so again.
    fn expires_now(&self, subqueue: Subqueue, lock: &Lock, cx: &Context<'_>) -> bool {
        lock.origin != Origin::Deferred
            && is_expired(subqueue, &lock.row, cx.now.wall)
            && self.may_expire(cx)
    }
}

impl Lock {
    /// The message that was lent.
    pub(crate) fn message(&self, subqueue: Subqueue, number: SequenceNumber) -> Message {
        let part = match self.origin {
            Origin::Deferred => subqueue.deferred_part(),
            Origin::Available | Origin::Unreadable => subqueue.part(),
        };
        Message {
            number,
            part,
            row: self.row,
            delivery_count: self.delivery_count,
            patch: self.patch.clone(),
        }
    }

    pub(crate) fn into_message(mut self, subqueue: Subqueue, number: SequenceNumber) -> Message {
        let patch = self.patch.take();
        let message = self.message(subqueue, number);
        Message { patch, ..message }
    }

    /// The receiver it was given to over a link.
    fn receiver(&self) -> Option<ReceiverId> {
        let holder = self.holder?;
        Some(ReceiverId {
            connection: holder.connection,
            link: holder.link?,
        })
    }
}

/// There is no dead-letter queue of a dead-letter queue. (docs/spec/entities.md#8.3)
pub(crate) fn check_allowed(subqueue: Subqueue, outcome: &Outcome) -> Result<(), SettleError> {
    let dead_letter = matches!(outcome, Outcome::DeadLetter { .. });
    if dead_letter && subqueue != Subqueue::Main {
        return Err(SettleError::NotAllowed);
    }
    Ok(())
}

//! End of a lock: its holder's word, or its time, decides what becomes of the message.
//!
//! A token is good for its entity, whatever link or connection it comes over
//! (docs/spec/amqp.md#5.3), while the lock lives. The delivery count rises when a lock ends without
//! success: abandoned or run out or deferred, not released (docs/spec/amqp.md#4.4). In a
//! dead-letter queue it never does.

use std::ops::ControlFlow;

use bytes::Bytes;
use store::SequenceNumber;

use crate::api::error::SettleError;
use crate::api::id::{ConnectionId, LockToken, ReceiverId, RequestId, Subqueue, SubqueueId};
use crate::api::lineage::LockEnd;
use crate::api::outcome::{Outcome, RetryTime};
use crate::api::output::Output;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::expire;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::patch::{Changes, Patch};
use crate::queue::Queue;
use crate::receive::credit;
use crate::settle::{dead_letter, retry};
use crate::subqueue::lock::{Lock, Origin};

/// A client that wants locks to end.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// Where the locks are said to be.
    pub subqueue: SubqueueId,
    /// The connection, if it wants an answer.
    pub connection: Option<ConnectionId>,
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
            connection,
            session: connection.zip(session),
        }
    }
}

/// What a token that names no lock has lost. In a queue with sessions messages are locked with
/// their session: a client that does not hold its session has lost that.
/// (docs/spec/amqp.md#5.2)
fn lock_lost(queue: &Queue, asker: &Asker, cx: &Context<'_>) -> SettleError {
    let by_session = queue.sub(asker.subqueue.subqueue).by_session;
    let Some(sessions) = queue.sessions.as_ref().filter(|_| by_session) else {
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

/// Whether a lock is of another session than the one that the asker names and holds.
fn is_of_another_session(
    queue: &Queue,
    (subqueue, number): (Subqueue, SequenceNumber),
    asker: &Asker,
    cx: &Context<'_>,
) -> bool {
    let named = asker.session.as_ref().zip(queue.sessions.as_ref());
    let named = named.and_then(|((connection, session), sessions)| {
        let held = sessions.held_session(*connection, session, cx.now.mono);
        held.ok()
    });
    let lock = queue.sub(subqueue).locks.get(number);
    let of_lock = lock.and_then(|lock| lock.session);
    named.zip(of_lock).is_some_and(|(named, own)| named != own)
}

/// Where the lock is that a token names, if it lives.
pub(crate) fn find_lock(
    queue: &Queue,
    token: LockToken,
    cx: &Context<'_>,
) -> Option<(Subqueue, SequenceNumber)> {
    let number = cx.shared.tokens.number(token);
    let now = cx.now.mono;
    let find = |subqueue: Subqueue| queue.sub(subqueue).locks.find(number, token, now);
    let mut found = Subqueue::ALL.into_iter();
    let (subqueue, lock) = found.find_map(|sub| Some((sub, find(sub)?)))?;
    let lives = |session| {
        let sessions = queue.sessions.as_ref();
        sessions.is_some_and(|sessions| sessions.is_live(session, now))
    };
    lock.session.is_none_or(lives).then_some((subqueue, number))
}

/// Where the lock is that a token names, if it is its holder's to end: not while a transaction
/// is to.
pub(crate) fn find_free_lock(
    queue: &Queue,
    token: LockToken,
    asker: &Asker,
    cx: &Context<'_>,
) -> Result<(Subqueue, SequenceNumber), SettleError> {
    let (subqueue, number) =
        find_lock(queue, token, cx).ok_or_else(|| lock_lost(queue, asker, cx))?;
    if is_of_another_session(queue, (subqueue, number), asker, cx) {
        return Err(SettleError::LockLost);
    }
    if queue.sub(subqueue).locks.is_enlisted(number) {
        return Err(SettleError::Enlisted);
    }
    Ok((subqueue, number))
}

/// A lock that lasts as long as its receiver is not another link's to end.
/// (docs/spec/rabbitmq.md#10.5)
pub(crate) fn check_not_lasting(
    queue: &Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
) -> Result<(), SettleError> {
    match queue.sub(subqueue).locks.lasts_with_link(number) {
        true => Err(SettleError::LockLost),
        false => Ok(()),
    }
}

/// Takes a lock that was found, whose end is about to be decided.
pub(crate) fn take_lock(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    cx: &Context<'_>,
) -> Lock {
    let sub = queue.sub_mut(subqueue);
    // Receivers that waited for room among the locks may go on.
    let was_full = sub.is_full_of_locks(&cx.shared.settings);
    sub.needs_dispatch |= was_full;
    let lock = sub.locks.take(number);
    queue.rows.journal.note(number);
    if let Some((sessions, mut parts)) = queue.by_session() {
        if was_full {
            sessions.mark_all_pending();
        }
        if let Some(session) = lock.session {
            sessions.unlocked(session, number, &mut parts);
        }
    }
    lock
}

/// Carries out the end of a lock that was taken. Returns the patch of a message that is a dead
/// letter now.
pub(crate) fn end_lock(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: Lock,
    outcome: Outcome,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    match outcome {
        Outcome::Complete => {
            let message = lock.into_message(subqueue, number);
            let took_ms = message.time_since_enqueued(subqueue, cx.now);
            queue.rows.traffic.complete(took_ms);
            let patched = message.patch.is_some();
            queue.erase(&message, patched, cx);
            None
        }
        Outcome::Abandon { changes, retry } => {
            abandon(queue, subqueue, number, lock, changes, retry, cx)
        }
        Outcome::Defer { changes } => defer(queue, subqueue, number, lock, changes, cx),
        Outcome::DeadLetter { changes } => {
            queue.rows.returns.note(number);
            let message = lock.into_message(subqueue, number);
            let took_ms = message.time_since_enqueued(subqueue, cx.now);
            queue.rows.traffic.settle(took_ms);
            dead_letter::reject(queue, &message, changes, cx)
        }
        Outcome::ReleaseLater(retry) => release(queue, subqueue, number, lock, retry, cx),
        Outcome::Release => release(queue, subqueue, number, lock, RetryTime::Backoff, cx),
        Outcome::Annotated {
            annotations,
            outcome,
        } => {
            let mut lock = lock;
            let annotated =
                dead_letter::annotate(queue, subqueue, number, &mut lock, annotations, cx);
            match annotated {
                ControlFlow::Continue(()) => end_lock(queue, subqueue, number, lock, *outcome, cx),
                ControlFlow::Break(dead) => dead,
            }
        }
        Outcome::Reported { to, outcome } => {
            let token = lock.token;
            let dead = end_lock(queue, subqueue, number, lock, *outcome, cx);
            let dead_letter = dead.as_ref().map(|patch| Box::new(patch.dead_lettering()));
            cx.emit(Output::LockEnded {
                connection: to,
                token,
                result: Ok(dead_letter),
            });
            dead
        }
        Outcome::Undelivered => {
            let receiver = lock.receiver();
            let dead = give_back(queue, subqueue, number, lock, cx);
            if let Some(receiver) = receiver {
                credit::give_credit_back(queue, receiver, cx);
            }
            dead
        }
    }
}

/// A lock's time is up, or ends as if it were.
pub(crate) fn expire_lock(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    why: LockEnd,
    cx: &mut Context<'_>,
) {
    let lock = take_lock(queue, subqueue, number, cx);
    queue.record_lock_lost(number, &lock, why, cx);
    if lock.origin == Origin::SetAside {
        give_back(queue, subqueue, number, lock, cx);
    } else {
        let retry = RetryTime::Backoff;
        abandon(queue, subqueue, number, lock, Vec::new(), retry, cx);
    }
}

/// A receiver has held a message for too long. It is told, and given nothing more for now.
/// (docs/spec/rabbitmq.md#10.6)
pub(crate) fn time_out(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    cx: &mut Context<'_>,
) {
    let lock = take_lock(queue, subqueue, number, cx);
    queue.record_lock_lost(number, &lock, LockEnd::Expired, cx);
    if let Some(receiver) = lock.receiver() {
        cx.shared.clients.stop(receiver);
        let token = lock.token;
        cx.emit(Output::DeliveryTimedOut { receiver, token });
    }
    release(queue, subqueue, number, lock, RetryTime::Backoff, cx);
}

/// The delivery of a message has failed. Returns the same as [`end_lock`].
pub(crate) fn abandon(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    mut lock: Lock,
    changes: Changes,
    retry: RetryTime,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    let raise = subqueue == Subqueue::Main;
    if raise {
        lock.delivery_count = lock.delivery_count.saturating_add(1);
    }
    queue.rows.returns.note(number);
    let changed = dead_letter::change(queue, subqueue, number, &mut lock, changes, cx);
    if let ControlFlow::Break(dead) = changed {
        return dead;
    }
    if expires_now(queue, subqueue, number, &lock, cx) {
        return expire::expire_unlocked(queue, &lock.into_message(subqueue, number), cx);
    }
    if raise && lock.delivery_count >= queue.settings.max_delivery_count.max(1) {
        return dead_letter::give_up(queue, &lock.into_message(subqueue, number), cx);
    }
    if raise {
        queue
            .rows
            .put_delivery_count(number, lock.delivery_count, cx);
    }
    match retry::due(queue, subqueue, number, &lock, (retry, raise), cx) {
        Some(due) => retry::wait(queue, due, &lock, cx),
        None => put_back(queue, subqueue, number, &lock, cx),
    }
    None
}

fn defer(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    mut lock: Lock,
    changes: Changes,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    let raise = subqueue == Subqueue::Main;
    if raise {
        lock.delivery_count = lock.delivery_count.saturating_add(1);
    }
    let changed = dead_letter::change(queue, subqueue, number, &mut lock, changes, cx);
    if let ControlFlow::Break(dead) = changed {
        return dead;
    }
    if raise {
        queue
            .rows
            .put_delivery_count(number, lock.delivery_count, cx);
    }
    if lock.origin != Origin::Deferred {
        queue.remove_row(subqueue.part(), number, &lock.row, cx);
        queue
            .rows
            .put(subqueue.deferred_part(), number, lock.row, cx);
    }
    None
}

/// A client gives a message back as it was, perhaps for later. Returns the same as [`end_lock`].
pub(crate) fn release(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: Lock,
    retry: RetryTime,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    queue.rows.returns.note(number);
    let Some(due) = retry::due(queue, subqueue, number, &lock, (retry, false), cx) else {
        return give_back(queue, subqueue, number, lock, cx);
    };
    retry::wait(queue, due, &lock, cx);
    None
}

/// Unlocks a message as it was. Returns the same as [`end_lock`].
pub(crate) fn give_back(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: Lock,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    if lock.origin == Origin::Available && expires_now(queue, subqueue, number, &lock, cx) {
        return expire::expire_unlocked(queue, &lock.into_message(subqueue, number), cx);
    }
    put_back(queue, subqueue, number, &lock, cx);
    None
}

/// The message stands again where it stood before it was locked.
fn put_back(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: &Lock,
    cx: &mut Context<'_>,
) {
    if lock.origin != Origin::Deferred {
        let entry = Entry::written(lock.row, lock.delivery_count, cx.commit());
        match lock.session {
            Some(session) => return_to_session(queue, session, number, entry, cx),
            None => queue.re_enter(subqueue, number, entry, cx),
        }
    }
}

fn return_to_session(
    queue: &mut Queue,
    session: HoldId,
    number: SequenceNumber,
    entry: Entry,
    cx: &mut Context<'_>,
) {
    queue.rows.journal.note(number);
    queue.note_deadline(number, &entry.row, cx);
    let (sessions, mut parts) = queue.sessions_mut();
    sessions.return_message(session, number, entry, &mut parts, cx);
}

/// Whether a message that was available expires instead of becoming so again.
fn expires_now(
    queue: &Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: &Lock,
    cx: &Context<'_>,
) -> bool {
    lock.origin != Origin::Deferred
        && queue
            .sub(subqueue)
            .is_expired(number, &lock.row, cx.now.wall)
        && queue.may_expire(cx)
}

impl Lock {
    /// The message that was lent.
    pub(crate) fn message(&self, subqueue: Subqueue, number: SequenceNumber) -> Message {
        let part = match self.origin {
            Origin::Deferred => subqueue.deferred_part(),
            Origin::Available | Origin::SetAside => subqueue.part(),
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
    pub(crate) fn receiver(&self) -> Option<ReceiverId> {
        let holder = self.holder?;
        Some(ReceiverId {
            connection: holder.connection,
            link: holder.link?,
        })
    }
}

/// Whether a message of this subqueue may end so.
pub(crate) fn check_allowed(
    queue: &Queue,
    subqueue: Subqueue,
    outcome: &Outcome,
) -> Result<(), SettleError> {
    outcome.check(subqueue, queue.sub(subqueue).by_session)
}

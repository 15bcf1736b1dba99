//! Release: how a session stops being held: its time is up, or its holder has gone.
//!
//! What its holder had not settled returns in order at once. The delivery count rises when the time
//! was up (docs/spec/amqp.md#4.4), and when the holder's connection was lost if the setting says so
//! (docs/spec/entities.md#10); a link or connection that goes in good order leaves it as it is.

use bytes::Bytes;

use crate::api::error::RequestError;
use crate::api::id::{ConnectionId, Subqueue};
use crate::api::lineage::LockEnd;
use crate::api::outcome::RetryTime;
use crate::api::output::Output;
use crate::api::settings::SessionCountOnDisconnect;
use crate::api::time::{Mono, Wall};
use crate::context::Context;
use crate::context::clients::{HoldId, Receiver, ReceiverSlot, SessionRole};
use crate::queue::Queue;
use crate::sessions::{Hold, Record, Sessions};
use crate::settle::end_lock;
use crate::subqueue::lock::Origin;

impl Sessions {
    pub(super) fn renew(
        &mut self,
        connection: ConnectionId,
        session: &Bytes,
        duration: u64,
        now: Mono,
    ) -> Result<u64, RequestError> {
        let id = self.held_session(connection, session, now)?;
        self.extend(id, now.after(duration));
        Ok(duration)
    }

    /// The session that a connection holds under this id.
    pub(crate) fn held_session(
        &self,
        connection: ConnectionId,
        session: &Bytes,
        now: Mono,
    ) -> Result<HoldId, RequestError> {
        let holder = self.holder(&self.ids.key(session));
        let holder = holder.filter(|id| self.is_held_by(*id, connection, now));
        holder.ok_or(RequestError::SessionLockLost)
    }

    /// Whether a session is lent still; its end may not have been noticed.
    pub(crate) fn is_live(&self, id: HoldId, now: Mono) -> bool {
        self.hold(id).is_some_and(|hold| hold.is_live(now))
    }

    /// Whether a connection holds a session, and its time is not up.
    pub(crate) fn is_held_by(&self, id: HoldId, connection: ConnectionId, now: Mono) -> bool {
        let live = self.hold(id).filter(|hold| hold.is_live(now));
        live.is_some_and(|hold| hold.receiver.connection == connection)
    }

    /// The session of this hash that a connection holds.
    pub(crate) fn held_by(&self, connection: ConnectionId, hash: u64, now: Mono) -> Option<HoldId> {
        let mut held = self.holders(hash);
        held.find(|id| self.is_held_by(*id, connection, now))
    }
}

/// A receiver that had to do with sessions has gone.
pub(crate) fn leave(
    queue: &mut Queue,
    receiver: &Receiver,
    counts: SessionCountOnDisconnect,
    cx: &mut Context<'_>,
) {
    let (sessions, _) = queue.sessions_mut();
    match receiver.session_role {
        SessionRole::None => {}
        SessionRole::Waiting(waiter) => {
            sessions.remove_waiter(waiter);
        }
        SessionRole::Holding(id) => {
            // Its time may be up, although the expiry is not dealt with yet.
            let late = !sessions.is_live(id, cx.now.mono);
            let raise = late || counts == SessionCountOnDisconnect::Raise;
            let why = match late {
                true => LockEnd::Expired,
                false => LockEnd::ReceiverGone,
            };
            end_hold(queue, id, raise, why, cx);
        }
    }
}

/// Sessions whose time is up are taken from their holders, waiters that gave up are told, and
/// reads that failed are tried again.
pub(crate) fn tick(queue: &mut Queue, cx: &mut Context<'_>) {
    while cx.shared.work_left > 0
        && let Some((sessions, _)) = queue.by_session()
        && let Some(id) = sessions.due_hold(cx.now.mono)
    {
        cx.take_work();
        let end = sessions.existing_hold(id).ends();
        if end > cx.now.mono {
            sessions.look_at(id, end);
        } else {
            expire(queue, id, cx);
        }
    }
    // Every entity ticks, whether or not it has sessions.
    let Some((sessions, parts)) = queue.by_session() else {
        return;
    };
    sessions.refuse_late_waiters(cx);
    let retry = sessions.retry_at.take_if(|at| *at <= cx.now.mono);
    if retry.is_some() {
        sessions.wake();
    }
    let needs_dispatch = retry.is_some() || sessions.deadline().is_some_and(|at| at <= cx.now.mono);
    parts.main.needs_dispatch |= needs_dispatch;
}

/// A session's time is up: its holder is told.
pub(super) fn expire(queue: &mut Queue, id: HoldId, cx: &mut Context<'_>) {
    let slot = end_hold(queue, id, true, LockEnd::Expired, cx);
    let receiver = cx.shared.clients.detach(slot).id;
    cx.emit(Output::SessionLost { receiver });
}

/// Ends a hold: its messages return, and the session can be held again.
fn end_hold(
    queue: &mut Queue,
    id: HoldId,
    raise: bool,
    why: LockEnd,
    cx: &mut Context<'_>,
) -> ReceiverSlot {
    let (sessions, _) = queue.sessions_mut();
    for number in std::mem::take(&mut sessions.existing_hold_mut(id).locked) {
        let lock = end_lock::take_lock(queue, Subqueue::Main, number, cx);
        queue.record_lock_lost(number, &lock, why, cx);
        if raise && lock.origin != Origin::SetAside {
            let retry = RetryTime::Backoff;
            end_lock::abandon(queue, Subqueue::Main, number, lock, Vec::new(), retry, cx);
        } else {
            end_lock::give_back(queue, Subqueue::Main, number, lock, cx);
        }
    }
    let (sessions, parts) = queue.sessions_mut();
    let left = parts.main.attached.checked_sub(1);
    parts.main.attached = left.expect("a receiver is attached as long as it holds a session");
    parts.main.needs_dispatch = true;
    let hold = sessions.release(id);
    let slot = hold.slot;
    hold.end(&RequestError::SessionLockLost, cx);
    slot
}

impl Hold {
    /// Whatever is still wanted of the session is refused, and nothing of it stays in memory.
    fn end(self, error: &RequestError, cx: &mut Context<'_>) {
        for request in self.states {
            cx.emit(request.refusal(error.clone()));
        }
        let all = store::SequenceNumber(0)..store::SequenceNumber::MAX;
        for (_, entry) in self.window.range(all) {
            drop(cx.shared.bodies.take(entry.body));
        }
    }
}

/// What is known of a session whose hold ends; nothing if it has no messages.
fn record_of(hold: &Hold) -> Option<Record> {
    let first = hold.window.first();
    if first.is_none() && hold.beyond() == 0 {
        return None;
    }
    Some(Record {
        first: first.map_or(hold.window.end(), |(number, _)| number),
        last: hold.last,
        certain: first.is_some(),
        enqueued: first.map(|(_, entry)| Wall(entry.row.enqueued_ms)),
    })
}

impl Sessions {
    /// Takes out a hold that ends; its session can be held again.
    fn release(&mut self, id: HoldId) -> Hold {
        let hold = self.remove_hold(id);
        if let Some(record) = record_of(&hold) {
            self.marks.lower(record.first);
            if !record.certain {
                self.uncertain.insert(hold.key.clone());
            }
            self.put_idle(hold.key.clone(), record);
        }
        hold
    }

    /// The queue is gone, and its receivers have been told.
    pub(crate) fn end(self, cx: &mut Context<'_>) {
        for listing in self.listings {
            cx.emit(listing.answer(Err(RequestError::NotFound)));
        }
        for hold in self.held.into_values() {
            hold.end(&RequestError::NotFound, cx);
        }
    }

    /// Operations that rested after a failed read continue.
    fn wake(&mut self) {
        for id in std::mem::take(&mut self.resting) {
            self.existing_hold_mut(id).resting = false;
            self.pending.insert(id);
        }
    }
}

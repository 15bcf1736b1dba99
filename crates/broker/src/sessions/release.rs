//! Release: how a session stops being held: its time is up, or its holder has gone.
//!
//! What its holder had not settled returns in order at once. The delivery count rises only when
//! the time was up (docs/spec/amqp.md#4.4); a link or connection that goes leaves it as it is.

use bytes::Bytes;
use store::EntityId;

use crate::api::id::{ConnectionId, RequestId, Subqueue};
use crate::api::output::{Output, RequestError};
use crate::api::time::{Mono, Wall};
use crate::context::Context;
use crate::context::clients::{HoldId, SessionRole};
use crate::context::clients::{Receiver, ReceiverSlot};
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::sessions::{Hold, Record, SessionKey};
use crate::subqueue::lock::Origin;

/// Renews a session's lock for its holder's connection.
pub(crate) fn renew(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    session: &Bytes,
    cx: &mut Context<'_>,
) {
    let result = match directory.get_mut(entity) {
        Some(queue) => queue.renew_session(request.connection, session, cx),
        None => Err(RequestError::NotFound),
    };
    cx.emit(Output::SessionRenewed { request, result });
    if let Some(queue) = directory.get_mut(entity) {
        queue.run(cx);
    }
}

impl Queue {
    fn renew_session(
        &mut self,
        connection: ConnectionId,
        session: &Bytes,
        cx: &Context<'_>,
    ) -> Result<u64, RequestError> {
        let id = self.held_session(connection, session, cx)?;
        let duration = self.settings.lock_duration;
        let until = Mono(cx.now.mono.0.saturating_add(duration));
        self.require_sessions_mut().extend(id, until);
        Ok(duration)
    }

    /// The session that a connection holds under this id.
    pub(crate) fn held_session(
        &self,
        connection: ConnectionId,
        session: &Bytes,
        cx: &Context<'_>,
    ) -> Result<HoldId, RequestError> {
        let sessions = self.sessions.as_ref();
        let sessions = sessions.ok_or(RequestError::SessionsNotSupported)?;
        let holder = sessions.holder(&SessionKey::new(session));
        let holder = holder.filter(|id| self.is_held_by(*id, connection, cx));
        holder.ok_or(RequestError::SessionLockLost)
    }

    /// Whether a connection holds a session, and its time is not up.
    pub(crate) fn is_held_by(
        &self,
        id: HoldId,
        connection: ConnectionId,
        cx: &Context<'_>,
    ) -> bool {
        let hold = self.sessions.as_ref().and_then(|s| s.hold(id));
        let live = hold.filter(|hold| hold.is_live(cx.now.mono));
        live.is_some_and(|hold| hold.receiver.connection == connection)
    }

    /// The session of this hash that a connection holds.
    pub(crate) fn held_by(
        &self,
        connection: ConnectionId,
        hash: u64,
        cx: &Context<'_>,
    ) -> Option<HoldId> {
        let sessions = self.sessions.as_ref()?;
        let mut held = sessions.holders(hash);
        held.find(|id| self.is_held_by(*id, connection, cx))
    }

    /// A receiver that had to do with sessions has gone.
    pub(crate) fn leave_session(&mut self, receiver: &Receiver, cx: &mut Context<'_>) {
        match receiver.session_role {
            SessionRole::None => {}
            SessionRole::Waiting(waiter) => {
                self.require_sessions_mut().remove_waiter(waiter);
            }
            SessionRole::Holding(id) => {
                // Its time may be up, although the expiry is not dealt with yet.
                let late = !self.session_is_live(id, cx);
                self.end_hold(id, late, cx);
            }
        }
    }

    /// Sessions whose time is up are taken from their holders, waiters that gave up are told, and
    /// reads that failed are tried again.
    pub(crate) fn tick_sessions(&mut self, cx: &mut Context<'_>) {
        while cx.shared.work_left > 0
            && let Some(sessions) = &mut self.sessions
            && let Some(id) = sessions.due_hold(cx.now.mono)
        {
            cx.take_work();
            let end = sessions.existing_hold(id).ends();
            if end > cx.now.mono {
                sessions.look_at(id, end);
            } else {
                self.expire_session(id, cx);
            }
        }
        self.refuse_late_waiters(cx);
        // Every entity ticks, whether or not it has sessions.
        let Some(sessions) = &mut self.sessions else {
            return;
        };
        let retry = sessions.retry_at.take_if(|at| *at <= cx.now.mono);
        if retry.is_some() {
            sessions.wake();
        }
        let needs_pump = retry.is_some() || sessions.deadline().is_some_and(|at| at <= cx.now.mono);
        self.sub_mut(Subqueue::Main).needs_pump |= needs_pump;
    }

    /// A session's time is up: its holder is told.
    pub(super) fn expire_session(&mut self, id: HoldId, cx: &mut Context<'_>) {
        let slot = self.end_hold(id, true, cx);
        let receiver = cx.shared.clients.detach(slot).id;
        cx.emit(Output::SessionLost { receiver });
    }

    /// Ends a hold: its messages return, and the session can be held again.
    fn end_hold(&mut self, id: HoldId, late: bool, cx: &mut Context<'_>) -> ReceiverSlot {
        let hold = self.require_sessions_mut().existing_hold_mut(id);
        for number in std::mem::take(&mut hold.locked) {
            let lock = self.take_lock(Subqueue::Main, number, cx);
            if late && lock.origin != Origin::Unreadable {
                self.abandon(Subqueue::Main, number, lock, Vec::new(), cx);
            } else {
                self.give_back(Subqueue::Main, number, lock, cx);
            }
        }
        let sessions = self.require_sessions_mut();
        let hold = sessions.remove_hold(id);
        if let Some(record) = record_of(&hold) {
            sessions.marks.lower(record.first);
            if !record.certain {
                sessions.doubts.insert(hold.key.clone());
            }
            sessions.put_idle(hold.key.clone(), record);
        }
        let sub = self.sub_mut(Subqueue::Main);
        sub.attached -= 1;
        sub.needs_pump = true;
        let slot = hold.slot;
        hold.end(&RequestError::SessionLockLost, cx);
        slot
    }
}

impl Hold {
    /// Whatever is still wanted of the session is refused, and nothing of it stays in memory.
    fn end(self, error: &RequestError, cx: &mut Context<'_>) {
        for request in self.states {
            request.refuse(error.clone(), cx);
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

impl super::Sessions {
    /// The queue is gone, and its receivers have been told.
    pub(crate) fn end(self, cx: &mut Context<'_>) {
        for listing in self.listings {
            listing.refuse(RequestError::NotFound, cx);
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

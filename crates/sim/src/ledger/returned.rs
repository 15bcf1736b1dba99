//! Returned: messages that come back because the connection that held their session is over, or
//! the receiver that held their lock. (I5)
//!
//! A connection that leaves raises no count. One that is lost raises the count of each message that
//! it had locked by session if that is the setting, and none otherwise. A consumer of RabbitMQ's
//! dialect raises counts unless its link was detached in good order, as each is before its
//! connection closes in good order. What cannot be told is left out: a session whose time may be
//! up, a lock that the client ended in the same turn or within a transaction, a message that went
//! elsewhere.

use broker::{ConnectionId, LockToken, ReceiverId, SessionCountOnDisconnect};
use store::EntityId;

use super::Ledger;
use super::entry::{Entry, Hold, Lock};
use crate::books::Place;
use crate::message::MessageId;
use crate::violation::Violation;

/// A message that comes back in the turn under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    id: MessageId,
    /// Where it stays.
    place: Place,
    count: u32,
}

impl Ledger {
    /// Whether a lost connection raises the counts of what it held by session; at first not.
    pub fn count_lost_sessions(&mut self, counts: SessionCountOnDisconnect) {
        self.session_counts = counts;
    }

    /// A connection is about to give back what it holds by session.
    pub(super) fn note_returned(
        &mut self,
        connection: ConnectionId,
        counts: SessionCountOnDisconnect,
    ) {
        let now = self.turn.now.mono;
        let raised = u32::from(counts == SessionCountOnDisconnect::Raise);
        let holds = self.sessions.holds.values();
        let its = holds.filter(|hold| hold.receiver.connection == connection && hold.lasts(now));
        let locked = its.flat_map(|hold| &hold.locked);
        let locked: Vec<_> = locked.map(|(id, token)| (*id, *token)).collect();
        for (id, token) in locked {
            self.note_return(id, token, raised);
        }
    }

    /// Locks that last as long as a receiver end with it. Those of a session that ends count as
    /// failed deliveries. Returns how many messages come back. (docs/spec/rabbitmq.md#10.3)
    pub(super) fn end_locks_with_receiver(&mut self, receiver: ReceiverId, failed: bool) -> u64 {
        self.end_locks(failed, |lock| lock.receiver == Some(receiver))
    }

    /// The same of all receivers of a connection that is lost.
    pub(super) fn end_locks_of(&mut self, connection: ConnectionId) {
        self.end_locks(true, |lock| lock.connection == connection);
    }

    /// The receivers of an entity may have to go.
    pub(super) fn doubt_locks_with_receivers(&mut self, entity: EntityId) {
        let of_entity = |receiver| self.clients.source_ever(receiver).map(|source| source.0);
        let locks = self.entries.values_mut();
        let locks = locks.filter_map(|entry| entry.lock.as_mut());
        for lock in locks.filter(|lock| lock.with_receiver && lock.hold == Hold::Held) {
            if lock.receiver.and_then(of_entity) == Some(entity) {
                lock.hold = Hold::InDoubt;
            }
        }
    }

    fn end_locks(&mut self, failed: bool, is_its: impl Fn(&Lock) -> bool) -> u64 {
        let mut returned = 0;
        let of_entry = |(id, entry): (&MessageId, &Entry)| Some((*id, entry.lock?));
        let locks = self.entries.iter().filter_map(of_entry);
        let ended: Vec<_> = locks
            .filter(|(_, lock)| lock.with_receiver && is_its(lock))
            .collect();
        for (id, lock) in ended {
            let is_noted = self.note_return(id, lock.token, u32::from(failed));
            returned += u64::from(is_noted);
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.free(self.turn.index);
            }
        }
        self.report.rabbitmq_returns += returned;
        returned
    }

    /// A message comes back in this turn with its count raised by that, if its lock is the one of
    /// that token and nothing else may end it.
    fn note_return(&mut self, id: MessageId, token: LockToken, raised: u32) -> bool {
        let now = self.turn.now.mono;
        let lock = self.entries.get(&id).and_then(|entry| entry.lock);
        let is_held = lock.is_some_and(|lock| {
            lock.token == token && lock.excludes(now) && lock.enlisted.is_none()
        });
        let is_ending = self.turn.ends.iter().any(|(ending, _)| *ending == id);
        let place = self.books.place(id).filter(|_| is_held && !is_ending);
        self.turn.returned.extend(place.map(|place| Returned {
            id,
            place,
            count: self.books.count(place) + raised,
        }));
        place.is_some()
    }

    /// The turn has written all that it does.
    pub(super) fn check_returned(&self) -> Result<(), Violation> {
        for Returned { id, place, count } in &self.turn.returned {
            let found = self.books.count(*place);
            if self.books.place(*id) == Some(*place) && found != *count {
                let what = format!(
                    "message {id} came back with its holder and counts {found}, not {count}"
                );
                return Err(Violation::new("I5", what));
            }
        }
        Ok(())
    }
}

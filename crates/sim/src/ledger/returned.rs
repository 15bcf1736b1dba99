//! Returned: messages that come back because the connection that held their session is over, or
//! the receiver that held their lock. (I5)
//!
//! A connection that leaves raises no count. One that is lost raises the count of each message that
//! it had locked by one if that is the setting, and none otherwise. What cannot be told is left
//! out: a session whose time may be up, a lock that the client ended in the same turn or within a
//! transaction, a message that went elsewhere.

use broker::{ConnectionId, ReceiverId, SessionCountOnDisconnect};

use super::Ledger;
use super::entry::Lock;
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
        for (id, token) in its.flat_map(|hold| &hold.locked) {
            let lock = self.entries.get(id).and_then(|entry| entry.lock);
            let is_held = lock.is_some_and(|lock| {
                lock.token == *token && lock.excludes(now) && lock.enlisted.is_none()
            });
            let is_ending = self.turn.ends.iter().any(|(ending, _)| ending == id);
            if is_held
                && !is_ending
                && let Some(place) = self.books.place(*id)
            {
                self.turn.returned.push(Returned {
                    id: *id,
                    place,
                    count: self.books.count(place) + raised,
                });
            }
        }
    }

    /// Locks that last as long as a receiver end with it.
    pub(super) fn end_locks_with_receiver(&mut self, receiver: ReceiverId) {
        self.end_locks(|lock| lock.with_receiver && lock.receiver == Some(receiver));
    }

    /// The same of all receivers of a connection.
    pub(super) fn end_locks_of(&mut self, connection: ConnectionId) {
        self.end_locks(|lock| lock.with_receiver && lock.connection == connection);
    }

    fn end_locks(&mut self, ends: impl Fn(&Lock) -> bool) {
        let turn = self.turn.index;
        for entry in self.entries.values_mut() {
            if entry.lock.as_ref().is_some_and(&ends) {
                entry.free(turn);
            }
        }
    }

    /// The turn has written all that it does.
    pub(super) fn check_returned(&self) -> Result<(), Violation> {
        for Returned { id, place, count } in &self.turn.returned {
            let found = self.books.count(*place);
            if self.books.place(*id) == Some(*place) && found != *count {
                let what = format!(
                    "message {id} came back with its session and counts {found}, not {count}"
                );
                return Err(Violation::new("I5", what));
            }
        }
        Ok(())
    }
}

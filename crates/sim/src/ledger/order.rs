//! Order: messages of a session come to its holder alone and in order. (I4)
//!
//! No message is given out past an older one of its session that is free, whether it is new or
//! came back. What is said may have been decided some turns ago, so only what has been free since
//! everything was said counts.

use broker::{Delivery, ReceiverId, Subqueue};
use store::SequenceNumber;

use super::Ledger;
use super::deliveries::{Way, from_dead_letters};
use super::entry::{Hold, Lock};
use super::sessions::Key;
use crate::message::{self, MessageId};
use crate::session::Session;
use crate::violation::Violation;

impl Ledger {
    /// The session of whose messages this delivery is one, if it comes with its session.
    ///
    /// # Errors
    /// I4, when it goes to a receiver that does not hold the session.
    pub(super) fn session_of_delivery(
        &self,
        id: MessageId,
        delivery: &Delivery,
        way: Way,
    ) -> Result<Option<Key>, Violation> {
        let queue = &self.queues[self.entries[&id].queue];
        if !queue.sessions || from_dead_letters(delivery) {
            return Ok(None);
        }
        let session = Session::of(id);
        let holds = match way {
            Way::Link(receiver) => self.is_accepted_by(receiver, session),
            Way::Number(connection, _) => session.is_some_and(|session| {
                self.sessions
                    .was_accepted_by((queue.id, session), connection)
            }),
        };
        if !holds {
            let what = format!("message {id} of {session:?} goes to {way:?}, not its holder");
            return Err(Violation::new("I4", what));
        }
        Ok(session.map(|session| (queue.id, session)))
    }

    fn is_accepted_by(&self, receiver: ReceiverId, session: Option<Session>) -> bool {
        let source = self.clients.source(receiver);
        let acceptor = self.sessions.acceptors.get(&receiver);
        let elsewhere = source.is_some_and(|(_, subqueue)| subqueue != Subqueue::Main);
        !elsewhere && session.is_some() && acceptor.and_then(|acceptor| acceptor.granted) == session
    }

    /// Nothing older of the session could have been given out instead.
    pub(super) fn check_overtaking(
        &self,
        key: Key,
        delivery: &Delivery,
        way: Way,
    ) -> Result<(), Violation> {
        let (Way::Link(receiver), number) = (way, delivery.message.number) else {
            return Ok(());
        };
        let hold = self.sessions.holds.get(&key);
        if hold.is_none_or(|hold| hold.receiver != receiver || hold.state != Hold::Held) {
            // It goes to a receiver that does not hold the session any more.
            return Ok(());
        }
        let older = self.books.of_session(key.0, key.1);
        let mut older = older.take_while(|(older, _)| *older < number);
        match older.find(|(_, id)| self.was_free(*id)) {
            Some((older, id)) => {
                let what =
                    format!("{number} of {key:?} was given out before {older}, message {id}");
                Err(Violation::new("I4", what))
            }
            None => Ok(()),
        }
    }

    /// Whether a message was available since before the last time when all was said.
    fn was_free(&self, id: MessageId) -> bool {
        let (Some(entry), Some(expires)) = (self.entries.get(&id), self.books.expires_ms(id))
        else {
            return false;
        };
        let is_free = entry.lock.is_none_or(|lock| lock.hold == Hold::Ended);
        is_free && entry.freed <= self.turn.quiet && expires > self.max_wall.0
    }

    /// A message is locked for as long as its session is.
    pub(super) fn lock_with_session(&mut self, key: Key, id: MessageId, way: Way, lock: &mut Lock) {
        let hold = self.sessions.holds.get_mut(&key);
        let connection = way.connection();
        let is_its = |receiver: ReceiverId| match way {
            Way::Link(its) => its == receiver,
            Way::Number(..) => receiver.connection == connection,
        };
        match hold.filter(|hold| is_its(hold.receiver) && hold.state == Hold::Held) {
            Some(hold) if lock.hold == Hold::Held => {
                lock.until = lock.until.max(hold.until);
                lock.at_most = hold.at_most;
                hold.locked.insert(id, lock.token);
            }
            Some(_) => {}
            None => lock.hold = Hold::Ended,
        }
    }

    /// Up to which number a session's messages have been given out for the first time.
    pub(super) fn first_delivered(&mut self, queue: usize, id: MessageId) -> &mut u64 {
        let session = Session::of(id).filter(|_| self.queues[queue].sessions);
        let levels = self.queues[queue].priorities;
        let level = levels.map(|levels| levels.level(message::priority_of(id)));
        let place = (queue, session, level);
        self.first_delivered.entry(place).or_default()
    }

    /// Numbers of deferred messages of a session that clients know of.
    #[must_use]
    pub fn deferred_of(&self, queue: usize, session: Session, most: usize) -> Vec<SequenceNumber> {
        let main = Subqueue::Main;
        let all = (queue, main, SequenceNumber(0))..=(queue, main, SequenceNumber::MAX);
        let numbers = self.deferred.range(all).map(|(_, _, number)| *number);
        let entity = self.queues[queue].id;
        let its = |number: &SequenceNumber| {
            let id = self.books.deferred(entity, *number);
            id.is_some_and(|id| Session::of(id) == Some(session))
        };
        numbers.filter(its).take(most).collect()
    }
}

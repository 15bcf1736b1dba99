//! Deliveries: what receivers are given, and whether it may be given to them. (I2, I3, I4, I5, I12)

use broker::{ConnectionId, Delivery, Mono, ReceiverId};

use super::Ledger;
use super::entry::{Entry, Hold, Lock};
use crate::message::{self, MessageId};
use crate::violation::Violation;

/// Over what a delivery goes out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Link(ReceiverId),
    /// It was asked for by number.
    Number(ConnectionId),
}

impl Way {
    pub(super) fn connection(self) -> ConnectionId {
        match self {
            Self::Link(receiver) => receiver.connection,
            Self::Number(connection) => connection,
        }
    }
}

impl Ledger {
    /// A delivery leaves the shard.
    pub(super) fn delivered(&mut self, delivery: &Delivery, way: Way) -> Result<(), Violation> {
        self.deliveries += 1;
        let turn = self.turn.index;
        let id = message::id_of(&delivery.message.payload)
            .filter(|id| self.entries.contains_key(id))
            .ok_or_else(|| {
                Violation::new("I12", "a delivery of something that nobody sent".to_owned())
            })?;
        let entry = &self.entries[&id];
        entry.check_delivery(id, delivery, way, self.turn.now.mono)?;
        let stale = self.is_stale(id, delivery, way)?;
        let session = self.session_of_delivery(id, delivery, way)?;
        if !stale {
            self.check_order(id, delivery)?;
        }
        let mut lock = delivery.lock_ms.map(|ms| self.lock(id, delivery, way, ms));
        if let Some(key) = session {
            self.check_overtaking(key, delivery, way)?;
            if let Some(lock) = &mut lock {
                self.lend_with(key, id, way, lock);
            }
        }
        if let Way::Link(receiver) = way {
            self.watch.fed(&self.clients, receiver, session);
        }
        if let Some(lock) = lock.as_mut().filter(|_| stale) {
            lock.hold = Hold::Ended;
        }
        let Some(entry) = self.entries.get_mut(&id) else {
            return Ok(());
        };
        entry.deliveries += 1;
        // Only a reason that the broker gave may add properties unasked; a client's are noted as asked for.
        entry.changed |= from_dead_letters(delivery);
        if !stale {
            entry.last_count = delivery.message.delivery_count;
            entry.number = Some(delivery.message.number);
        }
        entry.gone |= lock.is_none();
        entry.lock = lock;
        if lock.is_some_and(|lock| lock.hold == Hold::Ended) {
            entry.freed = turn;
        }
        if let Some(lock) = lock {
            self.tokens.insert(lock.token, id);
            self.watch.locked(lock.token, lock.at_most);
        }
        Ok(())
    }

    /// First deliveries come in the order in which the messages were enqueued. (I4)
    fn check_order(&mut self, id: MessageId, delivery: &Delivery) -> Result<(), Violation> {
        let entry = &self.entries[&id];
        if entry.deliveries > 0 || entry.dead_letter_asked || from_dead_letters(delivery) {
            return Ok(());
        }
        let number = delivery.message.number.0;
        let (queue, same_epoch) = (entry.queue, entry.epoch == self.epoch);
        let newest = self.first_delivered(queue, id);
        if number < *newest && same_epoch {
            let what = format!("#{number} was first delivered after #{newest}");
            return Err(Violation::new("I4", what));
        }
        *newest = (*newest).max(number);
        Ok(())
    }

    /// The lock that a delivery brings. It may be over before anybody hears of it.
    fn lock(&self, id: MessageId, delivery: &Delivery, way: Way, lock_ms: u64) -> Lock {
        let connection = way.connection();
        let place = self.books.place(id);
        let stays = place.filter(|place| place.number == delivery.message.number);
        let failed =
            stays.is_none_or(|place| self.books.count(place) > delivery.message.delivery_count);
        let dropped = self.drops_locks && self.clients.is_gone(connection);
        Lock {
            token: delivery.token,
            connection,
            receiver: match way {
                Way::Link(receiver) => Some(receiver),
                Way::Number(_) => None,
            },
            until: Mono(self.last_quiet.0 + lock_ms),
            at_most: Mono(self.turn.now.mono.0 + lock_ms),
            hold: if failed || dropped {
                Hold::Ended
            } else {
                Hold::Held
            },
            enlisted: None,
        }
    }

    /// A client got a message.
    ///
    /// # Errors
    /// I12, when it is not what was sent.
    pub fn received(&self, payload: &[u8]) -> Result<MessageId, Violation> {
        let wrong = |what: String| Violation::new("I12", what);
        let id =
            message::id_of(payload).ok_or_else(|| wrong("a message without an id".to_owned()))?;
        let entry = self
            .entries
            .get(&id)
            .ok_or_else(|| wrong(format!("nobody sent message {id}")))?;
        if message::same_bare(
            &entry.payload,
            payload,
            entry.ttl != u64::MAX,
            entry.changed,
        ) {
            Ok(id)
        } else {
            Err(wrong(format!("message {id} came back changed")))
        }
    }
}

/// Every dead letter carries a reason, and nothing else does.
pub(super) fn from_dead_letters(delivery: &Delivery) -> bool {
    delivery
        .message
        .changes
        .iter()
        .any(|(key, _)| key == "DeadLetterReason")
}

impl Entry {
    fn check_delivery(
        &self,
        id: MessageId,
        delivery: &Delivery,
        way: Way,
        now: Mono,
    ) -> Result<(), Violation> {
        let at =
            |invariant, what: &str| Err(Violation::new(invariant, format!("message {id} {what}")));
        if self.gone {
            return at("I2", "was delivered after its completion was answered");
        }
        if self.dead_lettered.is_some() && !from_dead_letters(delivery) {
            return at(
                "I2",
                "was delivered from its queue after it was dead-lettered",
            );
        }
        if self.is_lent(now) {
            return at("I3", "was delivered while it is locked");
        }
        let count = delivery.message.delivery_count;
        if count < self.last_count {
            return at("I5", &format!("counted {count} after {}", self.last_count));
        }
        if count > self.deliveries {
            return at(
                "I5",
                &format!("counted {count} in {} deliveries", self.deliveries),
            );
        }
        if matches!(way, Way::Number(_)) && self.defer_asked == 0 {
            return at("I2", "was delivered by number without having been deferred");
        }
        Ok(())
    }
}

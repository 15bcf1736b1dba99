//! Deliveries: what receivers are given, and whether it may be given to them. (I2, I3, I4, I5, I12)

use broker::{ConnectionId, Delivery, LockTime, LockToken, Mono, ReceiverId};
use bytes::Bytes;
use store::{EntityId, SequenceNumber};

use super::Ledger;
use super::entry::{Entry, Hold, Lock};
use crate::message::{self, MessageId};
use crate::violation::Violation;

/// Over what a delivery goes out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Link(ReceiverId),
    /// It was asked for by number.
    Number(ConnectionId, EntityId),
}

impl Way {
    pub(super) fn connection(self) -> ConnectionId {
        match self {
            Self::Link(receiver) => receiver.connection,
            Self::Number(connection, _) => connection,
        }
    }
}

impl Ledger {
    /// A delivery leaves the shard.
    pub(super) fn delivered(&mut self, delivery: &Delivery, way: Way) -> Result<(), Violation> {
        self.report.deliveries += 1;
        let turn = self.turn.index;
        let id = self.id_of_delivery(delivery, way)?;
        let entry = &self.entries[&id];
        entry.check_delivery(id, delivery, way, self.turn.now.mono)?;
        let stale = self.is_stale(id, delivery, way)?;
        let session = self.session_of_delivery(id, delivery, way)?;
        if !stale {
            self.check_order(id, delivery)?;
        }
        let mut lock = delivery
            .lock_ms()
            .map(|ms| self.lock(id, delivery, way, ms));
        if let Some(key) = session {
            self.check_overtaking(key, delivery, way)?;
            if let Some(lock) = &mut lock {
                self.lock_with_session(key, id, way, lock);
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
        // Only a reason that the broker gave may add properties unasked; a client's are noted as
        // asked for.
        entry.changed |= from_dead_letters(delivery);
        if !stale {
            entry.last_count = delivery.message.delivery_count;
            entry.number = Some(delivery.message.number);
        }
        entry.gone |= lock.is_none();
        if lock.is_none() {
            let key = (message::root_of(id), delivery.message.number);
            self.given.entry(key).or_default().push(id);
        }
        entry.lock = lock;
        if lock.is_some_and(|lock| lock.hold == Hold::Ended) {
            entry.freed = turn;
        }
        self.tokens.insert(delivery.token, id);
        if let Some(lock) = lock {
            self.watch.locked(lock.token, lock.at_most);
        }
        Ok(())
    }

    /// Whose number it is where it comes from.
    fn id_of_delivery(&self, delivery: &Delivery, way: Way) -> Result<MessageId, Violation> {
        let entity = match way {
            Way::Link(receiver) => self.clients.source_ever(receiver).map(|source| source.0),
            Way::Number(_, entity) => Some(entity),
        };
        let id = entity.and_then(|entity| self.books.named(entity, delivery.message.number));
        let root = message::id_of(&delivery.message.payload);
        id.filter(|id| root == Some(message::root_of(*id)) && self.entries.contains_key(id))
            .ok_or_else(|| {
                let what = format!(
                    "{} of {entity:?} is given out and not {root:?}",
                    delivery.message.number
                );
                Violation::new("I12", what)
            })
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

    /// The lock that a delivery brings. It may be over before a client hears of it.
    fn lock(&self, id: MessageId, delivery: &Delivery, way: Way, lock_ms: u64) -> Lock {
        let connection = way.connection();
        let place = self.books.place(id);
        let stays = place.filter(|place| place.number == delivery.message.number);
        let failed =
            stays.is_none_or(|place| self.books.count(place) > delivery.message.delivery_count);
        let receiver = match way {
            Way::Link(receiver) => Some(receiver),
            Way::Number(..) => None,
        };
        let with_receiver = delivery.message.lock == Some(LockTime::WithReceiver);
        let is_detached = receiver.is_some_and(|it| self.clients.source(it).is_none());
        let dropped = (self.drops_locks && self.clients.is_lost(connection))
            || (with_receiver && is_detached);
        Lock {
            token: delivery.token,
            connection,
            receiver,
            until: Mono(self.last_quiet.0.saturating_add(lock_ms)),
            at_most: Mono(self.turn.now.mono.0.saturating_add(lock_ms)),
            hold: if failed || dropped {
                Hold::Ended
            } else {
                Hold::Held
            },
            with_receiver,
            enlisted: None,
        }
    }

    /// A client got a message over a link.
    ///
    /// # Errors
    /// I12, when it is not what was sent.
    pub fn received(&self, payload: &Bytes) -> Result<MessageId, Violation> {
        let Some(token) = message::token_of(payload) else {
            return self.received_and_deleted(payload);
        };
        // Tokens are in the order of RFC 4122 wherever they are an AMQP uuid.
        let token = LockToken(u128::from_be_bytes(token));
        self.check_received(self.tokens.get(&token).copied(), payload)
    }

    /// A consumer of RabbitMQ's dialect got a message, whose tag is the token of its lock.
    ///
    /// # Errors
    /// I12, when it is not what was sent, whatever its time to live.
    pub fn consumed(&mut self, tag: &[u8], payload: &Bytes) -> Result<MessageId, Violation> {
        self.report.rabbitmq_deliveries += 1;
        let token = tag.try_into().ok().map(u128::from_be_bytes).map(LockToken);
        let id = token.and_then(|token| self.tokens.get(&token).copied());
        let (id, entry) = self.entry_of(id, payload)?;
        if !message::same_bare(&entry.payload, payload, false, entry.changed) {
            let what = format!("message {id} came to a consumer changed");
            return Err(Violation::new("I12", what));
        }
        Ok(id)
    }

    /// Nothing names what was received and deleted but its content and its number, which two copies
    /// may share.
    fn received_and_deleted(&self, payload: &Bytes) -> Result<MessageId, Violation> {
        let number = message::sequence_number_of(payload).map(SequenceNumber);
        let key = message::id_of(payload).zip(number);
        let given = key.and_then(|key| self.given.get(&key)).into_iter();
        let mut checked = given
            .flatten()
            .map(|id| self.check_received(Some(*id), payload));
        let sound = checked.find(Result::is_ok);
        sound.unwrap_or_else(|| self.check_received(None, payload))
    }

    /// A client was shown or given a message of a queue by `$management`.
    ///
    /// # Errors
    /// I12, when it is not what was sent.
    pub fn shown(&self, queue: usize, payload: &Bytes) -> Result<MessageId, Violation> {
        let number = message::sequence_number_of(payload).map(SequenceNumber);
        let entity = self.queues[queue].id;
        let id = number.and_then(|number| self.books.named(entity, number));
        self.check_received(id, payload)
    }

    fn check_received(
        &self,
        id: Option<MessageId>,
        payload: &Bytes,
    ) -> Result<MessageId, Violation> {
        let wrong = |what: String| Violation::new("I12", what);
        let (id, entry) = self.entry_of(id, payload)?;
        let redrives = entry.ttl != u64::MAX;
        if !message::same_bare(&entry.payload, payload, redrives, entry.changed) {
            return Err(wrong(format!("message {id} came back changed")));
        }
        if !message::tells_its_life(payload) {
            return Err(wrong(format!(
                "the times of message {id} are not its life's"
            )));
        }
        Ok(id)
    }

    /// What was sent, if it is what a client has been given.
    fn entry_of(
        &self,
        id: Option<MessageId>,
        payload: &Bytes,
    ) -> Result<(MessageId, &Entry), Violation> {
        let wrong = |what: String| Violation::new("I12", what);
        let root = message::id_of(payload);
        let id = id.filter(|id| root == Some(message::root_of(*id)));
        let id =
            id.ok_or_else(|| wrong(format!("a client got {root:?}, which was not given to it")))?;
        let entry = self.entries.get(&id);
        let entry = entry.ok_or_else(|| wrong(format!("no client sent message {id}")))?;
        Ok((id, entry))
    }
}

/// Every dead letter carries a reason, and nothing else does.
pub(super) fn from_dead_letters(delivery: &Delivery) -> bool {
    delivery
        .message
        .changes()
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
        if self.is_locked(now) {
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
        if matches!(way, Way::Number(..)) && self.defer_asked == 0 {
            return at("I2", "was delivered by number without having been deferred");
        }
        Ok(())
    }
}

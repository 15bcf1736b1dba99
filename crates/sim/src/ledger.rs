//! Ledger: what clients asked for and were told, message by message, and what can therefore not be.
//!
//! It shares no code with the broker's decisions. Three kinds of facts come in: what clients did
//! and heard, which deliveries left the shard, and a full look at the store every so often.
//! The invariants are numbered as in `reliability.md`.

use std::collections::{BTreeMap, BTreeSet};

use broker::{Delivery, LockToken, Now, Subqueue, Wall};
use bytes::Bytes;
use store::{EntityId, Part, SequenceNumber};

use crate::message::{self, MessageId};
use crate::violation::Violation;

mod recount;

/// What holds for the messages of one simulated queue.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Queue {
    pub path: &'static str,
    pub id: EntityId,
    pub max_delivery_count: u32,
    /// Milliseconds; `u64::MAX` without one.
    pub default_ttl: u64,
    pub dead_letters_expired: bool,
    /// Its receivers take messages without a lock, so a crash may lose what was on its way.
    pub receive_and_delete: bool,
}

/// How a client asked to end a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "named for what they are")]
pub enum Ask {
    Complete,
    Abandon,
    Release,
    DeadLetter,
    Defer,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sent {
    Asked,
    Accepted,
    Refused,
    /// The connection went before an answer came.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    /// The lock lasts at least until here, unless it is ended.
    until_ms: u64,
    ended: bool,
}

#[derive(Debug)]
struct Entry {
    queue: usize,
    payload: Bytes,
    sent: Sent,
    /// The least wall clock at which it can have been enqueued.
    asked_wall: Wall,
    ttl: u64,
    epoch: u64,
    number: Option<SequenceNumber>,
    /// A completion was answered, or the message was taken in receive-and-delete mode.
    gone: bool,
    /// A completion was asked for and its answer will never come.
    may_be_gone: bool,
    /// Completions that wait for their answer.
    leaving: u32,
    dead_letter_answered: bool,
    dead_letter_asked: bool,
    defer_asked: u32,
    /// Patches or dead-letterings may have changed its properties.
    changed: bool,
    deliveries: u32,
    last_count: u32,
    lock: Option<Lock>,
}

/// The book-keeping of a run.
#[derive(Debug)]
pub struct Ledger {
    /// The simulated queues.
    pub queues: Vec<Queue>,
    entries: BTreeMap<MessageId, Entry>,
    next_id: MessageId,
    max_wall: Wall,
    epoch: u64,
    /// The next number each queue must give out, unless a crash makes it unknown.
    expected: Vec<Option<u64>>,
    /// First deliveries, which must come in order. (I4 of a queue without sessions)
    first_delivered: Vec<u64>,
    deferred: BTreeSet<(usize, Subqueue, SequenceNumber)>,
    /// Locks that nobody has tried to end.
    tokens: BTreeMap<LockToken, MessageId>,
    /// Deliveries that left the shard.
    pub deliveries: u64,
    /// Sends that were accepted.
    pub accepted: u64,
}

impl Ledger {
    /// An empty ledger for `queues`.
    #[must_use]
    pub fn new(queues: Vec<Queue>) -> Self {
        let count = queues.len();
        Self {
            queues,
            entries: BTreeMap::new(),
            next_id: 1,
            max_wall: Wall(0),
            epoch: 0,
            expected: vec![Some(1); count],
            first_delivered: vec![0; count],
            deferred: BTreeSet::new(),
            tokens: BTreeMap::new(),
            deliveries: 0,
            accepted: 0,
        }
    }

    /// A name for the next message.
    pub fn fresh_id(&mut self) -> MessageId {
        self.next_id += 1;
        self.next_id - 1
    }

    /// A client sends.
    pub fn send_asked(
        &mut self,
        id: MessageId,
        queue: usize,
        payload: Bytes,
        ttl: Option<u32>,
        now: Now,
    ) {
        let ttl = ttl
            .map_or(u64::MAX, u64::from)
            .min(self.queues[queue].default_ttl);
        let entry = Entry {
            queue,
            payload,
            sent: Sent::Asked,
            asked_wall: now.wall,
            ttl,
            epoch: self.epoch,
            number: None,
            gone: false,
            may_be_gone: false,
            leaving: 0,
            dead_letter_answered: false,
            dead_letter_asked: false,
            defer_asked: 0,
            changed: false,
            deliveries: 0,
            last_count: 0,
            lock: None,
        };
        self.entries.insert(id, entry);
    }

    /// A client was told what became of its send.
    pub fn send_answered(&mut self, id: MessageId, accepted: bool) {
        self.accepted += u64::from(accepted);
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.sent = if accepted {
                Sent::Accepted
            } else {
                Sent::Refused
            };
        }
    }

    /// A client will never know what became of its send.
    pub fn send_lost(&mut self, id: MessageId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.sent = Sent::Unknown;
        }
    }

    /// The shard said that a send was accepted under `number`.
    ///
    /// # Errors
    /// I8, when the numbers have a gap or repeat.
    pub fn numbered(
        &mut self,
        entity: EntityId,
        number: SequenceNumber,
        count: u64,
    ) -> Result<(), Violation> {
        let Some(queue) = self.queues.iter().position(|queue| queue.id == entity) else {
            return Ok(());
        };
        if let Some(expected) = self.expected[queue]
            && number.0 != expected
        {
            return Err(Violation::new(
                "I8",
                format!("queue {queue} gave out {number}, not #{expected}"),
            ));
        }
        self.expected[queue] = Some(number.0 + count);
        Ok(())
    }

    /// A delivery left the shard. `lock_from` is the latest moment known to lie before the decision.
    ///
    /// # Errors
    /// I2, I3, I4 or I5.
    pub fn left_shard(
        &mut self,
        delivery: &Delivery,
        by_number: bool,
        now: Now,
        lock_from: u64,
    ) -> Result<(), Violation> {
        self.deliveries += 1;
        let id = message::id_of(&delivery.message.payload)
            .filter(|id| self.entries.contains_key(id))
            .ok_or_else(|| {
                Violation::new("I12", "a delivery of something that nobody sent".to_owned())
            })?;
        let entry = self.entries.get_mut(&id).expect("looked up just now");
        entry.check_delivery(id, delivery, by_number, now, self.epoch - entry.epoch)?;
        if entry.deliveries == 0 && !entry.dead_letter_asked && !from_dead_letters(delivery) {
            let newest = &mut self.first_delivered[entry.queue];
            if delivery.message.number.0 < *newest && entry.epoch == self.epoch {
                let what = format!(
                    "{} was first delivered after #{newest}",
                    delivery.message.number
                );
                return Err(Violation::new("I4", what));
            }
            *newest = (*newest).max(delivery.message.number.0);
        }
        entry.deliveries += 1;
        // Only a reason that the broker gave may add properties unasked; a client's are noted as asked for.
        entry.changed |= from_dead_letters(delivery);
        entry.last_count = delivery.message.delivery_count;
        entry.number = Some(delivery.message.number);
        match delivery.lock_ms {
            Some(lock) => {
                entry.lock = Some(Lock {
                    until_ms: lock_from + lock,
                    ended: false,
                });
                self.tokens.insert(delivery.token, id);
            }
            None => entry.gone = true,
        }
        Ok(())
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

    /// A client asks to end a lock.
    pub fn asked(&mut self, id: MessageId, ask: Ask) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        match ask {
            Ask::Complete => entry.leaving += 1,
            Ask::DeadLetter => entry.dead_letter_asked = true,
            Ask::Defer => entry.defer_asked += 1,
            Ask::Abandon | Ask::Release => {}
        }
        entry.changed |= matches!(ask, Ask::DeadLetter | Ask::Abandon);
    }

    /// The broker is told to end a lock, by whomever; from here on the message may be lent again.
    pub fn lock_ends(&mut self, token: LockToken) {
        let id = self.tokens.remove(&token);
        if let Some(lock) = id
            .and_then(|id| self.entries.get_mut(&id))
            .and_then(|entry| entry.lock.as_mut())
        {
            lock.ended = true;
        }
    }

    /// Whether a message that is taken without a lock and that no crash touched was taken by somebody.
    ///
    /// # Errors
    /// I1, when one is gone that nobody got. For a time when nothing is on its way.
    pub fn all_taken(&self) -> Result<(), Violation> {
        let lost = self.entries.iter().find(|(_, entry)| {
            let queue = &self.queues[entry.queue];
            queue.receive_and_delete
                && entry.epoch == self.epoch
                && entry.sent == Sent::Accepted
                && !entry.gone
                && !entry.may_have_expired(queue, self.max_wall)
        });
        match lost {
            Some((id, _)) => Err(Violation::new(
                "I1",
                format!("message {id} was accepted and nobody got it"),
            )),
            None => Ok(()),
        }
    }

    /// A client was told whether its settlement took place.
    pub fn answered(&mut self, id: MessageId, subqueue: Subqueue, ask: Ask, done: bool) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        match ask {
            Ask::Complete => {
                entry.leaving -= 1;
                entry.gone |= done;
            }
            Ask::DeadLetter => entry.dead_letter_answered |= done,
            Ask::Defer if done => {
                let number = entry.number.expect("delivered before it was deferred");
                self.deferred.insert((entry.queue, subqueue, number));
            }
            Ask::Defer | Ask::Abandon | Ask::Release => {}
        }
    }

    /// A client will never know whether its settlement took place.
    pub fn answer_lost(&mut self, id: MessageId, ask: Ask) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        if ask == Ask::Complete {
            entry.leaving -= 1;
            entry.may_be_gone = true;
        }
    }

    /// Numbers of deferred messages that clients know of.
    #[must_use]
    pub fn deferred(&self, queue: usize, subqueue: Subqueue, most: usize) -> Vec<SequenceNumber> {
        let from = (queue, subqueue, SequenceNumber(0));
        let until = (queue, subqueue, SequenceNumber::MAX);
        self.deferred
            .range(from..until)
            .take(most)
            .map(|(_, _, number)| *number)
            .collect()
    }

    /// Those numbers are not worth another try.
    pub fn forget_deferred(
        &mut self,
        queue: usize,
        subqueue: Subqueue,
        numbers: &[SequenceNumber],
    ) {
        for number in numbers {
            self.deferred.remove(&(queue, subqueue, *number));
        }
    }

    /// The wall clock says `wall` now, perhaps less than before.
    pub fn clock(&mut self, wall: Wall, jumped_back: bool) {
        self.max_wall = self.max_wall.max(wall);
        if jumped_back {
            for entry in self.entries.values_mut() {
                entry.asked_wall = entry.asked_wall.min(wall);
            }
        }
    }

    /// The broker lost everything that was not durable; `next` are its queues' next numbers.
    pub fn crashed(&mut self, next: &[(EntityId, SequenceNumber)]) {
        self.epoch += 1;
        self.tokens.clear();
        for entry in self.entries.values_mut() {
            entry.lock = None;
        }
        for (index, queue) in self.queues.iter().enumerate() {
            let number = next
                .iter()
                .find(|(id, _)| *id == queue.id)
                .map_or(1, |(_, number)| number.0);
            self.expected[index] = Some(number);
        }
    }

    /// Every lock may end: a connection was lost on which some of them may depend.
    pub fn all_locks_end(&mut self) {
        self.tokens.clear();
        for lock in self
            .entries
            .values_mut()
            .filter_map(|entry| entry.lock.as_mut())
        {
            lock.ended = true;
        }
    }
}

/// Every dead letter carries a reason, and nothing else does.
fn from_dead_letters(delivery: &Delivery) -> bool {
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
        by_number: bool,
        now: Now,
        crashes: u64,
    ) -> Result<(), Violation> {
        let at =
            |invariant, what: &str| Err(Violation::new(invariant, format!("message {id} {what}")));
        if self.gone {
            return at("I2", "was delivered after its completion was answered");
        }
        if self.dead_letter_answered && !from_dead_letters(delivery) {
            return at(
                "I2",
                "was delivered from its queue after it was dead-lettered",
            );
        }
        if let Some(lock) = self.lock
            && !lock.ended
            && now.mono.0 < lock.until_ms
        {
            return at("I3", "was delivered while it is locked");
        }
        let count = delivery.message.delivery_count;
        if count < self.last_count {
            return at("I5", &format!("counted {count} after {}", self.last_count));
        }
        // A crash may swallow the sight of a delivery whose failure was already written.
        if u64::from(count) > u64::from(self.deliveries) + crashes {
            return at(
                "I5",
                &format!("counted {count} in {} deliveries", self.deliveries),
            );
        }
        if by_number && self.defer_asked == 0 {
            return at("I2", "was delivered by number without having been deferred");
        }
        Ok(())
    }

    /// Whether its absence from the store needs no further reason.
    fn may_be_absent(&self, queue: &Queue, max_wall: Wall) -> bool {
        self.sent != Sent::Accepted
            || self.gone
            || self.may_be_gone
            || self.leaving > 0
            || self.may_have_expired(queue, max_wall)
            || queue.receive_and_delete
    }

    fn may_have_expired(&self, queue: &Queue, max_wall: Wall) -> bool {
        let deadline = self.asked_wall.0.saturating_add(self.ttl);
        self.ttl != u64::MAX && !queue.dead_letters_expired && max_wall.0 >= deadline
    }

    fn must_not_be_in(&self, part: Part) -> bool {
        self.gone
            || self.sent == Sent::Refused
            || (self.dead_letter_answered && matches!(part, Part::Active | Part::Deferred))
    }
}

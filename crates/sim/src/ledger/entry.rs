//! Entry: one message, as far as its sender and its receivers know.

use broker::{ConnectionId, LockToken, Mono, ReceiverId, TransactionId, Wall};
use bytes::Bytes;
use store::{EntityId, MessageRow, Part, SequenceNumber};

use super::{Ask, Queue};
use crate::message::MessageId;
use crate::rule::Rule;

mod history;

use history::{Hop, Redriven};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sent {
    Asked,
    Accepted,
    Refused,
    /// The connection went before an answer came.
    Unknown,
}

/// Whether a lock lasts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Hold {
    /// No request has tried to end it.
    Held,
    /// Something was asked that may have ended it.
    InDoubt,
    Ended,
}

/// The newest lock that a client was told of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub token: LockToken,
    pub connection: ConnectionId,
    /// Over a link, not by number.
    pub receiver: Option<ReceiverId>,
    /// It lasts at least until here, unless it is ended.
    pub until: Mono,
    /// It lasts no longer than this.
    pub at_most: Mono,
    pub hold: Hold,
    /// It lasts as long as its receiver is attached.
    pub with_receiver: bool,
    /// It is part of a transaction.
    pub enlisted: Option<TransactionId>,
}

impl Lock {
    /// Whether no other receiver may have the message.
    pub(super) fn excludes(&self, now: Mono) -> bool {
        self.hold == Hold::Held && now < self.until
    }

    /// Whether it is certainly over.
    pub(super) fn is_over(&self, now: Mono) -> bool {
        self.hold == Hold::Ended || now > self.at_most
    }
}

/// What a copy is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum CopyKind {
    AsSent,
    /// By the action of that rule.
    Changed(Rule),
    /// Since some rule cannot be evaluated.
    Dead,
}

/// A message that an abandon made wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    /// Its row before.
    pub row: MessageRow,
    /// How many crashes there had been.
    pub epoch: u64,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// Whose message it is now.
    pub queue: usize,
    pub payload: Bytes,
    pub sent: Sent,
    /// The shard said that it has the message.
    pub confirmed: bool,
    /// The least wall clock at which it can have been enqueued.
    pub asked_wall: Wall,
    pub ttl: u64,
    /// When its sender wants it to become available, by the wall clock; 0 is at once.
    pub due: u64,
    /// By which it is known to be a duplicate.
    pub key: MessageId,
    pub epoch: u64,
    /// Under which it was accepted.
    pub arrived: Option<SequenceNumber>,
    /// It was dropped, since that one was accepted before it.
    pub duplicate_of: Option<SequenceNumber>,
    /// What a subscription took it from.
    pub copy_of: Option<MessageId>,
    /// Where it arrived, if it is a copy.
    pub home: Option<(EntityId, SequenceNumber)>,
    /// What rules see of it.
    pub marked: i64,
    /// It was a topic's and went to its subscriptions.
    pub published: bool,
    /// What a rule has made of it.
    pub made: Option<CopyKind>,
    /// Its entity is gone.
    pub removed_with_entity: bool,
    /// Another was dropped for its sake, so it is there whatever its own sender knows.
    pub confirmed_by_duplicate: bool,
    /// Under which it is now. One that was scheduled has a new one since it is available.
    pub number: Option<SequenceNumber>,
    /// The number under which it first became available.
    pub enqueued: Option<SequenceNumber>,
    /// The queue out of whose dead-letter queue it was forwarded.
    pub source: Option<&'static str>,
    /// What it was before it was forwarded.
    pub hops: Vec<Hop>,
    /// What it was before it was redriven.
    pub redrives: Vec<Redriven>,
    /// A completion or a cancellation was answered, or the message was taken in
    /// receive-and-delete mode.
    pub gone: bool,
    /// A completion or a cancellation was asked for and its answer will never come.
    pub may_be_gone: bool,
    /// Completions and cancellations that wait for their answer.
    pub leaving: u32,
    /// The shard said that it took it back.
    pub cancel_granted: bool,
    /// The queue in which the shard said that it dead-lettered it.
    pub dead_lettered: Option<usize>,
    pub dead_letter_asked: bool,
    pub defer_asked: u32,
    /// What the shard said it did, by [`Ask`].
    granted: u8,
    /// Patches or dead-letterings may have changed its properties.
    pub changed: bool,
    pub deliveries: u32,
    pub last_count: u32,
    pub lock: Option<Lock>,
    /// The turn since which its last lock is known to be over.
    pub freed: u64,
    /// How it last waited for its next delivery.
    pub waited: Option<Waited>,
}

impl Entry {
    pub(super) fn new(
        queue: usize,
        payload: Bytes,
        ttl: u64,
        asked_wall: Wall,
        epoch: u64,
    ) -> Self {
        Self {
            queue,
            payload,
            sent: Sent::Asked,
            confirmed: false,
            asked_wall,
            ttl,
            due: 0,
            key: 0,
            epoch,
            arrived: None,
            duplicate_of: None,
            copy_of: None,
            home: None,
            marked: 0,
            published: false,
            made: None,
            removed_with_entity: false,
            confirmed_by_duplicate: false,
            number: None,
            enqueued: None,
            source: None,
            hops: Vec::new(),
            redrives: Vec::new(),
            gone: false,
            may_be_gone: false,
            leaving: 0,
            cancel_granted: false,
            dead_lettered: None,
            dead_letter_asked: false,
            defer_asked: 0,
            granted: 0,
            changed: false,
            deliveries: 0,
            last_count: 0,
            lock: None,
            freed: 0,
            waited: None,
        }
    }

    /// Whether that is its newest lock.
    pub(super) fn is_locked_by(&self, token: LockToken) -> bool {
        self.lock.is_some_and(|lock| lock.token == token)
    }

    /// Its lock is over, in the turn of that number.
    pub(super) fn free(&mut self, turn: u64) {
        if let Some(lock) = &mut self.lock {
            lock.hold = Hold::Ended;
            self.freed = turn;
        }
    }

    /// The shard said that it did what was asked.
    pub(super) fn grant(&mut self, ask: Ask) {
        self.granted |= 1 << ask as u8;
    }

    pub(super) fn was_granted(&self, ask: Ask) -> bool {
        self.granted & 1 << ask as u8 != 0
    }

    /// Whether no other receiver may have the message.
    pub(super) fn is_locked(&self, now: Mono) -> bool {
        self.lock.is_some_and(|lock| lock.excludes(now))
    }

    /// Whether certainly no receiver has it.
    pub(super) fn is_free(&self, now: Mono) -> bool {
        self.lock.is_none_or(|lock| lock.is_over(now))
    }

    /// Whether its absence from the store needs no further reason.
    pub(super) fn may_be_absent(&self, queue: &Queue, max_wall: Wall) -> bool {
        (self.sent != Sent::Accepted && !self.confirmed_by_duplicate)
            || self.duplicate_of.is_some()
            || self.gone
            || self.published
            || self.removed_with_entity
            || self.may_be_gone
            || self.leaving > 0
            || self.may_have_expired(queue, max_wall)
            || queue.receive_and_delete
    }

    pub(super) fn may_have_expired(&self, queue: &Queue, max_wall: Wall) -> bool {
        let deadline = self.asked_wall.0.max(self.due).saturating_add(self.ttl);
        self.ttl != u64::MAX && !queue.dead_letters_expired && max_wall.0 >= deadline
    }

    /// Whether with `count` failed deliveries it must be dead-lettered rather than stand in `part`.
    /// To defer it counts as one and never dead-letters.
    pub(super) fn must_give_up(&self, part: Part, count: u32, most: u32) -> bool {
        match part {
            Part::Active => count >= most,
            Part::Deferred => count.saturating_sub(self.defer_asked) >= most,
            _ => false,
        }
    }

    pub(super) fn must_not_be_in(&self, part: Part) -> bool {
        self.gone
            || self.sent == Sent::Refused
            || (self.dead_lettered == Some(self.queue)
                && matches!(part, Part::Active | Part::Deferred))
            || (part == Part::Scheduled
                && self.waited.is_none()
                && (self.due == 0 || self.deliveries > 0))
    }
}

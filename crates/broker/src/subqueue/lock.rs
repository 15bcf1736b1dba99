//! Locks: which receiver holds which messages of a subqueue, and until when.
//!
//! Found by number; the token's other half tells a lock from its predecessors. A lock holds until
//! its moment is reached, whether or not its expiry has been dealt with yet.
//! Deadlines stand in lanes, one per lock duration, so that each lane is in order by itself; a
//! settled or renewed lock leaves a stale entry in its lane that is skipped, and swept up when
//! most of a lane is stale. Locks that end with their receivers have as many durations as their
//! clients like; their deadlines are sorted instead.

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeBounds;

use store::{MessageRow, SequenceNumber};

use crate::api::id::{ConnectionId, LockToken, ReceiverId};
use crate::api::time::Mono;
use crate::context::clients::HoldId;
use crate::message::Message;
use crate::message::partition_key::PartitionKey;
use crate::message::patch::Patch;
use crate::subqueue::number_map::NumberMap;

/// Why there is a lock on a message.
const FOUND: &str = "a lock is looked for in the step that changes it";

/// Where a locked message came from, and goes back to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    /// It was available.
    Available,
    /// It was deferred.
    Deferred,
    /// It was available, but cannot be read or forwarded: no receiver holds it.
    SetAside,
}

/// One message lent out.
#[derive(Debug)]
pub(crate) struct Lock {
    pub token: LockToken,
    pub until: Mono,
    pub row: MessageRow,
    pub delivery_count: u32,
    pub patch: Option<Box<Patch>>,
    /// `None` when the message is only set aside.
    pub holder: Option<Holder>,
    pub origin: Origin,
    /// The session with which it is lent; it has no time of its own then.
    pub session: Option<HoldId>,
    /// Of a message of a partitioned entity.
    pub partition_key: Option<PartitionKey>,
    /// Whether it ends with its receiver.
    pub ends_with_receiver: bool,
    /// Whether its end is part of a transaction, which alone may then end it.
    pub enlisted: bool,
}

impl Lock {
    /// A lock on a message, for as long as nothing else is said.
    pub(crate) fn new(
        message: Message,
        token: LockToken,
        holder: Option<Holder>,
        origin: Origin,
    ) -> Self {
        Self {
            token,
            until: Mono(u64::MAX),
            row: message.row,
            delivery_count: message.delivery_count,
            patch: message.patch,
            holder,
            origin,
            session: None,
            partition_key: None,
            ends_with_receiver: false,
            enlisted: false,
        }
    }

    /// Whether it ends with its receiver.
    pub(crate) fn lasts_with(&self, receiver: ReceiverId) -> bool {
        let holder = Holder {
            connection: receiver.connection,
            link: Some(receiver.link),
        };
        self.ends_with_receiver && self.holder == Some(holder)
    }

    fn patch_bytes(&self) -> usize {
        self.patch.as_ref().map_or(0, |patch| patch.bytes())
    }
}

/// The holder of a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Holder {
    pub connection: ConnectionId,
    /// The receiver's link; `None` when it was asked for by number.
    pub link: Option<u32>,
}

/// Deadlines of locks that were given out for the same time, in order.
#[derive(Debug)]
struct Lane {
    duration: u64,
    order: VecDeque<(Mono, SequenceNumber)>,
}

/// All locks of a subqueue.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: NumberMap<Lock>,
    /// How many of them came from deferred messages.
    deferred: usize,
    /// Bytes of the others.
    available_bytes: u64,
    /// Bytes of the patches that they keep.
    patch_bytes: usize,
    lanes: Vec<Lane>,
    /// Deadlines of locks that end with their receivers, which name any time for each.
    by_receiver: BTreeSet<(Mono, SequenceNumber)>,
}

impl Locks {
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no more should be given out: there are `most`, or what they keep in memory is as
    /// much.
    pub(crate) fn is_full(&self, most: usize, most_bytes: usize) -> bool {
        self.held.len() >= most || self.patch_bytes >= most_bytes
    }

    /// Locks on messages that stand among the available ones on disk.
    pub(crate) fn on_available(&self) -> usize {
        self.held.len() - self.deferred
    }

    /// Bytes of the messages with such locks.
    pub(crate) fn bytes_on_available(&self) -> u64 {
        self.available_bytes
    }

    pub(crate) fn get(&self, number: SequenceNumber) -> Option<&Lock> {
        self.held.get(number)
    }

    pub(crate) fn contains(&self, number: SequenceNumber) -> bool {
        self.held.contains(number)
    }

    /// Whether a message is lent with its session.
    pub(crate) fn lasts(&self, number: SequenceNumber) -> bool {
        let lock = self.held.get(number);
        lock.is_some_and(|lock| lock.session.is_some())
    }

    /// The lock on `number`, if `token` names it and it holds at `now`.
    pub(crate) fn find(
        &self,
        number: SequenceNumber,
        token: LockToken,
        now: Mono,
    ) -> Option<&Lock> {
        let lock = self.held.get(number)?;
        (lock.token == token && now < lock.until).then_some(lock)
    }

    /// Locks in order of number.
    pub(crate) fn range(
        &self,
        range: impl RangeBounds<SequenceNumber>,
    ) -> impl Iterator<Item = (SequenceNumber, &Lock)> {
        self.held.range(range)
    }

    /// Adds a lock that was given for `duration`.
    pub(crate) fn insert(&mut self, number: SequenceNumber, lock: Lock, duration: u64) {
        match lock.ends_with_receiver {
            true => _ = self.by_receiver.insert((lock.until, number)),
            false => self.queue(number, lock.until, duration),
        }
        self.insert_lasting(number, lock);
    }

    /// Adds a lock that has no time of its own.
    pub(crate) fn insert_lasting(&mut self, number: SequenceNumber, lock: Lock) {
        if lock.origin == Origin::Deferred {
            self.deferred += 1;
        } else {
            self.available_bytes += u64::from(lock.row.size);
        }
        self.patch_bytes += lock.patch_bytes();
        let before = self.held.insert(number, lock);
        assert!(before.is_none(), "message {number} is locked already");
    }

    /// Whether a lock that was found ends with its receiver's link.
    pub(crate) fn lasts_with_link(&self, number: SequenceNumber) -> bool {
        let lock = self.held.get(number).expect(FOUND);
        lock.ends_with_receiver
    }

    /// Sets a new end to a lock that was found.
    pub(crate) fn extend(&mut self, number: SequenceNumber, until: Mono, duration: u64) {
        let lock = self.held.get_mut(number).expect(FOUND);
        assert!(lock.session.is_none(), "it ends with its session");
        let before = std::mem::replace(&mut lock.until, until);
        if self.by_receiver.remove(&(before, number)) {
            self.by_receiver.insert((until, number));
        } else {
            self.queue(number, until, duration);
        }
    }

    /// Whether a lock's end is part of a transaction.
    pub(crate) fn is_enlisted(&self, number: SequenceNumber) -> bool {
        self.held.get(number).is_some_and(|lock| lock.enlisted)
    }

    /// Makes the end of a lock that was found part of a transaction, or no longer.
    pub(crate) fn enlist(&mut self, number: SequenceNumber, enlisted: bool) {
        let lock = self.held.get_mut(number).expect(FOUND);
        assert_ne!(lock.enlisted, enlisted, "a lock is part of one transaction");
        lock.enlisted = enlisted;
    }

    /// Ends a lock that was found.
    pub(crate) fn take(&mut self, number: SequenceNumber) -> Lock {
        let lock = self.held.remove(number).expect(FOUND);
        if lock.origin == Origin::Deferred {
            self.deferred -= 1;
        } else {
            self.available_bytes -= u64::from(lock.row.size);
        }
        self.patch_bytes -= lock.patch_bytes();
        if lock.ends_with_receiver {
            self.by_receiver.remove(&(lock.until, number));
        }
        if self.held.is_empty() {
            self.lanes.iter_mut().for_each(|lane| lane.order.clear());
        }
        lock
    }

    /// No lock ends before this moment.
    pub(crate) fn earliest(&self) -> Option<Mono> {
        let fronts = self.lanes.iter().filter_map(|lane| lane.order.front());
        let fronts = fronts.chain(self.by_receiver.first());
        fronts.map(|(until, _)| *until).min()
    }

    /// The next lock whose time is up.
    pub(crate) fn next_expired(&mut self, now: Mono) -> Option<SequenceNumber> {
        if let Some(&(until, number)) = self.by_receiver.first()
            && until <= now
        {
            self.by_receiver.pop_first();
            return Some(number);
        }
        let Self { held, lanes, .. } = self;
        for lane in lanes.iter_mut() {
            while let Some(&(until, number)) = lane.order.front()
                && until <= now
            {
                lane.order.pop_front();
                if is_live(held, until, number) {
                    return Some(number);
                }
            }
        }
        lanes.retain(|lane| !lane.order.is_empty());
        None
    }

    fn queue(&mut self, number: SequenceNumber, until: Mono, duration: u64) {
        let Self { held, lanes, .. } = self;
        let place = lanes.iter().position(|lane| lane.duration == duration);
        let place = place.unwrap_or_else(|| {
            let order = VecDeque::new();
            lanes.push(Lane { duration, order });
            lanes.len() - 1
        });
        let order = &mut lanes[place].order;
        if order.len() > 2 * held.len() + 64 {
            order.retain(|&(until, number)| is_live(held, until, number));
            order.shrink_to(2 * held.len() + 64);
        }
        order.push_back((until, number));
    }
}

fn is_live(held: &NumberMap<Lock>, until: Mono, number: SequenceNumber) -> bool {
    held.get(number).is_some_and(|lock| lock.until == until)
}

//! Clients: connections and their receivers, their credit and their unwritten output.
//!
//! Credit is exact: a receiver is given no more than its limit says, by serial arithmetic.
//! [AMQP 2.6.7] Each connection counts the bytes that it was given and has not written yet; the
//! receivers of a connection at its limit are blocked until it has written some of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use store::EntityId;

use crate::api::id::{ConnectionId, ReceiverId, SubqueueId};
use crate::api::receive_mode::ReceiveMode;

/// Why a slot has a receiver.
const ATTACHED: &str = "a slot is kept as long as its receiver is attached";

/// A receiver's place in memory; used again after it has gone.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ReceiverSlot(usize);

/// Where a receiver waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReceiverState {
    /// It has no credit.
    Idle,
    /// In its subqueue's ring of takers.
    Taking,
    /// It has credit, but its connection's output buffer is full.
    Blocked,
}

/// Which messages a receiver is given.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Choice {
    /// The next one, whatever it is.
    #[default]
    Next,
    /// Those that its selector selects.
    Selected(SelectionId),
    /// It is shown all of them and takes none.
    Shown,
}

/// Names a selection of a subqueue.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct SelectionId(pub u64);

/// Names one acceptance of a session; never used again.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct HoldId(pub u64);

/// Names a waiter; in the order in which they came.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct WaiterId(pub u64);

/// What a receiver has to do with sessions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum SessionRole {
    /// Nothing: it takes from a queue without sessions.
    #[default]
    None,
    Waiting(WaiterId),
    Holding(HoldId),
}

/// One link that takes messages.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub id: ReceiverId,
    pub place: SubqueueId,
    pub mode: ReceiveMode,
    pub choice: Choice,
    pub draining: bool,
    pub state: ReceiverState,
    pub session_role: SessionRole,
    pub priority: i32,
    /// Milliseconds for which it may hold a message, if it has said so.
    pub consumer_timeout: Option<u64>,
    /// Whether it is told when it is the one that is given messages.
    pub hears_activity: bool,
    /// Its place in the order in which receivers came.
    order: u64,
    connection: usize,
    delivered: u32,
    limit: u32,
}

impl Receiver {
    /// How many more deliveries it may be given.
    pub(crate) fn credit(&self) -> u32 {
        let credit = self.limit.wrapping_sub(self.delivered);
        // The upper half are limits that have been passed already. [RFC 1982]
        if credit > i32::MAX as u32 { 0 } else { credit }
    }

    /// The limit as the client has named it.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Whether it waits for messages: it has credit, or would like to have a session.
    pub(crate) fn waits(&self) -> bool {
        self.credit() > 0 || matches!(self.session_role, SessionRole::Waiting(_))
    }

    pub(crate) fn holds_session(&self) -> bool {
        matches!(self.session_role, SessionRole::Holding(_))
    }

    /// Its credit is used up without deliveries.
    pub(crate) fn finish_drain(&mut self) {
        self.draining = false;
        if self.credit() > 0 {
            self.delivered = self.limit;
        }
    }

    /// A delivery did not reach it.
    pub(crate) fn give_credit_back(&mut self) {
        self.delivered = self.delivered.wrapping_sub(1);
    }
}

#[derive(Debug, Default)]
struct Connection {
    /// Bytes given and not written yet.
    unwritten: usize,
    receivers: Vec<ReceiverSlot>,
    blocked: Vec<ReceiverSlot>,
    /// Where it ever had receivers or took deferred messages, so where it may hold locks.
    places: BTreeSet<SubqueueId>,
}

/// All connections and receivers of a broker.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    by_connection: BTreeMap<ConnectionId, usize>,
    by_receiver: BTreeMap<ReceiverId, ReceiverSlot>,
    by_entity: BTreeSet<(EntityId, ReceiverSlot)>,
    connections: Vec<Connection>,
    vacant_connections: Vec<usize>,
    receivers: Vec<Option<Receiver>>,
    vacant_receivers: Vec<ReceiverSlot>,
    /// How many receivers there have been.
    attached: u64,
}

impl Clients {
    pub(crate) fn find(&self, id: ReceiverId) -> Option<ReceiverSlot> {
        self.by_receiver.get(&id).copied()
    }

    /// A receiver that is attached: nothing keeps its slot when it goes.
    pub(crate) fn get(&self, slot: ReceiverSlot) -> &Receiver {
        let receiver = self.receivers[slot.0].as_ref();
        receiver.expect(ATTACHED)
    }

    /// The same, to change.
    pub(crate) fn get_mut(&mut self, slot: ReceiverSlot) -> &mut Receiver {
        let receiver = self.receivers[slot.0].as_mut();
        receiver.expect(ATTACHED)
    }

    /// A receiver has no credit any more, unless it waits for the end of a drain.
    pub(crate) fn stop(&mut self, id: ReceiverId) {
        if let Some(slot) = self.find(id) {
            let receiver = self.get_mut(slot);
            if !receiver.draining {
                receiver.limit = receiver.delivered;
            }
        }
    }

    /// Adds a receiver without credit, and its connection if that is new.
    pub(crate) fn attach(
        &mut self,
        id: ReceiverId,
        place: SubqueueId,
        mode: ReceiveMode,
    ) -> ReceiverSlot {
        let connection = self.connect(id.connection);
        self.attached += 1;
        let receiver = Receiver {
            id,
            place,
            mode,
            choice: Choice::Next,
            draining: false,
            state: ReceiverState::Idle,
            session_role: SessionRole::None,
            priority: 0,
            consumer_timeout: None,
            hears_activity: false,
            order: self.attached,
            connection,
            delivered: 0,
            limit: 0,
        };
        let slot = match self.vacant_receivers.pop() {
            Some(slot) => {
                self.receivers[slot.0] = Some(receiver);
                slot
            }
            None => {
                self.receivers.push(Some(receiver));
                ReceiverSlot(self.receivers.len() - 1)
            }
        };
        let before = self.by_receiver.insert(id, slot);
        assert!(
            before.is_none(),
            "a link that attaches again is detached first"
        );
        self.by_entity.insert((place.entity, slot));
        let connection = &mut self.connections[connection];
        connection.receivers.push(slot);
        connection.places.insert(place);
        slot
    }

    /// Removes a receiver, also from its connection.
    pub(crate) fn detach(&mut self, slot: ReceiverSlot) -> Receiver {
        let receiver = self.receivers[slot.0].take().expect(ATTACHED);
        self.by_receiver.remove(&receiver.id);
        self.by_entity.remove(&(receiver.place.entity, slot));
        self.vacant_receivers.push(slot);
        let connection = &mut self.connections[receiver.connection];
        connection.receivers.retain(|other| *other != slot);
        connection.blocked.retain(|other| *other != slot);
        receiver
    }

    /// The receiver that is active after another one has gone: of the highest priority, and of
    /// those the oldest.
    pub(crate) fn next_active(&self, place: SubqueueId) -> Option<ReceiverSlot> {
        let here = self.receivers_at(place.entity).filter(|slot| {
            let receiver = self.get(*slot);
            receiver.place == place && receiver.choice != Choice::Shown
        });
        here.min_by_key(|slot| {
            let receiver = self.get(*slot);
            (Reverse(receiver.priority), receiver.order)
        })
    }

    /// The receivers of an entity, with those that wait for one of its sessions.
    pub(crate) fn receivers_at(&self, entity: EntityId) -> impl Iterator<Item = ReceiverSlot> {
        let all = (entity, ReceiverSlot(0))..=(entity, ReceiverSlot(usize::MAX));
        self.by_entity.range(all).map(|(_, slot)| *slot)
    }

    /// The receivers of a connection.
    pub(crate) fn receivers_of(&self, id: ConnectionId) -> Vec<ReceiverSlot> {
        let connection = self.by_connection.get(&id);
        connection.map_or_else(Vec::new, |&c| self.connections[c].receivers.clone())
    }

    /// Removes a connection whose receivers are detached. Returns where it may hold locks.
    pub(crate) fn disconnect(&mut self, id: ConnectionId) -> BTreeSet<SubqueueId> {
        // A connection that never had a receiver is not known.
        let Some(index) = self.by_connection.remove(&id) else {
            return BTreeSet::new();
        };
        self.vacant_connections.push(index);
        let connection = std::mem::take(&mut self.connections[index]);
        assert!(
            connection.receivers.is_empty(),
            "receivers are detached before their connection goes"
        );
        connection.places
    }

    /// Whether a connection is known: it has a receiver, or asked for a message by number.
    pub(crate) fn is_connected(&self, id: ConnectionId) -> bool {
        self.by_connection.contains_key(&id)
    }

    /// A connection asks for a message by number, so it may hold locks there.
    pub(crate) fn note_place(&mut self, id: ConnectionId, place: SubqueueId) {
        let connection = self.connect(id);
        self.connections[connection].places.insert(place);
    }

    /// Whether a receiver can be given a message now. One that cannot is put aside until it can.
    pub(crate) fn make_ready(&mut self, slot: ReceiverSlot, output_buffer_bytes: usize) -> bool {
        let receiver = self.get(slot);
        if receiver.credit() == 0 {
            self.get_mut(slot).state = ReceiverState::Idle;
            return false;
        }
        let is_ready = self.connections[receiver.connection].unwritten < output_buffer_bytes;
        if !is_ready {
            self.block(slot);
        }
        is_ready
    }

    /// Puts a receiver aside until its connection has written something.
    fn block(&mut self, slot: ReceiverSlot) {
        let receiver = self.get_mut(slot);
        receiver.state = ReceiverState::Blocked;
        let connection = receiver.connection;
        self.connections[connection].blocked.push(slot);
    }

    /// Counts one delivery of `bytes` bytes.
    pub(crate) fn count_delivery(&mut self, slot: ReceiverSlot, bytes: usize) {
        let receiver = self.get_mut(slot);
        assert!(
            receiver.credit() > 0,
            "a receiver is given no more than its credit"
        );
        receiver.delivered = receiver.delivered.wrapping_add(1);
        let connection = receiver.connection;
        let connection = &mut self.connections[connection];
        connection.unwritten = connection.unwritten.saturating_add(bytes);
    }

    /// A connection has written so much. Returns the receivers that are blocked no more.
    pub(crate) fn written(
        &mut self,
        id: ConnectionId,
        bytes: usize,
        output_buffer_bytes: usize,
    ) -> Vec<ReceiverSlot> {
        // A connection may have gone before it is known how much it wrote.
        let Some(&index) = self.by_connection.get(&id) else {
            return Vec::new();
        };
        let connection = &mut self.connections[index];
        connection.unwritten = connection.unwritten.saturating_sub(bytes);
        if connection.unwritten < output_buffer_bytes {
            std::mem::take(&mut connection.blocked)
        } else {
            Vec::new()
        }
    }

    /// The connection's place in memory, made if need be.
    fn connect(&mut self, id: ConnectionId) -> usize {
        if let Some(&index) = self.by_connection.get(&id) {
            return index;
        }
        let index = self.vacant_connections.pop().unwrap_or_else(|| {
            self.connections.push(Connection::default());
            self.connections.len() - 1
        });
        self.by_connection.insert(id, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::id::Subqueue;

    fn receiver(delivered: u32, limit: u32) -> Receiver {
        Receiver {
            id: ReceiverId {
                connection: ConnectionId(1),
                link: 0,
            },
            place: SubqueueId {
                entity: EntityId(1),
                subqueue: Subqueue::Main,
            },
            mode: ReceiveMode::PeekLock,
            choice: Choice::Next,
            draining: false,
            state: ReceiverState::Idle,
            session_role: SessionRole::None,
            priority: 0,
            consumer_timeout: None,
            hears_activity: false,
            order: 0,
            connection: 0,
            delivered,
            limit,
        }
    }

    #[test]
    fn credit_is_counted_by_serial_numbers() {
        assert_eq!(receiver(0, 0).credit(), 0);
        assert_eq!(receiver(3, 10).credit(), 7);
        assert_eq!(receiver(u32::MAX - 1, 2).credit(), 4);
        assert_eq!(receiver(10, 3).credit(), 0);
        assert_eq!(receiver(2, u32::MAX - 1).credit(), 0);
    }

    #[test]
    fn a_drain_uses_up_what_is_left_and_takes_nothing_back() {
        let mut left = receiver(3, 10);
        left.finish_drain();
        assert_eq!(left.delivered, 10);
        let mut passed = receiver(10, 3);
        passed.finish_drain();
        assert_eq!(passed.delivered, 10);
    }
}

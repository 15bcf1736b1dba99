//! Clients: which receivers the shard was told of, and what they are willing to take.

use std::collections::{BTreeMap, BTreeSet};

use broker::{Command, ConnectionId, ReceiverId, Subqueue, SubqueueId};
use store::EntityId;

/// Where a receiver takes its messages from.
pub(super) type Source = (EntityId, Subqueue);

#[derive(Debug)]
struct Receiver {
    source: Source,
    limit: u32,
    delivered: u32,
    /// The limit up to which a drain has been asked for and not answered.
    draining: Option<u32>,
}

impl Receiver {
    fn credit(&self) -> u32 {
        let credit = self.limit.wrapping_sub(self.delivered);
        if credit > i32::MAX as u32 { 0 } else { credit }
    }
}

/// Receivers and connections, as the shard was told of them.
#[derive(Debug, Default)]
pub(super) struct Clients {
    receivers: BTreeMap<ReceiverId, Receiver>,
    /// Bytes that were said to a connection and that it has not written.
    unwritten: BTreeMap<ConnectionId, usize>,
    gone: BTreeSet<ConnectionId>,
    /// Of those, which were there for one request only, so that their locks stay.
    left: BTreeSet<ConnectionId>,
    /// Where each receiver that ever was takes from, or took.
    ever: BTreeMap<ReceiverId, Source>,
}

impl Clients {
    pub(super) fn observe(&mut self, command: &Command) {
        match command {
            Command::Attach {
                receiver,
                subqueue: SubqueueId { entity, subqueue },
                ..
            } => self.attach(*receiver, (*entity, *subqueue)),
            Command::Credit {
                receiver,
                limit,
                drain,
            } => {
                if let Some(receiver) = self.receivers.get_mut(receiver) {
                    receiver.limit = *limit;
                    receiver.draining = drain.then_some(*limit);
                }
            }
            Command::AcceptSession {
                receiver, entity, ..
            } => self.attach(*receiver, (*entity, Subqueue::Main)),
            Command::Detach { receiver } | Command::LoseReceiver { receiver } => {
                self.leave(*receiver);
            }
            Command::Written { connection, bytes } => {
                if let Some(unwritten) = self.unwritten.get_mut(connection) {
                    *unwritten = unwritten.saturating_sub(*bytes);
                }
            }
            Command::Disconnect { connection } => self.disconnect(*connection),
            Command::Leave { connection } => {
                self.left.insert(*connection);
                self.disconnect(*connection);
            }
            _ => {}
        }
    }

    fn attach(&mut self, id: ReceiverId, source: Source) {
        let receiver = Receiver {
            source,
            limit: 0,
            delivered: 0,
            draining: None,
        };
        self.ever.insert(id, source);
        self.receivers.insert(id, receiver);
    }

    /// A receiver is gone.
    pub(super) fn leave(&mut self, receiver: ReceiverId) {
        self.receivers.remove(&receiver);
    }

    fn disconnect(&mut self, connection: ConnectionId) {
        self.receivers.retain(|id, _| id.connection != connection);
        self.unwritten.remove(&connection);
        self.gone.insert(connection);
    }

    /// Whether the shard was told that a connection is gone.
    pub(super) fn is_gone(&self, connection: ConnectionId) -> bool {
        self.gone.contains(&connection)
    }

    /// Whether the shard was told that a connection is lost, not that it has left.
    pub(super) fn is_lost(&self, connection: ConnectionId) -> bool {
        self.is_gone(connection) && !self.left.contains(&connection)
    }

    /// Where a receiver takes its messages from.
    pub(super) fn source(&self, receiver: ReceiverId) -> Option<Source> {
        Some(self.receivers.get(&receiver)?.source)
    }

    /// Where a receiver that may have left took its messages from.
    pub(super) fn source_ever(&self, receiver: ReceiverId) -> Option<Source> {
        self.ever.get(&receiver).copied()
    }

    /// A receiver is given a delivery.
    pub(super) fn given(&mut self, id: ReceiverId, bytes: usize) {
        if let Some(receiver) = self.receivers.get_mut(&id) {
            receiver.delivered = receiver.delivered.wrapping_add(1);
        }
        if !self.is_gone(id.connection) {
            *self.unwritten.entry(id.connection).or_default() += bytes;
        }
    }

    /// A delivery did not reach its receiver.
    pub(super) fn return_credit(&mut self, id: ReceiverId) {
        if let Some(receiver) = self.receivers.get_mut(&id) {
            receiver.delivered = receiver.delivered.wrapping_sub(1);
        }
    }

    /// A drain was answered: what credit there was is used up.
    pub(super) fn drained(&mut self, id: ReceiverId) {
        if let Some(receiver) = self.receivers.get_mut(&id)
            && let Some(limit) = receiver.draining.take()
            && receiver.credit() > 0
        {
            receiver.delivered = limit;
        }
    }

    /// Everything said to it was written, so that nothing else holds deliveries back.
    fn has_written(&self, connection: ConnectionId) -> bool {
        self.unwritten
            .get(&connection)
            .is_none_or(|unwritten| *unwritten == 0)
    }

    /// Whether a receiver would be given what there is.
    pub(super) fn wants(&self, id: ReceiverId) -> bool {
        let receiver = self.receivers.get(&id);
        receiver.is_some_and(|receiver| receiver.credit() > 0) && self.has_written(id.connection)
    }

    /// From where messages are wanted by receivers that would be given them.
    pub(super) fn wanted(&self) -> BTreeSet<Source> {
        let wanting = self
            .receivers
            .iter()
            .filter(|(id, receiver)| receiver.credit() > 0 && self.has_written(id.connection));
        wanting.map(|(_, receiver)| receiver.source).collect()
    }

    /// Drains that have not been answered although nothing is held back.
    pub(super) fn draining(&self) -> impl Iterator<Item = (ReceiverId, Source)> {
        let draining = self.receivers.iter().filter(|(id, receiver)| {
            receiver.draining.is_some() && self.has_written(id.connection)
        });
        draining.map(|(id, receiver)| (*id, receiver.source))
    }
}

//! Nodes: users of dynamic nodes, beside the clients of what the store keeps.
//!
//! Two users make nodes, send to any of them, lock what comes and settle it, close their links and
//! go. The broker hears them with all others; the ledger does not, since it is about what a store
//! keeps, and its books refuse a write about a node (I9). The rest is checked here: a message comes
//! out of the node that it was sent to, as it was sent (I12), in order (I4), to one holder at a
//! time (I3) and not after its completion was answered (I2); none is missing at the end (I1), every
//! request is answered (I14), and what its policy ends is gone. Of a broker that has died nothing
//! is left, and no link leads to it.

mod actions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Access, Command, ConnectionId, Delivery, LifetimePolicy, LockToken, Mono, Node, NodeError,
    NodeLinkId, Outcome, Output, ReceiveMode, ReceiverId, RequestId, SendError, Subqueue,
    SubqueueId,
};
use bytes::Bytes;
use store::{EntityId, SequenceNumber};

use crate::message::{self, MessageId};
use crate::violation::Violation;

const USERS: usize = 2;

/// A node that is there, for all that is known.
#[derive(Clone, Copy, Debug)]
struct Known {
    node: Node,
    lifetime: LifetimePolicy,
}

/// A message that was sent.
#[derive(Debug)]
struct Sent {
    to: EntityId,
    payload: Bytes,
}

/// A message that a receiver has.
#[derive(Clone, Copy, Debug)]
struct Held {
    receiver: ReceiverId,
    from: EntityId,
    id: MessageId,
}

/// A message in the queue, or the subscription, that it comes out of.
type Place = (EntityId, MessageId);

#[derive(Debug)]
enum Asked {
    Send(MessageId),
    Settle { place: Place, completes: bool },
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// What the broker is to hear next.
    pub commands: Vec<Command>,
    users: [Option<ConnectionId>; USERS],
    ever: BTreeSet<ConnectionId>,
    count: u64,
    there: Vec<Known>,
    /// Links that are there or were, and what they receive from.
    sources: BTreeMap<NodeLinkId, EntityId>,
    open: BTreeSet<NodeLinkId>,
    /// The topic of a subscription.
    topics: BTreeMap<EntityId, EntityId>,
    making: BTreeMap<NodeLinkId, LifetimePolicy>,
    joining: BTreeMap<NodeLinkId, EntityId>,
    sent: BTreeMap<MessageId, Sent>,
    accepted: BTreeSet<MessageId>,
    asked: BTreeMap<RequestId, Asked>,
    held: BTreeMap<LockToken, Held>,
    /// Until when at least no other receiver can have a message.
    locked: BTreeMap<Place, Mono>,
    completed: BTreeSet<Place>,
    delivered: BTreeSet<Place>,
    /// The newest of them since a user left, which may have lost deliveries.
    first: BTreeMap<EntityId, SequenceNumber>,
}

impl Nodes {
    /// The broker is another one now, which has no nodes.
    pub(super) fn crashed(&mut self) {
        *self = Self {
            ever: std::mem::take(&mut self.ever),
            count: self.count,
            ..Self::default()
        };
    }

    /// Whether what is said to a connection is for a user of nodes.
    pub(super) fn is_user(&self, connection: ConnectionId) -> bool {
        self.ever.contains(&connection)
    }

    fn next_link(&mut self, connection: ConnectionId) -> NodeLinkId {
        self.count += 1;
        let link = u32::try_from(self.count).expect("a run is not that long");
        NodeLinkId { connection, link }
    }

    fn next_request(&mut self, connection: ConnectionId, asked: Asked) -> RequestId {
        self.count += 1;
        let token = self.count;
        let request = RequestId { connection, token };
        self.asked.insert(request, asked);
        request
    }

    fn receive(&mut self, link: NodeLinkId, entity: EntityId) {
        let receiver = receiver_of(link);
        self.open.insert(link);
        self.sources.insert(link, entity);
        self.commands.push(Command::Attach {
            receiver,
            subqueue: main(entity),
            access: Access::Consume(ReceiveMode::PeekLock),
            selector: None,
        });
        self.commands.push(Command::Credit {
            receiver,
            limit: 1_000,
            drain: false,
        });
    }

    fn settle(&mut self, token: LockToken, held: Held, outcome: Outcome) {
        let place = (held.from, held.id);
        let completes = matches!(outcome, Outcome::Complete);
        if !completes {
            self.locked.remove(&place);
        }
        let asked = Asked::Settle { place, completes };
        let request = self.next_request(held.receiver.connection, asked);
        self.commands.push(Command::Settle {
            request: Some(request),
            session: None,
            subqueue: main(held.from),
            token,
            outcome,
        });
    }

    fn close(&mut self, link: NodeLinkId) {
        self.open.remove(&link);
        let receiver = receiver_of(link);
        self.held.retain(|_, held| held.receiver != receiver);
        self.commands.push(Command::Detach { receiver });
        self.commands.push(Command::CloseNode { link });
    }

    fn leave(&mut self, user: usize) {
        let Some(connection) = self.users[user].take() else {
            return;
        };
        self.open.retain(|link| link.connection != connection);
        self.held
            .retain(|_, held| held.receiver.connection != connection);
        // Whose they were may be free from now on.
        self.locked.clear();
        self.first.clear();
        self.commands.push(Command::Disconnect { connection });
    }

    /// How many messages may be left in a queue: what a user asked for and left before the answer
    /// may have happened or not.
    fn left_in(&self, queue: EntityId) -> (u64, u64) {
        let is_there =
            |id: &MessageId| self.sent[id].to == queue && !self.completed.contains(&(queue, *id));
        let known = self.accepted.iter().filter(|id| is_there(id)).count() as u64;
        let unheard = |completions: bool| {
            let asked = self.asked.values();
            let asked = asked.filter(|asked| match asked {
                Asked::Send(id) => !completions && is_there(id),
                Asked::Settle { place, completes } => {
                    completions && *completes && place.0 == queue && is_there(&place.1)
                }
            });
            asked.count() as u64
        };
        (known.saturating_sub(unheard(true)), known + unheard(false))
    }

    /// The broker tells a user what it decided after `last_quiet`.
    ///
    /// # Errors
    /// I2, I3, I4 or I12.
    pub(super) fn handle_output(
        &mut self,
        output: Output,
        now: Mono,
        last_quiet: Mono,
    ) -> Result<(), Violation> {
        match output {
            Output::NodeOpened { link, result } => self.opened(link, result),
            Output::NodeClosed { link } => {
                let (making, joining) = (self.making.remove(&link), self.joining.remove(&link));
                let is_known = making.is_some() || joining.is_some() || self.open.remove(&link);
                if is_known && let Some(entity) = self.sources.get(&link) {
                    let topic = self.topics.get(entity).copied();
                    let gone = topic.unwrap_or(*entity);
                    self.there.retain(|known| known.node.entity != gone);
                }
            }
            Output::Deliver { receiver, delivery } => {
                self.delivered(receiver, &delivery, now, last_quiet)?;
            }
            Output::Sent {
                request, result, ..
            } => {
                if let Some(Asked::Send(id)) = self.asked.remove(&request) {
                    match result {
                        Ok(_) => drop(self.accepted.insert(id)),
                        Err(SendError::NotFound) => {
                            let to = self.sent[&id].to;
                            self.there.retain(|known| known.node.entity != to);
                        }
                        Err(_) => {}
                    }
                }
            }
            Output::Settled { request, result } => {
                if let Some(Asked::Settle { place, completes }) = self.asked.remove(&request) {
                    self.locked.remove(&place);
                    if completes && result.is_ok() {
                        self.completed.insert(place);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, link: NodeLinkId, result: Result<Node, NodeError>) {
        let made = self.making.remove(&link);
        let joined = self.joining.remove(&link);
        let Ok(node) = result else {
            if let Some(entity) = joined.filter(|_| result == Err(NodeError::NotFound)) {
                self.there.retain(|known| known.node.entity != entity);
            }
            return;
        };
        if !self.users.contains(&Some(link.connection)) {
            return;
        }
        if let Some(lifetime) = made {
            self.open.insert(link);
            self.sources.insert(link, node.entity);
            self.there.push(Known { node, lifetime });
        } else if let Some(topic) = joined {
            if topic != node.entity {
                self.topics.insert(node.entity, topic);
            }
            self.receive(link, node.entity);
        }
    }

    fn delivered(
        &mut self,
        receiver: ReceiverId,
        delivery: &Delivery,
        now: Mono,
        last_quiet: Mono,
    ) -> Result<(), Violation> {
        let connection = receiver.connection;
        let bytes = delivery.size();
        self.commands.push(Command::Written { connection, bytes });
        let link = NodeLinkId {
            connection,
            link: receiver.link,
        };
        let from = delivery.message.entity;
        let id = message::id_of(&delivery.message.payload).unwrap_or_default();
        let to = self.topics.get(&from).copied().unwrap_or(from);
        let sent = self.sent.get(&id);
        let is_right = sent.is_some_and(|it| it.to == to && it.payload == delivery.message.payload);
        if !is_right || self.sources.get(&link) != Some(&from) {
            let what = format!("message {id} of {sent:?} comes out of the node {from:?}");
            return Err(Violation::new("I12", what));
        }
        let place = (from, id);
        if self.completed.contains(&place) {
            let what = format!("message {id} of the node {from:?} was completed");
            return Err(Violation::new("I2", what));
        }
        if self.locked.get(&place).is_some_and(|until| *until > now) {
            let what = format!("message {id} of the node {from:?} has another holder");
            return Err(Violation::new("I3", what));
        }
        let number = delivery.message.number;
        let newest = self.first.entry(from).or_insert(number);
        if self.delivered.insert(place) && number < *newest {
            let what = format!("message {id} of the node {from:?} comes after {newest}");
            return Err(Violation::new("I4", what));
        }
        *newest = number.max(*newest);
        if !self.users.contains(&Some(connection)) {
            return Ok(());
        }
        // A lock lasts from the decision on, however long the delivery waited for the disk.
        let until = Mono(last_quiet.0 + delivery.lock_ms().unwrap_or(0));
        self.locked.insert(place, until);
        if self.open.contains(&link) {
            self.held
                .insert(delivery.token, Held { receiver, from, id });
        }
        Ok(())
    }
}

fn receiver_of(link: NodeLinkId) -> ReceiverId {
    ReceiverId {
        connection: link.connection,
        link: link.link,
    }
}

fn main(entity: EntityId) -> SubqueueId {
    SubqueueId {
        entity,
        subqueue: Subqueue::Main,
    }
}

//! Dynamic nodes of a connection: those that it made, and the links that use one.
//! (docs/spec/amqp.md#3.7, #3.8)
//!
//! A link that made a node and was detached without being closed keeps it until its session ends.
//! The right of the connection that made a node lasts as long as the connection.
//! Invariant: the broker has a link of a node exactly as long as it is here.

use std::collections::{BTreeMap, VecDeque};

use broker::{LifetimePolicy, Subqueue};
use endpoint::{LinkId, SessionId};
use store::EntityId;

use crate::attach::pending_attach::AttachRequest;
use crate::attach::receiver_source::ReceiverSource;

/// How many of the nodes that a connection has made are remembered as its own, the last ones. It is
/// more than a connection can have at a time by default.
const REMEMBERED: usize = 4_096;

/// A link that uses a node.
#[derive(Debug)]
struct NodeUser {
    session: SessionId,
    is_maker: bool,
}

/// What a link waits for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// A node of its own.
    New(LifetimePolicy),
    /// One that is there, or a subqueue of it.
    Existing(EntityId, Subqueue),
}

/// An attach that waits for its node.
#[derive(Debug)]
pub(crate) struct PendingNode {
    pub(crate) request: AttachRequest,
    pub(crate) wanted: Wanted,
    /// What a receiver wants of it.
    pub(crate) receiver_source: Option<ReceiverSource>,
}

/// The nodes of a connection.
#[derive(Debug, Default)]
pub(crate) struct DynamicNodes {
    pub(crate) pending: BTreeMap<LinkId, Box<PendingNode>>,
    users: BTreeMap<LinkId, NodeUser>,
    /// Those that the connection has made, some of which are gone. Their ids come but once.
    made: VecDeque<EntityId>,
}

impl DynamicNodes {
    /// A link uses a node from now on.
    pub(crate) fn join(&mut self, link: LinkId, pending: &PendingNode, node: EntityId) {
        let is_maker = matches!(pending.wanted, Wanted::New(_));
        let user = NodeUser {
            session: pending.request.session,
            is_maker,
        };
        self.users.insert(link, user);
        if is_maker {
            if self.made.len() == REMEMBERED {
                self.made.pop_front();
            }
            self.made.push_back(node);
        }
    }

    /// Whether this connection made a node.
    pub(crate) fn is_own(&self, node: EntityId) -> bool {
        self.made.contains(&node)
    }

    /// A link is detached, or `over`. Returns whether it uses its node no more.
    pub(crate) fn leave(&mut self, link: LinkId, over: bool) -> bool {
        match self.users.get(&link) {
            Some(user) if over || !user.is_maker => self.users.remove(&link).is_some(),
            Some(_) | None => false,
        }
    }

    /// A session is over. Returns its links that used a node.
    pub(crate) fn ended(&mut self, session: SessionId) -> Vec<LinkId> {
        let ended = self.users.extract_if(.., |_, user| user.session == session);
        ended.map(|(link, _)| link).collect()
    }
}

//! Nodes: the dynamic nodes of a broker, the connections that made them, and the links in use.
//!
//! Invariant: a link is in the list of the node that it uses, and of no other.

use std::collections::{BTreeMap, BTreeSet};

use store::EntityId;

use crate::api::id::ConnectionId;
use crate::api::node::{LifetimePolicy, NodeLinkId};

/// One node: a queue, a topic, or the subscription that a receiver of such a topic has.
#[derive(Debug)]
pub(crate) struct DynamicNode {
    /// The link that made it, until that is closed.
    pub maker: Option<NodeLinkId>,
    /// The connection that made it.
    pub connection: ConnectionId,
    pub lifetime: LifetimePolicy,
    pub exclusive: bool,
    pub links: BTreeSet<NodeLinkId>,
}

impl DynamicNode {
    /// Whether it goes, when it has messages or not.
    pub(crate) fn is_over(&self, has_messages: bool) -> bool {
        match self.lifetime {
            LifetimePolicy::DeleteOnClose => self.maker.is_none(),
            LifetimePolicy::DeleteOnNoLinks => self.links.is_empty(),
            LifetimePolicy::DeleteOnNoMessages => self.maker.is_none() && !has_messages,
            LifetimePolicy::DeleteOnNoLinksOrMessages => self.links.is_empty() && !has_messages,
        }
    }

    /// Whether it may go because its last message has.
    pub(crate) fn waits_for_messages(&self) -> bool {
        self.is_over(false)
    }
}

/// All nodes of a broker.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    nodes: BTreeMap<EntityId, DynamicNode>,
    by_link: BTreeMap<NodeLinkId, EntityId>,
    made: BTreeMap<ConnectionId, usize>,
}

impl Nodes {
    /// How many nodes are there that a connection made.
    pub(crate) fn made_by(&self, connection: ConnectionId) -> usize {
        self.made.get(&connection).copied().unwrap_or(0)
    }

    /// The nodes that only a connection receives from and that outlive their links.
    pub(crate) fn exclusive_of(&self, connection: ConnectionId) -> Vec<EntityId> {
        if self.made_by(connection) == 0 {
            return Vec::new();
        }
        let nodes = self.nodes.iter();
        let exclusive = nodes.filter(|(_, node)| {
            node.exclusive
                && node.connection == connection
                && matches!(
                    node.lifetime,
                    LifetimePolicy::DeleteOnNoMessages | LifetimePolicy::DeleteOnNoLinksOrMessages
                )
        });
        exclusive.map(|(id, _)| *id).collect()
    }

    pub(crate) fn get(&self, node: EntityId) -> Option<&DynamicNode> {
        self.nodes.get(&node)
    }

    /// A link makes a node.
    pub(crate) fn insert(&mut self, id: EntityId, node: DynamicNode) {
        *self.made.entry(node.connection).or_default() += 1;
        let links = node.links.iter();
        self.by_link.extend(links.map(|link| (*link, id)));
        self.nodes.insert(id, node);
    }

    /// A link uses a node that is there.
    pub(crate) fn join(&mut self, id: EntityId, link: NodeLinkId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.links.insert(link);
            self.by_link.insert(link, id);
        }
    }

    /// A link is closed. Returns what it used.
    pub(crate) fn leave(&mut self, link: NodeLinkId) -> Option<EntityId> {
        let id = self.by_link.remove(&link)?;
        let node = self.nodes.get_mut(&id)?;
        node.links.remove(&link);
        if node.maker == Some(link) {
            node.maker = None;
        }
        Some(id)
    }

    /// A node is gone. Returns the links that used it, which use nothing any more.
    pub(crate) fn remove(&mut self, id: EntityId) -> BTreeSet<NodeLinkId> {
        let Some(node) = self.nodes.remove(&id) else {
            return BTreeSet::new();
        };
        if let Some(made) = self.made.get_mut(&node.connection) {
            *made -= 1;
            if *made == 0 {
                self.made.remove(&node.connection);
            }
        }
        for link in &node.links {
            self.by_link.remove(link);
        }
        node.links
    }

    /// The links of a connection, in the order of their numbers.
    pub(crate) fn links_of(&self, connection: ConnectionId) -> Vec<NodeLinkId> {
        let link = |link| NodeLinkId { connection, link };
        let links = self.by_link.range(link(0)..=link(u32::MAX));
        links.map(|(link, _)| *link).collect()
    }
}

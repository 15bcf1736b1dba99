//! Dynamic nodes: entities that a link makes and that go by their lifetime policy.
//! [AMQP 3.5.3, 3.5.10-13] (docs/spec/amqp.md#3.7)
//!
//! A node is a queue or a topic like any other, except that it lives in memory
//! (`context/volatile.rs`) and no client can guess its address. The broker knows
//! every link that uses a node. A receiver of a topic has a subscription of its own there, which
//! goes with the receiver's link. Links of a node that goes are told so.

pub(crate) mod nodes;

use std::collections::BTreeSet;
use std::sync::Arc;

use store::{EntityId, NamespaceId, Part};

use crate::api::id::ConnectionId;
use crate::api::name::SUBSCRIPTIONS;
use crate::api::node::{
    self, LifetimePolicy, Node, NodeError, NodeKind, NodeLinkId, NodeRequest, NodeUse,
};
use crate::api::output::Output;
use crate::api::rule::RuleDescription;
use crate::api::settings::QueueSettings;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::entities::remove;
use crate::node::nodes::DynamicNode;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::queue::subscription::Subscription;
use crate::topic::Topic;

/// A link asks for a node of its own.
pub(crate) fn create(
    directory: &mut Directory,
    link: NodeLinkId,
    namespace: NamespaceId,
    request: NodeRequest,
    cx: &mut Context<'_>,
) {
    // A link that attaches again starts anew.
    close(directory, link, cx);
    let admitted = check_tier(request.kind, cx).and_then(|()| check_room(link.connection, cx));
    let result = admitted.map(|()| {
        let kind = match request.kind {
            NodeKind::Queue => Kind::Queue,
            NodeKind::Topic => Kind::Topic(Topic::default()),
        };
        let seen = kind.seen();
        let entity = free_id(directory, cx);
        let path = node::node_path(entity);
        add(directory, entity, namespace, path, kind, cx);
        let node = DynamicNode {
            maker: Some(link),
            connection: link.connection,
            lifetime: request.lifetime,
            exclusive: request.exclusive,
            links: BTreeSet::from([link]),
        };
        cx.shared.nodes.insert(entity, node);
        Node { entity, kind: seen }
    });
    cx.emit(Output::NodeOpened { link, result });
}

/// A link is to use a node.
pub(crate) fn open(
    directory: &mut Directory,
    link: NodeLinkId,
    namespace: NamespaceId,
    entity: EntityId,
    used: NodeUse,
    cx: &mut Context<'_>,
) {
    close(directory, link, cx);
    let queue = directory.get(entity);
    let result = match queue.is_some_and(|queue| queue.namespace == namespace) {
        true => join(directory, link, entity, used, cx),
        false => Err(NodeError::NotFound),
    };
    cx.emit(Output::NodeOpened { link, result });
}

fn join(
    directory: &mut Directory,
    link: NodeLinkId,
    entity: EntityId,
    used: NodeUse,
    cx: &mut Context<'_>,
) -> Result<Node, NodeError> {
    let node = cx.shared.nodes.get(entity).ok_or(NodeError::NotFound)?;
    let queue = directory.get(entity).ok_or(NodeError::NotFound)?;
    let kind = queue.kind.seen();
    match (used, &queue.kind) {
        // The address of a topic leads to its subscriptions; they have none that clients know.
        (_, Kind::Subscription(_) | Kind::Transfer { .. }) => return Err(NodeError::NotFound),
        (NodeUse::Receive, _) if node.exclusive && node.connection != link.connection => {
            return Err(NodeError::Exclusive);
        }
        (NodeUse::Receive, Kind::Topic(_)) => return subscribe(directory, link, entity, cx),
        (NodeUse::Receive, Kind::Queue) | (NodeUse::Send, _) => {}
    }
    cx.shared.nodes.join(entity, link);
    Ok(Node { entity, kind })
}

/// A receiver of a topic gets a subscription that goes with its link.
fn subscribe(
    directory: &mut Directory,
    link: NodeLinkId,
    topic: EntityId,
    cx: &mut Context<'_>,
) -> Result<Node, NodeError> {
    check_room(link.connection, cx)?;
    let default = vec![RuleDescription::default_rule()];
    let rules = directory.check_rules(topic, default);
    let limit = cx.shared.settings.nodes_per_connection;
    let rules = rules.map_err(|_| NodeError::TooMany { limit })?;
    let of_topic = directory.get(topic).ok_or(NodeError::NotFound)?;
    let namespace = of_topic.namespace;
    let entity = free_id(directory, cx);
    let token = node::node_token(entity);
    let path = format!("{}{SUBSCRIPTIONS}{token}", node::node_path(topic));
    let kind = Kind::Subscription(Box::new(Subscription {
        topic,
        client_affine: None,
        dead_lettering_on_filter_evaluation_exceptions: true,
    }));
    let seen = kind.seen();
    add(directory, entity, namespace, path, kind, cx);
    for rule in rules {
        directory.put_rule(entity, rule, cx);
    }
    let node = DynamicNode {
        maker: Some(link),
        connection: link.connection,
        lifetime: LifetimePolicy::DeleteOnClose,
        exclusive: true,
        links: BTreeSet::from([link]),
    };
    cx.shared.nodes.insert(entity, node);
    Ok(Node { entity, kind: seen })
}

fn check_tier(kind: NodeKind, cx: &Context<'_>) -> Result<(), NodeError> {
    match kind {
        NodeKind::Topic if !cx.shared.settings.tier.has_topics() => {
            Err(NodeError::NotInTier("topics"))
        }
        NodeKind::Topic | NodeKind::Queue => Ok(()),
    }
}

fn check_room(connection: ConnectionId, cx: &Context<'_>) -> Result<(), NodeError> {
    let limit = cx.shared.settings.nodes_per_connection;
    if cx.shared.nodes.made_by(connection) >= limit {
        return Err(NodeError::TooMany { limit });
    }
    let limit = cx.shared.settings.node_bytes;
    if cx.shared.volatile.bytes() >= limit {
        return Err(NodeError::OutOfMemory { limit });
    }
    Ok(())
}

/// An id that no client can guess.
fn free_id(directory: &Directory, cx: &mut Context<'_>) -> EntityId {
    loop {
        let id = EntityId::volatile(cx.shared.tokens.next_node());
        if directory.get(id).is_none() {
            return id;
        }
    }
}

fn add(
    directory: &mut Directory,
    entity: EntityId,
    namespace: NamespaceId,
    path: String,
    kind: Kind,
    cx: &mut Context<'_>,
) {
    let settings = QueueSettings::default();
    directory.add(entity, namespace, path, kind, settings, Arc::default(), cx);
    cx.shared.volatile.add_entity();
}

/// A link is closed, or goes with its session.
pub(crate) fn close(directory: &mut Directory, link: NodeLinkId, cx: &mut Context<'_>) {
    let Some(entity) = cx.shared.nodes.leave(link) else {
        return;
    };
    let topic = directory.get(entity).and_then(|queue| queue.kind.topic());
    end_if_over(directory, entity, cx);
    if let Some(topic) = topic {
        end_if_over(directory, topic, cx);
    }
}

/// A connection is gone, and all its links with it.
pub(crate) fn close_all(directory: &mut Directory, connection: ConnectionId, cx: &mut Context<'_>) {
    // No other connection could ever empty them.
    for node in cx.shared.nodes.exclusive_of(connection) {
        end(directory, node, cx);
    }
    for link in cx.shared.nodes.links_of(connection) {
        close(directory, link, cx);
    }
}

/// Ends nodes that have lost their last message in this turn and waited for that.
pub(crate) fn end_touched(directory: &mut Directory, cx: &mut Context<'_>) {
    let touched = cx.shared.touched.iter().copied();
    let touched: Vec<_> = touched.filter(|entity| entity.is_volatile()).collect();
    for entity in touched {
        let queue = directory.get(entity);
        let topic = queue.and_then(|queue| queue.kind.topic());
        let node = topic.unwrap_or(entity);
        let waits = cx.shared.nodes.get(node);
        if waits.is_some_and(DynamicNode::waits_for_messages) {
            end_if_over(directory, node, cx);
        }
    }
}

fn end_if_over(directory: &mut Directory, entity: EntityId, cx: &mut Context<'_>) {
    // Both go at once; a node that has just ended is not there any more.
    let node = cx.shared.nodes.get(entity);
    let Some((node, queue)) = node.zip(directory.get(entity)) else {
        return;
    };
    let below = below(queue);
    // The subscriptions of a topic are there by links that use the topic.
    let used_below = node.lifetime == LifetimePolicy::DeleteOnNoLinks
        || node.lifetime == LifetimePolicy::DeleteOnNoLinksOrMessages;
    if used_below && !below.is_empty() {
        return;
    }
    let has_messages = |id: &EntityId| {
        let queue = directory.get(*id);
        queue.is_some_and(|queue| Part::ALL.iter().any(|part| queue.rows.count(*part) > 0))
    };
    if !node.is_over(has_messages(&entity) || below.iter().any(has_messages)) {
        return;
    }
    end(directory, entity, cx);
}

/// The subscriptions of a topic.
fn below(queue: &Queue) -> BTreeSet<EntityId> {
    match &queue.kind {
        Kind::Topic(topic) => topic.subscriptions.clone(),
        Kind::Queue | Kind::Subscription(_) | Kind::Transfer { .. } => BTreeSet::new(),
    }
}

/// A node ends, and a topic's subscriptions with it.
fn end(directory: &mut Directory, node: EntityId, cx: &mut Context<'_>) {
    let below = directory.get(node).map(below).unwrap_or_default();
    for id in below.iter().chain([&node]) {
        for link in cx.shared.nodes.remove(*id) {
            cx.emit(Output::NodeClosed { link });
        }
    }
    remove::end(directory, node, cx);
}

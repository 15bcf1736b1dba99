//! Inquiries: an administrator reads entities and rules.
//!
//! Answers are as of the moment of the order, counts included, and lists are in the order of paths,
//! by pages. Nothing changes by them.

use std::sync::Arc;

use store::{EntityId, NamespaceId};

use crate::api::entity_error::EntityError;
use crate::api::info::{Below, EntityInfo, QueueInfo};
use crate::api::kind::EntityKind;
use crate::api::name::SUBSCRIPTIONS;
use crate::api::order::{Answer, Listing, NamespaceInfo};
use crate::api::page::Page;
use crate::api::time::Wall;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::queue::info::info as queue_info;
use crate::queue::kind::Kind;

/// The entity of a path.
pub(super) fn describe(
    directory: &Directory,
    namespace: NamespaceId,
    path: &str,
    cx: &Context<'_>,
) -> Result<Answer, EntityError> {
    match directory.find(namespace, path) {
        Some(id) => entity(directory, id, cx),
        None => Err(missing(directory, namespace, path)),
    }
}

/// What is missing where there is nothing: a subscription, or already its topic.
/// (docs/spec/admin.md#8.2)
pub(super) fn missing(directory: &Directory, namespace: NamespaceId, path: &str) -> EntityError {
    let mut segments = path.rsplitn(3, '/').skip(1);
    let below = segments.next().map(str::to_lowercase);
    match segments.next() {
        Some(path) if below.as_deref() == Some("subscriptions") => {
            topic(directory, namespace, path)
                .err()
                .unwrap_or(EntityError::NotFound)
        }
        _ => EntityError::NotFound,
    }
}

/// An entity as it is now.
pub(super) fn entity(
    directory: &Directory,
    id: EntityId,
    cx: &Context<'_>,
) -> Result<Answer, EntityError> {
    let queue = directory.get(id).ok_or(EntityError::NotFound)?;
    Ok(Answer::Entity(Box::new(info(directory, queue, cx))))
}

/// Entities of one kind in the order of their paths.
pub(super) fn list(
    directory: &Directory,
    namespace: NamespaceId,
    of: &Listing,
    skip: usize,
    top: usize,
    cx: &Context<'_>,
) -> Result<Page<EntityInfo>, EntityError> {
    match of {
        Listing::Queues => {
            let all = directory.by_path(namespace, "").map(|(_, queue)| queue);
            let queues = all.filter(|queue| queue.kind.seen() == EntityKind::Queue);
            Ok(page(directory, queues, skip, top, cx))
        }
        Listing::Topics => {
            let all = directory.by_path(namespace, "").map(|(_, queue)| queue);
            let topics = all.filter(|queue| queue.kind.seen() == EntityKind::Topic);
            Ok(page(directory, topics, skip, top, cx))
        }
        Listing::Subscriptions(path) => {
            let topic = topic(directory, namespace, path)?;
            let prefix = format!("{}{SUBSCRIPTIONS}", topic.path).to_lowercase();
            let found = directory.by_path(namespace, &prefix);
            let found = found.take_while(|(path, _)| path.starts_with(&prefix));
            let found = found.map(|(_, queue)| queue);
            let subscriptions = found.filter(|queue| queue.kind.topic() == Some(topic.id));
            Ok(page(directory, subscriptions, skip, top, cx))
        }
    }
}

/// The topic of a path.
pub(super) fn topic<'a>(
    directory: &'a Directory,
    namespace: NamespaceId,
    path: &str,
) -> Result<&'a Queue, EntityError> {
    let found = directory
        .find(namespace, path)
        .and_then(|id| directory.get(id));
    let topic = found.filter(|queue| queue.kind.seen() == EntityKind::Topic);
    topic.ok_or(EntityError::NoTopic)
}

/// The namespace as a whole. What is in it may be older: the data directory was made by an earlier
/// version, or restored from a backup. (docs/spec/entities.md#2.5)
pub(super) fn namespace(
    directory: &Directory,
    namespace: NamespaceId,
    cx: &Context<'_>,
) -> NamespaceInfo {
    let made = match directory.namespaces.get(namespace) {
        Some(named) => Some(named.created),
        None => cx.shared.settings.first_start,
    };
    let entities = || {
        directory
            .by_path(namespace, "")
            .map(|(_, queue)| queue.times)
    };
    // Stores of early versions have no times.
    let is_known = |at: &Wall| at.0 > 0;
    let oldest = entities().map(|times| times.created).filter(is_known).min();
    let created = made.filter(is_known).into_iter().chain(oldest).min();
    let created = created.unwrap_or(cx.now.wall);
    let changed = entities().map(|times| times.updated).filter(is_known).max();
    NamespaceInfo {
        created,
        modified: changed.unwrap_or(created),
        version: directory.version(namespace),
    }
}

fn page<'a>(
    directory: &Directory,
    queues: impl Iterator<Item = &'a Queue>,
    skip: usize,
    top: usize,
    cx: &Context<'_>,
) -> Page<EntityInfo> {
    let mut rest = queues.skip(skip);
    let items = rest
        .by_ref()
        .take(top)
        .map(|queue| info(directory, queue, cx))
        .collect();
    Page {
        items,
        more: rest.next().is_some(),
    }
}

/// When an entity was used last over AMQP or by requests for messages: a topic also with any of
/// its subscriptions, and a subscription by its creation already. (docs/spec/entities.md#16)
fn accessed(directory: &Directory, queue: &Queue) -> Option<Wall> {
    let own = Some(queue.accessed()).filter(|at| at.0 > 0);
    match &queue.kind {
        Kind::Queue | Kind::Transfer { .. } => own,
        Kind::Subscription(_) => own.max(Some(queue.times.created)),
        Kind::Topic(topic) => {
            let below = topic.subscriptions.iter();
            let below = below.filter_map(|id| directory.get(*id));
            let below = below.map(Queue::accessed).filter(|at| at.0 > 0);
            own.max(below.max())
        }
    }
}

fn info(directory: &Directory, queue: &Queue, cx: &Context<'_>) -> EntityInfo {
    let topic = queue.kind.topic().and_then(|topic| directory.get(topic));
    EntityInfo {
        queue: QueueInfo {
            accessed: accessed(directory, queue),
            ..queue_info(directory, queue, cx.now)
        },
        dead_lettering_on_filter_evaluation_exceptions: match &queue.kind {
            Kind::Subscription(subscription) => {
                subscription.dead_lettering_on_filter_evaluation_exceptions
            }
            Kind::Queue | Kind::Topic(_) | Kind::Transfer { .. } => false,
        },
        client_affine: queue.kind.client_affine().cloned(),
        store_only: Arc::clone(&queue.store_only),
        version: topic.unwrap_or(queue).times.updated,
        below: match &queue.kind {
            Kind::Topic(topic) => Below {
                subscriptions: topic.subscriptions.len(),
                sql_filters: topic.sql_filters(),
                correlation_filters: topic.correlation_filters(),
                bytes: cx.shared.topics.bytes_below(queue.id),
            },
            Kind::Queue | Kind::Subscription(_) | Kind::Transfer { .. } => Below::default(),
        },
    }
}

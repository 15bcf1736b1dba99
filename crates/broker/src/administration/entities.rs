//! Entities made, changed and deleted by order.
//!
//! Everything that can be refused is looked at before anything is made: name, tier, limits,
//! destinations, rules. So an order that is refused has changed nothing.

use std::sync::Arc;

use store::{EntityId, NamespaceId};

use super::inquiry;
use crate::api::client_affine::ClientAffineProperties;
use crate::api::declared::QueueType;
use crate::api::entity_error::EntityError;
use crate::api::kind::EntityKind;
use crate::api::name::{SUBSCRIPTIONS, path_of};
use crate::api::namespace::NamespaceLimits;
use crate::api::order::{Answer, EntityDescription, EntityPath};
use crate::api::rule::RuleDescription;
use crate::api::settings::QueueSettings;
use crate::context::Context;
use crate::entities::change::changed;
use crate::entities::directory::Directory;
use crate::queue::kind::Kind;
use crate::queue::subscription::Subscription;
use crate::receive::run::run;
use crate::topic::Topic;
use crate::topic::command::MAX_SUBSCRIPTIONS;

/// Queues and topics together. (docs/spec/entities.md#4)
const MAX_ENTITIES: usize = 10_000;

/// Makes an entity, and a subscription's rules with it. The subscription may be one that a client
/// makes.
pub(crate) fn make(
    directory: &mut Directory,
    namespace: NamespaceId,
    path: EntityPath,
    description: EntityDescription,
    rules: Option<Vec<RuleDescription>>,
    client_affine: Option<ClientAffineProperties>,
    cx: &mut Context<'_>,
) -> Result<EntityId, EntityError> {
    let mut settings = description.settings;
    let flag = description.dead_lettering_on_filter_evaluation_exceptions;
    let (path, mut kind) = place(directory, namespace, path, flag)?;
    if let Kind::Subscription(subscription) = &mut kind {
        subscription.client_affine = client_affine;
    }
    let tier = cx.shared.settings.tier;
    tier.admit(kind.seen(), &mut settings)?;
    check_free(directory, namespace, &path)?;
    if kind.seen() == EntityKind::Topic {
        check_no_router(directory, namespace, &path)?;
    }
    check_room(directory, namespace, &kind)?;
    check_targets(directory, namespace, &settings, None)?;
    // Everything that can be refused is looked at before anything is made.
    let rules = match kind.topic() {
        Some(topic) => {
            let rules = rules.unwrap_or_else(|| vec![RuleDescription::default_rule()]);
            directory.check_rules(topic, rules)?
        }
        None => Vec::new(),
    };
    let store_only = Arc::new(description.store_only);
    let id = directory.create_with(namespace, path, kind, settings, store_only, cx);
    for rule in rules {
        directory.put_rule(id, rule, cx);
    }
    Ok(id)
}

/// Gives an entity another description.
pub(super) fn update(
    directory: &mut Directory,
    entity: EntityId,
    description: EntityDescription,
    cx: &mut Context<'_>,
) -> Result<Answer, EntityError> {
    let queue = directory.get(entity).ok_or(EntityError::NotFound)?;
    let mut settings = description.settings;
    let tier = cx.shared.settings.tier;
    tier.admit(queue.kind.seen(), &mut settings)?;
    let store_only = &queue.store_only;
    let fixed = fixed_difference(&queue.settings, &settings)
        .or_else(|| store_only.fixed_difference(&description.store_only));
    if let Some(property) = fixed {
        let kind = queue.kind.seen();
        return Err(EntityError::Immutable { property, kind });
    }
    check_targets(directory, queue.namespace, &settings, Some(queue.own()))?;
    directory.describe(entity, settings);
    let queue = directory.get_mut(entity).ok_or(EntityError::NotFound)?;
    queue.store_only = Arc::new(description.store_only);
    if let Kind::Subscription(subscription) = &mut queue.kind {
        subscription.dead_lettering_on_filter_evaluation_exceptions =
            description.dead_lettering_on_filter_evaluation_exceptions;
    }
    changed(directory, entity, cx);
    inquiry::entity(directory, entity, cx)
}

/// A queue is used by its declaration: a classic one's lease begins anew.
/// (docs/spec/rabbitmq.md#12.3)
pub(super) fn renew_lease(
    directory: &mut Directory,
    namespace: NamespaceId,
    path: &str,
    cx: &mut Context<'_>,
) {
    let found = directory.find(namespace, path);
    let queue = found.and_then(|id| directory.get_mut(id));
    if let Some(queue) = queue.filter(|it| it.own().queue_type() == QueueType::Classic) {
        queue.lease.start(cx.now.mono);
        run(queue, cx);
    }
}

/// Deletes an entity with all that is in it.
pub(super) fn remove(
    directory: &mut Directory,
    namespace: NamespaceId,
    path: &str,
    cx: &mut Context<'_>,
) -> Result<Answer, EntityError> {
    let id = directory
        .find(namespace, path)
        .ok_or(EntityError::NotFound)?;
    directory.delete(id, cx);
    Ok(Answer::Done)
}

/// The whole path of what is to be made, and what it will be.
fn place(
    directory: &Directory,
    namespace: NamespaceId,
    path: EntityPath,
    dead_lettering_on_filter_evaluation_exceptions: bool,
) -> Result<(String, Kind), EntityError> {
    match path {
        EntityPath::Queue(path) => Ok((path, Kind::Queue)),
        EntityPath::Topic(path) => Ok((path, Kind::Topic(Topic::default()))),
        EntityPath::Subscription { topic, name } => {
            let topic = inquiry::topic(directory, namespace, &topic)?;
            let path = format!("{}{SUBSCRIPTIONS}{name}", topic.path);
            let subscription = Subscription {
                topic: topic.id,
                client_affine: None,
                dead_lettering_on_filter_evaluation_exceptions,
            };
            Ok((path, Kind::Subscription(Box::new(subscription))))
        }
    }
}

fn check_free(
    directory: &Directory,
    namespace: NamespaceId,
    path: &str,
) -> Result<(), EntityError> {
    let found = directory.find(namespace, path);
    match found.and_then(|id| directory.get(id)) {
        Some(queue) => Err(EntityError::Exists(queue.kind.seen())),
        None => Ok(()),
    }
}

/// Publishers find a topic by the address of an exchange, so a name is that of one of them.
/// (docs/spec/rabbitmq.md#8.2)
pub(super) fn check_no_router(
    directory: &Directory,
    namespace: NamespaceId,
    topic: &str,
) -> Result<(), EntityError> {
    match directory.routers.has_name_like(namespace, topic) {
        true => Err(EntityError::ExchangeExists(topic.to_owned())),
        false => Ok(()),
    }
}

/// (docs/spec/entities.md#4)
fn check_room(
    directory: &Directory,
    namespace: NamespaceId,
    kind: &Kind,
) -> Result<(), EntityError> {
    let Some(topic) = kind.topic() else {
        let all = directory.by_path(namespace, "").map(|(_, queue)| queue);
        let others = all.filter(|queue| queue.kind.topic().is_none());
        let limits = directory.namespaces.limits(namespace);
        return check_count(others.count(), limits);
    };
    let topic = directory.get(topic).map(|queue| &queue.kind);
    if topic.map_or(0, Kind::subscriptions) >= MAX_SUBSCRIPTIONS {
        let (limit, what) = (MAX_SUBSCRIPTIONS, "subscriptions of a topic");
        return Err(EntityError::TooMany { limit, what });
    }
    Ok(())
}

/// Whether a namespace with `count` queues and topics has room for one more.
/// (docs/spec/entities.md#4)
pub(crate) fn check_count(count: usize, limits: NamespaceLimits) -> Result<(), EntityError> {
    let own = limits.max_entities.map_or(MAX_ENTITIES, |own| own as usize);
    let limit = own.min(MAX_ENTITIES);
    if count >= limit {
        let what = "queues and topics";
        return Err(EntityError::TooMany { limit, what });
    }
    Ok(())
}

/// A setting that differs although it cannot be changed. (docs/spec/entities.md#2.1)
fn fixed_difference(old: &QueueSettings, new: &QueueSettings) -> Option<&'static str> {
    if old.requires_session != new.requires_session {
        Some("RequiresSession")
    } else if old.requires_duplicate_detection != new.requires_duplicate_detection {
        Some("RequiresDuplicateDetection")
    } else {
        None
    }
}

/// What messages are forwarded to has to be there when that is said, and not each time that
/// something else is changed. So a queue can forward to itself once it is there.
/// (docs/spec/entities.md#14.1)
fn check_targets(
    directory: &Directory,
    namespace: NamespaceId,
    new: &QueueSettings,
    old: Option<&QueueSettings>,
) -> Result<(), EntityError> {
    let known = |settings: Option<&QueueSettings>, target: &str| {
        settings.is_some_and(|settings| {
            let dead = settings.forward_dead_lettered_messages_to.iter();
            let mut targets = settings.forward_to.iter().chain(dead);
            targets.any(|known| known == target)
        })
    };
    let dead = new.forward_dead_lettered_messages_to.iter();
    for target in new.forward_to.iter().chain(dead) {
        let found = directory.find(namespace, path_of(target));
        let kind = found
            .and_then(|id| directory.get(id))
            .map(|queue| queue.kind.seen());
        let takes = matches!(kind, Some(EntityKind::Queue | EntityKind::Topic));
        if !takes && !known(old, target) {
            return Err(EntityError::Destination(target.clone()));
        }
    }
    Ok(())
}

//! Client-affine subscriptions: made by the first consumer, and gone with the last or by request.
//! (docs/spec/amqp.md#13.3)
//!
//! A consumer is attached in the step that finds or makes its subscription, so two consumers never
//! take one that only a single consumer may have. Another selector or topic makes another
//! subscription of the same name, once the old one has no consumer. Those that are not durable go
//! at the end of the step in which their last consumer leaves, or with the first step after a
//! restart.

use store::{EntityId, NamespaceId};

use crate::administration::entities;
use crate::api::client_affine::{
    ClientAffineProperties, SubscribeError, SubscribeRequest, Subscribed, client_affine_name,
};
use crate::api::command::Access;
use crate::api::entity_error::EntityError;
use crate::api::id::{ReceiverId, Subqueue, SubqueueId};
use crate::api::kind::EntityKind;
use crate::api::name::DEFAULT_RULE;
use crate::api::order::{EntityDescription, EntityPath};
use crate::api::output::Output;
use crate::api::rule::{FilterDescription, RuleDescription};
use crate::api::settings::QueueSettings;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::entities::remove;
use crate::queue::Queue;
use crate::receive::attach;

/// A consumer gets the subscription that it asks for, and is attached there without credit.
pub(crate) fn subscribe(
    directory: &mut Directory,
    receiver: ReceiverId,
    request: SubscribeRequest,
    cx: &mut Context<'_>,
) {
    // A link that attaches again starts anew.
    attach::detach(directory, receiver, cx);
    let mode = request.mode;
    let result = find_or_make(directory, request, cx);
    let place = result.as_ref().ok().map(|subscribed| SubqueueId {
        entity: subscribed.entity,
        subqueue: Subqueue::Main,
    });
    let result = Box::new(result);
    cx.emit(Output::Subscribed { receiver, result });
    if let Some(place) = place {
        attach::attach(directory, receiver, place, Access::Consume(mode), None, cx);
    }
}

fn find_or_make(
    directory: &mut Directory,
    request: SubscribeRequest,
    cx: &mut Context<'_>,
) -> Result<Subscribed, SubscribeError> {
    let topic = directory.get(request.topic);
    let topic = topic.filter(|queue| queue.kind.seen() == EntityKind::Topic);
    let topic = topic.ok_or(SubscribeError::NotFound)?;
    let (namespace, topic_path) = (topic.namespace, topic.path.clone());
    let wanted = &request.properties;
    let own = || format!("{:032x}", cx.shared.tokens.next_seed());
    let name = request.name.unwrap_or_else(own);
    let name = client_affine_name(&name, &wanted.client_id, wanted.is_durable)?;
    if let Some(there) = directory.client_affine(namespace, &name)
        && let Some(properties) = there.kind.client_affine()
    {
        let is_kind = properties.is_shared == wanted.is_shared;
        let is_same =
            there.kind.topic() == Some(request.topic) && properties.selector == wanted.selector;
        let may_join = is_same && wanted.is_shared;
        if !is_kind || (!may_join && has_consumers(there, cx)) {
            return Err(SubscribeError::InUse(name));
        }
        let (entity, path) = (there.id, there.path.clone());
        if is_same {
            let objection = there.objection(Subqueue::Main);
            let objection = objection.map(SubscribeError::Evicted);
            let found = Subscribed {
                entity,
                path,
                is_new: false,
            };
            return objection.map_or(Ok(found), Err);
        }
        remove::end(directory, entity, cx);
    }
    let description = EntityDescription {
        settings: QueueSettings {
            auto_delete_on_idle: request.auto_delete_on_idle,
            ..QueueSettings::default()
        },
        ..EntityDescription::default()
    };
    let path = EntityPath::Subscription {
        topic: topic_path,
        name,
    };
    let rules = vec![rule_of(wanted)];
    let properties = Some(request.properties);
    let entity = entities::make(
        directory,
        namespace,
        path,
        description,
        Some(rules),
        properties,
        cx,
    )?;
    let path = directory.get(entity).map(|queue| queue.path.clone());
    let path = path.expect("it was made just now");
    Ok(Subscribed {
        entity,
        path,
        is_new: true,
    })
}

fn rule_of(properties: &ClientAffineProperties) -> RuleDescription {
    let filter = match &properties.selector {
        None => FilterDescription::True,
        Some(text) => FilterDescription::Selector(text.clone()),
    };
    RuleDescription {
        name: DEFAULT_RULE.to_owned(),
        filter,
        ..RuleDescription::default()
    }
}

/// A durable subscription by its name below its topic.
pub(crate) fn find_durable(
    directory: &Directory,
    namespace: NamespaceId,
    name: &str,
) -> Result<EntityId, EntityError> {
    let found = directory.client_affine(namespace, name);
    let is_durable = |queue: &&Queue| queue.kind.client_affine().is_some_and(|it| it.is_durable);
    let durable = found.filter(is_durable);
    durable.map(|queue| queue.id).ok_or(EntityError::NotFound)
}

/// Deletes a durable subscription that has no consumer.
pub(crate) fn unsubscribe(
    directory: &mut Directory,
    namespace: NamespaceId,
    name: &str,
    cx: &mut Context<'_>,
) -> Result<(), EntityError> {
    let id = find_durable(directory, namespace, name)?;
    if directory
        .get(id)
        .is_some_and(|queue| has_consumers(queue, cx))
    {
        return Err(EntityError::HasConsumers);
    }
    directory.delete(id, cx);
    Ok(())
}

fn has_consumers(queue: &Queue, cx: &Context<'_>) -> bool {
    let clients = &cx.shared.clients;
    let mut receivers = clients.receivers_at(queue.id);
    receivers.any(|slot| clients.get(slot).place.subqueue == Subqueue::Main)
}

/// Ends the subscriptions that are not durable and have lost their last consumer.
pub(crate) fn end_unused(directory: &mut Directory, cx: &mut Context<'_>) {
    if cx.shared.left_subscriptions.is_empty() {
        return;
    }
    for id in std::mem::take(&mut cx.shared.left_subscriptions) {
        let left = directory.get(id);
        if left.is_some_and(|queue| !has_consumers(queue, cx)) {
            remove::end(directory, id, cx);
        }
    }
}

/// After a restart no subscription has consumers: those that are not durable are to go.
pub(crate) fn note_restart(directory: &Directory, cx: &mut Context<'_>) {
    let left = directory
        .iter()
        .filter(|queue| queue.kind.ends_with_consumers());
    cx.shared
        .left_subscriptions
        .extend(left.map(|queue| queue.id));
}

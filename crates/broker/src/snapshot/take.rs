//! Take: the rows of a namespace's entities are copied in the store, under ids of their own.

use store::{EntityId, Entry, NamespaceId, SequenceNumber, Write};

use super::hold::{Hold, Purpose};
use super::{FOUND, Snapshot, messages_in};
use crate::api::contents::{Contents, FrozenEntity};
use crate::api::entity_error::EntityError;
use crate::api::id::ConnectionId;
use crate::api::rule;
use crate::api::snapshot::{MAX_SNAPSHOT_MESSAGES, MAX_SNAPSHOTS, check_name};
use crate::context::Context;
use crate::entities::definition;
use crate::entities::directory::Directory;
use crate::queue::Queue;

/// Takes a snapshot of a namespace; without a name it is one that was removed already, and stays as
/// long as an entity needs it.
pub(crate) fn take(
    directory: &mut Directory,
    namespace: NamespaceId,
    name: Option<String>,
    cx: &mut Context<'_>,
) -> Result<EntityId, EntityError> {
    if let Some(name) = &name {
        check_name(name)?;
        if directory.snapshots.find(namespace, name).is_ok() {
            return Err(EntityError::SnapshotExists(name.clone()));
        }
    }
    check_place(directory, namespace)?;
    let entities = to_freeze(directory, namespace)?;
    let id = directory.next_id();
    let snapshot = Snapshot::new(namespace, name, cx.now.wall);
    cx.write(Write::PutEntity(definition::snapshot_row(id, &snapshot)));
    directory.snapshots.insert(id, snapshot);
    for entity in &entities {
        directory.get_mut(*entity).expect(FOUND).write_head(cx);
    }
    let owns_bodies = entities.iter().any(|entity| {
        let queue = directory.get(*entity).expect(FOUND);
        owned_from(queue, cx) < queue.rows.head.next_number
    });
    for entity in entities {
        freeze(directory, (id, owns_bodies), entity, cx);
    }
    // Without a name and without messages no entity needs it.
    cx.shared.lent.is_to_check = true;
    Ok(id)
}

/// Whether a namespace may have one snapshot more.
pub(super) fn check_place(
    directory: &Directory,
    namespace: NamespaceId,
) -> Result<(), EntityError> {
    if directory.snapshots.count(namespace) >= MAX_SNAPSHOTS {
        let what =
            "snapshots of a namespace, with those that were removed or forked and are needed";
        let limit = MAX_SNAPSHOTS;
        return Err(EntityError::TooMany { limit, what });
    }
    Ok(())
}

/// Takes a snapshot without a name that stays until it is released, and says what it has.
pub(crate) fn export(
    directory: &mut Directory,
    namespace: NamespaceId,
    connection: ConnectionId,
    cx: &mut Context<'_>,
) -> Result<Contents, EntityError> {
    let id = take(directory, namespace, None, cx)?;
    let hold = Hold {
        connection,
        purpose: Purpose::Export,
    };
    directory.snapshots.holds.insert(id, hold);
    let snapshot = directory.snapshots.by_id.get(&id).expect(FOUND);
    let entities = snapshot.frozen.iter().map(|(part, frozen)| {
        let entity = FrozenEntity {
            source: frozen.source,
            path: frozen.path.clone(),
            definition: frozen.definition.clone(),
            head: frozen.head.clone(),
            rules: frozen.rules.clone(),
            expiries: frozen.expiries.clone(),
        };
        (*part, entity)
    });
    let entities = entities.collect();
    Ok(Contents { id, entities })
}

/// The entities of a namespace that a snapshot has, in the order of their creation.
fn to_freeze(directory: &Directory, namespace: NamespaceId) -> Result<Vec<EntityId>, EntityError> {
    check_without_exchanges(directory, namespace)?;
    let found = directory.by_path(namespace, "").map(|(_, queue)| queue);
    let kept = found.filter(|queue| !queue.kind.ends_with_consumers());
    let mut entities: Vec<_> = kept.map(|queue| queue.id).collect();
    let transfers = entities
        .iter()
        .flat_map(|id| directory.transfer_queues(*id));
    let transfers: Vec<_> = transfers.collect();
    entities.extend(transfers);
    entities.sort_unstable();
    let queues = entities.iter().filter_map(|id| directory.get(*id));
    let messages = queues.map(|queue| messages_in(&queue.rows.head));
    if messages.fold(0, u64::saturating_add) > MAX_SNAPSHOT_MESSAGES {
        let limit = usize::try_from(MAX_SNAPSHOT_MESSAGES).unwrap_or(usize::MAX);
        let what = "messages in a snapshot";
        return Err(EntityError::TooMany { limit, what });
    }
    Ok(entities)
}

/// What exchanges deliver to several queues lies with the exchange, and a binding names a queue by
/// its id.
pub(super) fn check_without_exchanges(
    directory: &Directory,
    namespace: NamespaceId,
) -> Result<(), EntityError> {
    let mut all = directory.by_path(namespace, "").map(|(_, queue)| queue);
    if directory.routers.has_rows(namespace) || all.any(|queue| queue.shares_bodies) {
        let text = "a namespace with exchanges has no snapshots".to_owned();
        return Err(EntityError::Invalid(text));
    }
    Ok(())
}

/// From which number on the bodies whose home is an entity belong to no snapshot.
fn owned_from(queue: &Queue, cx: &Context<'_>) -> SequenceNumber {
    let lent_below = cx.shared.lent.below(queue.id);
    lent_below.max(queue.rows.origins.own_from())
}

/// The head of the entity has been written in this step.
fn freeze(
    directory: &mut Directory,
    (snapshot, owns_bodies): (EntityId, bool),
    entity: EntityId,
    cx: &mut Context<'_>,
) {
    let part = directory.next_id();
    let rules = rules_of(directory, entity);
    let queue = directory.get_mut(entity).expect(FOUND);
    let owned_from = owned_from(queue, cx);
    cx.shared.lent.lend(queue.id, queue.rows.head.next_number);
    let (mut frozen, row) = definition::freeze(queue, (part, snapshot), owned_from);
    frozen.rules = rules;
    if owns_bodies && !queue.is_empty() {
        queue.rows.origins.borrow_from(snapshot);
    }
    cx.write(Write::PutEntity(definition::row_of(queue)));
    cx.write(Write::PutEntity(row));
    cx.write(Write::PutHead {
        entity: part,
        head: frozen.head.clone(),
    });
    cx.write(Write::Copy {
        from: entity,
        to: part,
    });
    directory.snapshots.insert_part(snapshot, part, frozen);
}

/// The rules of a subscription, as the store has them.
fn rules_of(directory: &Directory, entity: EntityId) -> Vec<Entry> {
    let topic = directory.get(entity).and_then(|queue| queue.kind.topic());
    let rules = topic.map(|topic| directory.rules_at(topic, entity));
    let rules = rules.unwrap_or_default();
    let stored = rules.iter().map(|description| Entry {
        key: rule::key_of(&description.name),
        value: rule::encode(description),
    });
    stored.collect()
}

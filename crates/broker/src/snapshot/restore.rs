//! Restore: entities are made of what a snapshot has, in the place of those that are there or in
//! another namespace.

use std::collections::BTreeMap;

use store::{EntityId, Head, NamespaceId, Write};

use super::{FOUND, Frozen, take};
use crate::api::entity_error::EntityError;
use crate::api::error::Eviction;
use crate::api::namespace::NamespaceDefinition;
use crate::api::output::Output;
use crate::context::Context;
use crate::entities::definition;
use crate::entities::directory::{Directory, change_of};
use crate::entities::policies::stored_ttl_ms;
use crate::entities::remove;
use crate::entities::template::make;
use crate::queue::kind::Kind;
use crate::queue::{Description, Queue};

/// Why what is frozen can be made an entity again.
const WAS_ENTITY: &str = "it was an entity in this process, or was looked at when it began";

/// What the entities had that are replaced, by their paths in lower case: numbers and times of
/// enqueueing go on from there. Beside it the first entity that they have replaced, or themselves.
type Before = BTreeMap<String, (EntityId, Head)>;

/// Gives a namespace what one of its snapshots has instead of what it has.
pub(crate) fn restore(
    directory: &mut Directory,
    namespace: NamespaceId,
    name: &str,
    cx: &mut Context<'_>,
) -> Result<(), EntityError> {
    let snapshot = directory.snapshots.find(namespace, name)?;
    take::check_without_exchanges(directory, namespace)?;
    replace(directory, namespace, snapshot, cx);
    Ok(())
}

/// Gives a namespace without exchanges what a snapshot has instead of what it has.
pub(super) fn replace(
    directory: &mut Directory,
    namespace: NamespaceId,
    snapshot: EntityId,
    cx: &mut Context<'_>,
) {
    let all = directory.by_path(namespace, "");
    let before: Before = all
        .map(|(path, queue)| {
            let first = queue.replaces.unwrap_or(queue.id);
            (path.to_owned(), (first, queue.rows.head.clone()))
        })
        .collect();
    let all = directory.by_path(namespace, "").map(|(_, queue)| queue);
    all.for_each(|queue| remove::evict_all(queue, Eviction::Restored, cx));
    directory.remove_entities(namespace, cx);
    make_all(
        directory,
        snapshot,
        namespace,
        &before,
        Source::Snapshot,
        cx,
    );
}

/// Makes a namespace with what another one has, or had in a snapshot.
pub(crate) fn fork(
    directory: &mut Directory,
    from: NamespaceId,
    name: Option<&str>,
    definition: NamespaceDefinition,
    cx: &mut Context<'_>,
) -> Result<NamespaceId, EntityError> {
    let known = name.map(|name| directory.snapshots.find(from, name));
    let known = known.transpose()?;
    let template = make::of_namespace(directory, from);
    template.check_size()?;
    directory.namespaces.check(&definition, None)?;
    let (snapshot, source) = match known {
        Some(snapshot) => (snapshot, Source::Snapshot),
        None => (take::take(directory, from, None, cx)?, Source::Live),
    };
    let namespace = directory.create_namespace(definition, template.clone(), cx)?;
    // Its messages have the times that the clock of the other one showed.
    let ahead = cx.shared.clocks.ahead(from);
    cx.shared.clocks.advance(namespace, ahead);
    cx.enter(namespace);
    make::make_policies(&template, directory, namespace, cx);
    let before = Before::new();
    make_all(directory, snapshot, namespace, &before, source, cx);
    Ok(namespace)
}

/// What is copied in the store.
#[derive(Clone, Copy)]
enum Source {
    /// What the snapshot has.
    Snapshot,
    /// The entities that the snapshot is taken of in this step: what it has is not there yet.
    Live,
}

fn make_all(
    directory: &mut Directory,
    snapshot: EntityId,
    namespace: NamespaceId,
    before: &Before,
    source: Source,
    cx: &mut Context<'_>,
) {
    let taken = directory.snapshots.by_id.get(&snapshot).expect(FOUND);
    let owns_bodies = taken.owns_bodies();
    let parts: Vec<_> = taken.frozen.keys().copied().collect();
    // The new entities of the old ones.
    let mut made = BTreeMap::new();
    for part in parts {
        let id = directory.next_id();
        let frozen = directory.snapshots.part_mut(part).expect(FOUND);
        let copied = match source {
            Source::Snapshot => part,
            Source::Live => frozen.source,
        };
        made.insert(frozen.source, id);
        let rules = frozen.rules.iter().map(|rule| (id, rule.clone()));
        let rules: Vec<_> = rules.collect();
        let description = frozen.describe(id, namespace).expect(WAS_ENTITY);
        let old = before.get(&frozen.path.to_lowercase());
        let old_head = old.map(|(_, head)| head);
        let mut queue = queue_of(frozen, (id, namespace), description, old_head, &made, cx);
        let origins = &mut queue.rows.origins;
        origins.give_from(queue.rows.head.next_number);
        if owns_bodies && !queue.is_empty() {
            queue.rows.origins.borrow_from(snapshot);
        }
        if matches!(queue.kind, Kind::Queue) {
            queue.kind = directory.recovered_kind(namespace, &queue.path, Kind::Queue);
        }
        let own = queue.settings.clone();
        directory.policies.govern(&mut queue, own);
        let ttl_ms = stored_ttl_ms(&queue);
        if ttl_ms < u64::MAX {
            queue.shorten_lives(ttl_ms);
        }
        queue.replaces = old.map(|(first, _)| *first);
        add(directory, queue, cx);
        cx.write(Write::Copy {
            from: copied,
            to: id,
        });
        let recovered = directory.recover_rules(&rules);
        recovered.expect(WAS_ENTITY);
    }
}

fn queue_of(
    frozen: &Frozen,
    (id, namespace): (EntityId, NamespaceId),
    mut description: Description,
    old: Option<&Head>,
    made: &BTreeMap<EntityId, EntityId>,
    cx: &Context<'_>,
) -> Queue {
    if let Kind::Subscription(subscription) = &mut description.kind {
        let topic = made.get(&subscription.topic);
        subscription.topic = *topic.expect(WAS_ENTITY);
    }
    let mut head = frozen.head.clone();
    if let Some(old) = old {
        head.next_number = head.next_number.max(old.next_number);
        head.last_enqueued_ms = head.last_enqueued_ms.max(old.last_enqueued_ms);
    }
    let (path, window) = (frozen.path.clone(), cx.shared.settings.window);
    let mut queue = Queue::new(id, namespace, path, description, head, window);
    for (block, due_ms) in &frozen.expiries {
        queue.expiry.recover(*block, *due_ms);
    }
    queue
}

/// An entity is there, as if the store had had it, in the place of another one.
fn add(directory: &mut Directory, mut queue: Queue, cx: &mut Context<'_>) {
    let id = queue.id;
    queue.recheck_lives();
    queue.start_idle(None, cx.now);
    // It is not idle, but no client has used it.
    queue.idle.note_use_at(cx.now.mono);
    queue.wake_pumps();
    queue.set_alarm(cx);
    cx.write(Write::PutEntity(definition::row_of(&queue)));
    if !matches!(queue.kind, Kind::Transfer { .. }) {
        cx.emit(Output::EntityChanged(Box::new(change_of(&queue))));
    }
    cx.write(Write::PutHead {
        entity: id,
        head: queue.rows.head.clone(),
    });
    let bytes = i64::try_from(queue.bytes()).unwrap_or(i64::MAX);
    cx.shared.namespaces.weigh(queue.namespace, bytes);
    if let Some(topic) = queue.kind.topic() {
        cx.shared.topics.weigh(topic, bytes);
    }
    directory.insert(queue);
    directory.note_change(id);
}

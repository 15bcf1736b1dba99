//! Directory: the entities of a broker, by id and by path.
//!
//! Paths are compared without regard to case within a namespace; ids are never reused. Volatile
//! entities (`node.rs`) have ids alone: no path leads to them here, no list names them, and no
//! change of theirs is one of the namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use store::{EntityId, NamespaceId, Write};

use crate::api::error::{Eviction, RequestError};
use crate::api::id::{ConnectionId, SubqueueId};
use crate::api::kind::EntityKind;
use crate::api::output::{EntityChange, Output};
use crate::api::rule::RuleSnapshot;
use crate::api::settings::QueueSettings;
use crate::api::store_only::StoreOnlyProperties;
use crate::context::Context;
use crate::entities::definition;
use crate::entities::namespaces::Namespaces;
use crate::entities::policies::Policies;
use crate::entities::tombstone::{Bodies, Tombstone};
use crate::fault::rules::FaultRules;
use crate::queue::kind::Kind;
use crate::queue::origins::Origins;
use crate::queue::session_key::SessionIds;
use crate::queue::{Description, Queue, Times};
use crate::router::routers::Routers;
use crate::snapshot::Snapshots;
use crate::subqueue::ceilings::Ceilings;

/// Why there is the entity of a path.
const HAS_ENTITY: &str = "an entity that goes takes its path along";
/// Why there is an entity that has changed.
pub(super) const CHANGED: &str = "an entity does not go while it is changed";

#[derive(Debug, Default)]
pub(crate) struct Directory {
    // Boxed, since a map moves its values and queues are large.
    pub(super) queues: BTreeMap<EntityId, Box<Queue>>,
    pub(crate) policies: Policies,
    pub(super) by_path: BTreeMap<(NamespaceId, String), EntityId>,
    /// Subscriptions that clients made, by their names below their topics.
    pub(super) client_affine: BTreeMap<(NamespaceId, String), EntityId>,
    pub routers: Routers,
    /// Transfer queues by their via entity and the destination. No path leads to them.
    pub(crate) transfers: BTreeMap<(EntityId, String), EntityId>,
    /// Deleted entities whose rows are being removed. No path leads to them.
    pub(crate) tombstones: BTreeMap<EntityId, Tombstone>,
    pub(crate) snapshots: Snapshots,
    /// Topics whose rules may have changed in this turn.
    pub(super) changed_rules: BTreeSet<EntityId>,
    pub(super) last: u64,
    /// Counts changes of entities and rules, from a random number on.
    pub(super) version: u64,
    pub(super) first_version: u64,
    /// The count at the last change of each namespace; since the start there was none in others.
    pub(super) versions: BTreeMap<NamespaceId, u64>,
    pub(crate) namespaces: Namespaces,
    pub(crate) faults: FaultRules,
    pub(super) exclusive: BTreeSet<(ConnectionId, EntityId)>,
}

impl Directory {
    /// Another one after each change of an entity or a rule of the namespace.
    pub(crate) fn version(&self, namespace: NamespaceId) -> u64 {
        let changed = self.versions.get(&namespace);
        changed.copied().unwrap_or(self.first_version)
    }

    /// An entity or one of its rules has changed.
    pub(crate) fn note_change(&mut self, entity: EntityId) {
        if !entity.is_volatile()
            && let Some(namespace) = self.get(entity).map(|queue| queue.namespace)
        {
            self.note_change_of_namespace(namespace);
        }
    }

    /// Something of a namespace has changed.
    pub(super) fn note_change_of_namespace(&mut self, namespace: NamespaceId) {
        self.version = self.version.wrapping_add(1);
        self.versions.insert(namespace, self.version);
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Queue> {
        self.queues.get(&id).map(|queue| &**queue)
    }

    pub(crate) fn get_mut(&mut self, id: EntityId) -> Option<&mut Queue> {
        self.queues.get_mut(&id).map(|queue| &mut **queue)
    }

    /// The entity of a path.
    pub(crate) fn find(&self, namespace: NamespaceId, path: &str) -> Option<EntityId> {
        self.by_path.get(&key_of(namespace, path)).copied()
    }

    /// The subscription that a client made, by its name below its topic.
    pub(crate) fn client_affine(&self, namespace: NamespaceId, name: &str) -> Option<&Queue> {
        let found = self.client_affine.get(&key_of(namespace, name));
        found.and_then(|id| self.get(*id))
    }

    /// The entity of a path, if it is written like this. (docs/spec/rabbitmq.md#8.2)
    pub(crate) fn find_exactly(&self, namespace: NamespaceId, path: &str) -> Option<&Queue> {
        let found = self.find(namespace, path).and_then(|id| self.get(id));
        found.filter(|queue| queue.path == path)
    }

    /// An id that was never given out.
    pub(crate) fn next_id(&mut self) -> EntityId {
        self.last += 1;
        EntityId(self.last)
    }

    /// The routers that every namespace has become rows of this one, unless they are.
    pub(crate) fn make_router_rows(&mut self, namespace: NamespaceId, cx: &mut Context<'_>) {
        let Self { routers, last, .. } = self;
        if !routers.has_rows(namespace) {
            let next_id = || {
                *last += 1;
                EntityId(*last)
            };
            routers.make_rows(namespace, next_id, cx);
            self.govern_routers(namespace);
        }
    }

    /// Takes an entity out: from now on there is none of its id, and its path is free.
    pub(crate) fn take(&mut self, id: EntityId) -> Option<Box<Queue>> {
        let queue = self.queues.remove(&id)?;
        self.disclaim(&queue);
        if id.is_volatile() {
            return Some(queue);
        }
        if let Some(key) = transfer_key(&queue) {
            self.transfers.remove(&key);
            return Some(queue);
        }
        let path = key_of(queue.namespace, &queue.path);
        let named = self.by_path.remove(&path);
        debug_assert_eq!(named, Some(id), "a path is that of one entity");
        if let Some(key) = client_affine_key(&queue) {
            self.client_affine.remove(&key);
        }
        self.note_change_of_namespace(queue.namespace);
        Some(queue)
    }

    /// The entities of a namespace in the order of their paths, case aside, from a path on.
    pub(crate) fn by_path<'a>(
        &'a self,
        namespace: NamespaceId,
        from: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Queue)> {
        let found = self.by_path.range(key_of(namespace, from)..);
        let found = found.take_while(move |((of, _), _)| *of == namespace);
        found.map(|((_, path), id)| (path.as_str(), self.get(*id).expect(HAS_ENTITY)))
    }

    /// Every entity that the store keeps, in the order of their creation.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queue> {
        let stored = self.queues.range(..EntityId::volatile(0));
        stored.map(|(_, queue)| &**queue)
    }

    /// Every entity that clients and administrators see, in the order of their creation.
    pub(crate) fn iter_seen(&self) -> impl Iterator<Item = &Queue> {
        let is_seen = |queue: &&Queue| !matches!(queue.kind, Kind::Transfer { .. });
        self.iter().filter(is_seen)
    }

    /// Every entity, volatile ones too, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.queues.values_mut().map(|queue| &mut **queue)
    }

    /// The entity of a path, if it is what it should be. (docs/spec/entities.md#1)
    pub(crate) fn find_kind(
        &self,
        namespace: NamespaceId,
        path: &str,
        kind: EntityKind,
    ) -> Result<Option<EntityId>, RequestError> {
        let Some(id) = self.find(namespace, path) else {
            return Ok(None);
        };
        if self.get(id).expect(HAS_ENTITY).kind.seen() == kind {
            Ok(Some(id))
        } else {
            let text = format!("'{path}' is something else already");
            Err(RequestError::Invalid(text))
        }
    }

    pub(crate) fn create(
        &mut self,
        namespace: NamespaceId,
        path: String,
        kind: Kind,
        settings: QueueSettings,
        cx: &mut Context<'_>,
    ) -> EntityId {
        self.create_with(namespace, path, kind, settings, Arc::default(), cx)
    }

    /// As [`create`](Self::create), with properties that are only stored.
    pub(crate) fn create_with(
        &mut self,
        namespace: NamespaceId,
        path: String,
        kind: Kind,
        settings: QueueSettings,
        store_only: Arc<StoreOnlyProperties>,
        cx: &mut Context<'_>,
    ) -> EntityId {
        let id = self.next_id();
        self.add(id, namespace, path, kind, settings, store_only, cx);
        id
    }

    /// Makes the entity of an id that is not taken.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are what an entity is made of"
    )]
    pub(crate) fn add(
        &mut self,
        id: EntityId,
        namespace: NamespaceId,
        path: String,
        kind: Kind,
        settings: QueueSettings,
        store_only: Arc<StoreOnlyProperties>,
        cx: &mut Context<'_>,
    ) {
        let times = Times {
            created: cx.now.wall,
            updated: cx.now.wall,
        };
        let head = store::Head::empty();
        let window = cx.shared.settings.window;
        let description = Description {
            kind,
            settings,
            times,
            store_only,
            session_ids: SessionIds::Folded,
            shares_bodies: false,
            annotates: false,
            ceilings: Ceilings::default(),
            origins: Origins::default(),
        };
        let mut queue = Queue::new(id, namespace, path, description, head, window);
        let own = queue.settings.clone();
        self.policies.govern(&mut queue, own);
        queue.start_idle(None, cx.now);
        queue.set_alarm(cx);
        publish(&queue, cx);
        let topic = queue.kind.topic();
        let is_seen = !matches!(queue.kind, Kind::Transfer { .. });
        self.insert(queue);
        if let Some(topic) = topic {
            self.note_use(topic, cx);
        }
        if is_seen {
            self.note_change(id);
        }
    }

    /// Gives an entity settings of its own, but for those that only its declaration says. Returns
    /// whether they differ from those before.
    pub(crate) fn describe(&mut self, id: EntityId, mut own: QueueSettings) -> bool {
        let queue = self.queues.get_mut(&id).expect(CHANGED);
        own.keep_declared(queue.own());
        let differs = *queue.own() != own;
        self.policies.govern(queue, own);
        differs
    }

    /// A subscription is not its topic's any more.
    pub(crate) fn leave_topic(&mut self, subscription: EntityId, topic: EntityId) {
        self.rules_may_change(topic);
        // A topic that goes takes its subscriptions out itself.
        if let Some(Kind::Topic(topic)) = self.get_mut(topic).map(|queue| &mut queue.kind) {
            topic.remove_subscription(subscription);
        }
    }

    /// The rules of a topic are about to change.
    pub(crate) fn rules_may_change(&mut self, topic: EntityId) {
        if !topic.is_volatile() {
            self.changed_rules.insert(topic);
        }
    }

    /// The rules of topics where they have changed since the last call.
    pub(crate) fn publish_rules(&mut self) -> Vec<(NamespaceId, RuleSnapshot)> {
        let changed = std::mem::take(&mut self.changed_rules);
        let publish = |id| {
            let queue = self.get_mut(id)?;
            match &mut queue.kind {
                Kind::Topic(topic) => Some((queue.namespace, topic.rules.publish(id)?)),
                _ => None,
            }
        };
        changed.into_iter().filter_map(publish).collect()
    }

    /// A deleted entity leaves what it shares with others.
    pub(crate) fn create_tombstone(
        &mut self,
        queue: &Queue,
        topic: Option<EntityId>,
        cx: &mut Context<'_>,
    ) {
        let head = queue.rows.head.clone();
        let bodies = if queue.rows.origins.borrows() {
            Bodies::NotLent
        } else {
            Bodies::All
        };
        let mut tombstone = Tombstone::new(queue.id, queue.namespace, topic, head, bodies);
        tombstone.take_alarm(queue.alarm);
        tombstone.mark(definition::tombstone_of(queue, topic), cx);
        tombstone.set_alarm(0, cx);
        self.tombstones.insert(queue.id, tombstone);
    }

    /// Nothing is left of a deleted entity, and no body that has its home there is needed.
    pub(crate) fn end_tombstone(&mut self, id: EntityId, cx: &mut Context<'_>) {
        self.end_tombstones(id, cx);
        let tombstone = self.tombstones.remove(&id);
        let tombstone = tombstone.expect("the caller has found it");
        let namespace = tombstone.namespace;
        tombstone.end(cx);
        self.tombstone_ended(namespace, cx);
    }

    /// The tombstones of a topic that goes have nothing left to release.
    pub(crate) fn end_tombstones(&mut self, topic: EntityId, cx: &mut Context<'_>) {
        let of_it = |_: &EntityId, tombstone: &mut Tombstone| tombstone.topic == Some(topic);
        let ended: Vec<_> = self.tombstones.extract_if(.., of_it).collect();
        for (_, tombstone) in ended {
            let namespace = tombstone.namespace;
            tombstone.end(cx);
            self.tombstone_ended(namespace, cx);
        }
    }

    /// After a restart, continues the removal of every tombstone.
    pub(crate) fn wake_tombstones(&mut self, cx: &mut Context<'_>) {
        for tombstone in self.tombstones.values_mut() {
            tombstone.set_alarm(0, cx);
        }
    }

    pub(crate) fn insert(&mut self, mut queue: Queue) {
        if !queue.id.is_volatile() {
            match transfer_key(&queue) {
                Some(transfer) => self.transfers.insert(transfer, queue.id),
                None => {
                    let key = key_of(queue.namespace, &queue.path);
                    self.by_path.insert(key, queue.id)
                }
            };
            if let Some(key) = client_affine_key(&queue) {
                self.client_affine.insert(key, queue.id);
            }
            self.last = self.last.max(queue.id.0);
        }
        // Ids rise, so the topic is there before; `check_topics` finds one that is not.
        if let Some(of) = queue.kind.topic().and_then(|topic| self.get_mut(topic))
            && let Kind::Topic(topic) = &mut of.kind
        {
            topic.subscriptions.insert(queue.id);
            queue.is_partitioned = of.is_partitioned;
        }
        self.queues.insert(queue.id, Box::new(queue));
    }
}

impl Directory {
    /// A command uses an entity without changing what is in it.
    pub(crate) fn note_use(&mut self, entity: EntityId, cx: &mut Context<'_>) {
        if let Some(queue) = self.get_mut(entity) {
            queue.note_access(cx);
        }
    }

    /// The queue of a place where a receiver would be let in.
    pub(crate) fn admit(&mut self, place: SubqueueId) -> Result<&mut Queue, Eviction> {
        let queue = self.get_mut(place.entity).ok_or(Eviction::NotFound)?;
        match queue.objection(place.subqueue) {
            Some(reason) => Err(reason),
            None => Ok(queue),
        }
    }

    /// A queue whose messages may be looked at by request.
    pub(crate) fn receivable(&mut self, entity: EntityId) -> Result<&mut Queue, RequestError> {
        let queue = self.get_mut(entity).ok_or(RequestError::NotFound)?;
        if queue.settings.status.allows_receive() {
            Ok(queue)
        } else {
            Err(RequestError::Disabled)
        }
    }
}

fn key_of(namespace: NamespaceId, path: &str) -> (NamespaceId, String) {
    (namespace, path.to_lowercase())
}

/// What the name of a subscription below its topic is found by, if a client made it.
fn client_affine_key(queue: &Queue) -> Option<(NamespaceId, String)> {
    queue.kind.client_affine()?;
    let (_, name) = queue.path.rsplit_once('/')?;
    Some(key_of(queue.namespace, name))
}

/// What a queue has become by its creation cannot be changed. (docs/spec/entities.md#2.1)
pub(crate) fn check_unchanged(
    old: &QueueSettings,
    new: &QueueSettings,
) -> Result<(), RequestError> {
    let fixed = |name: &str| {
        let text = format!("{name} cannot be changed after the queue was created");
        Err(RequestError::Invalid(text))
    };
    if old.requires_session != new.requires_session {
        return fixed("requires-session");
    }
    if old.requires_duplicate_detection != new.requires_duplicate_detection {
        return fixed("requires-duplicate-detection");
    }
    Ok(())
}

/// Writes an entity's definition, and tells the server of one that clients see. Only the
/// connections that use a volatile entity are told of it.
pub(super) fn publish(queue: &Queue, cx: &mut Context<'_>) {
    if queue.id.is_volatile() {
        return;
    }
    cx.write(Write::PutEntity(definition::row_of(queue)));
    if matches!(queue.kind, Kind::Transfer { .. }) {
        return;
    }
    cx.emit(Output::EntityChanged(Box::new(change_of(queue))));
}

/// What is to be known of an entity that is there.
pub(crate) fn change_of(queue: &Queue) -> EntityChange {
    EntityChange {
        id: queue.id,
        namespace: queue.namespace,
        path: queue.path.clone(),
        kind: queue.kind.seen(),
        settings: Some(queue.settings.clone()),
        authorization_rules: queue.store_only.authorization_rules.clone(),
        replaces: queue.replaces,
    }
}

/// By what the directory finds a transfer queue.
fn transfer_key(queue: &Queue) -> Option<(EntityId, String)> {
    let Kind::Transfer { via } = queue.kind else {
        return None;
    };
    let destination = queue.settings.forward_to.as_deref().unwrap_or_default();
    Some((via, destination.to_lowercase()))
}

//! Definition: what an entity is, as the store keeps it.
//!
//! One row each for queues, topics, subscriptions, routers, namespaces, policies, snapshots and
//! tombstones. A row is JSON in which a missing member has its default, so rows that an older
//! program wrote are read. Decoding trusts nothing: a row that makes no sense is damage.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use store::{EntityId, EntityRow, Head, NamespaceId, SequenceNumber, StoreError, Write};

use crate::api::client_affine::ClientAffineProperties;
use crate::api::contents::FrozenEntity;
use crate::api::id::Subqueue;
use crate::api::namespace::{NamespaceDefinition, NamespaceLimits};
use crate::api::policy::Policy;
use crate::api::router::RouterSettings;
use crate::api::settings::QueueSettings;
use crate::api::store_only::{AuthorizationRule, StoreOnlyProperties};
use crate::api::time::Wall;
use crate::context::Context;
use crate::entities::namespaces::Namespace;
use crate::entities::template::StoredTemplate;
use crate::queue::kind::Kind;
use crate::queue::origins::Origins;
use crate::queue::session_key::SessionIds;
use crate::queue::subscription::Subscription;
use crate::queue::{Description, Queue, Times};
use crate::router::{Router, StoredRouter};
use crate::snapshot::{Frozen, Snapshot};
use crate::subqueue::ceilings::Ceilings;
use crate::topic::Topic;

/// What the path of a namespace's row begins with, as that of no entity does.
const NAMESPACE: &str = "$namespace ";
/// The same of a snapshot.
const SNAPSHOT: &str = "$snapshot ";

/// What a row in the store defines.
pub(crate) enum Definition {
    Entity(Box<Description>),
    Router(Box<RouterSettings>),
    /// A deleted subscription of this topic, or a deleted queue.
    Tombstone {
        topic: Option<EntityId>,
        /// Whether bodies that its rows point to may belong to a snapshot.
        borrows: bool,
    },
    Snapshot(Box<Snapshot>),
    /// What a snapshot has of an entity.
    Frozen {
        snapshot: EntityId,
        frozen: Box<Frozen>,
    },
    Policy(Policy),
    Namespace(Box<Namespace>),
}

/// How it is written. Times are milliseconds; 0 in what was written before they were kept.
#[derive(Debug, Deserialize, Serialize)]
struct Stored {
    #[serde(flatten)]
    kind: StoredKind,
    #[serde(default)]
    created: u64,
    #[serde(default)]
    updated: u64,
    /// Left out when no such property was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "kept")]
    store_only: Option<StoreOnlyProperties>,
    /// Left out where ids are compared as they are, as all were before they were folded.
    #[serde(default, skip_serializing_if = "is_exact")]
    session_ids: SessionIds,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shares_bodies: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    annotates: bool,
    #[serde(default, skip_serializing_if = "Ceilings::is_empty")]
    ceilings: Ceilings,
    #[serde(default, skip_serializing_if = "Origins::is_empty")]
    origins: Origins,
}

impl Stored {
    /// Of what is no entity that messages are sent to.
    fn of(kind: StoredKind) -> Self {
        Self {
            kind,
            created: 0,
            updated: 0,
            store_only: None,
            session_ids: SessionIds::Exact,
            shares_bodies: false,
            annotates: false,
            ceilings: Ceilings::default(),
            origins: Origins::default(),
        }
    }
}

fn is_exact(ids: &SessionIds) -> bool {
    *ids == SessionIds::Exact
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StoredKind {
    Queue(QueueSettings),
    Topic(QueueSettings),
    Subscription {
        topic: u64,
        dead_lettering_on_filter_evaluation_exceptions: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_affine: Option<ClientAffineProperties>,
        settings: QueueSettings,
    },
    Router(StoredRouter),
    #[serde(rename = "grave")]
    Tombstone {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<u64>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        borrows: bool,
    },
    Policy(Policy),
    Namespace(StoredNamespace),
    Snapshot {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        removed: bool,
    },
    Frozen {
        snapshot: u64,
        source: u64,
        owned_from: u64,
        entity: Box<Stored>,
    },
}

/// A namespace, whose name is the path of its row.
#[derive(Debug, Deserialize, Serialize)]
struct StoredNamespace {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<AuthorizationRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lineage: Option<bool>,
    #[serde(flatten)]
    limits: NamespaceLimits,
    #[serde(default)]
    template: StoredTemplate,
}

impl Definition {
    /// What a row says.
    pub(crate) fn decode(row: &EntityRow) -> Result<Self, StoreError> {
        let stored: Stored =
            serde_json::from_slice(&row.definition).map_err(|error| StoreError::Corrupt {
                what: format!("the definition of {}", row.path),
                detail: error.to_string(),
            })?;
        let times = Times {
            created: Wall(stored.created),
            updated: Wall(stored.updated),
        };
        let (kind, settings) = match stored.kind {
            StoredKind::Queue(settings) => (Kind::Queue, settings),
            StoredKind::Topic(settings) => (Kind::Topic(Topic::default()), settings),
            StoredKind::Subscription {
                topic,
                dead_lettering_on_filter_evaluation_exceptions,
                client_affine,
                settings,
            } => {
                let subscription = Subscription {
                    topic: EntityId(topic),
                    client_affine,
                    dead_lettering_on_filter_evaluation_exceptions,
                };
                (Kind::Subscription(Box::new(subscription)), settings)
            }
            StoredKind::Router(router) => {
                return Ok(Self::Router(Box::new(router.settings()?)));
            }
            StoredKind::Tombstone { topic, borrows } => {
                let topic = topic.map(EntityId);
                return Ok(Self::Tombstone { topic, borrows });
            }
            StoredKind::Snapshot { removed } => {
                let name = row.path.strip_prefix(SNAPSHOT).unwrap_or(&row.path);
                let name = (!removed).then(|| name.to_owned());
                let snapshot = Snapshot::new(row.namespace, name, times.created);
                return Ok(Self::Snapshot(Box::new(snapshot)));
            }
            StoredKind::Frozen {
                snapshot,
                source,
                owned_from,
                entity,
            } => {
                let frozen = Frozen {
                    source: EntityId(source),
                    owned_from: SequenceNumber(owned_from),
                    path: row.path.clone(),
                    definition: encoded(&entity),
                    origins: entity.origins,
                    head: Head::empty(),
                    rules: Vec::new(),
                    expiries: Vec::new(),
                };
                return Ok(Self::Frozen {
                    snapshot: EntityId(snapshot),
                    frozen: Box::new(frozen),
                });
            }
            StoredKind::Policy(policy) => return Ok(Self::Policy(policy)),
            StoredKind::Namespace(namespace) => {
                let name = row.path.strip_prefix(NAMESPACE).unwrap_or(&row.path);
                return Ok(Self::Namespace(Box::new(Namespace {
                    row: row.id,
                    definition: Arc::new(NamespaceDefinition {
                        name: name.to_owned(),
                        hosts: namespace.hosts,
                        keys: namespace.keys,
                        lineage: namespace.lineage,
                        limits: namespace.limits,
                    }),
                    created: times.created,
                    template: namespace.template.template()?,
                })));
            }
        };
        Ok(Self::Entity(Box::new(Description {
            kind,
            settings,
            times,
            store_only: Arc::new(stored.store_only.unwrap_or_default()),
            session_ids: stored.session_ids,
            shares_bodies: stored.shares_bodies,
            annotates: stored.annotates,
            ceilings: stored.ceilings,
            origins: stored.origins,
        })))
    }
}

/// An entity's row.
pub(crate) fn row_of(queue: &Queue) -> EntityRow {
    let stored = stored_of(queue, queue.rows.origins.clone());
    encode(queue.id, queue.namespace, queue.path.clone(), &stored)
}

/// The first message is annotated whose delivery did not fail.
pub(crate) fn note_annotations(queue: &mut Queue, cx: &mut Context<'_>) {
    if !queue.annotates {
        queue.annotates = true;
        cx.write(Write::PutEntity(row_of(queue)));
    }
}

/// The first message comes whose body other queues have too: from now on the queue cannot go in
/// one write.
pub(crate) fn note_shared_bodies(queue: &mut Queue, cx: &mut Context<'_>) {
    if !queue.shares_bodies {
        queue.shares_bodies = true;
        cx.write(Write::PutEntity(row_of(queue)));
    }
}

fn stored_of(queue: &Queue, origins: Origins) -> Stored {
    let settings = queue.own().clone();
    let kind = match &queue.kind {
        Kind::Queue | Kind::Transfer { .. } => StoredKind::Queue(settings),
        Kind::Topic(_) => StoredKind::Topic(settings),
        Kind::Subscription(subscription) => StoredKind::Subscription {
            topic: subscription.topic.0,
            dead_lettering_on_filter_evaluation_exceptions: subscription
                .dead_lettering_on_filter_evaluation_exceptions,
            client_affine: subscription.client_affine.clone(),
            settings,
        },
    };
    stored_with(queue, kind, origins)
}

/// What a snapshot is to have of an entity, and how it is written: under this id, made of the
/// entity, whose bodies belong to it from a number on.
pub(crate) fn freeze(
    queue: &Queue,
    (id, snapshot): (EntityId, EntityId),
    owned_from: SequenceNumber,
) -> (Frozen, EntityRow) {
    let head = queue.rows.head.clone();
    let origins = queue.rows.origins.of_copy(queue.id, head.next_number);
    let entity = stored_of(queue, origins.clone());
    let frozen = Frozen {
        source: queue.id,
        owned_from,
        path: queue.path.clone(),
        definition: encoded(&entity),
        origins,
        head,
        rules: Vec::new(),
        expiries: queue.expiry.blocks().collect(),
    };
    let stored = Stored::of(StoredKind::Frozen {
        snapshot: snapshot.0,
        source: queue.id.0,
        owned_from: owned_from.0,
        entity: Box::new(entity),
    });
    let row = encode(id, queue.namespace, queue.path.clone(), &stored);
    (frozen, row)
}

/// What a snapshot is to have of an entity that is loaded, and how it is written: under this id,
/// which is the home of its bodies. `topic` finds the topic of a subscription.
pub(crate) fn load(
    entity: FrozenEntity,
    (id, snapshot): (EntityId, EntityId),
    topic: impl FnOnce(EntityId) -> Option<EntityId>,
) -> Result<(Frozen, EntityRow), StoreError> {
    let corrupt = |detail: String| StoreError::Corrupt {
        what: format!("the definition of {}", entity.path),
        detail,
    };
    let mut stored: Stored =
        serde_json::from_slice(&entity.definition).map_err(|error| corrupt(error.to_string()))?;
    stored.origins = Origins::default();
    if let StoredKind::Subscription { topic: known, .. } = &mut stored.kind {
        let found = topic(EntityId(*known));
        let found = found.ok_or_else(|| corrupt("its topic is missing".to_owned()))?;
        *known = found.0;
    }
    let frozen = Frozen {
        source: id,
        owned_from: SequenceNumber(0),
        path: entity.path,
        definition: encoded(&stored),
        origins: Origins::default(),
        head: Head {
            parts: Box::default(),
            ..entity.head
        },
        rules: entity.rules,
        expiries: entity.expiries,
    };
    let stored = Stored::of(StoredKind::Frozen {
        snapshot: snapshot.0,
        source: id.0,
        owned_from: 0,
        entity: Box::new(stored),
    });
    let row = encode(id, NamespaceId::default(), frozen.path.clone(), &stored);
    Ok((frozen, row))
}

/// The row of a snapshot, whose name is in its path as in that of no entity.
pub(crate) fn snapshot_row(id: EntityId, snapshot: &Snapshot) -> EntityRow {
    let removed = snapshot.name.is_none();
    let stored = Stored {
        created: snapshot.created.0,
        ..Stored::of(StoredKind::Snapshot { removed })
    };
    let name = snapshot.name.as_deref().unwrap_or_default();
    encode(id, snapshot.namespace, format!("{SNAPSHOT}{name}"), &stored)
}

/// The row of what is left of a deleted subscription or queue.
pub(crate) fn tombstone_of(queue: &Queue, topic: Option<EntityId>) -> EntityRow {
    let topic = topic.map(|topic| topic.0);
    let borrows = queue.rows.origins.borrows();
    let kind = StoredKind::Tombstone { topic, borrows };
    let stored = stored_with(queue, kind, Origins::default());
    encode(queue.id, queue.namespace, queue.path.clone(), &stored)
}

/// A router's row.
pub(crate) fn row_of_router(router: &Router) -> EntityRow {
    let stored = Stored::of(StoredKind::Router(StoredRouter::of(&router.settings)));
    encode(router.id, router.namespace, router.name.clone(), &stored)
}

fn stored_with(queue: &Queue, kind: StoredKind, origins: Origins) -> Stored {
    Stored {
        kind,
        created: queue.times.created.0,
        updated: queue.times.updated.0,
        store_only: (*queue.store_only != StoreOnlyProperties::default())
            .then(|| (*queue.store_only).clone()),
        session_ids: queue.rows.session_ids.unwrap_or_default(),
        shares_bodies: queue.shares_bodies,
        annotates: queue.annotates,
        ceilings: queue.sub(Subqueue::Main).ceilings.clone(),
        origins,
    }
}

/// The row of a namespace. It has the namespace's id, as have those of its entities.
pub(crate) fn namespace_row(id: NamespaceId, namespace: &Namespace) -> EntityRow {
    let kind = StoredKind::Namespace(StoredNamespace {
        hosts: namespace.definition.hosts.clone(),
        keys: namespace.definition.keys.clone(),
        lineage: namespace.definition.lineage,
        limits: namespace.definition.limits,
        template: StoredTemplate::of(&namespace.template),
    });
    let stored = Stored {
        created: namespace.created.0,
        ..Stored::of(kind)
    };
    let path = format!("{NAMESPACE}{}", namespace.definition.name);
    encode(namespace.row, id, path, &stored)
}

/// The row of a policy. No path of an entity begins as its path does.
pub(crate) fn policy_row(id: EntityId, namespace: NamespaceId, policy: &Policy) -> EntityRow {
    let stored = Stored::of(StoredKind::Policy(policy.clone()));
    let path = format!("$policy {}", id.0);
    encode(id, namespace, path, &stored)
}

fn encode(id: EntityId, namespace: NamespaceId, path: String, stored: &Stored) -> EntityRow {
    EntityRow {
        id,
        namespace,
        path,
        definition: encoded(stored),
    }
}

fn encoded(stored: &Stored) -> Bytes {
    Bytes::from(serde_json::to_vec(stored).expect("settings are plain data"))
}

//! Directory: the entities of a broker, by id and by path.
//!
//! Paths are compared without regard to case within a namespace; ids are never reused.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use store::{EntityId, EntityRow, NamespaceId, Recovery, StoreError, Write};

use crate::id::RequestId;
use crate::output::{Output, RequestError};
use crate::queue::Queue;
use crate::settings::{BrokerSettings, QueueSettings};
use crate::shared::Context;

/// What an entity is, as the store keeps it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Definition {
    Queue(QueueSettings),
}

#[derive(Debug, Default)]
pub(crate) struct Directory {
    // Boxed, since a map moves its values and queues are large.
    queues: BTreeMap<EntityId, Box<Queue>>,
    by_path: BTreeMap<(NamespaceId, String), EntityId>,
    last: u64,
}

impl Directory {
    /// The entities that a store has recovered.
    pub(crate) fn recover(
        settings: &BrokerSettings,
        recovery: Recovery,
    ) -> Result<Self, StoreError> {
        let mut directory = Self {
            last: recovery.last_entity.map_or(0, |id| id.0),
            ..Self::default()
        };
        let mut heads: BTreeMap<_, _> = recovery.heads.into_iter().collect();
        for row in recovery.entities {
            let queue_settings = decode(&row)?;
            let head = heads.remove(&row.id).unwrap_or_else(store::Head::empty);
            let queue = Queue::new(
                row.id,
                row.namespace,
                row.path,
                queue_settings,
                head,
                settings.window,
            );
            directory.insert(queue);
        }
        for row in recovery.expiries {
            if let Some(queue) = directory.get_mut(row.entity)
                && row.part == store::Part::Active
            {
                queue.expiry.recover(row.block, row.due_ms);
            }
        }
        Ok(directory)
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Queue> {
        self.queues.get(&id).map(|queue| &**queue)
    }

    pub(crate) fn get_mut(&mut self, id: EntityId) -> Option<&mut Queue> {
        self.queues.get_mut(&id).map(|queue| &mut **queue)
    }

    /// The entity of a path.
    pub(crate) fn find(&self, namespace: NamespaceId, path: &str) -> Option<EntityId> {
        let key = (namespace, path.to_lowercase());
        self.by_path.get(&key).copied()
    }

    /// Every entity, in the order of their creation.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.queues.values().map(|queue| &**queue)
    }

    /// Every entity, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.queues.values_mut().map(|queue| &mut **queue)
    }

    /// Creates a queue, or takes over the changed settings of one that is there.
    pub(crate) fn ensure(
        &mut self,
        request: RequestId,
        namespace: NamespaceId,
        path: String,
        settings: QueueSettings,
        cx: &mut Context<'_>,
    ) {
        let key = (namespace, path.to_lowercase());
        let result = match self.by_path.get(&key).copied() {
            Some(id) => self.update(id, settings, cx),
            None => Ok(self.create(namespace, path, settings, cx)),
        };
        cx.say(Output::Ensured { request, result });
    }

    fn create(
        &mut self,
        namespace: NamespaceId,
        path: String,
        settings: QueueSettings,
        cx: &mut Context<'_>,
    ) -> EntityId {
        self.last += 1;
        let id = EntityId(self.last);
        let head = store::Head::empty();
        let window = cx.shared.settings.window;
        let queue = Queue::new(id, namespace, path, settings, head, window);
        cx.write(Write::PutEntity(row_of(&queue)));
        self.insert(queue);
        id
    }

    fn update(
        &mut self,
        id: EntityId,
        settings: QueueSettings,
        cx: &mut Context<'_>,
    ) -> Result<EntityId, RequestError> {
        let queue = self.get_mut(id).ok_or(RequestError::NotFound)?;
        check_unchanged(&queue.settings, &settings)?;
        if queue.settings != settings {
            queue.settings = settings;
            cx.write(Write::PutEntity(row_of(queue)));
            queue.wake_pumps();
            queue.run(cx);
        }
        Ok(id)
    }

    fn insert(&mut self, queue: Queue) {
        let key = (queue.namespace, queue.path.to_lowercase());
        self.last = self.last.max(queue.id.0);
        self.by_path.insert(key, queue.id);
        self.queues.insert(queue.id, Box::new(queue));
    }
}

/// What a queue has become by its creation can not be changed. (Entities contract 2.1)
fn check_unchanged(old: &QueueSettings, new: &QueueSettings) -> Result<(), RequestError> {
    let fixed = |name: &str| {
        let text = format!("{name} can not be changed after the queue was created");
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

fn row_of(queue: &Queue) -> EntityRow {
    let definition = Definition::Queue(queue.settings.clone());
    let definition = serde_json::to_vec(&definition).expect("settings are plain data");
    EntityRow {
        id: queue.id,
        namespace: queue.namespace,
        path: queue.path.clone(),
        definition: Bytes::from(definition),
    }
}

fn decode(row: &EntityRow) -> Result<QueueSettings, StoreError> {
    match serde_json::from_slice(&row.definition) {
        Ok(Definition::Queue(settings)) => Ok(settings),
        Err(error) => Err(StoreError::Corrupt {
            what: format!("the definition of {}", row.path),
            detail: error.to_string(),
        }),
    }
}

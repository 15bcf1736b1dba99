//! Directory: which entities exist, as connections see them. An immutable snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use broker::{EntityChange, EntityKind, QueueSettings};
use store::EntityId;

/// An entity as an attach needs to know it.
#[derive(Clone, Debug)]
pub struct Entity {
    /// Differs from that of a deleted entity of the same path.
    pub id: EntityId,
    /// In the case used at creation.
    pub path: String,
    /// What it is; it never becomes anything else.
    pub kind: EntityKind,
    /// What it was created with, or changed to.
    pub settings: QueueSettings,
}

/// Entities by path, without regard to case.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    entities: HashMap<String, Arc<Entity>>,
}

impl Directory {
    /// Adds an entity or replaces the one of its path.
    pub fn insert(&mut self, entity: Entity) {
        self.entities
            .insert(entity.path.to_lowercase(), Arc::new(entity));
    }

    /// Follows a change. That an entity is gone says nothing of another that has taken its path.
    pub fn apply(&mut self, change: EntityChange) {
        let EntityChange {
            id,
            path,
            kind,
            settings,
            ..
        } = change;
        match settings {
            Some(settings) => self.insert(Entity {
                id,
                path,
                kind,
                settings,
            }),
            None if self.get(&path).is_some_and(|entity| entity.id == id) => {
                self.entities.remove(&path.to_lowercase());
            }
            None => {}
        }
    }

    /// The entity at `path`, in any case.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Arc<Entity>> {
        self.entities.get(&path.to_lowercase())
    }
}

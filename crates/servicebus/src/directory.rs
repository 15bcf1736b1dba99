//! Directory: which entities exist, as connections see them. An immutable snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use broker::QueueSettings;
use store::EntityId;

/// An entity as an attach needs to know it.
#[derive(Clone, Debug)]
pub struct Entity {
    /// Differs from that of a deleted entity of the same path.
    pub id: EntityId,
    /// In the case used at creation.
    pub path: String,
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

    /// The entity at `path`, in any case.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Arc<Entity>> {
        self.entities.get(&path.to_lowercase())
    }
}

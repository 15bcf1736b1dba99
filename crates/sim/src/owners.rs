//! Owners: which namespace each entity of the store belongs to, so that the books of one namespace
//! see nothing of the others.
//!
//! The rows of namespaces themselves belong to no books. A write or a row about an entity that no
//! namespace has is a violation. (I9)

use std::collections::BTreeMap;

use store::image::Image;
use store::{CommitId, EntityId, EntityRow, NamespaceId, WriteSet};

use crate::violation::Violation;

/// Where each entity belongs, or belonged.
#[derive(Debug, Default)]
pub struct Owners {
    /// `None` of the row of a namespace.
    by_entity: BTreeMap<EntityId, Option<NamespaceId>>,
}

impl Owners {
    /// Those of what a crash has left.
    #[must_use]
    pub fn of(image: &Image) -> Self {
        let mut owners = Self::default();
        image.entities.values().for_each(|row| owners.learn(row));
        owners
    }

    fn learn(&mut self, row: &EntityRow) {
        let is_namespace = row.path.starts_with("$namespace ");
        let owner = (!is_namespace).then_some(row.namespace);
        self.by_entity.insert(row.id, owner);
    }

    /// The namespace of an entity, if it has one.
    #[must_use]
    pub fn namespace_of(&self, entity: EntityId) -> Option<NamespaceId> {
        self.by_entity.get(&entity).copied().flatten()
    }

    fn find(&self, entity: EntityId) -> Result<Option<NamespaceId>, Violation> {
        let found = self.by_entity.get(&entity).copied();
        found.ok_or_else(|| {
            let what = format!("{entity:?} is written and belongs to no namespace");
            Violation::new("I9", what)
        })
    }

    /// What of some write sets is about each namespace.
    ///
    /// # Errors
    /// I9, when a write is about an entity of none.
    pub fn divide(
        &mut self,
        sets: Vec<(CommitId, WriteSet)>,
    ) -> Result<BTreeMap<NamespaceId, Vec<(CommitId, WriteSet)>>, Violation> {
        let mut divided: BTreeMap<NamespaceId, Vec<(CommitId, WriteSet)>> = BTreeMap::new();
        for (commit, set) in sets {
            let mut parts: BTreeMap<NamespaceId, WriteSet> = BTreeMap::new();
            for write in set.into_vec() {
                if let store::Write::PutEntity(row) = &write {
                    self.learn(row);
                }
                if let Some(namespace) = self.find(write.entity())? {
                    parts.entry(namespace).or_default().push(write);
                }
            }
            for (namespace, set) in parts {
                divided.entry(namespace).or_default().push((commit, set));
            }
        }
        Ok(divided)
    }

    /// What of a store is about one namespace. The greatest id ever given out is that of all.
    #[must_use]
    pub fn part_of(&self, namespace: NamespaceId, image: &Image) -> Image {
        let is_here = |entity: &EntityId| self.namespace_of(*entity) == Some(namespace);
        macro_rules! part {
            ($field:ident, $key:pat => $entity:expr) => {
                image
                    .$field
                    .iter()
                    .filter(|($key, _)| is_here($entity))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect()
            };
        }
        Image {
            entities: part!(entities, entity => entity),
            last_entity: image.last_entity,
            heads: part!(heads, entity => entity),
            messages: part!(messages, (entity, ..) => entity),
            bodies: part!(bodies, (entity, ..) => entity),
            shares: part!(shares, (entity, ..) => entity),
            delivery_counts: part!(delivery_counts, (entity, ..) => entity),
            patches: part!(patches, (entity, ..) => entity),
            expiries: part!(expiries, (entity, ..) => entity),
            entries: part!(entries, (entity, ..) => entity),
        }
    }
}

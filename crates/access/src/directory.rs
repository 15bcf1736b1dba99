//! Directory: the entities and access rules, as connections see them. An immutable snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use broker::{EntityChange, EntityKind, QueueSettings, RuleSnapshot};
use rustc_hash::FxHashMap;
use store::{EntityId, NamespaceId};

use crate::access::{Access, Credential};
use crate::rights::{AccessRules, Rights};

/// An entity as an attach needs to know it.
#[derive(Clone, Debug)]
pub struct Entity {
    /// Differs from that of a deleted entity of the same path.
    pub id: EntityId,
    /// In the case used at creation.
    pub path: String,
    /// Its kind, which never changes.
    pub kind: EntityKind,
    /// Its present settings.
    pub settings: QueueSettings,
    /// The first of the entities of that path that restores have replaced, one by the next, up to
    /// this one.
    pub replaces: Option<EntityId>,
}

/// The entities of one namespace by path, without regard to case, the rules of its topics, and
/// those of access.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    namespace: NamespaceId,
    is_deleted: bool,
    entities: Arc<HashMap<String, Arc<Entity>>>,
    /// Of topics whose rules take some time to evaluate.
    rules: Arc<FxHashMap<EntityId, RuleSnapshot>>,
    access: Access,
}

impl Directory {
    /// The directory of the default namespace, without entities.
    #[must_use]
    pub fn new(rules: AccessRules) -> Self {
        Self::of(NamespaceId::default(), rules)
    }

    /// The directory of a namespace that has these rules, without entities.
    #[must_use]
    pub fn of(namespace: NamespaceId, rules: AccessRules) -> Self {
        Self {
            namespace,
            access: Access::new(rules),
            ..Self::default()
        }
    }

    /// The directory of a namespace that is gone.
    #[must_use]
    pub fn deleted(namespace: NamespaceId) -> Self {
        Self {
            namespace,
            is_deleted: true,
            ..Self::default()
        }
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> NamespaceId {
        self.namespace
    }

    /// Whether the namespace is gone.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// Adds an entity or replaces the one of its path.
    pub fn insert(&mut self, entity: Entity) {
        let entities = Arc::make_mut(&mut self.entities);
        entities.insert(entity.path.to_lowercase(), Arc::new(entity));
    }

    /// Applies a change. The removal of an entity does not affect another that has taken its path.
    pub fn apply(&mut self, change: EntityChange) {
        let EntityChange {
            id,
            path,
            kind,
            settings,
            authorization_rules,
            replaces,
            ..
        } = change;
        match settings {
            Some(settings) => {
                self.access.set_entity(&path, &authorization_rules);
                self.insert(Entity {
                    id,
                    path,
                    kind,
                    settings,
                    replaces,
                });
            }
            None => self.remove(id, &path),
        }
    }

    fn remove(&mut self, id: EntityId, path: &str) {
        if self.get(path).is_some_and(|entity| entity.id == id) {
            Arc::make_mut(&mut self.entities).remove(&path.to_lowercase());
            self.access.set_entity(path, &[]);
        }
        if self.rules.contains_key(&id) {
            Arc::make_mut(&mut self.rules).remove(&id);
        }
    }

    /// Takes over the rules that a topic has from now on.
    pub fn set_rules(&mut self, rules: RuleSnapshot) {
        if rules.is_costly() {
            Arc::make_mut(&mut self.rules).insert(rules.topic, rules);
        } else if self.rules.contains_key(&rules.topic) {
            Arc::make_mut(&mut self.rules).remove(&rules.topic);
        }
    }

    /// Replaces the namespace's rules of access; those of entities stay.
    pub fn set_access_rules(&mut self, rules: AccessRules) {
        self.access.replace(rules);
    }

    /// Has connections look up the rights of their links again, as when a key of an issuer is
    /// withdrawn.
    pub fn recheck_access(&mut self) {
        self.access.renew();
    }

    /// The access rules.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The entity at `path`, in any case.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Arc<Entity>> {
        self.entities.get(&path.to_lowercase())
    }

    /// The rights of a credential to the entity where it has most, for a client that has none to
    /// the whole namespace: what it may do somewhere. It looks at all entities.
    #[must_use]
    pub fn rights_somewhere(&self, credential: &Credential) -> Rights {
        let paths = self.entities.keys();
        let rights = paths.map(|path| self.access.rights(credential, path));
        rights.fold(Rights::NONE, Rights::union)
    }

    /// The path of an entity. It looks at all of them, so it is not for each message.
    #[must_use]
    pub fn path_of(&self, id: EntityId) -> Option<&str> {
        let mut entities = self.entities.values();
        let found = entities.find(|entity| entity.id == id);
        found.map(|entity| &*entity.path)
    }

    /// The rules of a topic, if they are worth evaluating before the broker does.
    #[must_use]
    pub fn rules(&self, topic: EntityId) -> Option<&RuleSnapshot> {
        self.rules.get(&topic)
    }

    /// Whether no entity has changed between two snapshots of one broker.
    #[must_use]
    pub fn has_same_entities(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entities, &other.entities)
    }
}

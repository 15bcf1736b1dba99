//! Namespaces: the worlds of this broker, by id and by name.
//!
//! The default one is always there and has no row. Ids are never used again while the broker runs,
//! so nothing of a deleted namespace acts on another. A deleted namespace keeps its routers as long
//! as a tombstone of it is there, since one of them is the home of bodies that the tombstone's rows
//! point to. Invariant: no two namespaces have a name or a host in common.

mod change;

use std::collections::BTreeMap;
use std::sync::Arc;

use store::{EntityId, NamespaceId};

use crate::api::entity_error::EntityError;
use crate::api::namespace::{
    DEFAULT_NAMESPACE, MAX_NAMESPACES, NamespaceChange, NamespaceDefinition, NamespaceLimits,
    name_in_host,
};
use crate::api::time::Wall;
use crate::entities::template::Template;

/// A namespace besides the default one.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// Of its row in the store.
    pub row: EntityId,
    pub definition: Arc<NamespaceDefinition>,
    pub created: Wall,
    /// What a reset goes back to.
    pub template: Template,
}

/// Every namespace.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    by_id: BTreeMap<NamespaceId, Namespace>,
    by_name: BTreeMap<String, NamespaceId>,
    /// What a reset of the default one goes back to. The configuration says it at each start.
    template: Template,
    /// How many tombstones deleted namespaces have.
    deleted: BTreeMap<NamespaceId, usize>,
    /// The greatest id given out.
    last: u32,
}

impl Namespaces {
    /// A namespace that the store had.
    pub(super) fn recover(&mut self, id: NamespaceId, namespace: Namespace) {
        self.note_id(id);
        let name = namespace.definition.name.clone();
        self.by_name.insert(name, id);
        self.by_id.insert(id, namespace);
    }

    /// A row of that namespace is in the store.
    pub(super) fn note_id(&mut self, id: NamespaceId) {
        self.last = self.last.max(id.0);
    }

    pub(crate) fn contains(&self, id: NamespaceId) -> bool {
        id == NamespaceId::default() || self.by_id.contains_key(&id)
    }

    pub(crate) fn get(&self, id: NamespaceId) -> Option<&Namespace> {
        self.by_id.get(&id)
    }

    /// The namespace of a name.
    pub(crate) fn find(&self, name: &str) -> Result<NamespaceId, EntityError> {
        if name == DEFAULT_NAMESPACE {
            return Ok(NamespaceId::default());
        }
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| EntityError::NoNamespace(name.to_owned()))
    }

    /// All but the default one, in the order of their names.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NamespaceId> {
        self.by_name.values().copied()
    }

    /// What a server needs to know of each.
    pub(crate) fn changes(&self) -> impl Iterator<Item = NamespaceChange> {
        self.by_id.iter().map(|(id, namespace)| NamespaceChange {
            id: *id,
            definition: Some(Arc::clone(&namespace.definition)),
        })
    }

    /// What a namespace may have at most.
    pub(crate) fn limits(&self, id: NamespaceId) -> NamespaceLimits {
        let own = self.by_id.get(&id);
        own.map_or_else(NamespaceLimits::default, |it| it.definition.limits)
    }

    /// What a reset of a namespace goes back to.
    pub(crate) fn template(&self, id: NamespaceId) -> &Template {
        let own = self.by_id.get(&id).map(|namespace| &namespace.template);
        own.unwrap_or(&self.template)
    }

    /// Whether a definition fits beside the others: `own` is that of the namespace itself.
    pub(crate) fn check(
        &self,
        definition: &NamespaceDefinition,
        own: Option<NamespaceId>,
    ) -> Result<(), EntityError> {
        definition.check()?;
        let others = self.by_id.iter().filter(|(id, _)| Some(**id) != own);
        for (_, other) in others {
            let other = &other.definition;
            if other.name == definition.name {
                return Err(EntityError::NamespaceExists(definition.name.clone()));
            }
            let mut hosts = definition.hosts.iter();
            let mut others_hosts = other.hosts.iter();
            let taken = hosts
                .find(|host| other.has_host(host))
                .or_else(|| others_hosts.find(|host| definition.has_host(host)));
            if let Some(host) = taken {
                let text = format!("host '{host}': it is that of namespace '{}'", other.name);
                return Err(EntityError::Invalid(text));
            }
        }
        let mut hosts = definition.hosts.iter();
        if let Some(host) = hosts.find(|host| name_in_host(host) == Some(DEFAULT_NAMESPACE)) {
            let text = format!("host '{host}': it is that of the default namespace");
            return Err(EntityError::Invalid(text));
        }
        if own.is_none() && (self.by_id.len() >= MAX_NAMESPACES || self.last == u32::MAX) {
            let (limit, what) = (MAX_NAMESPACES, "namespaces besides the default one");
            return Err(EntityError::TooMany { limit, what });
        }
        Ok(())
    }
}

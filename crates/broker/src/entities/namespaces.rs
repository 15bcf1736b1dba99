//! Namespaces: the worlds of this broker, by id and by name.
//!
//! The default one is always there and has no row. Ids are never used again while the broker runs,
//! so nothing of a deleted namespace acts on another. A deleted namespace keeps its routers as long
//! as a tombstone of it is there, since one of them is the home of bodies that the tombstone's rows
//! point to. Invariant: no two namespaces have a name or a host in common.

use std::collections::BTreeMap;

use store::{EntityId, NamespaceId, Write};

use crate::api::entity_error::EntityError;
use crate::api::namespace::{
    DEFAULT_NAMESPACE, MAX_NAMESPACES, NamespaceChange, NamespaceDefinition, NamespaceDescription,
    NamespaceLimits, name_in_host,
};
use crate::api::output::Output;
use crate::api::time::Wall;
use crate::context::Context;
use crate::entities::definition;
use crate::entities::directory::Directory;
use crate::entities::template::Template;
use crate::queue::Queue;

/// Why there is a namespace.
const FOUND: &str = "the caller has found it";

/// A namespace besides the default one.
#[derive(Debug)]
pub(crate) struct Namespace {
    /// Of its row in the store.
    pub row: EntityId,
    pub definition: NamespaceDefinition,
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
            definition: Some(namespace.definition.clone()),
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

impl Directory {
    /// Makes a namespace without entities.
    pub(crate) fn create_namespace(
        &mut self,
        definition: NamespaceDefinition,
        template: Template,
        cx: &mut Context<'_>,
    ) -> Result<NamespaceId, EntityError> {
        self.namespaces.check(&definition, None)?;
        let next = self.namespaces.last.checked_add(1);
        let id = NamespaceId(next.expect("it was checked that there is one more"));
        let namespace = Namespace {
            row: self.next_id(),
            definition,
            created: cx.now.wall,
            template,
        };
        self.namespaces.recover(id, namespace);
        self.publish_namespace(id, cx);
        Ok(id)
    }

    /// Gives a namespace other hosts and keys.
    pub(crate) fn replace_namespace(
        &mut self,
        definition: NamespaceDefinition,
        cx: &mut Context<'_>,
    ) -> Result<NamespaceId, EntityError> {
        let id = self.namespaces.find(&definition.name)?;
        self.namespaces.check(&definition, Some(id))?;
        let namespace = self.namespaces.by_id.get_mut(&id).expect(FOUND);
        if namespace.definition != definition {
            namespace.definition = definition;
            self.publish_namespace(id, cx);
        }
        Ok(id)
    }

    /// Sets what a reset of a namespace goes back to.
    pub(crate) fn set_template(
        &mut self,
        id: NamespaceId,
        template: Template,
        cx: &mut Context<'_>,
    ) {
        match self.namespaces.by_id.get_mut(&id) {
            None => self.namespaces.template = template,
            Some(namespace) if namespace.template == template => {}
            Some(namespace) => {
                namespace.template = template;
                cx.write(Write::PutEntity(definition::namespace_row(id, namespace)));
            }
        }
    }

    /// Writes a namespace's definition, and tells the server of it.
    fn publish_namespace(&self, id: NamespaceId, cx: &mut Context<'_>) {
        let namespace = self.namespaces.get(id).expect(FOUND);
        cx.write(Write::PutEntity(definition::namespace_row(id, namespace)));
        cx.switch_lineage(id, namespace.definition.lineage);
        let limit = namespace.definition.limits.max_bytes;
        let bytes = || {
            let stored = self.all_in(id).filter(|queue| !queue.id.is_volatile());
            stored.fold(0, |sum, queue| queue.bytes().saturating_add(sum))
        };
        cx.shared.namespaces.set_limit(id, limit, bytes);
        cx.emit(Output::NamespaceChanged(Box::new(NamespaceChange {
            id,
            definition: Some(namespace.definition.clone()),
        })));
    }

    /// A namespace goes whose entities and policies are gone.
    pub(crate) fn remove_namespace(&mut self, id: NamespaceId, cx: &mut Context<'_>) {
        let namespace = self.namespaces.by_id.remove(&id).expect(FOUND);
        self.namespaces.by_name.remove(&namespace.definition.name);
        self.versions.remove(&id);
        cx.forget_clock(id);
        cx.write(Write::RemoveEntity(namespace.row));
        cx.switch_lineage(id, None);
        cx.shared.namespaces.set_limit(id, None, || 0);
        cx.effects.lineage.switched.push((id, false));
        // Parts of snapshots go by themselves.
        let snapshots = &self.snapshots;
        let of_it = self.tombstones.values();
        let of_it = of_it.filter(|it| it.namespace == id && !snapshots.is_part(it.id));
        match of_it.count() {
            0 => self.routers.remove_namespace(id, cx),
            count => drop(self.namespaces.deleted.insert(id, count)),
        }
        cx.emit(Output::NamespaceChanged(Box::new(NamespaceChange {
            id,
            definition: None,
        })));
    }

    /// A tombstone of a namespace has ended.
    pub(super) fn tombstone_ended(&mut self, id: NamespaceId, cx: &mut Context<'_>) {
        let Some(left) = self.namespaces.deleted.get_mut(&id) else {
            return;
        };
        *left -= 1;
        if *left == 0 {
            self.namespaces.deleted.remove(&id);
            self.routers.remove_namespace(id, cx);
        }
    }

    /// After a restart: which tombstones are of deleted namespaces.
    pub(super) fn recover_deleted(&mut self) {
        let Self {
            namespaces,
            tombstones,
            ..
        } = self;
        for tombstone in tombstones.values() {
            if !namespaces.contains(tombstone.namespace) {
                *namespaces.deleted.entry(tombstone.namespace).or_default() += 1;
            }
        }
    }

    /// Every entity of a namespace, volatile ones and transfer queues too.
    pub(crate) fn all_in(&self, namespace: NamespaceId) -> impl Iterator<Item = &Queue> {
        let all = self.queues.values().map(|queue| &**queue);
        all.filter(move |queue| queue.namespace == namespace)
    }

    /// A namespace as it is now.
    pub(crate) fn describe_namespace(&self, id: NamespaceId) -> NamespaceDescription {
        let namespace = self.namespaces.get(id);
        let definition = namespace.map_or_else(
            || NamespaceDefinition {
                name: DEFAULT_NAMESPACE.to_owned(),
                ..NamespaceDefinition::default()
            },
            |namespace| namespace.definition.clone(),
        );
        let oldest = || self.by_path(id, "").map(|(_, queue)| queue.times.created);
        NamespaceDescription {
            id,
            definition,
            created: namespace.map_or_else(
                || oldest().min().unwrap_or_default(),
                |namespace| namespace.created,
            ),
            entities: self.by_path(id, "").count(),
        }
    }
}

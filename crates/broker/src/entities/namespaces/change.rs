//! Change: a namespace is made, gets another definition, and goes.
//!
//! Each change is written to the store and told to the server in the step that makes it.

use std::sync::Arc;

use store::{NamespaceId, Write};

use super::Namespace;
use crate::api::entity_error::EntityError;
use crate::api::namespace::{
    DEFAULT_NAMESPACE, NamespaceChange, NamespaceDefinition, NamespaceDescription,
};
use crate::api::output::Output;
use crate::context::Context;
use crate::entities::definition;
use crate::entities::directory::Directory;
use crate::entities::template::Template;
use crate::queue::Queue;

/// Why there is a namespace.
const FOUND: &str = "the caller has found it";

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
            definition: Arc::new(definition),
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
        if *namespace.definition != definition {
            namespace.definition = Arc::new(definition);
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
            definition: Some(Arc::clone(&namespace.definition)),
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
    pub(in crate::entities) fn tombstone_ended(&mut self, id: NamespaceId, cx: &mut Context<'_>) {
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
    pub(in crate::entities) fn recover_deleted(&mut self) {
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
            |namespace| NamespaceDefinition::clone(&namespace.definition),
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

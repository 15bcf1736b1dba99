//! Apply: policies come and go, and the entities that they fit change with them.
//!
//! A change of policies holds at once: settings in force are computed anew for the entities that it
//! concerns, and those that differ are told.

use std::collections::BTreeSet;

use store::{EntityId, NamespaceId, Write};

use super::Known;
use crate::api::entity_error::EntityError;
use crate::api::output::Output;
use crate::api::policy::key::ALTERNATE_EXCHANGE;
use crate::api::policy::{MAX_POLICIES, Policy, PolicyLayer};
use crate::context::Context;
use crate::entities::definition;
use crate::entities::directory::{CHANGED, Directory, change_of};
use crate::queue::Queue;
use crate::receive::run::run;

impl Directory {
    /// The policies of a layer, by name.
    pub(crate) fn policies(
        &self,
        namespace: NamespaceId,
        layer: PolicyLayer,
    ) -> impl Iterator<Item = &Policy> {
        self.policies.list(namespace, layer)
    }

    /// Puts a policy in the place of the one of its name. Returns whether there was none.
    pub(crate) fn put_policy(
        &mut self,
        namespace: NamespaceId,
        policy: Policy,
        cx: &mut Context<'_>,
    ) -> Result<bool, EntityError> {
        let mut concerned = Vec::new();
        let is_new = self.insert_policy(namespace, policy, &mut concerned, cx)?;
        self.apply_policies(namespace, concerned, cx);
        Ok(is_new)
    }

    /// The same, but for the entities that are `concerned`: [`Self::apply_policies`] follows.
    pub(crate) fn insert_policy(
        &mut self,
        namespace: NamespaceId,
        policy: Policy,
        concerned: &mut Vec<EntityId>,
        cx: &mut Context<'_>,
    ) -> Result<bool, EntityError> {
        let pattern = policy.compile()?;
        if policy.definition.contains_key(ALTERNATE_EXCHANGE) {
            self.make_router_rows(namespace, cx);
        }
        let key = (namespace, policy.layer, policy.name.clone());
        let before = self.policies.all.get(&key);
        let count = self.policies.list(namespace, policy.layer).count();
        if before.is_none() && count >= MAX_POLICIES {
            let (limit, what) = (MAX_POLICIES, "policies of a layer");
            return Err(EntityError::TooMany { limit, what });
        }
        let id = before.map(|known| known.id);
        let id = id.unwrap_or_else(|| self.next_id());
        cx.write(Write::PutEntity(definition::policy_row(
            id, namespace, &policy,
        )));
        let known = Known {
            id,
            policy,
            pattern,
        };
        concerned.extend(self.concerned(namespace, &known));
        let before = self.policies.all.insert(key.clone(), known);
        if let Some(before) = &before {
            concerned.extend(self.concerned(namespace, before));
        }
        Ok(before.is_none())
    }

    /// Whether these policies can go, and these be put.
    pub(crate) fn check_policies(
        &self,
        namespace: NamespaceId,
        put: &[Policy],
        removed: &[(PolicyLayer, String)],
    ) -> Result<(), EntityError> {
        let all = &self.policies.all;
        let mut left: BTreeSet<_> = all.keys().filter(|(of, ..)| *of == namespace).collect();
        let at = |name: &str, error| EntityError::At {
            path: name.to_owned(),
            error: Box::new(error),
        };
        for (layer, name) in removed {
            if !left.remove(&(namespace, *layer, name.clone())) {
                return Err(at(name, EntityError::NotFound));
            }
        }
        let mut counts = [PolicyLayer::User, PolicyLayer::Operator]
            .map(|layer| left.iter().filter(|(_, of, _)| *of == layer).count());
        let mut named = BTreeSet::new();
        for policy in put {
            policy.check().map_err(|error| at(&policy.name, error))?;
            if !named.insert((policy.layer, &policy.name)) {
                let text = "it is named twice".to_owned();
                return Err(at(&policy.name, EntityError::Invalid(text)));
            }
            let key = (namespace, policy.layer, policy.name.clone());
            counts[policy.layer as usize] += usize::from(!left.contains(&key));
        }
        if counts.iter().any(|count| *count > MAX_POLICIES) {
            let (limit, what) = (MAX_POLICIES, "policies of a layer");
            return Err(EntityError::TooMany { limit, what });
        }
        Ok(())
    }

    /// Takes a policy away.
    pub(crate) fn remove_policy(
        &mut self,
        namespace: NamespaceId,
        layer: PolicyLayer,
        name: &str,
        cx: &mut Context<'_>,
    ) -> Result<(), EntityError> {
        let mut concerned = Vec::new();
        self.take_policy(namespace, layer, name, &mut concerned, cx)?;
        self.apply_policies(namespace, concerned, cx);
        Ok(())
    }

    /// The same, but for the entities that are `concerned`: [`Self::apply_policies`] follows.
    pub(crate) fn take_policy(
        &mut self,
        namespace: NamespaceId,
        layer: PolicyLayer,
        name: &str,
        concerned: &mut Vec<EntityId>,
        cx: &mut Context<'_>,
    ) -> Result<(), EntityError> {
        let key = (namespace, layer, name.to_owned());
        let known = self.policies.all.remove(&key);
        let known = known.ok_or(EntityError::NotFound)?;
        cx.write(Write::RemoveEntity(known.id));
        concerned.extend(self.concerned(namespace, &known));
        Ok(())
    }

    /// The entities that a policy fits.
    fn concerned(&self, namespace: NamespaceId, known: &Known) -> Vec<EntityId> {
        let entities = self
            .iter_seen()
            .filter(|queue| queue.namespace == namespace);
        let fitting = entities.filter(|queue| {
            let entity = (queue.kind.seen(), queue.own().queue_type());
            known.fits(&queue.path, entity)
        });
        fitting.map(|queue| queue.id).collect()
    }

    /// What policies say of these entities has changed: that holds at once.
    pub(crate) fn apply_policies(
        &mut self,
        namespace: NamespaceId,
        mut concerned: Vec<EntityId>,
        cx: &mut Context<'_>,
    ) {
        concerned.sort_unstable();
        concerned.dedup();
        for id in concerned {
            self.apply_policy(id, cx);
        }
        self.govern_routers(namespace);
        self.note_change_of_namespace(namespace);
    }

    /// Gives the routers of a namespace the alternates that policies name.
    pub(crate) fn govern_routers(&mut self, namespace: NamespaceId) {
        let Self {
            policies, routers, ..
        } = self;
        routers.govern(namespace, |name| policies.alternate(namespace, name));
    }

    fn apply_policy(&mut self, id: EntityId, cx: &mut Context<'_>) {
        let Self {
            policies, queues, ..
        } = self;
        let queue = queues.get_mut(&id).expect(CHANGED);
        let (before, lived_ms) = (queue.settings.clone(), stored_ttl_ms(queue));
        let own = queue.own().clone();
        policies.govern(queue, own);
        let ttl_ms = stored_ttl_ms(queue);
        if ttl_ms < lived_ms {
            queue.shorten_lives(ttl_ms);
            cx.write(Write::PutEntity(definition::row_of(queue)));
        } else if queue.settings == before {
            return;
        }
        cx.emit(Output::EntityChanged(Box::new(change_of(queue))));
        let queue = self.get_mut(id).expect(CHANGED);
        queue.wake_pumps();
        run(queue, cx);
    }

    /// Gives every entity and router that was recovered what policies make of it.
    pub(in crate::entities) fn govern_all(&mut self) {
        let Self {
            policies, queues, ..
        } = self;
        for queue in queues.values_mut() {
            let own = queue.settings.clone();
            policies.govern(queue, own);
        }
        for namespace in self.routers.namespaces() {
            self.govern_routers(namespace);
        }
    }
}

/// The longest life that policies leave messages that are there. What the queue has of its own is
/// no part of it: that holds for messages that come later. (docs/spec/entities.md#21)
pub(crate) fn stored_ttl_ms(queue: &Queue) -> u64 {
    let governed = queue.governed.as_ref();
    let ttl_ms = governed.and_then(|governed| governed.stored_ttl_ms);
    ttl_ms.unwrap_or(u64::MAX)
}

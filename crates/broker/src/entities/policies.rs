//! Policies: which of them applies to an entity, and what follows from that.
//!
//! The settings in force are computed when an entity or a policy changes, never for a message. An
//! entity to which no policy applies costs nothing. Invariant: `Queue::settings` are those in
//! force, and follow from `Queue::own` and the policies that are there.

mod apply;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use store::{EntityId, NamespaceId, StoreError};

use crate::api::declared::QueueType;
use crate::api::kind::EntityKind;
use crate::api::policy::key::{ALTERNATE_EXCHANGE, in_force, merged, stored_time_to_live};
use crate::api::policy::{AppliedPolicy, Policy, PolicyLayer};
use crate::api::router::DEFAULT_ROUTER;
use crate::api::settings::QueueSettings;
use crate::queue::Queue;
use crate::queue::governed::Governed;
use crate::queue::kind::Kind;

pub(crate) use apply::stored_ttl_ms;

/// Every policy that is there.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    all: BTreeMap<(NamespaceId, PolicyLayer, String), Known>,
}

#[derive(Debug)]
struct Known {
    /// Of its row in the store.
    id: EntityId,
    policy: Policy,
    pattern: Regex,
}

impl Known {
    fn fits(&self, path: &str, (kind, queue_type): Governable) -> bool {
        self.policy.fits(kind, queue_type) && self.pattern.is_match(path)
    }

    fn fits_router(&self, name: &str) -> bool {
        self.policy.apply_to.fits_routers() && self.pattern.is_match(name)
    }

    fn priority(&self) -> f64 {
        self.policy.priority.as_f64().unwrap_or_default()
    }
}

/// The kind of an entity, and the type that it has as a queue.
type Governable = (EntityKind, QueueType);

impl Policies {
    /// A policy that the store had.
    pub(crate) fn recover(
        &mut self,
        id: EntityId,
        namespace: NamespaceId,
        policy: Policy,
    ) -> Result<(), StoreError> {
        let pattern = policy.compile().map_err(|error| StoreError::Corrupt {
            what: format!("the policy {}", policy.name),
            detail: error.to_string(),
        })?;
        let key = (namespace, policy.layer, policy.name.clone());
        self.all.insert(
            key,
            Known {
                id,
                policy,
                pattern,
            },
        );
        Ok(())
    }

    /// The policies of a layer, by name.
    pub(crate) fn list(
        &self,
        namespace: NamespaceId,
        layer: PolicyLayer,
    ) -> impl Iterator<Item = &Policy> {
        let all = self.all.range((namespace, layer, String::new())..);
        let all = all.take_while(move |((of, is, _), _)| (*of, *is) == (namespace, layer));
        all.map(|(_, known)| &known.policy)
    }

    /// The one that applies: of the highest priority, and of those the smallest name.
    fn choose(
        &self,
        namespace: NamespaceId,
        layer: PolicyLayer,
        fits: impl Fn(&Known) -> bool,
    ) -> Option<&Policy> {
        let all = self.all.range((namespace, layer, String::new())..);
        let all = all.take_while(|((of, is, _), _)| (*of, *is) == (namespace, layer));
        let mut chosen: Option<&Known> = None;
        for (_, known) in all {
            let is_higher = chosen.is_none_or(|chosen| known.priority() > chosen.priority());
            if is_higher && fits(known) {
                chosen = Some(known);
            }
        }
        chosen.map(|known| &known.policy)
    }

    /// The policies that apply, and the longest life that they leave messages that are there.
    fn applied(
        &self,
        namespace: NamespaceId,
        path: &str,
        entity: Governable,
    ) -> Option<(AppliedPolicy, Option<u64>)> {
        if self.all.is_empty() {
            return None;
        }
        let fits = |known: &Known| known.fits(path, entity);
        let user = self.choose(namespace, PolicyLayer::User, fits);
        let operator = self.choose(namespace, PolicyLayer::Operator, fits);
        let name = |policy: Option<&Policy>| policy.map(|policy| policy.name.clone());
        let definition = match (user, operator) {
            (None, None) => return None,
            (Some(policy), None) | (None, Some(policy)) => policy.definition.clone(),
            (Some(user), Some(operator)) => merged(&user.definition, &operator.definition),
        };
        let stored_ttl_ms = stored_time_to_live(
            user.map(|policy| &policy.definition),
            operator.map(|policy| &policy.definition),
        );
        let applied = AppliedPolicy {
            user: name(user),
            operator: name(operator),
            definition,
        };
        Some((applied, stored_ttl_ms))
    }

    /// Whether any policy of a namespace names an alternate router.
    pub(crate) fn name_alternates(&self, namespace: NamespaceId) -> bool {
        let mut all = self.list(namespace, PolicyLayer::User);
        all.any(|policy| policy.definition.contains_key(ALTERNATE_EXCHANGE))
    }

    /// The alternate router that the policy of a router names, which is no operator policy.
    pub(crate) fn alternate(&self, namespace: NamespaceId, router: &str) -> Option<String> {
        if router == DEFAULT_ROUTER || !self.name_alternates(namespace) {
            return None;
        }
        let fits = |known: &Known| known.fits_router(router);
        let policy = self.choose(namespace, PolicyLayer::User, fits)?;
        let alternate = policy.definition.get(ALTERNATE_EXCHANGE)?.as_str();
        alternate.map(str::to_owned)
    }

    /// Gives an entity settings of its own, and what policies make of them: nothing of a dynamic
    /// node or a transfer queue.
    pub(crate) fn govern(&self, queue: &mut Queue, own: QueueSettings) {
        let entity = (queue.kind.seen(), own.queue_type());
        let is_named = !queue.id.is_volatile() && !matches!(queue.kind, Kind::Transfer { .. });
        let applied = self.applied(queue.namespace, &queue.path, entity);
        match applied.filter(|_| is_named) {
            None => {
                queue.settings = own;
                queue.governed = None;
            }
            Some((applied, stored_ttl_ms)) => {
                queue.settings = in_force(&own, &applied.definition);
                queue.governed = Some(Box::new(Governed {
                    own,
                    applied: Arc::new(applied),
                    stored_ttl_ms,
                }));
            }
        }
    }
}

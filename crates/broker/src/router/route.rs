//! Route: the queues and topics that a message goes to.
//!
//! From the router of the message the bindings that match lead on, to other routers too; each
//! router is visited once, so a circle of bindings ends. A router of which no binding matches sends
//! the message to its alternate router or topic, if that is there. A destination is found once,
//! however many bindings lead to it. The work is bounded in steps.
//! (docs/spec/rabbitmq.md#8)

use std::collections::BTreeSet;

use bytes::Bytes;
use store::{EntityId, NamespaceId};

use super::headers::Headers;
use super::steps::Steps;
use super::target::Target;
use super::{Router, predeclared};
use crate::api::publication::{Publication, PublishError};
use crate::api::router::DEFAULT_ROUTER;
use crate::entities::directory::Directory;
use crate::message::route::Route;
use crate::queue::kind::Kind;

impl Directory {
    /// The queues and topics that a message goes to, in the order of their creation.
    pub(super) fn route(
        &self,
        publication: &Publication,
    ) -> Result<BTreeSet<EntityId>, PublishError> {
        let Publication {
            namespace,
            router: name,
            keys,
            message,
        } = publication;
        let Some(router) = self.routers.find(*namespace, name) else {
            // A router without a row has no bindings.
            return match predeclared(name) {
                Some(_) if name == DEFAULT_ROUTER => Ok(self.named_by(*namespace, keys).collect()),
                Some(_) => Ok(BTreeSet::new()),
                None => Err(PublishError::NotFound(name.clone())),
            };
        };
        if router.settings.internal {
            return Err(PublishError::Internal(name.clone()));
        }
        let mut headers = Headers::new(&message.payload);
        self.follow(router, keys, &mut headers)
    }

    /// Where the router of a dead letter sends it, which may be one for routers alone, or a topic:
    /// nowhere if there is none, or if that takes too many steps.
    pub(crate) fn dead_letter_targets(
        &self,
        namespace: NamespaceId,
        route: &Route,
        payload: &Bytes,
    ) -> BTreeSet<EntityId> {
        let (name, keys) = (&route.router, &route.keys);
        match self.routers.find(namespace, name) {
            Some(router) => {
                let found = self.follow(router, keys, &mut Headers::new(payload));
                found.unwrap_or_default()
            }
            None if name == DEFAULT_ROUTER => self.named_by(namespace, keys).collect(),
            None => self.topic(namespace, name).into_iter().collect(),
        }
    }

    fn follow(
        &self,
        router: &Router,
        keys: &[String],
        headers: &mut Headers<'_>,
    ) -> Result<BTreeSet<EntityId>, PublishError> {
        let namespace = router.namespace;
        let mut steps = Steps::new();
        let mut destinations = BTreeSet::new();
        let mut visited = BTreeSet::from([router.id]);
        let mut next = vec![router];
        let mut found = Vec::new();
        while let Some(router) = next.pop() {
            steps.take(1)?;
            if router.is_default() {
                steps.take(keys.len())?;
                found.extend(self.named_by(namespace, keys).map(Target::Entity));
            } else {
                let table = &router.bindings.table;
                table.collect(keys, headers, &mut steps, &mut found)?;
            }
            if found.is_empty() {
                let alternate = router.alternate();
                found.extend(alternate.and_then(|name| self.named(namespace, name)));
            }
            for target in found.drain(..) {
                match target {
                    Target::Entity(id) => drop(destinations.insert(id)),
                    Target::Router(id) if visited.insert(id) => {
                        next.extend(self.routers.get(id));
                    }
                    Target::Router(_) => {}
                }
            }
        }
        Ok(destinations)
    }

    /// The router of a name, or the topic.
    fn named(&self, namespace: NamespaceId, name: &str) -> Option<Target> {
        let router = self.routers.find(namespace, name);
        let router = router.map(|router| Target::Router(router.id));
        router.or_else(|| self.topic(namespace, name).map(Target::Entity))
    }

    /// The topic of a name, which is published to as a router is. (docs/spec/rabbitmq.md#8.1)
    fn topic(&self, namespace: NamespaceId, name: &str) -> Option<EntityId> {
        let found = self.find_exactly(namespace, name);
        let topic = found.filter(|queue| matches!(queue.kind, Kind::Topic(_)));
        topic.map(|queue| queue.id)
    }

    /// The queues that have these names, as the default router finds them.
    fn named_by(&self, namespace: NamespaceId, keys: &[String]) -> impl Iterator<Item = EntityId> {
        let named = keys
            .iter()
            .filter_map(move |key| self.find_exactly(namespace, key));
        let queues = named.filter(|queue| matches!(queue.kind, Kind::Queue));
        queues.map(|queue| queue.id)
    }
}

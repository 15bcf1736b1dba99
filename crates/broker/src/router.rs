//! Router: where publishers send to, and the bindings that tell where a message goes from there.
//!
//! A router keeps no message. `publish` asks it for the queues and topics of a message and enqueues
//! the message at each of them once, in one write set; those that are queues share one stored body.
//! Routers and bindings are rows of the store, and a binding goes with either end.
//! (docs/spec/rabbitmq.md#8)

mod binding;
mod bindings;
pub(crate) mod command;
mod headers;
mod pattern;
pub(crate) mod publish;
mod route;
pub(crate) mod routers;
mod steps;
mod stored;
mod table;
mod target;
pub(crate) mod waiting;

use store::{EntityId, NamespaceId};

use crate::api::router::{DEFAULT_ROUTER, RouterInfo, RouterKind, RouterSettings};
use crate::router::bindings::Bindings;

pub(crate) use stored::StoredRouter;

/// The routers that every namespace has.
const PREDECLARED: [(&str, RouterKind); 6] = [
    (DEFAULT_ROUTER, RouterKind::Direct),
    ("amq.direct", RouterKind::Direct),
    ("amq.fanout", RouterKind::Fanout),
    ("amq.headers", RouterKind::Headers),
    ("amq.match", RouterKind::Headers),
    ("amq.topic", RouterKind::Topic),
];

/// One router.
#[derive(Debug)]
pub(crate) struct Router {
    pub id: EntityId,
    pub namespace: NamespaceId,
    pub name: String,
    pub settings: RouterSettings,
    /// What a policy names as its alternate; its own counts before.
    governed_alternate: Option<String>,
    pub bindings: Bindings,
}

impl Router {
    pub(crate) fn new(
        id: EntityId,
        namespace: NamespaceId,
        name: String,
        settings: RouterSettings,
    ) -> Self {
        let bindings = Bindings::new(settings.kind);
        Self {
            id,
            namespace,
            name,
            settings,
            governed_alternate: None,
            bindings,
        }
    }

    /// The router for messages that match none of its bindings.
    fn alternate(&self) -> Option<&str> {
        let own = self.settings.alternate.as_deref();
        own.or(self.governed_alternate.as_deref())
    }

    /// Whether every queue is bound to it by its own name, and nothing else is.
    fn is_default(&self) -> bool {
        self.name == DEFAULT_ROUTER
    }

    /// Whether it is to go, as its last binding has gone.
    fn is_left(&self) -> bool {
        self.settings.auto_delete && self.bindings.is_empty()
    }

    fn info(&self) -> RouterInfo {
        RouterInfo {
            name: self.name.clone(),
            settings: self.settings.clone(),
            bindings: self.bindings.len(),
        }
    }
}

/// How a router is that is always there, by its name.
fn predeclared(name: &str) -> Option<RouterSettings> {
    let found = PREDECLARED.iter().find(|(it, _)| *it == name);
    found.map(|(_, kind)| RouterSettings::new(*kind))
}

//! Routing: bindings of routers that come and go while messages are published to them.

use broker::{
    Binding, BindingDestination, Command, ConnectionId, Order, Publication, RequestId, RouterOrder,
};

use super::{World, namespace};
use crate::inbox::NamespaceIndex;
use crate::ledger::routing::{DIRECT, FANOUT};
use crate::message::{self, SendOptions};
use crate::server;
use crate::world::script::incoming;

/// The queues that bindings lead to. None of them is ever disabled. None hands a message out and
/// forgets it in the step in which it comes, since its other copies would look like it.
const BOUND: [&str; 2] = ["plain", "forwards-dead-letters"];
const KEYS: [&str; 3] = ["a", "b", ""];

/// The clients of routers.
#[derive(Debug, Default)]
pub(super) struct Routing {
    /// How many requests they made.
    count: u64,
    /// The broker was asked which bindings there are.
    is_listing: bool,
}

impl Routing {
    /// The broker is another one now.
    pub(super) fn crashed(&mut self) {
        self.is_listing = false;
    }

    fn request(&mut self, namespace: NamespaceIndex) -> RequestId {
        self.count += 1;
        // Apart from those of administrators.
        let count = self.count | 1 << 40;
        RequestId {
            connection: ConnectionId::SERVER,
            token: namespace::id_in(namespace, count),
        }
    }
}

impl World {
    /// Changes a binding or publishes a message, or asks for the bindings after a crash.
    pub(super) fn route(&mut self, n: NamespaceIndex) {
        if self.faults_stopped {
            return;
        }
        let request = self.namespaces[n].routing.request(n);
        if !self.namespaces[n].ledger.knows_bindings() {
            if !std::mem::replace(&mut self.namespaces[n].routing.is_listing, true) {
                let order = RouterOrder::ListBindings {
                    source: None,
                    destination: None,
                    key: None,
                    skip: 0,
                    top: usize::MAX,
                };
                let order = server::administer(request, n, Order::Router(order));
                self.server.inbox.push(n, order);
            }
            return;
        }
        self.namespaces[n].routing.is_listing = false;
        let command = match self.rng.below(5) {
            0 => self.change_binding(n, request),
            _ => self.publish(n, request),
        };
        self.server.inbox.push(n, command);
    }

    fn router(&mut self) -> (String, String) {
        let router = [FANOUT, DIRECT][self.rng.below(2)];
        let key = KEYS[self.rng.below(KEYS.len())];
        (router.to_owned(), key.to_owned())
    }

    fn change_binding(&mut self, n: NamespaceIndex, request: RequestId) -> Command {
        let (source, key) = self.router();
        let queue = BOUND[self.rng.below(BOUND.len())];
        let binding = Box::new(Binding {
            source,
            destination: BindingDestination::Entity(queue.to_owned()),
            key,
            arguments: Vec::new(),
        });
        let order = if self.rng.chance(300) {
            RouterOrder::Unbind(binding)
        } else {
            RouterOrder::Bind(binding)
        };
        server::administer(request, n, Order::Router(order))
    }

    fn publish(&mut self, n: NamespaceIndex, request: RequestId) -> Command {
        let (router, key) = self.router();
        let mut keys = vec![key];
        if self.rng.chance(300) {
            keys.push(self.router().1);
        }
        let id = self.namespaces[n].ledger.next_id(None);
        let options = SendOptions {
            ttl: self
                .rng
                .chance(100)
                .then(|| self.rng.between(1, 20_000) as u32),
            ..SendOptions::default()
        };
        let payload = message::build(&mut self.rng, id, options, 20);
        let publication = Box::new(Publication {
            namespace: server::namespace_id(n),
            router,
            keys,
            message: incoming(id, payload, options),
        });
        Command::Publish {
            request,
            publication,
        }
    }
}

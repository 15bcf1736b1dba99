//! Routing: an administrator that changes routers and bindings, and publishes to them, beside
//! clients of RabbitMQ's dialect.

use broker::{
    Binding, Command, ConnectionId, Order, Publication, RequestId, RouterOrder, RouterSettings,
};

use super::{World, namespace};
use crate::inbox::NamespaceIndex;
use crate::message::{self, SendOptions};
use crate::world::script::incoming;
use crate::{server, topology};

/// The administrator.
#[derive(Debug, Default)]
pub(super) struct Routing {
    /// How many requests it made.
    count: u64,
}

impl Routing {
    fn request(&mut self, namespace: NamespaceIndex) -> RequestId {
        self.count += 1;
        // Apart from those of other administrators.
        let count = self.count | 1 << 40;
        RequestId {
            connection: ConnectionId::SERVER,
            token: namespace::id_in(namespace, count),
        }
    }
}

impl World {
    /// Changes a router or a binding, or publishes a message.
    pub(super) fn route(&mut self, n: NamespaceIndex) {
        if self.faults_stopped {
            return;
        }
        let request = self.namespaces[n].routing.request(n);
        let command = match self.rng.below(5) {
            0 => {
                let order = Order::Router(self.change_routing());
                server::administer(request, n, order)
            }
            _ => self.publish(n, request),
        };
        self.server.inbox.push(n, command);
    }

    fn change_routing(&mut self) -> RouterOrder {
        let rng = &mut self.rng;
        let (name, kind) = topology::any_declared_exchange(rng);
        let name = name.to_owned();
        let binding = Box::new(Binding {
            source: topology::any_exchange(rng).to_owned(),
            destination: topology::any_destination(rng),
            key: topology::any_binding_key(rng).to_owned(),
            arguments: Vec::new(),
        });
        match rng.weighted(&[12, 6, 2, 1]) {
            0 => RouterOrder::Bind(binding),
            1 => RouterOrder::Unbind(binding),
            2 => RouterOrder::Declare {
                name,
                settings: Box::new(RouterSettings::new(kind)),
            },
            _ => RouterOrder::Remove { name },
        }
    }

    fn publish(&mut self, n: NamespaceIndex, request: RequestId) -> Command {
        let rng = &mut self.rng;
        let router = topology::any_exchange(rng).to_owned();
        let mut keys = vec![topology::any_key(rng).to_owned()];
        if rng.chance(300) {
            keys.push(topology::any_key(rng).to_owned());
        }
        let id = self.namespaces[n].ledger.next_id(None);
        let options = SendOptions {
            ttl: rng.chance(100).then(|| rng.between(1, 20_000) as u32),
            ..SendOptions::default()
        };
        let payload = message::build(rng, id, options, 20);
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

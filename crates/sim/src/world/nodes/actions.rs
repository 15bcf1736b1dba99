//! Actions: what the users of nodes do, and what must be true when they have gone.

use broker::{
    Command, ConnectionId, EntityKind, LifetimePolicy, NodeKind, NodeRequest, NodeUse, Outcome,
};
use store::EntityId;

use super::{Asked, Sent, USERS};
use crate::inbox::NamespaceIndex;
use crate::message::{self, SendOptions};
use crate::server;
use crate::violation::Violation;
use crate::world::World;
use crate::world::script::incoming;

/// Most nodes that are known at a time.
const MOST_NODES: usize = 8;
const POLICIES: [LifetimePolicy; 4] = [
    LifetimePolicy::DeleteOnClose,
    LifetimePolicy::DeleteOnNoLinks,
    LifetimePolicy::DeleteOnNoMessages,
    LifetimePolicy::DeleteOnNoLinksOrMessages,
];

impl World {
    /// A user of nodes does something.
    pub(in crate::world) fn use_nodes(&mut self, n: NamespaceIndex) {
        if self.faults_stopped {
            return;
        }
        let user = self.rng.below(USERS);
        let Some(connection) = self.namespaces[n].nodes.users[user] else {
            let connection = self.namespaces[n].next_connection();
            self.namespaces[n].nodes.users[user] = Some(connection);
            self.namespaces[n].nodes.ever.insert(connection);
            return;
        };
        match self.rng.weighted(&[4, 6, 20, 20, 3, 1]) {
            0 => self.make_node(n, connection),
            1 => self.join_node(n, connection),
            2 => self.send_to_node(n, connection),
            3 => self.settle_of_node(n, connection),
            4 => self.close_node_link(n, connection),
            _ => self.namespaces[n].nodes.leave(user),
        }
    }

    fn make_node(&mut self, n: NamespaceIndex, connection: ConnectionId) {
        if self.namespaces[n].nodes.there.len() + self.namespaces[n].nodes.making.len()
            >= MOST_NODES
        {
            return;
        }
        let lifetime = POLICIES[self.rng.below(POLICIES.len())];
        let node = NodeRequest {
            kind: match self.rng.chance(300) {
                true => NodeKind::Topic,
                false => NodeKind::Queue,
            },
            lifetime,
            exclusive: self.rng.chance(300),
        };
        let link = self.namespaces[n].nodes.next_link(connection);
        self.namespaces[n].nodes.making.insert(link, lifetime);
        self.namespaces[n].nodes.commands.push(Command::CreateNode {
            link,
            namespace: server::namespace_id(n),
            node,
        });
    }

    fn any_node(&mut self, n: NamespaceIndex) -> Option<EntityId> {
        let count = self.namespaces[n].nodes.there.len();
        let index = self.rng.below(count.max(1));
        self.namespaces[n]
            .nodes
            .there
            .get(index)
            .map(|known| known.node.entity)
    }

    fn join_node(&mut self, n: NamespaceIndex, connection: ConnectionId) {
        let Some(node) = self.any_node(n) else {
            return;
        };
        let link = self.namespaces[n].nodes.next_link(connection);
        self.namespaces[n].nodes.joining.insert(link, node);
        self.namespaces[n].nodes.commands.push(Command::OpenNode {
            link,
            namespace: server::namespace_id(n),
            node,
            used: NodeUse::Receive,
        });
    }

    fn send_to_node(&mut self, n: NamespaceIndex, connection: ConnectionId) {
        let Some(entity) = self.any_node(n) else {
            return;
        };
        let id = self.namespaces[n].ledger.next_id(None);
        let options = SendOptions::default();
        let payload = message::build(&mut self.rng, id, options, 20);
        let message = incoming(id, payload.clone(), options);
        let to = entity;
        self.namespaces[n]
            .nodes
            .sent
            .insert(id, Sent { to, payload });
        let request = self.namespaces[n]
            .nodes
            .next_request(connection, Asked::Send(id));
        self.namespaces[n].nodes.commands.push(Command::Send {
            request,
            entity,
            messages: vec![message],
        });
    }

    fn settle_of_node(&mut self, n: NamespaceIndex, connection: ConnectionId) {
        let held = self.namespaces[n].nodes.held.iter();
        let own = held.filter(|(_, held)| held.receiver.connection == connection);
        let own: Vec<_> = own.map(|(token, held)| (*token, *held)).collect();
        if own.is_empty() {
            return;
        }
        let (token, held) = own[self.rng.below(own.len())];
        self.namespaces[n].nodes.held.remove(&token);
        let changes = Vec::new();
        let outcome = match self.rng.below(10) {
            0..=5 => Outcome::Complete,
            6 | 7 => Outcome::abandon(changes),
            8 => Outcome::Release,
            _ => Outcome::DeadLetter { changes },
        };
        self.namespaces[n].nodes.settle(token, held, outcome);
    }

    fn close_node_link(&mut self, n: NamespaceIndex, connection: ConnectionId) {
        let open = self.namespaces[n].nodes.open.iter();
        let own = open.filter(|link| link.connection == connection);
        let own: Vec<_> = own.copied().collect();
        if !own.is_empty() {
            let link = own[self.rng.below(own.len())];
            self.namespaces[n].nodes.close(link);
        }
    }

    /// The end of a run: what was sent to queues that are there is there, unless it was completed,
    /// and when the users have gone, so have the nodes that go with their links.
    ///
    /// # Errors
    /// I1 or I14.
    pub(in crate::world) fn drain_nodes(&mut self, n: NamespaceIndex) -> Result<(), Violation> {
        self.run_until_idle()?;
        let asked = self.namespaces[n].nodes.asked.keys();
        let mut present = asked.filter(|it| {
            self.namespaces[n]
                .nodes
                .users
                .contains(&Some(it.connection))
        });
        if let Some(request) = present.next() {
            let what = format!("{request:?} about a node is not answered");
            return Err(Violation::new("I14", what));
        }
        for known in &self.namespaces[n].nodes.there {
            let Some(info) = self.server.shard.broker.queue(known.node.entity) else {
                continue;
            };
            let (least, most) = self.namespaces[n].nodes.left_in(known.node.entity);
            let has = info.active + info.dead_letter;
            if known.node.kind == EntityKind::Queue && !(least..=most).contains(&has) {
                let what = format!("{least} to {most} messages should be left of {info:?}");
                return Err(Violation::new("I1", what));
            }
        }
        (0..USERS).for_each(|user| self.namespaces[n].nodes.leave(user));
        self.run_until_idle()?;
        for known in &self.namespaces[n].nodes.there {
            let goes = matches!(
                known.lifetime,
                LifetimePolicy::DeleteOnClose | LifetimePolicy::DeleteOnNoLinks
            );
            let is_there = self.server.shard.broker.queue(known.node.entity).is_some();
            if goes && is_there {
                let what = format!("no link uses {known:?}, which is still there");
                return Err(Violation::new("I14", what));
            }
        }
        Ok(())
    }
}

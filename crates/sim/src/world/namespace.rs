//! Namespace: one of a world's namespaces, with its clients and the ledger that knows of them and
//! of nothing else.
//!
//! All namespaces have entities of the same names, with sessions and message ids that are the same,
//! and share one broker, one store and one disk. What crosses from one to another is a message, a
//! row or an answer that the ledger of the other one cannot explain. Each message of a run has
//! another id, so it is never taken for one of the other namespace.

use broker::{ConnectionId, Now, SessionCountOnDisconnect};
use store::{EntityId, NamespaceId};

use super::SimClient;
use super::administration::{self, Administration};
use super::callers::Callers;
use super::nodes::Nodes;
use super::queues::Definition;
use super::routing::Routing;
use super::setup::{clients, ledger_queue, ledger_queues};
use crate::inbox::NamespaceIndex;
use crate::ledger::Ledger;
use crate::server::{self, NAMESPACES, Server};

/// Bits of an id below its namespace.
const SHIFT: u32 = 48;

/// See the head of this file.
pub(super) struct Namespace {
    index: NamespaceIndex,
    pub clients: Vec<SimClient>,
    pub ledger: Ledger,
    pub administration: Administration,
    pub callers: Callers,
    pub routing: Routing,
    pub nodes: Nodes,
    connections: u64,
}

impl Namespace {
    /// One that has its entities and nothing else.
    pub(super) fn new(
        index: NamespaceIndex,
        server: &Server,
        definitions: &[Definition],
        (drops_locks, session_counts): (bool, SessionCountOnDisconnect),
        now: Now,
    ) -> Self {
        let queues = ledger_queues(server, index, definitions, now);
        let mut ledger = Ledger::new(queues, drops_locks, now);
        ledger.count_lost_sessions(session_counts);
        ledger.name_messages_as(index);
        for definition in administration::temporary() {
            ledger.expect(ledger_queue(EntityId(0), &definition));
        }
        Self {
            index,
            clients: clients(),
            ledger,
            administration: Administration::default(),
            callers: Callers::default(),
            routing: Routing::default(),
            nodes: Nodes::default(),
            connections: 0,
        }
    }

    pub(super) fn id(&self) -> NamespaceId {
        server::namespace_id(self.index)
    }

    /// The host name by which clients choose it.
    pub(super) fn host(&self) -> String {
        format!("{}.localhost", NAMESPACES[self.index])
    }

    /// A connection that there never was.
    pub(super) fn next_connection(&mut self) -> ConnectionId {
        self.connections += 1;
        ConnectionId(id_in(self.index, self.connections))
    }
}

/// The id of a connection of a namespace, or the token of a request of the server's own about it.
pub(super) fn id_in(namespace: NamespaceIndex, count: u64) -> u64 {
    (namespace as u64) << SHIFT | count
}

/// The namespace that a connection, or a token of the server's own, belongs to.
pub(super) fn index_of(id: u64) -> NamespaceIndex {
    usize::try_from(id >> SHIFT).expect("it was made here")
}

//! Waiting: messages for routers that wait until it is known whether a queue has had them before.
//!
//! The messages of one connection are routed in the order in which they came, so those behind one
//! that waits do too. Only the first of a connection has asked the store.

use std::collections::{BTreeMap, VecDeque};

use store::{EntityId, StoreError};

use crate::api::id::{ConnectionId, ReadId, RequestId};
use crate::api::publication::Publication;
use crate::send::duplicates::known::Known;

/// A message, and what is known of its id.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub request: RequestId,
    pub publication: Publication,
    /// The reads about it, and of which entity, with the answers that have come.
    pub reads: BTreeMap<ReadId, (EntityId, Option<Result<Known, StoreError>>)>,
}

impl Waiting {
    pub(super) fn new(request: RequestId, publication: Publication) -> Self {
        let reads = BTreeMap::new();
        Self {
            request,
            publication,
            reads,
        }
    }

    /// Whether all reads have been answered.
    pub(super) fn is_answered(&self) -> bool {
        self.reads.values().all(|(_, answer)| answer.is_some())
    }
}

/// All that wait, by connection.
#[derive(Debug, Default)]
pub(crate) struct Publications(BTreeMap<ConnectionId, VecDeque<Waiting>>);

impl Publications {
    /// Whether a message of this connection has to wait for its turn.
    pub(super) fn are_waiting(&self, connection: ConnectionId) -> bool {
        self.0.contains_key(&connection)
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        let connection = waiting.request.connection;
        self.0.entry(connection).or_default().push_back(waiting);
    }

    /// The message that goes on goes on waiting.
    pub(super) fn push_first(&mut self, waiting: Waiting) {
        let connection = waiting.request.connection;
        self.0.entry(connection).or_default().push_front(waiting);
    }

    pub(super) fn first(&mut self, connection: ConnectionId) -> Option<&mut Waiting> {
        self.0.get_mut(&connection)?.front_mut()
    }

    /// Takes out the first message of a connection.
    pub(super) fn take_first(&mut self, connection: ConnectionId) -> Option<Waiting> {
        let queue = self.0.get_mut(&connection)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.0.remove(&connection);
        }
        first
    }
}

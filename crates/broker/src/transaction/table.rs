//! Table: the transactions that are open, by the connections that declared them.
//!
//! A transaction is here from its declaration until it is committed or rolled back. What it waits
//! for when it is discharged is kept with it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use store::{EntityId, NamespaceId, SequenceNumber};

use crate::api::error::TransactionError;
use crate::api::id::{ConnectionId, LockToken, RequestId, TransactionId};
use crate::api::operation::Operation;
use crate::api::outcome::Outcome;
use crate::api::settings::TransactionSettings;
use crate::api::time::Mono;
use crate::context::clients::HoldId;
use crate::message::partition_key::PartitionKey;
use crate::transaction::lookups::Lookups;

/// A discharge on its way.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) request: RequestId,
    pub(super) lookups: Lookups,
}

/// How many of a connection's transactions that took too long are told apart from unknown ones.
pub(super) const MAX_TIMED_OUT: usize = 64;

/// Why there is a transaction of an id.
pub(super) const NOT_OVER: &str = "a transaction stays until it is committed or rolled back";

/// Where a transaction was declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) connection: ConnectionId,
    /// That of the connection, and of all entities of the transaction.
    pub(super) namespace: NamespaceId,
    pub(super) coordinator: u32,
}

/// One that is not over.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) declared: Declared,
    /// When its time is up; its time runs from its first operation to its discharge.
    pub(super) until: Option<Mono>,
    pub(super) held: Vec<Operation>,
    /// The first numbers of sends that schedule, by their place in `held`.
    pub(super) promised: BTreeMap<usize, SequenceNumber>,
    /// The sessions whose states it sets, by the place in `held`.
    pub(super) sessions: BTreeMap<usize, HoldId>,
    /// How locks end at a rollback, where their clients have settled the deliveries.
    pub(super) on_rollback: BTreeMap<LockToken, Outcome>,
    /// The entity that it is about, if it may touch one only.
    pub(super) scope: Option<EntityId>,
    /// The one of its messages in partitioned entities.
    pub(super) partition_key: Option<PartitionKey>,
    /// Messages that it sends and settles, and states that it sets.
    pub(super) operations: usize,
    pub(super) bytes: usize,
    /// Why it cannot be committed: an operation was refused, and the client was not told.
    pub(super) failure: Option<String>,
    /// It is discharged, but what has to be read to decide is not there yet.
    pub(super) decision: Option<Decision>,
}

impl Transaction {
    /// The session whose state is set at this place.
    pub(super) fn session_at(&self, place: usize) -> HoldId {
        let session = self.sessions.get(&place);
        *session.expect("it is noted when the setting of a state is enlisted")
    }
}

/// What a connection has declared.
#[derive(Debug, Default)]
pub(super) struct Controller {
    pub(super) open: BTreeSet<TransactionId>,
    pub(super) timed_out: VecDeque<TransactionId>,
}

/// All transactions of a broker.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    pub(super) all: BTreeMap<TransactionId, Transaction>,
    pub(super) controllers: BTreeMap<ConnectionId, Controller>,
    pub(super) ends: BTreeSet<(Mono, TransactionId)>,
    /// The transactions of all locks that are marked.
    pub(super) marked: BTreeMap<LockToken, TransactionId>,
    pub(super) bytes: usize,
}

impl Transactions {
    /// When the first one's time is up.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// When the first one's time is up of those in a namespace.
    pub(crate) fn deadline_of(&self, namespace: NamespaceId) -> Option<Mono> {
        let is_here = |it: &Transaction| it.declared.namespace == namespace;
        let mut ends = self.ends.iter();
        let first = ends.find(|(_, id)| self.all.get(id).is_some_and(is_here));
        first.map(|(at, _)| *at)
    }

    /// Those in a namespace have less time left.
    pub(crate) fn shorten(&mut self, namespace: NamespaceId, ms: u64) {
        for (id, transaction) in &mut self.all {
            if let Some(until) = transaction.until
                && transaction.declared.namespace == namespace
            {
                let earlier = Mono(until.0.saturating_sub(ms));
                transaction.until = Some(earlier);
                self.ends.remove(&(until, *id));
                self.ends.insert((earlier, *id));
            }
        }
    }

    pub(super) fn declare(
        &mut self,
        id: TransactionId,
        declared: Declared,
        settings: &TransactionSettings,
    ) -> Result<TransactionId, TransactionError> {
        let limit = settings.open;
        let controller = self.controllers.entry(declared.connection).or_default();
        if controller.open.len() >= limit {
            return Err(TransactionError::TooManyOpen { limit });
        }
        controller.open.insert(id);
        let transaction = Transaction {
            declared,
            until: None,
            held: Vec::new(),
            promised: BTreeMap::new(),
            sessions: BTreeMap::new(),
            on_rollback: BTreeMap::new(),
            scope: None,
            partition_key: None,
            operations: 0,
            bytes: 0,
            failure: None,
            decision: None,
        };
        let before = self.all.insert(id, transaction);
        assert!(before.is_none(), "an id of a transaction is given once");
        Ok(id)
    }

    /// The transaction, if the connection may still use it.
    pub(super) fn open(
        &mut self,
        id: TransactionId,
        connection: ConnectionId,
    ) -> Result<&mut Transaction, TransactionError> {
        let controller = self.controllers.get(&connection);
        if controller.is_some_and(|controller| controller.timed_out.contains(&id)) {
            return Err(TransactionError::TimedOut);
        }
        let open = self.all.get_mut(&id).filter(|transaction| {
            transaction.declared.connection == connection && transaction.decision.is_none()
        });
        open.ok_or(TransactionError::Unknown)
    }

    /// Takes a transaction out that is not over; its operations go with it.
    pub(super) fn take(&mut self, id: TransactionId) -> Transaction {
        let transaction = self.all.remove(&id).expect(NOT_OVER);
        let left = self.bytes.checked_sub(transaction.bytes);
        self.bytes = left.expect("what a transaction holds was counted when it came");
        for operation in &transaction.held {
            for token in operation.tokens() {
                let marked = self.marked.remove(token);
                assert_eq!(marked, Some(id), "a lock is part of one transaction");
            }
        }
        self.stop_clock(id, transaction.until);
        self.edit_controller(transaction.declared.connection, |controller| {
            let was_open = controller.open.remove(&id);
            assert!(
                was_open,
                "a transaction is its controller's until it is over"
            );
        });
        transaction
    }

    /// A client has settled a delivery whose lock is part of a transaction: a rollback ends the
    /// lock in this way. The first word counts. (docs/spec/amqp.md#8.1)
    pub(crate) fn settle_on_rollback(&mut self, token: LockToken, outcome: Outcome) {
        let id = self.marked.get(&token).expect("a marked lock has one");
        let transaction = self.all.get_mut(id).expect(NOT_OVER);
        if let Entry::Vacant(place) = transaction.on_rollback.entry(token) {
            let bytes = outcome.size();
            place.insert(outcome);
            transaction.bytes = transaction.bytes.saturating_add(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    pub(super) fn stop_clock(&mut self, id: TransactionId, until: Option<Mono>) {
        if let Some(until) = until {
            let had_end = self.ends.remove(&(until, id));
            assert!(had_end, "a transaction whose time runs has an end");
        }
    }

    /// A controller of which nothing has to be known goes.
    pub(super) fn edit_controller(&mut self, id: ConnectionId, edit: impl FnOnce(&mut Controller)) {
        if let Some(controller) = self.controllers.get_mut(&id) {
            edit(controller);
            if controller.open.is_empty() && controller.timed_out.is_empty() {
                self.controllers.remove(&id);
            }
        }
    }

    pub(super) fn note_timed_out(&mut self, id: TransactionId, connection: ConnectionId) {
        assert!(
            !self.all.contains_key(&id),
            "a transaction is rolled back before it counts as timed out"
        );
        let controller = self.controllers.entry(connection).or_default();
        if controller.timed_out.len() == MAX_TIMED_OUT {
            controller.timed_out.pop_front();
        }
        controller.timed_out.push_back(id);
    }

    /// A transaction's time is up, and its controller has been told.
    pub(super) fn forget_timed_out(&mut self, id: TransactionId, connection: ConnectionId) {
        self.edit_controller(connection, |controller| {
            controller.timed_out.retain(|other| *other != id);
        });
    }

    pub(super) fn next_due(&self, now: Mono) -> Option<TransactionId> {
        let (at, id) = self.ends.first()?;
        (*at <= now).then_some(*id)
    }
}

//! Transaction: operations that are held until their controller commits them or rolls them back.
//! [AMQP 4.2-4.4; docs/spec/amqp.md#8]
//!
//! What is enlisted is checked and answered at once, then held in memory: sends are not there yet,
//! locks are marked, and nothing else can end them. A commit checks everything once more and does
//! it in one step, so in one write set; if anything has become impossible nothing is done. Whatever
//! else ends a transaction (its controller's word, its coordinator's or connection's end, its time,
//! a restart) drops the sends and leaves the locks held, never abandoned. A transaction belongs to
//! the connection that declared it.

mod discharge;
mod enlist;
mod locks;
mod lookups;
mod states;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use store::{EntityId, SequenceNumber};

use crate::api::command::{Incoming, Operation};
use crate::api::id::{ConnectionId, RequestId, SubqueueId, TransactionId};
use crate::api::output::{Output, TransactionError};
use crate::api::settings::TransactionSettings;
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::entities::directory::Directory;
use discharge::Decision;

pub(crate) use discharge::{discharge, loaded};
pub(crate) use enlist::{enlist, mark_failed};

/// How many of a connection's transactions that took too long are told apart from unknown ones.
const MAX_TIMED_OUT: usize = 64;

/// Why there is a transaction of an id.
const NOT_OVER: &str = "a transaction stays until it is committed or rolled back";

/// One that is not over.
#[derive(Debug)]
struct Transaction {
    connection: ConnectionId,
    coordinator: u32,
    /// When its time is up; its time runs from its first operation to its discharge.
    until: Option<Mono>,
    held: Vec<Operation>,
    /// The first numbers of sends that schedule, by their place in `held`.
    promised: BTreeMap<usize, SequenceNumber>,
    /// The sessions whose states it sets, by the place in `held`.
    sessions: BTreeMap<usize, HoldId>,
    /// Messages that it sends and settles, and states that it sets.
    operations: usize,
    bytes: usize,
    /// Why it cannot be committed: an operation was refused, and the client was not told.
    failure: Option<String>,
    /// It is discharged, but what has to be read to decide is not there yet.
    decision: Option<Decision>,
}

impl Transaction {
    /// The session whose state is set at this place.
    fn session_at(&self, place: usize) -> HoldId {
        let session = self.sessions.get(&place);
        *session.expect("it is noted when the setting of a state is enlisted")
    }
}

/// What a connection has declared.
#[derive(Debug, Default)]
struct Controller {
    open: BTreeSet<TransactionId>,
    timed_out: VecDeque<TransactionId>,
}

/// All transactions of a broker.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    all: BTreeMap<TransactionId, Transaction>,
    controllers: BTreeMap<ConnectionId, Controller>,
    ends: BTreeSet<(Mono, TransactionId)>,
    bytes: usize,
}

impl Transactions {
    /// When the first one's time is up.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.ends.first().map(|(at, _)| *at)
    }

    fn declare(
        &mut self,
        id: TransactionId,
        connection: ConnectionId,
        coordinator: u32,
        settings: &TransactionSettings,
    ) -> Result<TransactionId, TransactionError> {
        let limit = settings.open;
        let controller = self.controllers.entry(connection).or_default();
        if controller.open.len() >= limit {
            return Err(TransactionError::TooManyOpen { limit });
        }
        controller.open.insert(id);
        let transaction = Transaction {
            connection,
            coordinator,
            until: None,
            held: Vec::new(),
            promised: BTreeMap::new(),
            sessions: BTreeMap::new(),
            operations: 0,
            bytes: 0,
            failure: None,
            decision: None,
        };
        self.all.insert(id, transaction);
        Ok(id)
    }

    /// The transaction, if the connection may still use it.
    fn open(
        &mut self,
        id: TransactionId,
        connection: ConnectionId,
    ) -> Result<&mut Transaction, TransactionError> {
        let controller = self.controllers.get(&connection);
        if controller.is_some_and(|controller| controller.timed_out.contains(&id)) {
            return Err(TransactionError::TimedOut);
        }
        let open = self.all.get_mut(&id).filter(|transaction| {
            transaction.connection == connection && transaction.decision.is_none()
        });
        open.ok_or(TransactionError::Unknown)
    }

    /// Takes a transaction out that is not over; its operations go with it.
    fn take(&mut self, id: TransactionId) -> Transaction {
        let transaction = self.all.remove(&id).expect(NOT_OVER);
        self.bytes -= transaction.bytes;
        self.stop_clock(id, transaction.until);
        self.edit_controller(transaction.connection, |controller| {
            controller.open.remove(&id);
        });
        transaction
    }

    fn stop_clock(&mut self, id: TransactionId, until: Option<Mono>) {
        if let Some(until) = until {
            self.ends.remove(&(until, id));
        }
    }

    /// A controller of which nothing has to be known goes.
    fn edit_controller(&mut self, id: ConnectionId, edit: impl FnOnce(&mut Controller)) {
        if let Some(controller) = self.controllers.get_mut(&id) {
            edit(controller);
            if controller.open.is_empty() && controller.timed_out.is_empty() {
                self.controllers.remove(&id);
            }
        }
    }

    fn note_timed_out(&mut self, id: TransactionId, connection: ConnectionId) {
        let controller = self.controllers.entry(connection).or_default();
        if controller.timed_out.len() == MAX_TIMED_OUT {
            controller.timed_out.pop_front();
        }
        controller.timed_out.push_back(id);
    }

    /// A transaction's time is up, and its controller has been told.
    fn forget_timed_out(&mut self, id: TransactionId, connection: ConnectionId) {
        self.edit_controller(connection, |controller| {
            controller.timed_out.retain(|other| *other != id);
        });
    }

    fn next_due(&self, now: Mono) -> Option<TransactionId> {
        let (at, id) = self.ends.first()?;
        (*at <= now).then_some(*id)
    }
}

/// A transaction begins.
pub(crate) fn declare(request: RequestId, coordinator: u32, cx: &mut Context<'_>) {
    let id = cx.shared.tokens.next_transaction();
    let settings = &cx.shared.settings.transactions;
    let transactions = &mut cx.shared.transactions;
    let result = transactions.declare(id, request.connection, coordinator, settings);
    cx.emit(Output::Declared { request, result });
}

/// A coordinator is gone, or all of a connection. What is discharged already is decided all the
/// same.
pub(crate) fn end(
    directory: &mut Directory,
    connection: ConnectionId,
    coordinator: Option<u32>,
    cx: &mut Context<'_>,
) {
    let transactions = &mut cx.shared.transactions;
    // Most connections have no transactions.
    let Some(controller) = transactions.controllers.get(&connection) else {
        return;
    };
    let ends = |id: &TransactionId| {
        let transaction = transactions.all.get(id).expect(NOT_OVER);
        let its_own = coordinator.is_none_or(|link| link == transaction.coordinator);
        its_own && transaction.decision.is_none()
    };
    let ended: Vec<_> = controller.open.iter().copied().filter(ends).collect();
    if coordinator.is_none() {
        transactions.edit_controller(connection, |controller| controller.timed_out.clear());
    }
    for id in ended {
        roll_back(directory, id, cx);
    }
}

/// Rolls back what has taken too long.
pub(crate) fn time_out_due(directory: &mut Directory, cx: &mut Context<'_>) {
    while let Some(id) = cx.shared.transactions.next_due(cx.now.mono)
        && cx.take_work()
    {
        time_out(directory, id, cx);
    }
}

/// Rolls a transaction back if its time is up, whether or not that has been noticed before.
fn time_out_if_due(directory: &mut Directory, id: TransactionId, cx: &mut Context<'_>) {
    let transaction = cx.shared.transactions.all.get(&id);
    let until = transaction.and_then(|transaction| transaction.until);
    if until.is_some_and(|until| until <= cx.now.mono) {
        time_out(directory, id, cx);
    }
}

fn time_out(directory: &mut Directory, id: TransactionId, cx: &mut Context<'_>) {
    let connection = roll_back(directory, id, cx).connection;
    cx.shared.transactions.note_timed_out(id, connection);
    cx.emit(Output::TimedOut {
        connection,
        transaction: id,
    });
}

/// Sends are dropped; locks are their holder's again.
fn roll_back(directory: &mut Directory, id: TransactionId, cx: &mut Context<'_>) -> Transaction {
    let transaction = cx.shared.transactions.take(id);
    for operation in &transaction.held {
        // An entity of it may have gone, with its locks.
        if let Operation::Settle {
            subqueue, tokens, ..
        } = operation
            && let Some(queue) = directory.get_mut(subqueue.entity)
        {
            queue.release_locks(tokens, cx);
        }
    }
    transaction
}

impl Operation {
    fn entity(&self) -> EntityId {
        match self {
            Self::Send { entity, .. }
            | Self::Settle {
                subqueue: SubqueueId { entity, .. },
                ..
            }
            | Self::Cancel { entity, .. }
            | Self::SetSessionState { entity, .. } => *entity,
        }
    }

    /// How many messages it sends or settles, or states it sets.
    fn len(&self) -> usize {
        match self {
            Self::Send { messages, .. } => messages.len(),
            Self::Settle { tokens, .. } => tokens.len(),
            Self::Cancel { numbers, .. } => numbers.len(),
            Self::SetSessionState { .. } => 1,
        }
    }

    /// What holding it costs.
    fn bytes(&self) -> usize {
        /// Of each message or token, besides its bytes.
        const OVERHEAD: usize = 256;
        let bytes = match self {
            Self::Send { messages, .. } => {
                let sizes = messages.iter().map(Incoming::size);
                sizes.fold(0, usize::saturating_add)
            }
            Self::Settle { outcome, .. } => outcome.size(),
            Self::Cancel { .. } => 0,
            Self::SetSessionState { session, state, .. } => {
                session.len() + state.as_ref().map_or(0, Bytes::len)
            }
        };
        bytes.saturating_add(self.len().saturating_mul(OVERHEAD))
    }
}

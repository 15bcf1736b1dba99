//! Transaction: operations that are held until their controller commits them or rolls them back.
//! [AMQP 4.2-4.4; docs/spec/amqp.md#8]
//!
//! What is enlisted is checked and answered at once, then held in memory: sends are not there yet,
//! locks are marked, and nothing else can end them. A commit checks everything once more and does
//! it in one step, so in one write set; if anything has become impossible nothing is done. Whatever
//! else ends a transaction (its controller's word, its coordinator's or connection's end, its time,
//! a restart) drops the sends and leaves the locks held, never abandoned; a lock whose client has
//! settled the delivery ends with what it said for that case. A transaction belongs to the
//! connection that declared it.

pub(crate) mod discharge;
pub(crate) mod enlist;
pub(crate) mod injected;
mod locks;
mod look_up;
pub(crate) mod lookups;
mod partition;
mod states;
pub(crate) mod table;

use std::collections::BTreeSet;

use store::NamespaceId;

use crate::api::id::{ConnectionId, RequestId, TransactionId};
use crate::api::output::Output;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::receive::run::run;
use crate::transaction::table::{Declared, NOT_OVER, Transaction};

/// A transaction begins.
pub(crate) fn declare(
    request: RequestId,
    namespace: NamespaceId,
    coordinator: u32,
    cx: &mut Context<'_>,
) {
    let id = cx.shared.tokens.next_transaction();
    let settings = &cx.shared.settings.transactions;
    let transactions = &mut cx.shared.transactions;
    let declared = Declared {
        connection: request.connection,
        namespace,
        coordinator,
    };
    let result = transactions.declare(id, declared, settings);
    cx.emit(Output::Declared { request, result });
}

/// The namespace of a connection's transaction, if that is not over.
pub(crate) fn namespace_of(
    id: TransactionId,
    connection: ConnectionId,
    cx: &Context<'_>,
) -> Option<NamespaceId> {
    let transaction = cx.shared.transactions.all.get(&id)?;
    let declared = &transaction.declared;
    (declared.connection == connection).then_some(declared.namespace)
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
        let its_own = coordinator.is_none_or(|link| link == transaction.declared.coordinator);
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
    while let Some(id) = cx.shared.transactions.next_due(cx.broker_now.mono)
        && cx.take_work()
    {
        time_out(directory, id, cx);
    }
}

/// Rolls a transaction back if its time is up, whether or not that has been noticed before.
fn time_out_if_due(directory: &mut Directory, id: TransactionId, cx: &mut Context<'_>) {
    let transaction = cx.shared.transactions.all.get(&id);
    let until = transaction.and_then(|transaction| transaction.until);
    if until.is_some_and(|until| until <= cx.broker_now.mono) {
        time_out(directory, id, cx);
    }
}

fn time_out(directory: &mut Directory, id: TransactionId, cx: &mut Context<'_>) {
    let connection = roll_back(directory, id, cx).declared.connection;
    cx.shared.transactions.note_timed_out(id, connection);
    cx.emit(Output::TimedOut {
        connection,
        transaction: id,
    });
}

/// What follows is about the namespace that the entities of a transaction are in.
fn enter(directory: &Directory, id: TransactionId, cx: &mut Context<'_>) {
    let transaction = cx.shared.transactions.all.get(&id);
    let mut held = transaction.into_iter().flat_map(|it| &it.held);
    if let Some(queue) = held.find_map(|operation| directory.get(operation.entity())) {
        cx.enter(queue.namespace);
    }
}

/// Sends are dropped; locks are their holder's again, or end if their client has settled them.
fn roll_back(directory: &mut Directory, id: TransactionId, cx: &mut Context<'_>) -> Transaction {
    let mut transaction = cx.shared.transactions.take(id);
    let mut ended = BTreeSet::new();
    for operation in &transaction.held {
        let entity = operation.entity();
        // An entity of it may have gone, with its locks.
        if !operation.tokens().is_empty()
            && let Some(queue) = directory.get_mut(entity)
        {
            cx.enter(queue.namespace);
            if locks::release_locks(queue, operation.tokens(), &mut transaction.on_rollback, cx) {
                ended.insert(entity);
            }
        }
    }
    for entity in ended {
        let queue = directory.get_mut(entity);
        run(queue.expect("a rollback removes no entity"), cx);
    }
    transaction
}

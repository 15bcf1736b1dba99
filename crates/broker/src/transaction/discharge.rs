//! Discharge: all of a transaction is done in one step, or nothing.
//!
//! Some things may have to be looked up first; the discharge waits for that, and decides when all
//! answers are there. Other sends and settlements do not wait for it. [AMQP 4.3;
//! docs/spec/amqp.md#8]

use std::collections::{BTreeMap, BTreeSet};

use store::{EntityId, Found, StoreError};

use super::look_up::{self, Cancelled};
use super::lookups::Lookups;
use super::states::Costs;
use super::table::{Decision, NOT_OVER};
use super::{enter, roll_back, time_out_if_due};
use crate::api::error::TransactionError;
use crate::api::id::{ReadId, RequestId, TransactionId};
use crate::api::incoming::Incoming;
use crate::api::operation::Operation;
use crate::api::output::Output;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::receive::run::run;
use crate::send::activate::erase_scheduled;
use crate::send::{enqueue, length};
use crate::transaction::locks;

/// Why a commit is not possible.
type Reason = String;

/// Commits a transaction or rolls it back, and answers once that is decided.
pub(crate) fn discharge(
    directory: &mut Directory,
    request: RequestId,
    id: TransactionId,
    fail: bool,
    cx: &mut Context<'_>,
) {
    time_out_if_due(directory, id, cx);
    enter(directory, id, cx);
    let transactions = &mut cx.shared.transactions;
    let transaction = match transactions.open(id, request.connection) {
        Ok(transaction) => transaction,
        Err(error) => {
            transactions.forget_timed_out(id, request.connection);
            return answer(request, Err(error), cx);
        }
    };
    if fail {
        roll_back(directory, id, cx);
        return answer(request, Ok(()), cx);
    }
    if let Some(reason) = transaction.failure.take() {
        return refuse(directory, request, id, reason, cx);
    }
    let until = transaction.until.take();
    transactions.stop_clock(id, until);
    look_up(directory, request, id, cx);
    decide_if_ready(directory, id, cx);
}

fn look_up(directory: &mut Directory, request: RequestId, id: TransactionId, cx: &mut Context<'_>) {
    let transaction = cx.shared.transactions.all.remove(&id);
    let mut transaction = transaction.expect(NOT_OVER);
    let lookups = look_up::ask(directory, id, &transaction, cx);
    transaction.decision = Some(Decision { request, lookups });
    cx.shared.transactions.all.insert(id, transaction);
}

/// Something was looked up.
pub(crate) fn loaded(
    directory: &mut Directory,
    id: TransactionId,
    read: ReadId,
    found: Result<Found, StoreError>,
    cx: &mut Context<'_>,
) {
    enter(directory, id, cx);
    let transaction = cx.shared.transactions.all.get_mut(&id).expect(NOT_OVER);
    let decision = transaction.decision.as_mut();
    let decision = decision.expect("it waits for all that it has asked for");
    decision.lookups.answered(read, found);
    decide_if_ready(directory, id, cx);
}

fn decide_if_ready(directory: &mut Directory, id: TransactionId, cx: &mut Context<'_>) {
    let transaction = cx.shared.transactions.all.get_mut(&id).expect(NOT_OVER);
    let is_ready = |decision: &mut Decision| decision.lookups.are_answered();
    // Other answers are still to come.
    let Some(decision) = transaction.decision.take_if(is_ready) else {
        return;
    };
    let Decision {
        request,
        mut lookups,
    } = decision;
    let concluded = look_up::conclude(&mut lookups, directory);
    let checked = concluded.and_then(|cancelled| check(directory, id, cx).map(|()| cancelled));
    match checked {
        Ok(cancelled) => commit(directory, request, id, &lookups, cancelled, cx),
        Err(reason) => refuse(directory, request, id, reason, cx),
    }
    look_up::end(&lookups, directory, id, cx);
}

/// Whether everything is still possible.
fn check(directory: &Directory, id: TransactionId, cx: &Context<'_>) -> Result<(), Reason> {
    let transaction = cx.shared.transactions.all.get(&id).expect(NOT_OVER);
    let mut held: BTreeMap<EntityId, u64> = BTreeMap::new();
    // What becomes available in each queue, and its bytes.
    let mut sent: BTreeMap<EntityId, (u64, u64)> = BTreeMap::new();
    let mut states = Costs::default();
    let mut namespace = None;
    for (place, operation) in transaction.held.iter().enumerate() {
        let entity = operation.entity();
        let queue = directory.get(entity);
        let queue = queue.ok_or("an entity of it does not exist any more")?;
        namespace = Some(queue.namespace);
        match operation {
            Operation::Send { messages, .. } => {
                let held = held.entry(entity).or_default();
                let room = enqueue::check_room(queue, messages, *held, cx);
                *held = held.saturating_add(bytes_of(messages));
                let (count, bytes) = length::arriving(messages, cx.now.wall);
                let sent = sent.entry(entity).or_default();
                *sent = (sent.0 + count, sent.1.saturating_add(bytes));
                let room = room.and_then(|()| length::check(queue, sent.0, sent.1));
                room.map_err(|error| error.to_string())?;
            }
            Operation::Settle { tokens, .. } if !locks::holds_locks(queue, tokens, cx) => {
                return Err("a lock was lost before the commit".to_owned());
            }
            Operation::SetSessionState { state, .. } => {
                let session = transaction.session_at(place);
                let held = held.entry(entity).or_default();
                states.add(queue, session, state.as_ref(), held, cx)?;
            }
            Operation::Settle { .. } | Operation::Cancel { .. } => {}
        }
    }
    // Each alone had room; all of them together need it. A transaction is of one namespace.
    // Dynamic nodes do not count.
    let more = held
        .iter()
        .filter(|(entity, _)| !entity.is_volatile())
        .fold(0, |sum: u64, (_, more)| sum.saturating_add(*more));
    match namespace.filter(|_| more > 0) {
        Some(namespace) => {
            let room = cx.shared.namespaces.check(namespace, more);
            room.map_err(|error| error.to_string())
        }
        None => Ok(()),
    }
}

/// Does everything. Nothing of it can fail: it was checked in this step.
fn commit(
    directory: &mut Directory,
    request: RequestId,
    id: TransactionId,
    lookups: &Lookups,
    mut cancelled: Cancelled,
    cx: &mut Context<'_>,
) {
    let mut transaction = cx.shared.transactions.take(id);
    assert!(
        transaction.failure.is_none() && transaction.until.is_none(),
        "a failed transaction is refused, and the clock of a discharged one has stopped"
    );
    let mut touched = BTreeSet::new();
    let held = std::mem::take(&mut transaction.held);
    for (place, operation) in held.into_iter().enumerate() {
        let entity = operation.entity();
        let queue = directory.get_mut(entity);
        let queue = queue.expect("the check has found all entities");
        touched.insert(entity);
        match operation {
            Operation::Send { messages, .. } => {
                let known = lookups.known(entity, &messages);
                let promised = transaction.promised.get(&place).copied();
                enqueue::accept(queue, messages, &known, promised, cx);
            }
            Operation::Settle {
                tokens, outcome, ..
            } => locks::end_locks(queue, &tokens, &outcome, cx),
            Operation::SetSessionState { state, .. } => {
                let (sessions, mut parts) = queue.sessions_mut();
                sessions.commit_state(transaction.session_at(place), state, &mut parts, cx);
            }
            Operation::Cancel { .. } => {
                let rows = cancelled.remove(&place);
                for (number, row) in rows.expect("the lookups have found all rows") {
                    erase_scheduled(queue, number, row, cx);
                }
            }
        }
    }
    answer(request, Ok(()), cx);
    // Only now, so that no receiver takes a message of a transaction that is half done.
    for entity in touched {
        let queue = directory.get_mut(entity);
        run(queue.expect("a commit removes no entity"), cx);
    }
}

fn refuse(
    directory: &mut Directory,
    request: RequestId,
    id: TransactionId,
    reason: Reason,
    cx: &mut Context<'_>,
) {
    roll_back(directory, id, cx);
    answer(request, Err(TransactionError::RolledBack(reason)), cx);
}

fn answer(request: RequestId, result: Result<(), TransactionError>, cx: &mut Context<'_>) {
    cx.emit(Output::Discharged { request, result });
}

fn bytes_of(messages: &[Incoming]) -> u64 {
    let sizes = messages.iter().map(|message| message.payload.len() as u64);
    sizes.sum()
}

//! Enlist: an operation is checked as far as can be, answered, and held.
//!
//! A send counts against its entity's quota together with what the transaction already holds for
//! it; what the transaction takes out of the entity is not set off against that. A refused
//! operation changes nothing, and the transaction goes on without it, unless the client is not told
//! of the refusal. (docs/spec/entities.md#4, #20)

use std::collections::BTreeSet;

use bytes::Bytes;
use store::{EntityId, SequenceNumber};

use super::table::Transaction;
use super::{partition, states, time_out_if_due};
use crate::api::error::{RequestError, SendError, SettleError, TransactionError};
use crate::api::id::{ConnectionId, LockToken, RequestId, TransactionId};
use crate::api::incoming::Incoming;
use crate::api::operation::{Operation, RefusalReport};
use crate::api::outcome::Outcome;
use crate::api::output::Output;
use crate::api::settings::TransactionSettings;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::forward::transfer_queue;
use crate::message::partition_key::PartitionKey;
use crate::send::enqueue;
use crate::settle::end_lock::Asker;
use crate::settle::settle;
use crate::transaction::locks;

/// Payloads from this size on keep the buffer that they arrived in; smaller ones would pin it.
const COPY_LIMIT: usize = 64 * 1024;

/// Takes an operation into a transaction, and answers.
pub(crate) fn enlist(
    directory: &mut Directory,
    request: RequestId,
    id: TransactionId,
    operation: Operation,
    scope: Option<EntityId>,
    refusal: RefusalReport,
    cx: &mut Context<'_>,
) {
    time_out_if_due(directory, id, cx);
    let settled = Refused::of(&operation);
    let entered = enter_scope(directory, request, id, &operation, scope, cx);
    let is_outside = matches!(
        entered,
        Err(TransactionError::OtherEntity | TransactionError::OtherPartitionKey)
    );
    let partition_key = entered.as_ref().ok().copied().flatten();
    let entered = entered.map(|_| ());
    let (output, why) = match operation {
        Operation::Send { entity, messages } => {
            let result = entered.map_err(SendError::from);
            let result =
                result.and_then(|()| enlist_send(directory, request, id, entity, messages, cx));
            let why = result.as_ref().err().map(ToString::to_string);
            let duplicates = Vec::new();
            let output = Output::Sent {
                request,
                result,
                duplicates,
            };
            (output, why)
        }
        Operation::Cancel { entity, numbers } => {
            let result = entered.map_err(RequestError::from);
            let result =
                result.and_then(|()| enlist_cancel(directory, request, id, entity, numbers, cx));
            let why = result.as_ref().err().map(ToString::to_string);
            (Output::Cancelled { request, result }, why)
        }
        state @ Operation::SetSessionState { .. } => {
            let result = entered.map_err(RequestError::from);
            let result = result.and_then(|()| states::enlist(directory, request, id, state, cx));
            let why = result.as_ref().err().map(ToString::to_string);
            (Output::SessionStateSet { request, result }, why)
        }
        settle @ Operation::Settle { .. } => {
            let result = entered.map_err(SettleError::from);
            let result = result.and_then(|()| enlist_settle(directory, request, id, settle, cx));
            let why = result.as_ref().err().map(ToString::to_string);
            (Output::Settled { request, result }, why)
        }
    };
    let is_refused = why.is_some();
    match why {
        None => note_scope(request, id, scope, partition_key, cx),
        Some(why) if refusal.fails(is_outside) => mark_failed(request.connection, id, why, cx),
        Some(_) => {}
    }
    let settled = settled.filter(|_| is_refused);
    cx.emit(output);
    if let Some(settled) = settled {
        settled.give_back(directory, cx);
    }
}

/// Checks that an operation is on the entity that its transaction is about, and returns the
/// partition key that the transaction has with it. (docs/spec/amqp.md#8.3)
fn enter_scope(
    directory: &Directory,
    request: RequestId,
    id: TransactionId,
    operation: &Operation,
    scope: Option<EntityId>,
    cx: &mut Context<'_>,
) -> Result<Option<PartitionKey>, TransactionError> {
    let transaction = cx.shared.transactions.open(id, request.connection)?;
    match (transaction.scope, scope) {
        (Some(one), Some(other)) if one != other => Err(TransactionError::OtherEntity),
        _ => {
            let before = transaction.partition_key;
            partition::enter(directory, operation, before, cx)
        }
    }
}

/// The first operation says what its transaction is about.
fn note_scope(
    request: RequestId,
    id: TransactionId,
    scope: Option<EntityId>,
    partition_key: Option<PartitionKey>,
    cx: &mut Context<'_>,
) {
    if let Ok(transaction) = cx.shared.transactions.open(id, request.connection)
        && !transaction.held.is_empty()
    {
        transaction.partition_key = partition_key;
        transaction.scope = transaction.scope.or(scope);
    }
}

impl RefusalReport {
    /// Whether the transaction fails with the operation.
    pub(super) fn fails(self, is_outside: bool) -> bool {
        match self {
            Self::Reported => false,
            Self::Misread => !is_outside,
            Self::Unreported => true,
        }
    }
}

/// A transaction cannot be committed any more.
pub(crate) fn mark_failed(
    connection: ConnectionId,
    id: TransactionId,
    reason: String,
    cx: &mut Context<'_>,
) {
    if let Ok(transaction) = cx.shared.transactions.open(id, connection) {
        transaction.failure.get_or_insert(reason);
    }
}

fn enlist_send(
    directory: &mut Directory,
    request: RequestId,
    id: TransactionId,
    entity: EntityId,
    messages: Vec<Incoming>,
    cx: &mut Context<'_>,
) -> Result<SequenceNumber, SendError> {
    let entity = transfer_queue::route(directory, entity, &messages, cx)?;
    let operation = Operation::Send { entity, messages };
    check_bounds(request, id, &operation, cx)?;
    let queue = directory.get_mut(entity).ok_or(SendError::NotFound)?;
    let transaction = cx.shared.transactions.open(id, request.connection)?;
    let held = transaction.held_for(entity);
    let Operation::Send { messages, .. } = &operation else {
        unreachable!("the operation was made above");
    };
    enqueue::check_room(queue, messages, held, cx)?;
    if messages.is_empty() {
        // An empty batch has no effect. (docs/spec/amqp.md#4.5)
        return Ok(SequenceNumber(0));
    }
    // A scheduled message's number is told at once, so it has to be its own from now on.
    let promised = messages.iter().any(|message| message.is_later(cx.now.wall));
    let promised = promised.then(|| queue.rows.promise_numbers(messages.len(), cx));
    let place = hold(request, id, operation.unpinned(), cx);
    if let Some(first) = promised {
        let transaction = cx.shared.transactions.open(id, request.connection)?;
        transaction.promised.insert(place, first);
    }
    Ok(promised.unwrap_or(SequenceNumber(0)))
}

/// A message is cancelled once.
fn enlist_cancel(
    directory: &Directory,
    request: RequestId,
    id: TransactionId,
    entity: EntityId,
    mut numbers: Vec<SequenceNumber>,
    cx: &mut Context<'_>,
) -> Result<(), RequestError> {
    let mut seen = BTreeSet::new();
    numbers.retain(|number| seen.insert(*number));
    let operation = Operation::Cancel { entity, numbers };
    check_bounds(request, id, &operation, cx)?;
    directory.get(entity).ok_or(RequestError::NotFound)?;
    let transaction = cx.shared.transactions.open(id, request.connection)?;
    let mut cancelled = transaction.cancelled_in(entity);
    if let Some(number) = cancelled.find(|number| seen.contains(number)) {
        return Err(RequestError::MessageNotFound(number));
    }
    drop(cancelled);
    hold(request, id, operation, cx);
    Ok(())
}

fn enlist_settle(
    directory: &mut Directory,
    request: RequestId,
    id: TransactionId,
    mut operation: Operation,
    cx: &mut Context<'_>,
) -> Result<(), SettleError> {
    check_bounds(request, id, &operation, cx)?;
    let Operation::Settle {
        subqueue,
        session,
        tokens,
        outcome,
        ..
    } = &mut operation
    else {
        unreachable!("only settlements come here");
    };
    let mut seen = BTreeSet::new();
    tokens.retain(|token| seen.insert(*token));
    let queue = directory.get_mut(subqueue.entity);
    let queue = queue.ok_or(SettleError::LockLost)?;
    let asker = Asker::new(*subqueue, Some(request), session.take());
    locks::enlist_locks(queue, &asker, tokens, outcome, cx)?;
    hold(request, id, operation, cx);
    Ok(())
}

/// A settlement that was refused: if its client has settled the deliveries they are given back at
/// once, as at a rollback. (docs/spec/amqp.md#8.1)
pub(super) struct Refused {
    asker: Asker,
    tokens: Vec<LockToken>,
    outcome: Outcome,
}

impl Refused {
    pub(super) fn of(operation: &Operation) -> Option<Self> {
        match operation {
            Operation::Settle {
                subqueue,
                tokens,
                on_rollback: Some(outcome),
                ..
            } => Some(Self {
                asker: Asker::new(*subqueue, None, None),
                tokens: tokens.clone(),
                outcome: outcome.clone(),
            }),
            _ => None,
        }
    }

    pub(super) fn give_back(self, directory: &mut Directory, cx: &mut Context<'_>) {
        for token in self.tokens {
            settle(
                directory,
                None,
                &self.asker,
                token,
                self.outcome.clone(),
                cx,
            );
        }
    }
}

pub(super) fn check_bounds(
    request: RequestId,
    id: TransactionId,
    operation: &Operation,
    cx: &mut Context<'_>,
) -> Result<(), TransactionError> {
    let transactions = &mut cx.shared.transactions;
    let all = transactions.bytes.saturating_add(operation.bytes());
    let transaction = transactions.open(id, request.connection)?;
    let TransactionSettings {
        operations,
        bytes,
        all_bytes,
        ..
    } = cx.shared.settings.transactions;
    if transaction.operations.saturating_add(operation.len()) > operations {
        return Err(TransactionError::TooManyOperations { limit: operations });
    }
    if transaction.bytes.saturating_add(operation.bytes()) > bytes {
        return Err(TransactionError::TooLarge { limit: bytes });
    }
    if all > all_bytes {
        return Err(TransactionError::TooLargeTogether { limit: all_bytes });
    }
    Ok(())
}

/// Holds what was checked in this step, and returns its place. The first operation starts the
/// clock.
pub(super) fn hold(
    request: RequestId,
    id: TransactionId,
    operation: Operation,
    cx: &mut Context<'_>,
) -> usize {
    let life = cx.shared.settings.transactions.life;
    let transactions = &mut cx.shared.transactions;
    let transaction = transactions.open(id, request.connection);
    let transaction = transaction.expect("its bounds were checked in this step");
    let (bytes, begins) = (operation.bytes(), transaction.until.is_none());
    let until = cx.broker_now.mono.after(life);
    let until = *transaction.until.get_or_insert(until);
    transaction.operations += operation.len();
    transaction.bytes += bytes;
    let place = transaction.held.len();
    let tokens = operation.tokens().to_vec();
    if let Some(outcome) = operation.on_rollback() {
        let outcomes = tokens.iter().map(|token| (*token, outcome.clone()));
        transaction.on_rollback.extend(outcomes);
    }
    transaction.held.push(operation);
    let marked = tokens.into_iter().map(|token| (token, id));
    transactions.marked.extend(marked);
    transactions.bytes += bytes;
    if begins {
        transactions.ends.insert((until, id));
    }
    place
}

impl Transaction {
    /// Bytes of messages that it holds for an entity.
    fn held_for(&self, entity: EntityId) -> u64 {
        let payloads = self.held.iter().flat_map(|operation| match operation {
            Operation::Send {
                entity: to,
                messages,
            } if *to == entity => messages.as_slice(),
            _ => &[],
        });
        payloads.map(|message| message.payload.len() as u64).sum()
    }
}

impl Transaction {
    fn cancelled_in(&self, entity: EntityId) -> impl Iterator<Item = SequenceNumber> {
        let numbers = self.held.iter().flat_map(move |operation| match operation {
            Operation::Cancel {
                entity: of,
                numbers,
            } if *of == entity => numbers.as_slice(),
            _ => &[],
        });
        numbers.copied()
    }
}

impl Operation {
    /// With allocations of its own, since it stays for a while: a slice pins the whole buffer
    /// that the socket was read into.
    fn unpinned(mut self) -> Self {
        if let Self::Send { messages, .. } = &mut self {
            for message in messages {
                if message.payload.len() < COPY_LIMIT {
                    message.payload = Bytes::copy_from_slice(&message.payload);
                }
                for small in [&mut message.message_id, &mut message.session_id] {
                    *small = small.as_deref().map(Bytes::copy_from_slice);
                }
            }
        }
        self
    }
}

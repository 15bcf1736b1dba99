//! Injected: what a fault rule refuses within a transaction, or of the whole. (docs/faults.md)
//!
//! A refused operation is not part of its transaction, which goes on without it as after any other
//! refusal. A refused commit or rollback is a rollback: its client takes the transaction for over.

use super::enlist::{Refused, mark_failed};
use super::{enter, roll_back, time_out_if_due};
use crate::api::error::{RequestError, SendError, SettleError, TransactionError};
use crate::api::id::{RequestId, TransactionId};
use crate::api::injected_error::InjectedError;
use crate::api::operation::{Operation, RefusalReport};
use crate::api::output::Output;
use crate::context::Context;
use crate::entities::directory::Directory;

/// Refuses an operation of a transaction.
pub(crate) fn refuse_operation(
    directory: &mut Directory,
    request: RequestId,
    id: TransactionId,
    operation: &Operation,
    refusal: RefusalReport,
    error: InjectedError,
    cx: &mut Context<'_>,
) {
    if refusal.fails(false) {
        mark_failed(request.connection, id, error.to_string(), cx);
    }
    cx.emit(answer(request, operation, error));
    if let Some(settled) = Refused::of(operation) {
        settled.give_back(directory, cx);
    }
}

/// An operation that has no answer is not carried out: its transaction fails if its client counts
/// on it.
pub(crate) fn fail_unreported(
    request: RequestId,
    id: TransactionId,
    refusal: RefusalReport,
    cx: &mut Context<'_>,
) {
    if refusal == RefusalReport::Unreported {
        let reason = "a fault rule has kept an operation from being part of it".to_owned();
        mark_failed(request.connection, id, reason, cx);
    }
}

/// Refuses to commit a transaction or to roll it back, and rolls it back.
pub(crate) fn refuse_discharge(
    directory: &mut Directory,
    request: RequestId,
    id: TransactionId,
    error: InjectedError,
    cx: &mut Context<'_>,
) {
    time_out_if_due(directory, id, cx);
    enter(directory, id, cx);
    let result = match cx.shared.transactions.open(id, request.connection) {
        Ok(_) => {
            roll_back(directory, id, cx);
            Err(TransactionError::Injected(error))
        }
        Err(error) => {
            let transactions = &mut cx.shared.transactions;
            transactions.forget_timed_out(id, request.connection);
            Err(error)
        }
    };
    cx.emit(Output::Discharged { request, result });
}

fn answer(request: RequestId, operation: &Operation, error: InjectedError) -> Output {
    match operation {
        Operation::Send { .. } => Output::Sent {
            request,
            result: Err(SendError::Injected(error)),
            duplicates: Vec::new(),
        },
        Operation::Settle { .. } => Output::Settled {
            request,
            result: Err(SettleError::Injected(error)),
        },
        Operation::Cancel { .. } => Output::Cancelled {
            request,
            result: Err(RequestError::Injected(error)),
        },
        Operation::SetSessionState { .. } => Output::SessionStateSet {
            request,
            result: Err(RequestError::Injected(error)),
        },
    }
}

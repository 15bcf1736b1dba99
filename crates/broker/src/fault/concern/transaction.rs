//! Transaction: what the commands of transactions are about.
//!
//! An operation of a transaction is the one that it would be outside of it. The beginning of a
//! transaction and its end are operations of their namespace, on no entity.

use store::NamespaceId;

use super::{Concern, Named, Place, operation_of, sending};
use crate::api::fault::{FaultOperation, Requester};
use crate::api::id::{RequestId, TransactionId};
use crate::api::operation::Operation;

pub(super) fn declare(request: RequestId, namespace: NamespaceId) -> Concern<'static> {
    let place = Place::Namespace(namespace);
    of(place, FaultOperation::Declare, request)
}

pub(super) fn discharge(request: RequestId, id: TransactionId, fail: bool) -> Concern<'static> {
    let operation = match fail {
        true => FaultOperation::Rollback,
        false => FaultOperation::Commit,
    };
    of(Place::Transaction(id), operation, request)
}

/// What is to become part of a transaction.
pub(super) fn operation(request: RequestId, operation: &Operation) -> Option<Concern<'_>> {
    let place = Place::Entity(operation.entity());
    let concern = match operation {
        Operation::Send { messages, .. } => Concern {
            messages,
            ..of(place, sending(messages), request)
        },
        Operation::Settle {
            session,
            tokens,
            outcome,
            ..
        } => Concern {
            named: Named::Locks(tokens),
            session: session.as_deref(),
            ..of(place, operation_of(outcome)?, request)
        },
        Operation::Cancel { .. } => of(place, FaultOperation::CancelScheduled, request),
        Operation::SetSessionState { session, .. } => Concern {
            session: Some(session),
            ..of(place, FaultOperation::SetSessionState, request)
        },
    };
    Some(concern)
}

fn of(place: Place<'_>, operation: FaultOperation, request: RequestId) -> Concern<'_> {
    Concern {
        place,
        operation,
        requester: Some(Requester::Request(request)),
        named: Named::Nothing,
        session: None,
        messages: &[],
    }
}

//! Settle: how locks end, by their holder's word or by running out.
//!
//! What a client says of one lock or of several is done at once, all or none. The files below say
//! what the end of a lock does to its message.

pub(crate) mod dead_letter;
pub(crate) mod end_lock;
pub(crate) mod redrive;
pub(crate) mod renew;
pub(crate) mod retry;

use store::SequenceNumber;

use crate::api::error::SettleError;
use crate::api::id::{ConnectionId, LockToken, RequestId, Subqueue};
use crate::api::outcome::Outcome;
use crate::api::output::Output;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::receive::run::run;
use crate::settle::end_lock::{Asker, check_allowed};

/// Ends one lock.
pub(crate) fn settle(
    directory: &mut Directory,
    request: Option<RequestId>,
    asker: &Asker,
    token: LockToken,
    outcome: Outcome,
    cx: &mut Context<'_>,
) {
    let unanswered = match &outcome {
        Outcome::Reported { to, .. } if request.is_none() => Some(*to),
        _ => None,
    };
    let Some(queue) = directory.get_mut(asker.subqueue.entity) else {
        report_refusal(unanswered, token, &Err(SettleError::LockLost), cx);
        return answer(request, Err(SettleError::LockLost), cx);
    };
    let result = match end_lock::find_free_lock(queue, token, asker, cx) {
        // The client has no more say in the delivery, so its word is kept.
        Err(SettleError::Enlisted) if request.is_none() => {
            return cx.shared.transactions.settle_on_rollback(token, outcome);
        }
        found => found.and_then(|found| settle_one(queue, found, outcome, asker.connection, cx)),
    };
    report_refusal(unanswered, token, &result, cx);
    answer(request, result, cx);
    run(queue, cx);
}

/// Ends several locks in the same way, all or none.
pub(crate) fn settle_many(
    directory: &mut Directory,
    request: RequestId,
    asker: &Asker,
    tokens: &[LockToken],
    outcome: &Outcome,
    cx: &mut Context<'_>,
) {
    let Some(queue) = directory.get_mut(asker.subqueue.entity) else {
        return answer(Some(request), Err(SettleError::LockLost), cx);
    };
    let result = settle_all(queue, asker, tokens, outcome, cx);
    answer(Some(request), result, cx);
    run(queue, cx);
}

/// Answers a client that wants an answer.
fn answer(request: Option<RequestId>, result: Result<(), SettleError>, cx: &mut Context<'_>) {
    if let Some(request) = request {
        cx.emit(Output::Settled { request, result });
    }
}

/// Tells a connection that gets no answer why a lock has not ended.
fn report_refusal(
    to: Option<ConnectionId>,
    token: LockToken,
    result: &Result<(), SettleError>,
    cx: &mut Context<'_>,
) {
    if let (Some(connection), Err(error)) = (to, result) {
        let result = Err(error.clone());
        cx.emit(Output::LockEnded {
            connection,
            token,
            result,
        });
    }
}

fn settle_one(
    queue: &mut Queue,
    (subqueue, number): (Subqueue, SequenceNumber),
    outcome: Outcome,
    by: Option<ConnectionId>,
    cx: &mut Context<'_>,
) -> Result<(), SettleError> {
    check_allowed(queue, subqueue, &outcome)?;
    queue.note_access(cx);
    let lock = end_lock::take_lock(queue, subqueue, number, cx);
    assert!(!lock.enlisted, "its transaction alone ends such a lock");
    queue.record_settlement(number, &lock, &outcome, by, cx);
    end_lock::end_lock(queue, subqueue, number, lock, outcome, cx);
    Ok(())
}

fn settle_all(
    queue: &mut Queue,
    asker: &Asker,
    tokens: &[LockToken],
    outcome: &Outcome,
    cx: &mut Context<'_>,
) -> Result<(), SettleError> {
    for &token in tokens {
        let (subqueue, number) = end_lock::find_free_lock(queue, token, asker, cx)?;
        end_lock::check_not_lasting(queue, subqueue, number)?;
        check_allowed(queue, subqueue, outcome)?;
    }
    queue.note_access(cx);
    for &token in tokens {
        // A token that was named twice finds nothing the second time.
        if let Some((subqueue, number)) = end_lock::find_lock(queue, token, cx) {
            let lock = end_lock::take_lock(queue, subqueue, number, cx);
            assert!(!lock.enlisted, "its transaction alone ends such a lock");
            queue.record_settlement(number, &lock, outcome, asker.connection, cx);
            end_lock::end_lock(queue, subqueue, number, lock, outcome.clone(), cx);
        }
    }
    Ok(())
}

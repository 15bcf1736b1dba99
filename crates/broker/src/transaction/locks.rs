//! Locks within a transaction: marked while it is open, ended by its commit or left to their
//! holder. A rollback ends those whose client has settled the delivery.
//!
//! A mark belongs to the transaction that holds the token: a token is given once, and a marked
//! lock cannot be enlisted again. Renewal works; a lock that runs out is gone, mark and all.

use std::collections::BTreeMap;

use crate::api::error::SettleError;
use crate::api::id::LockToken;
use crate::api::outcome::Outcome;
use crate::context::Context;
use crate::queue::Queue;
use crate::settle::end_lock;
use crate::settle::end_lock::{Asker, check_allowed, check_not_lasting};

/// Marks the locks that `tokens` name, each once: all of them or none.
pub(crate) fn enlist_locks(
    queue: &mut Queue,
    asker: &Asker,
    tokens: &[LockToken],
    outcome: &Outcome,
    cx: &Context<'_>,
) -> Result<(), SettleError> {
    let mut found = Vec::with_capacity(tokens.len());
    for &token in tokens {
        let (subqueue, number) = end_lock::find_free_lock(queue, token, asker, cx)?;
        // The dialect whose receivers hold such locks has no transactions.
        check_not_lasting(queue, subqueue, number)?;
        check_allowed(queue, subqueue, outcome)?;
        found.push((subqueue, number));
    }
    for (subqueue, number) in found {
        queue.sub_mut(subqueue).locks.enlist(number, true);
    }
    Ok(())
}

/// Takes the marks back, and ends the locks that have an outcome for a rollback. A lock that has
/// run out may belong to another receiver by now. Returns whether one was ended.
pub(crate) fn release_locks(
    queue: &mut Queue,
    tokens: &[LockToken],
    on_rollback: &mut BTreeMap<LockToken, Outcome>,
    cx: &mut Context<'_>,
) -> bool {
    let mut ended = false;
    for &token in tokens {
        let outcome = on_rollback.remove(&token);
        // The lock has ended by its time, or with its session.
        let Some((subqueue, number)) = end_lock::find_lock(queue, token, cx) else {
            continue;
        };
        queue.sub_mut(subqueue).locks.enlist(number, false);
        if let Some(outcome) = outcome {
            let lock = end_lock::take_lock(queue, subqueue, number, cx);
            // A client that has settled gets no answer that it is not allowed.
            let allowed = check_allowed(queue, subqueue, &outcome).is_ok();
            let outcome = if allowed { outcome } else { Outcome::Release };
            queue.record_settlement(number, &lock, &outcome, None, cx);
            end_lock::end_lock(queue, subqueue, number, lock, outcome, cx);
            ended = true;
        }
    }
    ended
}

/// Whether all these locks still hold.
pub(crate) fn holds_locks(queue: &Queue, tokens: &[LockToken], cx: &Context<'_>) -> bool {
    tokens
        .iter()
        .all(|token| end_lock::find_lock(queue, *token, cx).is_some())
}

/// Ends marked locks, which hold.
pub(crate) fn end_locks(
    queue: &mut Queue,
    tokens: &[LockToken],
    outcome: &Outcome,
    cx: &mut Context<'_>,
) {
    queue.note_access(cx);
    for &token in tokens {
        let found = end_lock::find_lock(queue, token, cx);
        let (subqueue, number) = found.expect("the commit has seen that all locks hold");
        let lock = end_lock::take_lock(queue, subqueue, number, cx);
        assert!(lock.enlisted, "it was marked for this transaction");
        queue.record_settlement(number, &lock, outcome, None, cx);
        end_lock::end_lock(queue, subqueue, number, lock, outcome.clone(), cx);
    }
}

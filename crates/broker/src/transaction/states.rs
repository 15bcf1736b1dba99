//! States of sessions within a transaction: set by its commit, if their sessions are held until
//! then.
//!
//! A session that is lost and accepted again is another one to the transaction. What the state
//! before takes of the entity's size has to be known at the commit; reading it is one of the
//! lookups, unless the holder has read or set it before. (docs/spec/amqp.md#8;
//! docs/spec/entities.md#18)

use std::collections::BTreeMap;

use bytes::Bytes;
use store::EntityId;

use super::enlist::{check_bounds, hold};
use crate::api::error::RequestError;
use crate::api::id::{RequestId, TransactionId};
use crate::api::operation::Operation;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::sessions::state::cost;
use crate::sessions::state_request;

/// Takes the setting of a state into a transaction.
pub(super) fn enlist(
    directory: &Directory,
    request: RequestId,
    id: TransactionId,
    operation: Operation,
    cx: &mut Context<'_>,
) -> Result<(), RequestError> {
    check_bounds(request, id, &operation, cx)?;
    let Operation::SetSessionState {
        entity,
        session,
        state,
    } = &operation
    else {
        unreachable!("only states of sessions come here");
    };
    let queue = directory.get(*entity).ok_or(RequestError::NotFound)?;
    let sessions = queue.sessions.as_ref();
    let sessions = sessions.ok_or(RequestError::SessionsNotSupported)?;
    let session = sessions.held_session(request.connection, session, cx.now.mono)?;
    let nearly_full = cx.shared.nearly_full;
    state_request::check(state.as_ref(), &queue.settings, nearly_full)?;
    let place = hold(request, id, operation, cx);
    let transaction = cx.shared.transactions.open(id, request.connection)?;
    transaction.sessions.insert(place, session);
    Ok(())
}

/// What the states that a transaction sets will take.
#[derive(Debug, Default)]
pub(super) struct Costs(BTreeMap<(EntityId, HoldId), u64>);

impl Costs {
    /// Checks that the session is held and that its new state has room beside what is `held` for
    /// the entity, which grows by it.
    pub(super) fn add(
        &mut self,
        queue: &Queue,
        session: HoldId,
        state: Option<&Bytes>,
        held: &mut u64,
        cx: &Context<'_>,
    ) -> Result<(), String> {
        let lost = "a session was lost before the commit";
        let sessions = queue.sessions.as_ref().ok_or(lost)?;
        let stored = sessions.state_cost(session, cx.now.mono).ok_or(lost)?;
        let known = self.0.entry((queue.id, session)).or_insert(stored);
        let after = cost(state);
        let (rows, settings) = (&queue.rows, &queue.settings);
        let room = sessions.check_state_room(*known, after, *held, rows, settings);
        room.map_err(|error| error.to_string())?;
        *held = held.saturating_add(after.saturating_sub(*known));
        *known = after;
        Ok(())
    }
}

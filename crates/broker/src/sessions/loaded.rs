//! Loaded: which operation about sessions continues with what was read.
//!
//! One arm for each purpose (`read.rs`), one call each. Rows that expire go through the whole
//! queue; all else is for the sessions alone.

use store::{Found, StoreError};

use crate::api::id::ReadId;
use crate::context::Context;
use crate::queue::Queue;
use crate::sessions::expire_rows;
use crate::sessions::read::SessionRead;
use crate::sessions::state;

/// Hands the answer to the operation that asked for it.
pub(crate) fn loaded(
    queue: &mut Queue,
    read: ReadId,
    what: SessionRead,
    found: Result<Found, StoreError>,
    cx: &mut Context<'_>,
) {
    let rows = |found: Result<Found, StoreError>| found.and_then(Found::into_messages);
    let entries = |found: Result<Found, StoreError>| found.and_then(Found::into_entries);
    let (sessions, mut parts) = queue.sessions_mut();
    let parts = &mut parts;
    match what {
        SessionRead::Survey => sessions.surveyed(entries(found), parts, cx),
        SessionRead::Check => sessions.checked(entries(found), parts, cx),
        SessionRead::Age(key, number) => sessions.age_loaded(key, number, rows(found), parts),
        SessionRead::Order { hold, limit, until } => {
            sessions.order_loaded(read, hold, limit, until, entries(found), parts, cx);
        }
        SessionRead::Rows {
            hold,
            asked,
            numbers,
            covered,
            bodies,
        } => sessions.rows_loaded(
            hold,
            asked,
            numbers,
            covered,
            bodies,
            rows(found),
            parts,
            cx,
        ),
        SessionRead::Bodies { hold, numbers } => {
            sessions.bodies_loaded(hold, read, &numbers, rows(found), parts, cx);
        }
        SessionRead::State(hold) => sessions.state_loaded(hold, entries(found), parts, cx),
        SessionRead::ShowState(request) => cx.emit(state::shown(request, entries(found))),
        SessionRead::Expiring(expiry) => sessions.expiring_found(expiry, entries(found), parts, cx),
        SessionRead::ExpiringRows(expiry, piece) => {
            expire_rows::loaded(queue, read, expiry, piece, rows(found), cx);
        }
        SessionRead::Recall => sessions.expiries_recalled(entries(found), parts, cx),
        SessionRead::List(listing) => sessions.list_loaded(*listing, entries(found), parts, cx),
        SessionRead::Peek(peek) => sessions.session_peeked(*peek, found, parts, cx),
    }
}

//! Reads about sessions, and which operation continues with the answer.

use crate::sessions::session_expiry;
use store::{Found, SequenceNumber, StoreError};

use crate::api::id::ReadId;
use crate::api::output::RequestError;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::queue::Queue;
use crate::queue::session_key::SessionKey;
use crate::sessions::list::Listing;
use crate::sessions::peek::SessionPeek;
use crate::sessions::session_expiry::{Piece, SessionExpiry};

/// What was read of sessions.
#[derive(Debug)]
pub(crate) enum SessionRead {
    /// The first entries of some sessions.
    Survey,
    /// The first entry of one session.
    Check,
    /// The first message of a session.
    Age(SessionKey, SequenceNumber),
    /// Numbers of a hold's next messages.
    Order {
        hold: HoldId,
        limit: usize,
        until: SequenceNumber,
    },
    /// These messages, for the window that asked with the read named.
    Rows {
        hold: HoldId,
        asked: ReadId,
        numbers: Vec<SequenceNumber>,
        covered: SequenceNumber,
        bodies: bool,
    },
    /// Bodies of a hold's first messages.
    Bodies {
        hold: HoldId,
        numbers: Vec<SequenceNumber>,
    },
    /// A hold's state.
    State(HoldId),
    /// Numbers of messages that are to expire with their session.
    Expiring(SessionExpiry),
    /// These messages.
    ExpiringRows(SessionExpiry, Piece),
    /// Sessions that a restart has left half expired.
    Recall,
    /// Sessions that have a state.
    List(Box<Listing>),
    Peek(Box<SessionPeek>),
}

impl SessionRead {
    /// Its queue is gone: a request that waits for the answer is refused.
    pub(crate) fn refuse(self, cx: &mut Context<'_>) {
        match self {
            Self::List(listing) => listing.refuse(RequestError::NotFound, cx),
            Self::Peek(peek) => peek.refuse(RequestError::NotFound, cx),
            // No request waits for these, or it was answered when the queue went.
            Self::Survey
            | Self::Check
            | Self::Age(..)
            | Self::Order { .. }
            | Self::Rows { .. }
            | Self::Bodies { .. }
            | Self::State(_)
            | Self::Expiring(_)
            | Self::ExpiringRows(..)
            | Self::Recall => {}
        }
    }
}

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
        SessionRead::Expiring(expiry) => sessions.expiring_found(expiry, entries(found), parts, cx),
        SessionRead::ExpiringRows(expiry, piece) => {
            session_expiry::expiring_loaded(queue, read, expiry, piece, rows(found), cx);
        }
        SessionRead::Recall => sessions.expiries_recalled(entries(found), parts, cx),
        SessionRead::List(listing) => sessions.list_loaded(*listing, entries(found), parts, cx),
        SessionRead::Peek(peek) => sessions.session_peeked(*peek, found, parts, cx),
    }
}

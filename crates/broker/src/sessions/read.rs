//! Reads about sessions, and which operation continues with the answer.

use store::{Found, SequenceNumber, StoreError};

use crate::api::id::ReadId;
use crate::api::output::RequestError;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::queue::Queue;
use crate::sessions::SessionKey;
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

impl Queue {
    /// Hands the answer to the operation that asked for it.
    pub(crate) fn session_loaded(
        &mut self,
        read: ReadId,
        what: SessionRead,
        found: Result<Found, StoreError>,
        cx: &mut Context<'_>,
    ) {
        let rows = |found: Result<Found, StoreError>| found.and_then(Found::into_messages);
        let entries = |found: Result<Found, StoreError>| found.and_then(Found::into_entries);
        match what {
            SessionRead::Survey => self.surveyed(entries(found), cx),
            SessionRead::Check => self.checked(entries(found), cx),
            SessionRead::Age(key, number) => self.age_loaded(key, number, rows(found)),
            SessionRead::Order { hold, limit, until } => {
                self.order_loaded(read, hold, limit, until, entries(found), cx);
            }
            SessionRead::Rows {
                hold,
                asked,
                numbers,
                covered,
                bodies,
            } => self.rows_loaded(hold, asked, numbers, covered, bodies, rows(found), cx),
            SessionRead::Bodies { hold, numbers } => {
                self.bodies_loaded(hold, read, &numbers, rows(found), cx);
            }
            SessionRead::State(hold) => self.state_loaded(hold, entries(found), cx),
            SessionRead::Expiring(expiry) => self.expiring_found(expiry, entries(found), cx),
            SessionRead::ExpiringRows(expiry, piece) => {
                self.expiring_loaded(read, expiry, piece, rows(found), cx);
            }
            SessionRead::Recall => self.expiries_recalled(entries(found), cx),
            SessionRead::List(listing) => self.list_loaded(*listing, entries(found), cx),
            SessionRead::Peek(peek) => self.session_peeked(*peek, found, cx),
        }
    }
}

//! Reads about sessions: for what something was asked of the store.
//!
//! Each purpose has with it all that is needed to go on when the answer comes (`loaded.rs`). The
//! queue may be gone by then: a request that waits for the answer is refused.

use store::SequenceNumber;

use crate::api::error::RequestError;
use crate::api::id::{ReadId, RequestId};
use crate::api::output::Output;
use crate::context::clients::HoldId;
use crate::queue::session_key::SessionKey;
use crate::sessions::listing::Listing;
use crate::sessions::pending_peek::SessionPeek;
use crate::sessions::state_request::StateRequest;

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
    /// The state of a session that this request wants to see.
    ShowState(RequestId),
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
    /// Its queue is gone: how a request that waits for the answer is refused.
    pub(crate) fn refusal(self, error: RequestError) -> Option<Output> {
        match self {
            Self::List(listing) => Some(listing.answer(Err(error))),
            Self::Peek(peek) => Some(peek.page.refusal(error)),
            Self::ShowState(request) => Some(StateRequest::Get(request).refusal(error)),
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
            | Self::Recall => None,
        }
    }
}

/// A session whose messages expire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionExpiry {
    pub hash: u64,
    pub cursor: SequenceNumber,
    pub until: SequenceNumber,
    /// After a read that failed: one message at a time, so that one that cannot be read keeps
    /// no other.
    pub cautious: bool,
}

/// A bounded piece of a session's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub last: SequenceNumber,
    /// Whether there are no more behind it.
    pub whole: bool,
}

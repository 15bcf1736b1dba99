//! Listing: a request for the ids of sessions, until its page is full.
//!
//! It knows how many sessions it still skips, which it has taken, and behind which one it goes on.
//! How they are found is in `list.rs`.

use bytes::Bytes;

use crate::api::error::RequestError;
use crate::api::id::RequestId;
use crate::api::output::{Output, SessionPage};
use crate::api::time::Wall;
use crate::queue::session_key::SessionKey;

/// Most ids of one page, and bytes of them.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 1 << 20;

/// A listing on its way.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(super) request: RequestId,
    /// `None` for all that have messages or a state.
    pub(super) updated_after: Option<Wall>,
    pub(super) skip: usize,
    pub(super) top: usize,
    pub(super) left_to_skip: usize,
    /// Everything up to this one has been seen.
    pub(super) after: Option<SessionKey>,
    pub(super) ids: Vec<Bytes>,
    pub(super) bytes: usize,
}

impl Listing {
    pub(super) fn new(
        request: RequestId,
        updated_after: Option<Wall>,
        skip: usize,
        top: usize,
    ) -> Self {
        Self {
            request,
            updated_after,
            skip,
            top: top.min(MOST),
            left_to_skip: skip,
            after: None,
            ids: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn answer(self, result: Result<SessionPage, RequestError>) -> Output {
        let request = self.request;
        Output::Sessions { request, result }
    }

    pub(super) fn is_full(&self) -> bool {
        self.ids.len() >= self.top || self.bytes >= MOST_BYTES
    }

    /// Takes one session in, or skips it.
    pub(super) fn take(&mut self, key: &SessionKey) {
        if self.left_to_skip > 0 {
            self.left_to_skip -= 1;
        } else {
            self.bytes += key.id.len();
            self.ids.push(key.bytes());
        }
        self.after = Some(key.clone());
    }
}

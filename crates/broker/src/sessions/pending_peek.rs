//! Pending peek: what a peek at a session has found so far, and what is still to be read for it.
//!
//! It goes through the parts of the queue in the order in which a message moves.

use store::{Part, SequenceNumber};

use crate::queue::session_key::SessionKey;
use crate::receive::page::Page;

/// A peek on its way.
#[derive(Debug)]
pub(crate) struct SessionPeek {
    pub(super) key: SessionKey,
    pub(super) from: SequenceNumber,
    /// Which messages are being read.
    pub(super) part: Part,
    /// From where on, of that part.
    pub(super) next: SequenceNumber,
    /// Where its numbers were cut off, if they were.
    pub(super) cut: Option<SequenceNumber>,
    pub(super) page: Page,
}

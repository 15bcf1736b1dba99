//! Detected error: an error of the peer that this end detected by itself, and its scope.
//!
//! The owner knows the errors that it passes to `refuse`, `detach`, `end` and `close`; these are
//! the other ones, with the name of the link that ended. They are kept one by one until the owner
//! takes them, up to a limit. Errors beyond it are still [counted](crate::error_counts).

use amqp::Error;

use crate::id::LinkId;

/// Errors that are kept until the owner takes them.
pub(crate) const MAX: usize = 256;
/// Characters of a link's name that are kept: more than a log shows, so that what must not be shown
/// is still recognized.
pub(crate) const MAX_NAME: usize = 512;

/// What an error ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ErrorScope {
    /// The connection, by a close or, before AMQP began, without one.
    Connection,
    /// A session, and its links with it.
    Session,
    /// A link.
    Link {
        /// Its id.
        link: LinkId,
        /// The beginning of its name.
        name: String,
        /// False for an attach that was refused.
        attached: bool,
    },
}

/// An error that this end detected by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedError {
    /// What it ended.
    pub scope: ErrorScope,
    /// The error that the peer was sent, as far as the protocol can express it.
    pub error: Error,
}

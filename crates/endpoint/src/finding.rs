//! Finding: an error of the peer's that this end found by itself, and what it ended.
//!
//! The owner knows the errors that it gives to `refuse`, `detach`, `end` and `close`; these are the
//! others, with the name of the link that went. They are kept one by one until the owner takes
//! them, up to a bound: whatever else is told is still [counted](crate::told).

use amqp::Error;

use crate::connection::Connection;
use crate::id::LinkId;

/// Findings that are kept until the owner takes them.
const MAX: usize = 256;
/// Characters of a link's name that are kept: more than a log shows, so that what must not be shown
/// is still recognized.
const MAX_NAME: usize = 512;

/// What an error ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ended {
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

/// An error that this end found by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it ended.
    pub ended: Ended,
    /// What the peer was told, as far as the protocol has words for it.
    pub error: Error,
}

impl Connection {
    /// Keeps a finding for the owner.
    pub(crate) fn find(&mut self, ended: Ended, error: &Error) {
        if self.findings.len() < MAX {
            let error = error.clone();
            self.findings.push(Finding { ended, error });
        }
    }

    /// The same of a link that is there.
    pub(crate) fn find_of_link(&mut self, key: u32, attached: bool, error: &Error) {
        let name = self.links.get(key).map(|link| &link.name);
        let name = name.map(|name| name.chars().take(MAX_NAME).collect());
        let ended = Ended::Link {
            link: LinkId(key),
            name: name.unwrap_or_default(),
            attached,
        };
        self.find(ended, error);
    }
}

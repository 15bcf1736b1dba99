//! Stranger: a client that has not shown any right yet, and so may take up little.
//!
//! What it needs for showing one is a session and a pair of links to `$cbs`. Once it has logged in
//! or put a token that was accepted it is known for the rest of the connection, also when the token
//! has run out: it has held a key. It has a minute for that.

use amqp::Error;
use amqp::error::condition;
use endpoint::{Bounds, Mono};

use crate::client::Client;
use crate::rights::Rights;

/// What a stranger may have.
const BOUNDS: Bounds = Bounds {
    sessions: 64,
    links: 64,
    partial_bytes: 1 << 20,
};

impl Client {
    /// Narrows the connection down unless everyone has rights.
    pub(crate) fn begin_as_stranger(&mut self) {
        let everyone = self.directory.access().anonymous();
        self.is_stranger = !self.claims.has_any() && everyone == Rights::NONE;
        if self.is_stranger {
            let allowed = self.settings.authentication_time_out;
            self.known_by = Some(Mono(self.now.mono.0.saturating_add(allowed.into())));
            self.connection.set_bounds(Some(BOUNDS));
        }
    }

    /// Closes the connection of a stranger whose time is up.
    pub(crate) fn dismiss_stranger(&mut self) {
        if self.known_by.is_some_and(|due| due <= self.now.mono) {
            self.known_by = None;
            let allowed = self.settings.authentication_time_out;
            let text =
                format!("No right was shown on the connection within {allowed} milliseconds.");
            self.close(Error::new(condition::UNAUTHORIZED_ACCESS, text));
        }
    }

    /// The client has shown a right.
    pub(crate) fn become_known(&mut self) {
        self.known_by = None;
        self.is_stranger = false;
        self.connection.set_bounds(None);
    }
}

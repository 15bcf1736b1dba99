//! Unauthenticated clients: limits on a client that has not presented a valid credential.
//!
//! Such a client needs a session and a pair of links to `$cbs`, and may not use much more. It
//! counts as authenticated for the rest of the connection once it has logged in or sent a token
//! that was accepted, also after the token has expired. Otherwise its connection is closed after a
//! time limit.

use access::Rights;
use amqp::Error;
use amqp::error::condition;
use endpoint::{Bounds, Mono};

use crate::client::Client;

/// The limits of an unauthenticated client.
const BOUNDS: Bounds = Bounds {
    sessions: 64,
    links: 64,
    partial_bytes: 1 << 20,
};

impl Client {
    /// Limits the connection unless a client without a credential has rights.
    pub(crate) fn begin_unauthenticated(&mut self) {
        let everyone = self.directory.access().anonymous();
        self.is_unauthenticated = !self.claims.has_any() && everyone == Rights::NONE;
        if self.is_unauthenticated {
            let allowed = self.settings.authentication_time_out;
            self.authentication_deadline =
                Some(Mono(self.now.mono.0.saturating_add(allowed.into())));
            self.connection.set_bounds(Some(BOUNDS));
        }
    }

    /// Closes the connection of a client that has not authenticated in time.
    pub(crate) fn close_unauthenticated(&mut self) {
        if self
            .authentication_deadline
            .is_some_and(|due| due <= self.now.mono)
        {
            self.authentication_deadline = None;
            let allowed = self.settings.authentication_time_out;
            let text = format!("The client has not authenticated within {allowed} milliseconds.");
            self.close(Error::new(condition::UNAUTHORIZED_ACCESS, text));
        }
    }

    /// Lifts the limits once the client has presented a valid credential.
    pub(crate) fn mark_authenticated(&mut self) {
        self.authentication_deadline = None;
        self.is_unauthenticated = false;
        self.connection.set_bounds(None);
    }
}

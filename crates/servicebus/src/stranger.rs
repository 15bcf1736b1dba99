//! Stranger: a client that has not shown any right yet, and so may take up little.
//!
//! What it needs for showing one is a session and a pair of links to `$cbs`. Once it has logged in
//! or put a token that was accepted it is known for the rest of the connection, also when the token
//! has run out: it has held a key.

use endpoint::Bounds;

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
            self.connection.confine(Some(BOUNDS));
        }
    }

    /// The client has shown a right.
    pub(crate) fn become_known(&mut self) {
        self.is_stranger = false;
        self.connection.confine(None);
    }
}

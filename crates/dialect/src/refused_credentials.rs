//! Refused credentials: how many a connection has shown, and how many of them may be guesses.
//! (docs/security.md)

use access::Unauthorized;

/// Counts since the beginning of a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RefusedCredentials {
    /// All of them.
    pub all: u64,
    /// Those that no key has made.
    pub guesses: u64,
}

impl RefusedCredentials {
    /// Counts one.
    pub fn count(&mut self, reason: &Unauthorized) {
        self.all += 1;
        self.guesses += u64::from(access::is_guess(reason.sub_code()));
    }
}

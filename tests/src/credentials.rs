//! Credentials: what a test shows to a broker.

use amqp::Symbol;

use crate::secrets;

/// A rule's name and key for SASL PLAIN.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Credentials {
    pub rule: &'static str,
    pub key: &'static str,
}

impl Credentials {
    /// The well-known ones.
    pub const DEVELOPMENT: Self = Self {
        rule: "RootManageSharedAccessKey",
        key: "SAS_KEY_VALUE",
    };

    /// The mechanism of SASL and its first response.
    pub(crate) fn login(self) -> (Symbol, Vec<u8>) {
        secrets::note(self.key);
        let response = format!("\0{}\0{}", self.rule, self.key).into_bytes();
        (Symbol::new("PLAIN"), response)
    }
}

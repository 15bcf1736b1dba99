//! SASL: the mechanisms by which a client logs in. (docs/spec/amqp.md#1.3)
//!
//! Every mechanism except PLAIN accepts any client, which then has no rights until it sends a
//! token. PLAIN names a rule and gives its key; the rule's rights hold for the whole connection.
//! EXTERNAL is not offered, because the server requests no client certificate.

use amqp::error::condition;
use amqp::sasl::Code;
use amqp::{Error, Symbol};
use bytes::Bytes;
use dialect::{Origin, Subject};

use crate::client::Client;

impl Client {
    /// Handles the mechanism that the client selected.
    pub(crate) fn handle_sasl(&mut self, mechanism: &Symbol, initial_response: Option<&Bytes>) {
        let welcome = match mechanism.as_str() {
            "MSSBCBS" | "ANONYMOUS" => true,
            "PLAIN" => initial_response.is_some_and(|response| self.log_in(response)),
            _ => false,
        };
        if !welcome {
            self.refused_credentials += 1;
            let error = refused();
            self.refusals
                .note(Subject::Login, Origin::default(), &error);
        }
        if self.claims.has_any() {
            self.mark_authenticated();
        }
        self.connection
            .finish_sasl(if welcome { Code::Ok } else { Code::Auth });
    }

    /// Reads `[authorization id] NUL name NUL password`.
    fn log_in(&mut self, response: &[u8]) -> bool {
        let mut parts = response.splitn(3, |byte| *byte == 0);
        let (Some(_), Some(name), Some(password)) = (parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let Ok(name) = std::str::from_utf8(name) else {
            return false;
        };
        let credential = self.directory.access().log_in(name, password);
        let is_right = credential.is_some();
        credential
            .into_iter()
            .for_each(|credential| self.claims.log_in(credential));
        is_right
    }
}

/// The error of a refused login, for the log: SASL has no error text.
fn refused() -> Error {
    let text = "PLAIN: no rule has the name and the key that were shown.";
    Error::new(condition::UNAUTHORIZED_ACCESS, text)
}

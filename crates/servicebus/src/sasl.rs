//! SASL: who comes in by which mechanism. (docs/spec/amqp.md#1.3)
//!
//! Every mechanism but PLAIN lets anyone in, who then has no rights until a token is put. PLAIN
//! names a rule and shows its key; the rule's rights hold for the whole connection. EXTERNAL is not
//! offered: it would mean a client's certificate, and none is asked for.

use amqp::error::condition;
use amqp::sasl::Code;
use amqp::{Error, Symbol};
use bytes::Bytes;

use crate::client::Client;
use crate::refusals::{Origin, Subject};

impl Client {
    /// Decides on the client's choice.
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

/// Why a client is not let in. It is told so without words: SASL has none.
fn refused() -> Error {
    let text = "PLAIN: no rule has the name and the key that were shown.";
    Error::new(condition::UNAUTHORIZED_ACCESS, text)
}

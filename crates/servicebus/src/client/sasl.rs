//! SASL: the mechanisms by which a client logs in. (docs/spec/amqp.md#1.3)
//!
//! Every mechanism except PLAIN accepts any client, which then has no rights until it sends a
//! token. PLAIN names a rule and gives its key; the rule's rights hold for the whole connection.
//! Or its user is `$jwt` and the password a JSON Web Token, whose rights hold until it expires.
//! EXTERNAL is not offered, because the server requests no client certificate.

use std::sync::Arc;

use access::jwt;
use amqp::error::condition;
use amqp::sasl::Code;
use amqp::{Error, Symbol};
use bytes::Bytes;
use dialect::{Origin, Subject};

use crate::client::Client;

impl Client {
    /// Handles the mechanism that the client selected.
    pub(crate) fn handle_sasl(&mut self, mechanism: &Symbol, initial_response: Option<&Bytes>) {
        let outcome = match mechanism.as_str() {
            "MSSBCBS" | "ANONYMOUS" => Ok(()),
            "PLAIN" => self.log_in(initial_response.map_or(&[][..], Bytes::as_ref)),
            _ => Err(refused()),
        };
        if let Err(error) = &outcome {
            self.refusals.note(Subject::Login, Origin::default(), error);
        }
        let code = match outcome {
            Ok(()) => Code::Ok,
            Err(error) if error.condition == condition::SERVER_BUSY => {
                self.needs_keys = true;
                Code::SysTemp
            }
            Err(_) => {
                self.refused_credentials += 1;
                Code::Auth
            }
        };
        if self.claims.has_any() {
            self.mark_authenticated();
        }
        self.connection.finish_sasl(code);
    }

    /// Reads `[authorization id] NUL name NUL password`.
    fn log_in(&mut self, response: &[u8]) -> Result<(), Error> {
        let mut parts = response.splitn(3, |byte| *byte == 0);
        let (Some(_), Some(name), Some(password)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(refused());
        };
        let name = std::str::from_utf8(name).map_err(|_| refused())?;
        if name == jwt::SASL_USER {
            return self.log_in_by_token(password);
        }
        let credential = self.directory.access().log_in(name, password);
        self.claims.log_in(credential.ok_or_else(refused)?);
        Ok(())
    }

    /// Takes a token for the whole namespace.
    fn log_in_by_token(&mut self, token: &[u8]) -> Result<(), Error> {
        let directory = Arc::clone(&self.directory);
        let access = directory.access();
        let token = std::str::from_utf8(token).unwrap_or_default();
        let granted = access.verify_jwt(token, self.locality, self.now.wall);
        let granted = granted.map_err(|error| refused_token(&error))?;
        let (grace, now) = (self.settings.token_grace, self.now);
        let put = self.claims.put(access, String::new(), granted, grace, now);
        // A connection has no other token before it is open.
        put.map(drop).map_err(|_| refused())
    }
}

/// The error of a refused token, for the log.
fn refused_token(error: &jwt::Error) -> Error {
    let condition = match error {
        jwt::Error::KeysNotLoaded => condition::SERVER_BUSY,
        _ => condition::UNAUTHORIZED_ACCESS,
    };
    Error::new(condition, format!("PLAIN: {error}"))
}

/// The error of a refused login, for the log: SASL has no error text.
fn refused() -> Error {
    let text = "PLAIN: no rule has the name and the key that were shown.";
    Error::new(condition::UNAUTHORIZED_ACCESS, text)
}

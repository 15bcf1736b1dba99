//! SASL: the mechanisms by which a client logs in. (docs/spec/amqp.md#1.3)
//!
//! Every mechanism except PLAIN accepts any client, which then has no rights until it sends a
//! token. PLAIN names a rule and gives its key; the rule's rights hold for the whole connection.
//! Or its user is `$jwt`, or any that no key fits, and the password a JSON Web Token, whose rights
//! hold until it expires.
//! EXTERNAL is offered to a client that has shown a TLS certificate which the server has verified.
//! If there is a rule for a name in it, the rule's rights hold for the whole connection.

use std::sync::Arc;

use access::{Unauthorized, jwt};
use amqp::error::condition;
use amqp::sasl::Code;
use amqp::{Error, Symbol};
use bytes::Bytes;
use dialect::{Origin, Subject};

use crate::client::Client;

/// The mechanism by which a client logs in with its TLS certificate.
const EXTERNAL: &str = "EXTERNAL";

impl Client {
    /// The same for a client whose certificate has been verified and has these names.
    #[must_use]
    pub fn with_certificate(mut self, names: Vec<String>) -> Self {
        self.certificate = names;
        self.connection.offer_sasl(Symbol::new(EXTERNAL));
        self
    }

    /// Handles the mechanism that the client selected.
    pub(crate) fn handle_sasl(
        &mut self,
        mechanism: &Symbol,
        initial_response: Option<&Bytes>,
        hostname: Option<&str>,
    ) {
        if let Err(error) = self.choose_by_host(hostname) {
            self.refusals
                .note(Subject::Login, Origin::default(), &error);
            return self.connection.finish_sasl(Code::Auth);
        }
        let outcome = match mechanism.as_str() {
            "MSSBCBS" | "ANONYMOUS" => Ok(()),
            EXTERNAL => {
                self.log_in_by_certificate();
                Ok(())
            }
            "PLAIN" => self.log_in(initial_response.map_or(&[][..], Bytes::as_ref)),
            _ => Err(Unauthorized::Malformed),
        };
        let code = match &outcome {
            Ok(()) => Code::Ok,
            Err(reason) => self.refuse_login(reason),
        };
        if self.claims.has_any() {
            self.mark_authenticated();
        }
        self.connection.finish_sasl(code);
    }

    fn refuse_login(&mut self, reason: &Unauthorized) -> Code {
        let error = refusal(reason);
        self.refusals
            .note(Subject::Login, Origin::default(), &error);
        if reason.is_temporary() {
            self.needs_keys = true;
            return Code::SysTemp;
        }
        self.refused_credentials.count(reason);
        Code::Auth
    }

    /// Reads `[authorization id] NUL name NUL password`.
    fn log_in(&mut self, response: &[u8]) -> Result<(), Unauthorized> {
        let mut parts = response.splitn(3, |byte| *byte == 0);
        let (Some(_), Some(name), Some(password)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Unauthorized::Malformed);
        };
        let name = std::str::from_utf8(name).map_err(|_| Unauthorized::Malformed)?;
        if name == jwt::SASL_USER {
            return self.log_in_by_token(password);
        }
        // RabbitMQ's clients show a token with any user. It is not verified, so it names no client
        // and no namespace.
        if jwt::has_form(password) && !self.is_key(name, password) {
            return self.log_in_by_token(password);
        }
        self.choose_by_key(name)?;
        let access = self.directory.access();
        let of_owner = self.link_owner.as_deref_mut();
        let of_owner =
            of_owner.and_then(|owner| owner.log_in(access, name, password, self.locality));
        let credential = of_owner.or_else(|| access.log_in(name, password));
        self.claims.log_in(credential.ok_or(Unauthorized::Key)?);
        Ok(())
    }

    /// A certificate without a rule is no error: a token may follow.
    fn log_in_by_certificate(&mut self) {
        let access = self.directory.access();
        if let Some(credential) = access.log_in_by_certificate(&self.certificate) {
            self.claims.log_in(credential);
        }
    }

    /// Takes a token for the whole namespace.
    fn log_in_by_token(&mut self, token: &[u8]) -> Result<(), Unauthorized> {
        let directory = Arc::clone(&self.directory);
        let access = directory.access();
        let token = std::str::from_utf8(token).unwrap_or_default();
        let granted = access.verify_jwt(token, self.locality, self.now.wall)?;
        let (grace, now) = (self.settings.token_grace, self.now);
        let put = self.claims.put(access, String::new(), granted, grace, now);
        put.expect("a connection has no other token before it is open");
        Ok(())
    }
}

/// The error of a refused login, for the log: SASL has no error text.
fn refusal(reason: &Unauthorized) -> Error {
    match reason {
        Unauthorized::Jwt(error) if reason.is_temporary() => {
            Error::new(condition::SERVER_BUSY, format!("PLAIN: {error}"))
        }
        Unauthorized::Jwt(error) => {
            Error::new(condition::UNAUTHORIZED_ACCESS, format!("PLAIN: {error}"))
        }
        _ => {
            let text = "PLAIN: no rule has the name and the key that were shown.";
            Error::new(condition::UNAUTHORIZED_ACCESS, text)
        }
    }
}

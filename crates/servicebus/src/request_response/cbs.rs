//! CBS: the node to which clients send their tokens. (docs/spec/amqp.md#2)
//!
//! A token is verified before the answer says anything about its entity, so a client without a key
//! cannot find out which entities exist. If a new token allows less than the one it replaces, links
//! that depend on the old one are detached at once.

use access::token::VerifiedToken;
use access::{Unauthorized, scope, token};
use amqp::error::condition;
use amqp::{Error, decode, encode};
use dialect::{Origin, Subject};

use crate::address::Node;
use crate::client::Client;
use crate::errors;
use crate::request_response::response::{self, NodeKind, Status};
use crate::request_response::{Request, text};

/// Most tokens refused in a row before the connection is closed. Each costs several signatures.
const MAX_FAILURES: u32 = 32;
/// The status of a token that may be good later: SDKs try again.
const BUSY: i32 = 503;
const SHARED_ACCESS_SIGNATURE: &str = "servicebus.windows.net:sastoken";

impl Client {
    /// Answers a request to `$cbs`.
    pub(crate) fn handle_cbs(&mut self, request: &Request) {
        let status = match request.text("operation") {
            Some("put-token") => self.put_token(request),
            _ => {
                let status = Status::new(501, "The only operation is put-token.".to_owned());
                self.refused_status(Subject::Request, request, status)
            }
        };
        if self.failures >= MAX_FAILURES {
            return self.close(errors::too_many_failures(MAX_FAILURES));
        }
        let correlation = request.correlation.clone();
        let payload = response::encode(NodeKind::Cbs, correlation, status, encode::null);
        self.respond(request.request_link, request.response_link, payload);
    }

    fn put_token(&mut self, request: &Request) -> Status {
        match self.accept_token(request) {
            Ok(()) => {
                self.failures = 0;
                // Exactly 202: one client library takes nothing else (rule 9).
                Status::new(202, "Accepted".to_owned())
            }
            Err(status) => self.refused_status(Subject::Token, request, status),
        }
    }

    /// Notes a refusal, with the condition that its answer leaves out, and returns the answer.
    fn refused_status(&mut self, subject: Subject, request: &Request, status: Status) -> Status {
        let condition = match status.code {
            401 => condition::UNAUTHORIZED_ACCESS,
            403 => condition::RESOURCE_LIMIT_EXCEEDED,
            404 => condition::NOT_FOUND,
            501 => condition::NOT_IMPLEMENTED,
            BUSY => condition::SERVER_BUSY,
            _ => condition::ARGUMENT_ERROR,
        };
        let audience = request.text("name").map(scope::of_uri);
        let origin = Origin {
            entity: audience.as_deref(),
            ..Origin::default()
        };
        let error = self.tracked(Error::new(condition, status.description));
        self.note_request(subject, request.request_link, origin, &error);
        let description = error.description.unwrap_or_default().into_owned();
        Status::new(status.code, description)
    }

    fn accept_token(&mut self, request: &Request) -> Result<(), Status> {
        let audience = request
            .text("name")
            .ok_or_else(|| bad_request("The audience (name) is missing."))?;
        let scope = scope::of_uri(audience);
        let body = request
            .body
            .as_ref()
            .and_then(|body| decode::value(body).ok());
        let token = body
            .as_ref()
            .and_then(text)
            .ok_or_else(|| bad_request("The token is missing."))?;
        let granted = self.verify(request.text("type"), token, &scope)?;
        self.check_audience_exists(audience)?;
        let weaker = self
            .claims
            .put(
                self.directory.access(),
                scope,
                granted,
                self.settings.token_grace,
                self.now,
            )
            .map_err(|error| Status::new(403, error.to_string()))?;
        self.mark_authenticated();
        if weaker {
            self.recheck_links(|_, required_right, resource| {
                errors::unauthorized(required_right, resource)
            });
        }
        Ok(())
    }

    /// Verifies a token, of whichever form it is. Python's SDK calls shared access signatures `jwt`
    /// (azure-servicebus 7.14.3 and 7.15.0), so the token itself has the last word.
    fn verify(
        &mut self,
        kind: Option<&str>,
        token: &str,
        scope: &str,
    ) -> Result<VerifiedToken, Status> {
        let chosen = self.choose_by_token(token::key_name(token).as_deref(), scope);
        chosen.map_err(|reason| self.refuse_token(&reason))?;
        let access = self.directory.access();
        let verified: Result<_, Unauthorized> = match kind {
            Some(SHARED_ACCESS_SIGNATURE | "jwt" | "amqp:jwt") if token::is_signature(token) => {
                token::verify(token, scope, access, self.now.wall).map_err(Into::into)
            }
            Some(SHARED_ACCESS_SIGNATURE) => Err(token::Error::Malformed.into()),
            Some("jwt" | "amqp:jwt") => access
                .verify_jwt(token, self.locality, self.now.wall)
                .map_err(Into::into),
            _ => {
                self.failures += 1;
                return Err(bad_request("The token's type is missing or not known."));
            }
        };
        verified.map_err(|reason| self.refuse_token(&reason))
    }

    fn refuse_token(&mut self, reason: &Unauthorized) -> Status {
        let code = match reason {
            _ if reason.is_temporary() => BUSY,
            Unauthorized::Token(token::Error::Malformed) => 400,
            _ => 401,
        };
        if reason.is_temporary() {
            self.needs_keys = true;
        } else {
            self.failures += 1;
            self.refused_credentials.count(reason);
        }
        Status::new(code, reason.to_string())
    }

    /// Checks that the entity exists: some SDKs detect a missing entity only here.
    /// (docs/spec/amqp.md#2.3)
    fn check_audience_exists(&self, audience: &str) -> Result<(), Status> {
        let address = match Node::parse(audience) {
            Node::Cbs
            | Node::Management(None)
            | Node::Dynamic
            | Node::DurableSubscription
            | Node::Anonymous => return Ok(()),
            Node::Entity(address) | Node::Management(Some(address)) => address,
        };
        // Of dynamic nodes only the broker knows, which is asked when a link is attached.
        let is_known = address.entity.is_empty()
            || broker::node_at(&address.entity).is_some()
            || self.directory.get(&address.entity).is_some();
        if is_known {
            return Ok(());
        }
        let resource = self.resource(&address.path());
        Err(Status::new(404, errors::missing_text(&resource)))
    }
}

fn bad_request(text: &str) -> Status {
    Status::new(400, text.to_owned())
}

//! Caller: the sender of a request, its credentials, and its rights.
//!
//! Credentials in a request are always checked. A listener that only this machine can reach does
//! not require the development key. A browser names the origin of a page by `Origin`; a request
//! with an origin needs credentials, so no web page can move a developer's clock.

use access::{Operation, Unauthorized};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, ORIGIN};

use crate::server_state::ServerState;

/// The sender of a request. It holds a secret, so it has no `Debug`.
pub struct Caller {
    /// What is no text fits nothing.
    authorization: Option<String>,
    has_origin: bool,
    is_loopback: bool,
}

impl Caller {
    /// The caller of a request that came through a listener on loopback, or another.
    pub fn of(headers: &HeaderMap, is_loopback: bool) -> Self {
        let authorization = headers.get(AUTHORIZATION);
        Self {
            authorization: authorization.map(|value| value.to_str().unwrap_or_default().to_owned()),
            has_origin: headers.contains_key(ORIGIN),
            is_loopback,
        }
    }

    /// Whether the caller may do that at `path` now.
    pub fn check(
        &self,
        server: &ServerState,
        operation: Operation,
        path: &str,
    ) -> Result<(), Unauthorized> {
        let directory = server.directory();
        let access = directory.access();
        match &self.authorization {
            None if self.has_origin => Err(Unauthorized::Missing(operation.required_right())),
            None if self.is_loopback && access.is_development() => Ok(()),
            shown => {
                let now = server.clock.moment().wall;
                access.check(shown.as_deref(), operation, path, now)
            }
        }
    }

    /// Whether the caller, or the issuer of `token`, may do that at `path` now.
    pub fn check_with(
        &self,
        token: Option<&str>,
        server: &ServerState,
        operation: Operation,
        path: &str,
    ) -> Result<(), Unauthorized> {
        let Some(token) = token else {
            return self.check(server, operation, path);
        };
        let now = server.clock.moment().wall;
        let directory = server.directory();
        let access = directory.access();
        access.check(Some(token), operation, path, now)
    }
}

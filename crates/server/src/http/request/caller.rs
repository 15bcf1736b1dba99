//! Caller: the sender of a request, its credentials, and its rights.
//!
//! Credentials in a request are always checked. A listener that only this machine can reach does
//! not require the development key. A browser names the origin of a page by `Origin`; a request
//! with an origin needs credentials, so no web page can move a developer's clock. A page that has
//! [made its own name lead here](super::origin) has no origin, and was refused before.

use access::{Locality, Operation, Unauthorized};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, ORIGIN};

use super::reader::Reader;
use crate::credentials::console_sessions::ConsoleSession;
use crate::http::request::transport::Transport;
use crate::log::audit::ANONYMOUS;
use crate::namespaces::namespace_view::NamespaceView;

/// `guest` and `guest`, as Basic writes it.
const GUEST: &str = "Basic Z3Vlc3Q6Z3Vlc3Q=";

/// The sender of a request. It holds a secret, so it has no `Debug`.
#[derive(Clone)]
pub struct Caller {
    /// What is no text fits nothing.
    authorization: Option<String>,
    has_origin: bool,
    session: Option<ConsoleSession>,
    /// The path of the entity that it has its right to, if it has none to the namespace.
    entity: Option<String>,
    is_loopback: bool,
    locality: Locality,
}

impl Caller {
    /// The caller of a request that came by `transport`.
    pub fn of(headers: &HeaderMap, transport: Transport) -> Self {
        let authorization = headers.get(AUTHORIZATION);
        Self {
            authorization: authorization.map(|value| value.to_str().unwrap_or_default().to_owned()),
            has_origin: headers.contains_key(ORIGIN),
            session: None,
            entity: None,
            is_loopback: transport.is_loopback,
            locality: transport.locality(),
        }
    }

    /// Gives it the session of its browser, which counts if it shows no credentials itself.
    pub fn set_session(&mut self, session: Option<ConsoleSession>) {
        self.session = session;
    }

    /// Whether the session of its browser, if it has one, is still open.
    pub fn is_signed_in(&self, server: &NamespaceView) -> bool {
        let now = server.clock.moment().wall;
        let session = self.session.as_ref();
        session.is_none_or(|session| server.console_sessions.is_open(session, now))
    }

    /// Whether the caller may do that at `path` now. Fault rules for its key fit what it asks for
    /// then.
    pub fn check(
        &self,
        server: &NamespaceView,
        operation: Operation,
        path: &str,
    ) -> Result<(), Unauthorized> {
        self.has_right(server, operation, path)?;
        if server.namespaces.names_clients()
            && let Some(name) = self.shown_name(server, path)
        {
            server.set_caller(name);
        }
        Ok(())
    }

    /// Whether the caller may do that to the entity of a path below `/$railbus/entities/`, which it
    /// may have no right to by the path of the request.
    pub fn check_entity(
        &mut self,
        server: &NamespaceView,
        operation: Operation,
        entity: &str,
    ) -> Result<(), Unauthorized> {
        // The path is decoded once more where rights are looked up.
        let path = entity.replace('%', "%25");
        self.check(server, operation, &path)?;
        self.entity = Some(path);
        Ok(())
    }

    /// Whether it has its right to one entity, and none to the namespace.
    pub fn is_of_one_entity(&self) -> bool {
        self.entity.is_some()
    }

    /// The reader that the caller is, if it may listen to an entity of the namespace.
    pub fn reader(&self, server: &NamespaceView) -> Option<Reader> {
        let directory = server.directory();
        let credential = match (&self.authorization, &self.session) {
            (None, Some(session)) => session.credential.clone(),
            (Some(shown), _) => {
                let now = server.clock.moment().wall;
                let signed_in = directory.access().sign_in(shown, "", self.locality, now);
                signed_in.ok()?.0
            }
            (None, None) => return None,
        };
        let rights = directory.rights_somewhere(&credential);
        (rights.listen || rights.manage).then(|| Reader::new(credential))
    }

    fn has_right(
        &self,
        server: &NamespaceView,
        operation: Operation,
        path: &str,
    ) -> Result<(), Unauthorized> {
        let directory = server.directory();
        let access = directory.access();
        match (&self.authorization, &self.session) {
            (None, Some(session)) => access.check_credential(&session.credential, operation, path),
            (None, None) if self.has_origin => {
                Err(Unauthorized::Missing(operation.required_right()))
            }
            (None, None) if self.is_loopback && access.is_development() => Ok(()),
            (shown, _) => self.check_shown(shown.as_deref(), server, operation, path),
        }
    }

    /// Its name: that of its key, or what its token says.
    pub fn name(&self, server: &NamespaceView, path: &str) -> String {
        let name = self.shown_name(server, path);
        name.unwrap_or_else(|| ANONYMOUS.to_owned())
    }

    /// The same; nothing without credentials.
    fn shown_name(&self, server: &NamespaceView, path: &str) -> Option<String> {
        if let (None, Some(session)) = (&self.authorization, &self.session) {
            return Some(session.credential.client_name());
        }
        let path = self.entity.as_deref().unwrap_or(path);
        let now = server.clock.moment().wall;
        let shown = self.authorization.as_deref();
        let directory = server.directory();
        let access = directory.access();
        access.client_name(shown?, path, self.locality, now)
    }

    /// Whether it shows RabbitMQ's well-known name and password, where no development key is asked
    /// for. (docs/spec/rabbitmq.md#1)
    pub fn is_guest(&self, server: &NamespaceView) -> bool {
        let shown = self.authorization.as_deref();
        let is_free = self.is_loopback && server.directory().access().is_development();
        is_free && !self.has_origin && shown == Some(GUEST)
    }

    /// Whether the caller, or the issuer of `token`, may do that at `path` now.
    pub fn check_with(
        &self,
        token: Option<&str>,
        server: &NamespaceView,
        operation: Operation,
        path: &str,
    ) -> Result<(), Unauthorized> {
        let Some(token) = token else {
            return self.check(server, operation, path);
        };
        self.check_shown(Some(token), server, operation, path)
    }

    /// Whether the credentials of a header allow that.
    fn check_shown(
        &self,
        shown: Option<&str>,
        server: &NamespaceView,
        operation: Operation,
        path: &str,
    ) -> Result<(), Unauthorized> {
        let now = server.clock.moment().wall;
        let directory = server.directory();
        let access = directory.access();
        let result = access.check(shown, operation, path, self.locality, now);
        if result.is_err_and(|reason| reason.is_temporary()) {
            server.key_demand.notify_waiters();
        }
        result
    }
}

//! Namespace view: the server as a request that belongs to one namespace sees it.
//!
//! It has the directory of that namespace; what all namespaces share is the server's. A request
//! belongs to the namespace of its `Host`, else to that of the key it shows or of its browser's
//! session, else to that with which the audience of its token begins and which has its key, else
//! to the default one.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use access::{Directory, audience, key_name};
use broker::DEFAULT_NAMESPACE;
use dialect::{KeyOwner, Namespaces as _};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::uri::Authority;
use store::NamespaceId;

use crate::http::console::session;
use crate::http::request::reader::Reader;
use crate::http::request::transport::Transport;
use crate::server::server_state::ServerState;
use crate::telemetry::Endpoints;

/// A key that more than one namespace has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("more than one namespace has a key of that name; name one by the host of the request")]
pub struct SeveralNamespaces;

/// See the head of this file.
pub struct NamespaceView {
    server: Arc<ServerState>,
    namespace: NamespaceId,
    /// Both ends of the connection of a request.
    endpoints: Option<Endpoints>,
    /// By whose right the request is answered, while a fault rule asks for that.
    caller: OnceLock<String>,
    /// Whose entities alone the answer has, if it has no right to the namespace.
    reader: OnceLock<Reader>,
}

impl NamespaceView {
    /// The view of the default namespace.
    pub fn of_default(server: &Arc<ServerState>) -> Self {
        Self::new(Arc::clone(server), NamespaceId::default(), None)
    }

    /// The same, for a request that has come by `transport`.
    pub fn of_default_for(server: &Arc<ServerState>, transport: Transport) -> Self {
        let endpoints = Endpoints::new(transport.peer, transport.local);
        Self::new(Arc::clone(server), NamespaceId::default(), Some(endpoints))
    }

    fn new(server: Arc<ServerState>, namespace: NamespaceId, endpoints: Option<Endpoints>) -> Self {
        Self {
            server,
            namespace,
            endpoints,
            caller: OnceLock::new(),
            reader: OnceLock::new(),
        }
    }

    /// The view of the namespace that the head of a request names.
    pub fn of_request(
        server: &Arc<ServerState>,
        headers: &HeaderMap,
        transport: Transport,
    ) -> Result<Self, SeveralNamespaces> {
        let namespaces = &server.namespaces;
        let host = headers.get(HOST);
        let mut endpoints = Endpoints::new(transport.peer, transport.local);
        if let (Some(_), Some(host)) = (&server.tracer, host) {
            endpoints.name_server(host.to_str().unwrap_or_default());
        }
        let host = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let host = host.map(|host| host.host().to_ascii_lowercase());
        let of = |namespace| {
            let endpoints = Some(endpoints.clone());
            Ok(Self::new(Arc::clone(server), namespace, endpoints))
        };
        let found = host.and_then(|host| namespaces.of_host(&host));
        if let Some(directory) = found {
            return of(directory.namespace());
        }
        let shown = headers.get(AUTHORIZATION);
        if shown.is_none()
            && let Some(session) = session::find(headers, server)
            && namespaces.directory(session.namespace).is_some()
        {
            return of(session.namespace);
        }
        let shown = shown.and_then(|shown| shown.to_str().ok());
        let key = shown.and_then(key_name);
        let by_key = key
            .as_deref()
            .map_or(KeyOwner::Default, |key| namespaces.of_key(key));
        if let KeyOwner::One(directory) = by_key {
            return of(directory.namespace());
        }
        let audience = shown.and_then(audience);
        match audience.and_then(|path| namespaces.of_token(key.as_deref(), &path)) {
            Some(directory) => of(directory.namespace()),
            None if matches!(by_key, KeyOwner::Several) => Err(SeveralNamespaces),
            None => of(NamespaceId::default()),
        }
    }

    /// The view of the namespace of a name.
    pub fn of_name(&self, name: &str) -> Option<Arc<Self>> {
        let namespace = self.server.namespaces.of_name(name)?;
        Some(Arc::new(Self {
            server: Arc::clone(&self.server),
            namespace,
            endpoints: self.endpoints.clone(),
            caller: self.caller.clone(),
            reader: self.reader.clone(),
        }))
    }

    /// Both ends of its connection, if it is a request of a client.
    pub fn endpoints(&self) -> Option<&Endpoints> {
        self.endpoints.as_ref()
    }

    /// Learns the name by which its caller has a right. The first one counts.
    pub fn set_caller(&self, name: String) {
        let _ = self.caller.set(name);
    }

    /// The name of the caller, if it has shown one and a fault rule asks for it.
    pub fn caller(&self) -> Option<&str> {
        self.caller.get().map(String::as_str)
    }

    /// Confines the answer to the entities of a reader. The first one counts.
    pub fn set_reader(&self, reader: Reader) {
        let _ = self.reader.set(reader);
    }

    /// The reader to whose entities the answer is confined.
    pub fn reader(&self) -> Option<&Reader> {
        self.reader.get()
    }

    /// What all namespaces share.
    pub fn server(&self) -> &Arc<ServerState> {
        &self.server
    }

    /// The namespace.
    pub fn namespace(&self) -> NamespaceId {
        self.namespace
    }

    /// Its name; empty if it is deleted.
    pub fn name(&self) -> String {
        match self.namespace == NamespaceId::default() {
            true => DEFAULT_NAMESPACE.to_owned(),
            false => self
                .server
                .namespaces
                .name(self.namespace)
                .unwrap_or_default(),
        }
    }

    /// The entities and access rules of the namespace as they are now; none if it is deleted.
    pub fn directory(&self) -> Arc<Directory> {
        let directory = self.server.namespaces.directory(self.namespace);
        directory.unwrap_or_else(|| Arc::new(Directory::deleted(self.namespace)))
    }

    /// What management over HTTP says of the namespace.
    pub fn admin_settings(&self) -> admin::Settings {
        let mut settings = self.server.admin.clone();
        if let Some(name) = self.server.namespaces.name(self.namespace()) {
            settings.namespace = name;
        }
        settings
    }
}

impl Deref for NamespaceView {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.server
    }
}

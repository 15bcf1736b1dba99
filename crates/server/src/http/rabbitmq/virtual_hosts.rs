//! Virtual hosts: namespaces, as this interface names them, and `/api/vhosts`, which lists them.
//! (docs/spec/rabbitmq.md#13)
//!
//! `/` is the namespace that the request belongs to, and so is its own name. A client of the
//! default namespace finds each other one behind its name.

use std::sync::Arc;

use broker::{EntityError, Resource, RouterError};
use hyper::StatusCode;
use serde_json::{Value as Json, json};
use store::NamespaceId;

use super::{Answered, Call, Failure, bad_request, is_read, not_found};
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError};

/// The namespace of the request.
pub(super) const OWN: &str = "/";

/// A virtual host with a connection to its namespace.
pub(super) struct VirtualHost {
    /// As the client names it, which answers repeat.
    pub(super) name: String,
    pub(super) shard: ShardClient,
}

impl VirtualHost {
    /// Connects to the namespace of a virtual host.
    pub(super) async fn open(server: &Arc<NamespaceView>, name: &str) -> Result<Self, Failure> {
        let view = view(server, name).ok_or_else(unknown)?;
        Ok(Self::connect(&view, name.to_owned()).await?)
    }

    async fn connect(view: &NamespaceView, name: String) -> Result<Self, ShardError> {
        let shard = ShardClient::connect_to(view, LocksAtEnd::AsConfigured).await?;
        Ok(Self { name, shard })
    }

    /// A queue as texts name it.
    pub(super) fn queue<'a>(&'a self, name: &'a str) -> Resource<'a> {
        Resource::queue(name, &self.name)
    }

    /// The answer to an order that is refused.
    pub(super) fn refusal(&self, error: &EntityError) -> Failure {
        match error {
            EntityError::NotFound => not_found(),
            EntityError::Router(error) => self.router_refusal(error),
            error => bad_request(error.to_string()),
        }
    }

    /// The same of one about an exchange or a binding.
    pub(super) fn router_refusal(&self, error: &RouterError) -> Failure {
        let (status, text) = rabbitmq::router_refusal(error, &self.name);
        Failure::Refused(match (error, status) {
            (RouterError::NotFound(_) | RouterError::NoDestination(_), _) => {
                (StatusCode::NOT_FOUND, "not_found", text)
            }
            (_, 403) => (StatusCode::UNAUTHORIZED, "not_authorised", text),
            _ => (StatusCode::BAD_REQUEST, "bad_request", text),
        })
    }
}

fn unknown() -> Failure {
    let reason = "vhost_not_found".to_owned();
    Failure::Refused((StatusCode::NOT_FOUND, "not_found", reason))
}

/// The namespace of a virtual host, for a request that belongs to one.
pub(super) fn view(server: &Arc<NamespaceView>, name: &str) -> Option<Arc<NamespaceView>> {
    if name == OWN || name == server.name() {
        return Some(Arc::clone(server));
    }
    let is_of_default = server.namespace() == NamespaceId::default();
    is_of_default.then(|| server.of_name(name)).flatten()
}

/// All virtual hosts of a client, each once.
pub(super) fn names(server: &NamespaceView) -> Vec<String> {
    let mut names = vec![OWN.to_owned()];
    if server.namespace() == NamespaceId::default() {
        names.extend(server.namespaces.names());
    }
    names
}

/// Answers a request for all virtual hosts, or for the one of a name.
pub(super) fn handle(server: &Arc<NamespaceView>, call: &Call, rest: &[&str]) -> Answered {
    match rest {
        [] if is_read(&call.method) => {
            let shown = names(server).iter().map(|name| shown(name)).collect();
            Ok((StatusCode::OK, Some(shown)))
        }
        [name] if is_read(&call.method) => match view(server, name) {
            Some(_) => Ok((StatusCode::OK, Some(shown(name)))),
            None => Err(not_found()),
        },
        [] | [_] => Err(super::not_allowed()),
        _ => Err(not_found()),
    }
}

fn shown(name: &str) -> Json {
    json!({
        "name": name,
        "description": "",
        "tags": [],
        "default_queue_type": "classic",
        "tracing": false,
    })
}

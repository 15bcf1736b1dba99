//! Virtual hosts: namespaces, as this interface names them, and `/api/vhosts`, which lists, makes
//! and deletes them. (docs/spec/rabbitmq.md#13)
//!
//! `/` is the namespace that the request belongs to, and so is its own name. A client of the
//! default namespace finds each other one behind its name, and it alone makes and deletes them.

use std::sync::Arc;

use broker::{EntityError, NamespaceOrder, Resource, RouterError};
use hyper::{Method, StatusCode};
use serde_json::{Value as Json, json};
use store::NamespaceId;

use super::{Answered, Call, Failure, bad_request, is_read, made, not_found, object};
use crate::http::api::namespaces::{self, ApiError};
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
        router_refusal(error, &self.name)
    }
}

/// The answer to an order about an exchange or a binding of a virtual host that is refused.
pub(super) fn router_refusal(error: &RouterError, vhost: &str) -> Failure {
    let (status, text) = rabbitmq::router_refusal(error, vhost);
    Failure::Refused(match (error, status) {
        (RouterError::NotFound(_) | RouterError::NoDestination(_), _) => {
            (StatusCode::NOT_FOUND, "not_found", text)
        }
        (_, 403) => (StatusCode::UNAUTHORIZED, "not_authorised", text),
        _ => (StatusCode::BAD_REQUEST, "bad_request", text),
    })
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Shard(error) => Self::Shard(error),
            ApiError::Entity(EntityError::NoNamespace(_)) => not_found(),
            error => Self::Refused((error.status(), "bad_request", error.to_string())),
        }
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
pub(super) async fn handle(server: &Arc<NamespaceView>, call: &Call, rest: &[&str]) -> Answered {
    match (&call.method, rest) {
        (method, []) if is_read(method) => {
            let shown = names(server).iter().map(|name| shown(name)).collect();
            Ok((StatusCode::OK, Some(shown)))
        }
        (method, [name]) if is_read(method) => match view(server, name) {
            Some(_) => Ok((StatusCode::OK, Some(shown(name)))),
            None => Err(not_found()),
        },
        (&Method::PUT, [name]) => {
            check_default_queue_type(&call.body)?;
            make(server, name, &call.endpoint).await
        }
        (&Method::DELETE, [name]) => remove(server, name).await,
        (_, [] | [_]) => Err(super::not_allowed()),
        _ => Err(not_found()),
    }
}

/// Queues without a type are classic ones. What else RabbitMQ's tools say of a virtual host means
/// nothing here.
fn check_default_queue_type(body: &[u8]) -> Result<(), Failure> {
    if body.is_empty() {
        return Ok(());
    }
    match object(body)?.get("default_queue_type") {
        None | Some(Json::Null) => Ok(()),
        Some(Json::String(kind)) if matches!(kind.as_str(), "classic" | "undefined") => Ok(()),
        Some(other) => Err(bad_request(format!(
            "default_queue_type: {other} is not supported; it is \"classic\""
        ))),
    }
}

/// Makes a namespace with a key of its own; the answer has its connection string. One that is there
/// stays.
pub(super) async fn make(server: &Arc<NamespaceView>, name: &str, endpoint: &str) -> Answered {
    check_administrator(server)?;
    if view(server, name).is_some() {
        return made(false);
    }
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    let definition = namespaces::new(server, name.to_owned(), Vec::new(), None)?;
    let order = |definition| NamespaceOrder::Create {
        definition,
        like: None,
    };
    match namespaces::create(&mut shard, definition, order, endpoint).await {
        Ok((status, shown)) => Ok((status, Some(shown))),
        // Another client has made it meanwhile.
        Err(ApiError::Entity(EntityError::NamespaceExists(_))) => made(false),
        Err(error) => Err(error.into()),
    }
}

/// Deletes a namespace with all that is in it. The default one stays.
async fn remove(server: &Arc<NamespaceView>, name: &str) -> Answered {
    check_administrator(server)?;
    let name = if name == OWN {
        server.name()
    } else {
        name.to_owned()
    };
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    namespaces::ask(&mut shard, NamespaceOrder::Remove(name)).await?;
    Ok((StatusCode::NO_CONTENT, None))
}

/// A right counts in one namespace; the one to manage the default namespace is for all of them.
pub(super) fn check_administrator(server: &NamespaceView) -> Result<(), Failure> {
    if server.namespace() == NamespaceId::default() {
        return Ok(());
    }
    let reason = "Not administrator user".to_owned();
    Err(Failure::Refused((
        StatusCode::UNAUTHORIZED,
        "not_authorised",
        reason,
    )))
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

//! `/$railbus/namespaces/NAME/snapshots`, `restore` and `fork`: what a namespace had at one moment,
//! to go back to or to make another namespace of.
//!
//! `restore` takes a `backup` of a namespace too, and then makes the namespace if it is not there.
//!
//! `GET` shows the snapshots of a namespace. `POST` takes one under the `name` of the body, and
//! `DELETE` of its path removes it. `POST` to `restore` gives the namespace the entities and
//! messages of the `snapshot` of the body instead of those it has. `POST` to `fork` makes a
//! namespace with those of a snapshot, or with those that the namespace has now; it is answered as
//! the making of a namespace is.

use std::path::PathBuf;
use std::sync::Arc;

use broker::{AuthorizationRule, NamespaceAnswer, NamespaceOrder, SnapshotDescription};
use entity::time::checked_text;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::backups;
use super::namespaces::{self, ApiError, Key, ask};
use crate::http::request::body;
use crate::http::request::body::parse_object;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::http::routes::Route;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient};

/// More than any of the bodies needs.
const BODY_BYTES: usize = 64 << 10;

/// The body of a `POST` that takes a snapshot.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Taken {
    name: String,
}

/// The body of a `POST` to `restore`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Restored {
    snapshot: Option<String>,
    /// In the directory of backups.
    backup: Option<PathBuf>,
}

/// The body of a `POST` to `fork`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forked {
    name: String,
    snapshot: Option<String>,
    #[serde(default)]
    hosts: Vec<String>,
    keys: Option<Vec<Key>>,
}

/// Answers a request about the snapshots of a namespace. The caller has the right to manage the
/// default namespace.
pub async fn respond(
    request: Request<Incoming>,
    route: Route,
    (name, below): (String, &str),
    endpoint: String,
    server: &Arc<NamespaceView>,
) -> Response {
    let method = request.method().clone();
    let order = match (route, method) {
        (Route::Snapshots, Method::POST) => {
            let text = "the body is not an object with the name of a snapshot";
            match read(request, text, server).await {
                Ok(Taken { name: snapshot }) => NamespaceOrder::TakeSnapshot { name, snapshot },
                Err(refusal) => return refusal,
            }
        }
        (Route::Restore, _) => {
            let text = "the body is not an object with the name of a snapshot or of a backup";
            match read(request, text, server).await {
                Ok(Restored {
                    snapshot: Some(snapshot),
                    backup: None,
                }) => NamespaceOrder::Restore { name, snapshot },
                Ok(Restored {
                    snapshot: None,
                    backup: Some(backup),
                }) => return backups::restore(name, backup, endpoint, server).await,
                Ok(_) => return answer::error(StatusCode::BAD_REQUEST, text),
                Err(refusal) => return refusal,
            }
        }
        (Route::Snapshot, _) => {
            let snapshot = below.strip_prefix("snapshots/").unwrap_or_default();
            let snapshot = snapshot.to_owned();
            NamespaceOrder::RemoveSnapshot { name, snapshot }
        }
        _ => NamespaceOrder::ListSnapshots(name),
    };
    match carry_out(order, server).await {
        Ok((status, json)) => answer::value(status, &json),
        Err(error) => error.into(),
    }
}

async fn carry_out(
    order: NamespaceOrder,
    server: &NamespaceView,
) -> Result<(StatusCode, Json), ApiError> {
    let is_taken = matches!(order, NamespaceOrder::TakeSnapshot { .. });
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    match (ask(&mut shard, order).await?, is_taken) {
        (NamespaceAnswer::Snapshots(all), true) => {
            let taken = all.first().ok_or(ApiError::Unexpected)?;
            Ok((StatusCode::CREATED, shown(taken)))
        }
        (NamespaceAnswer::Snapshots(all), false) => {
            let all: Vec<_> = all.iter().map(shown).collect();
            Ok((StatusCode::OK, json!({ "snapshots": all })))
        }
        (NamespaceAnswer::Done, _) => Ok((StatusCode::OK, json!({}))),
        _ => Err(ApiError::Unexpected),
    }
}

fn shown(snapshot: &SnapshotDescription) -> Json {
    json!({
        "name": snapshot.name,
        "created": checked_text(snapshot.created),
        "entities": snapshot.entities,
        "messages": snapshot.messages,
        "bytes": snapshot.bytes,
    })
}

/// Answers a `POST` to `fork`, with a connection string to the endpoint.
pub async fn fork(
    request: Request<Incoming>,
    name: String,
    endpoint: String,
    server: &Arc<NamespaceView>,
) -> Response {
    let text = "the body is not an object with name, snapshot, hosts and keys";
    let wanted: Forked = match read(request, text, server).await {
        Ok(wanted) => wanted,
        Err(refusal) => return refusal,
    };
    match make_fork(name, wanted, &endpoint, server).await {
        Ok((status, json)) => answer::value(status, &json),
        Err(error) => error.into(),
    }
}

async fn make_fork(
    name: String,
    wanted: Forked,
    endpoint: &str,
    server: &NamespaceView,
) -> Result<(StatusCode, Json), ApiError> {
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    let keys = wanted.keys;
    let keys = keys.map(|keys| keys.into_iter().map(AuthorizationRule::from).collect());
    let definition = namespaces::new(server, wanted.name, wanted.hosts, keys)?;
    let snapshot = wanted.snapshot;
    let order = |definition| NamespaceOrder::Fork {
        name,
        snapshot,
        definition,
    };
    namespaces::create(&mut shard, definition, order, endpoint).await
}

async fn read<T: DeserializeOwned>(
    request: Request<Incoming>,
    text: &'static str,
    server: &NamespaceView,
) -> Result<T, Response> {
    let body = body::read_own(request, BODY_BYTES, server.limits().handshake).await?;
    parse_object(&body)
        .map_err(|error| answer::error_quoting(StatusCode::BAD_REQUEST, text, &error.to_string()))
}

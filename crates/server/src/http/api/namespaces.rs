//! `/$railbus/namespaces`: the namespaces of the broker, for clients of the default one.
//!
//! `GET` shows all of them or one. `PUT` makes a namespace, with the entities of the one that
//! `like` names, or gives one that is there other hosts and keys (with `If-None-Match: *` it is
//! refused). A new namespace without keys gets one of its own name, and the answer has a connection
//! string with the first key; no other answer shows a key. `POST` to `reset` deletes its messages
//! and makes its entities those that it was made with. `DELETE` deletes it with all that is in it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::{
    Answer, AuthorizationRule, DEFAULT_NAMESPACE, EntityError, NamespaceAnswer,
    NamespaceDefinition, NamespaceDescription, NamespaceLimits, NamespaceOrder, Order, Wall,
};
use dialect::{KeyOwner, Namespaces as _};
use entity::time::checked_text;
use hyper::body::Incoming;
use hyper::header::{HOST, IF_NONE_MATCH};
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer};
use serde_json::{Value as Json, json};
use store::{BackupError, NamespaceId};

use super::{clock, faults, snapshots};
use crate::http::request::body;
use crate::http::request::body::parse_object;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::http::routes::Route;
use crate::log::audit::{changes_of, with_changes};
use crate::namespaces::namespace_backup;
use crate::namespaces::namespace_view::NamespaceView;
use crate::random::random;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError};

pub const PREFIX: &str = "/$railbus/namespaces";
/// More than any definition needs.
const BODY_BYTES: usize = 64 << 10;

/// The body of a `PUT`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Wanted {
    hosts: Option<Vec<String>>,
    keys: Option<Vec<Key>>,
    /// The namespace whose entities a new one gets.
    like: Option<String>,
    /// Whether what happens to its messages is recorded.
    lineage: Option<bool>,
    /// Queues and topics at most; null takes a limit away.
    #[serde(deserialize_with = "said")]
    max_entities: Option<Option<u32>>,
    /// The same of AMQP connections.
    #[serde(deserialize_with = "said")]
    max_connections: Option<Option<u32>>,
    /// The same of bytes of messages and states of sessions.
    #[serde(deserialize_with = "said")]
    max_bytes: Option<Option<u64>>,
}

impl Wanted {
    /// The limits of a namespace that has had these.
    fn limits(&self, before: NamespaceLimits) -> NamespaceLimits {
        NamespaceLimits {
            max_entities: self.max_entities.unwrap_or(before.max_entities),
            max_connections: self.max_connections.unwrap_or(before.max_connections),
            max_bytes: self.max_bytes.unwrap_or(before.max_bytes),
        }
    }
}

/// A member that is there, be it null.
fn said<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// A key of a namespace. It has no `Debug`, so that it is never printed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Key {
    name: String,
    primary_key: String,
    #[serde(default)]
    secondary_key: String,
    /// All of them, if none are named.
    #[serde(default)]
    rights: Vec<Right>,
}

#[derive(Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Right {
    Send,
    Listen,
    Manage,
}

impl From<Key> for AuthorizationRule {
    fn from(key: Key) -> Self {
        // Manage brings the other two. (docs/spec/entities.md#2.6)
        let manage = key.rights.is_empty() || key.rights.contains(&Right::Manage);
        Self {
            send: manage || key.rights.contains(&Right::Send),
            listen: manage || key.rights.contains(&Right::Listen),
            manage,
            secondary_key: key.secondary_key,
            ..Self::of_key(key.name, key.primary_key)
        }
    }
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("{0}")]
    Bad(String),
    #[error("{0}")]
    Conflict(String),
    #[error("there is no backup {0}")]
    NoBackup(String),
    #[error("{0}")]
    Disk(String),
    #[error(transparent)]
    Entity(#[from] EntityError),
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error("the answer of the broker does not fit the request")]
    Unexpected,
}

impl ApiError {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Entity(EntityError::NoNamespace(_) | EntityError::NoSnapshot(_))
            | Self::NoBackup(_) => StatusCode::NOT_FOUND,
            Self::Conflict(_)
            | Self::Entity(
                EntityError::NamespaceExists(_)
                | EntityError::SnapshotExists(_)
                | EntityError::TooMany { .. },
            ) => StatusCode::CONFLICT,
            Self::Entity(EntityError::DiskNearlyFull) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Bad(_) | Self::Entity(_) => StatusCode::BAD_REQUEST,
            Self::Shard(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unexpected | Self::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<ApiError> for Response {
    fn from(error: ApiError) -> Self {
        answer::error(error.status(), &error.to_string())
    }
}

impl From<namespace_backup::Error> for ApiError {
    fn from(error: namespace_backup::Error) -> Self {
        use namespace_backup::{Error, FileError};

        match error {
            Error::Entity(error) => Self::Entity(error),
            Error::Shard(error) => Self::Shard(error),
            Error::Backup(BackupError::NearlyFull) => Self::Entity(EntityError::DiskNearlyFull),
            Error::Unexpected => Self::Unexpected,
            Error::File(FileError::Io(_))
            | Error::Store(_)
            | Error::Backup(_)
            | Error::Unreadable(_) => Self::Disk(error.to_string()),
            Error::File(error) => Self::Bad(error.to_string()),
        }
    }
}

/// Answers a request. The caller has the right to manage the default namespace.
pub async fn respond(
    request: Request<Incoming>,
    route: Route,
    path: &str,
    is_tls: bool,
    server: &Arc<NamespaceView>,
) -> Response {
    let path = path.strip_prefix(PREFIX).unwrap_or_default();
    // Of a namespace alone a slash is part of the name, which is refused.
    let (name, below) = match route {
        Route::Namespaces | Route::Namespace => (path.trim_matches('/'), ""),
        _ => path.trim_matches('/').split_once('/').unwrap_or_default(),
    };
    let decoded = |text| percent_decode_str(text).decode_utf8();
    let (Ok(name), Ok(below)) = (decoded(name), decoded(below)) else {
        return ApiError::Bad("the path is not UTF-8".to_owned()).into();
    };
    let name = name.into_owned();
    match route {
        Route::Faults => return faults::respond(request, &name, server).await,
        Route::NamespaceClock => return clock::respond(request, Some(&name), server).await,
        Route::Snapshots | Route::Snapshot | Route::Restore => {
            let endpoint = endpoint(&request, is_tls);
            let at = (name, &*below);
            return snapshots::respond(request, route, at, endpoint, server).await;
        }
        Route::Fork => {
            let endpoint = endpoint(&request, is_tls);
            return snapshots::fork(request, name, endpoint, server).await;
        }
        _ => {}
    }
    let method = request.method().clone();
    let endpoint = endpoint(&request, is_tls);
    let may_be_there = request.headers().get(IF_NONE_MATCH).is_none();
    let wanted = match method {
        Method::PUT => match read(request, server).await {
            Ok(wanted) => Some(wanted),
            Err(refusal) => return refusal,
        },
        _ => None,
    };
    let answered = async {
        let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
        match (wanted, method, route) {
            (Some(wanted), ..) => {
                let place = (name, may_be_there);
                return put(server, &mut shard, place, wanted, &endpoint).await;
            }
            (None, Method::DELETE, _) => done(&mut shard, NamespaceOrder::Remove(name)).await,
            (None, _, Route::NamespaceReset) => done(&mut shard, NamespaceOrder::Reset(name)).await,
            (None, _, Route::Namespace) => show(&mut shard, name).await,
            (None, ..) => show_all(&mut shard).await,
        }
        .map(|(status, json)| answer::value(status, &json))
    };
    answered.await.unwrap_or_else(ApiError::into)
}

async fn read(request: Request<Incoming>, server: &NamespaceView) -> Result<Wanted, Response> {
    let body = body::read_own(request, BODY_BYTES, server.limits().handshake).await?;
    if body.is_empty() {
        return Ok(Wanted::default());
    }
    parse_object(&body).map_err(|error| {
        let text = "the body is not an object with hosts, keys, like, lineage, max-entities, \
                    max-connections and max-bytes";
        answer::error_quoting(StatusCode::BAD_REQUEST, text, &error.to_string())
    })
}

async fn put(
    server: &NamespaceView,
    shard: &mut ShardClient,
    (name, may_be_there): (String, bool),
    mut wanted: Wanted,
    endpoint: &str,
) -> Result<Response, ApiError> {
    let keys = wanted.keys.take();
    let keys: Option<Vec<_>> =
        keys.map(|keys| keys.into_iter().map(AuthorizationRule::from).collect());
    match describe(shard, name.clone()).await {
        Ok(_) if !may_be_there => Err(EntityError::NamespaceExists(name).into()),
        Ok(before) => {
            if wanted.like.is_some() {
                let text = format!("namespace '{name}' exists already; like is for a new one");
                return Err(ApiError::Conflict(text));
            }
            let of_keys = keys.as_ref().map(|keys| {
                let [before, keys] = [&before.definition.keys, keys];
                changes_of("key", (before, keys), &name, |key| &key.key_name)
            });
            let definition = Box::new(NamespaceDefinition {
                hosts: wanted.hosts.take().unwrap_or(before.definition.hosts),
                keys: keys.unwrap_or(before.definition.keys),
                lineage: wanted.lineage.or(before.definition.lineage),
                limits: wanted.limits(before.definition.limits),
                name,
            });
            let change = format!("change namespace '{}'", definition.name);
            let replaced = one(shard, NamespaceOrder::Replace(definition)).await?;
            let changes = std::iter::once(change).chain(of_keys.into_iter().flatten());
            let response = answer::value(StatusCode::OK, &shown(&replaced));
            Ok(with_changes(response, changes.collect()))
        }
        Err(ApiError::Entity(EntityError::NoNamespace(_))) => {
            let hosts = wanted.hosts.take().unwrap_or_default();
            let mut definition = new(server, name, hosts, keys)?;
            definition.lineage = wanted.lineage;
            definition.limits = wanted.limits(NamespaceLimits::default());
            let like = wanted.like;
            let name = &definition.name;
            let of_keys = changes_of("key", (&[], &definition.keys), name, |key| &key.key_name);
            let change = format!("create namespace '{name}'");
            let changes = std::iter::once(change).chain(of_keys).collect();
            let order = |definition| NamespaceOrder::Create { definition, like };
            let (status, json) = create(shard, definition, order, endpoint).await?;
            Ok(with_changes(answer::value(status, &json), changes))
        }
        Err(error) => Err(error),
    }
}

/// What a new namespace will be. Without keys it gets one.
pub fn new(
    server: &NamespaceView,
    name: String,
    hosts: Vec<String>,
    keys: Option<Vec<AuthorizationRule>>,
) -> Result<Box<NamespaceDefinition>, ApiError> {
    let keys = match keys {
        Some(keys) => keys,
        None => vec![own_key(server, &name)?],
    };
    Ok(Box::new(NamespaceDefinition {
        name,
        hosts,
        keys,
        lineage: None,
        limits: NamespaceLimits::default(),
    }))
}

/// Makes a namespace, and shows it with a connection string.
pub async fn create(
    shard: &mut ShardClient,
    definition: Box<NamespaceDefinition>,
    order: impl FnOnce(Box<NamespaceDefinition>) -> NamespaceOrder,
    endpoint: &str,
) -> Result<(StatusCode, Json), ApiError> {
    let key = definition.keys.first();
    let connection_string = key.map(|key| connection_string(endpoint, key));
    let made = one(shard, order(definition)).await?;
    let mut shown = shown(&made);
    if let Some(text) = connection_string {
        shown["connection-string"] = text.into();
    }
    Ok((StatusCode::CREATED, shown))
}

/// A key with all rights, by whose name its namespace is chosen.
fn own_key(server: &NamespaceView, name: &str) -> Result<AuthorizationRule, ApiError> {
    let (namespaces, default) = (&server.namespaces, server.default_directory());
    let owner = match namespaces.of_key(name) {
        _ if default.access().has_key(name) => Some("the default namespace".to_owned()),
        KeyOwner::Default => None,
        KeyOwner::One(directory) => {
            let owner = namespaces.name(directory.namespace());
            owner.map(|owner| format!("namespace '{owner}'"))
        }
        KeyOwner::Several => Some("more than one namespace".to_owned()),
    };
    if let Some(owner) = owner {
        return Err(ApiError::Conflict(format!(
            "namespace '{name}': {owner} has a key of that name; name keys of its own"
        )));
    }
    Ok(Key {
        name: name.to_owned(),
        primary_key: STANDARD.encode(random::<32>()),
        secondary_key: String::new(),
        rights: Vec::new(),
    }
    .into())
}

/// Where the client of this request has found the broker.
pub fn endpoint<T>(request: &Request<T>, is_tls: bool) -> String {
    let host = request.headers().get(HOST);
    let host = host
        .and_then(|host| host.to_str().ok())
        .unwrap_or("localhost");
    // That host would choose the default namespace, whatever the key.
    let chosen = format!("{DEFAULT_NAMESPACE}.");
    let host = host.strip_prefix(&chosen).unwrap_or(host);
    let end = if is_tls {
        ""
    } else {
        ";UseDevelopmentEmulator=true"
    };
    format!("Endpoint=sb://{host}{end}")
}

fn connection_string(endpoint: &str, key: &AuthorizationRule) -> String {
    let (endpoint, end) = match endpoint.split_once(';') {
        Some((endpoint, end)) => (endpoint, format!("{end};")),
        None => (endpoint, String::new()),
    };
    format!(
        "{endpoint};SharedAccessKeyName={};SharedAccessKey={};{end}",
        key.key_name, key.primary_key
    )
}

async fn show(shard: &mut ShardClient, name: String) -> Result<(StatusCode, Json), ApiError> {
    Ok((StatusCode::OK, shown(&describe(shard, name).await?)))
}

async fn show_all(shard: &mut ShardClient) -> Result<(StatusCode, Json), ApiError> {
    let default = describe(shard, DEFAULT_NAMESPACE.to_owned()).await?;
    let order = |skip, top| Order::Namespaces(NamespaceOrder::List { skip, top });
    let page = |answer| match answer {
        Answer::Namespaces(NamespaceAnswer::Some(page)) => Some(page),
        _ => None,
    };
    let others = shard.list(order, page).await?;
    let all = std::iter::once(&default).chain(&others).map(shown);
    let all: Vec<_> = all.collect();
    Ok((StatusCode::OK, json!({ "namespaces": all })))
}

fn shown(namespace: &NamespaceDescription) -> Json {
    let definition = &namespace.definition;
    let keys = definition.keys.iter().map(|key| &key.key_name);
    // Of a default namespace without entities it is not known.
    let created = Some(namespace.created).filter(|created| *created > Wall(0));
    json!({
        "name": definition.name,
        "hosts": definition.hosts,
        "keys": keys.collect::<Vec<_>>(),
        "entities": namespace.entities,
        "lineage": definition.lineage,
        "max-entities": definition.limits.max_entities,
        "max-connections": definition.limits.max_connections,
        "max-bytes": definition.limits.max_bytes,
        "created": created.and_then(checked_text),
    })
}

/// The namespace of a name.
pub async fn find(server: &NamespaceView, name: &str) -> Result<NamespaceId, ApiError> {
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    Ok(describe(&mut shard, name.to_owned()).await?.id)
}

pub async fn describe(
    shard: &mut ShardClient,
    name: String,
) -> Result<NamespaceDescription, ApiError> {
    one(shard, NamespaceOrder::Describe(name)).await
}

async fn one(
    shard: &mut ShardClient,
    order: NamespaceOrder,
) -> Result<NamespaceDescription, ApiError> {
    match ask(shard, order).await? {
        NamespaceAnswer::One(description) => Ok(*description),
        _ => Err(ApiError::Unexpected),
    }
}

async fn done(
    shard: &mut ShardClient,
    order: NamespaceOrder,
) -> Result<(StatusCode, Json), ApiError> {
    match ask(shard, order).await? {
        NamespaceAnswer::Done => Ok((StatusCode::OK, json!({}))),
        _ => Err(ApiError::Unexpected),
    }
}

pub async fn ask(
    shard: &mut ShardClient,
    order: NamespaceOrder,
) -> Result<NamespaceAnswer, ApiError> {
    match shard.order(Order::Namespaces(order)).await?? {
        Answer::Namespaces(answer) => Ok(answer),
        _ => Err(ApiError::Unexpected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_has_the_end_that_its_endpoint_needs() {
        let key = AuthorizationRule::from(Key {
            name: "a".to_owned(),
            primary_key: "secret".to_owned(),
            secondary_key: String::new(),
            rights: vec![Right::Listen],
        });
        assert_eq!((key.send, key.listen, key.manage), (false, true, false));
        assert_eq!(
            connection_string(
                "Endpoint=sb://localhost:5672;UseDevelopmentEmulator=true",
                &key
            ),
            "Endpoint=sb://localhost:5672;SharedAccessKeyName=a;SharedAccessKey=secret;\
             UseDevelopmentEmulator=true;"
        );
        assert_eq!(
            connection_string("Endpoint=sb://shop.example", &key),
            "Endpoint=sb://shop.example;SharedAccessKeyName=a;SharedAccessKey=secret;"
        );
    }
}

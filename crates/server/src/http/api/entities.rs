//! `/$railbus/entities`: shows entities in the shape of our own files, and changes them.
//!
//! `GET` shows all of them, or the entity or the rule of a path (`events/Subscriptions/all`,
//! `events/Subscriptions/all/Rules/big`); each entity has its `state`. `PUT` creates or replaces
//! the resource of the path (only creates it with `If-None-Match: *`), `PATCH` changes the
//! properties in its body [RFC 7396], and `DELETE` deletes it. The answer is the created or
//! changed resource. Below an entity's path are its `messages`, its `receivers`, its
//! `message-sessions` and the `session-state` of one, the `reasons` of its dead letters, what can
//! be told to `explain` why one is not delivered, and operations on many messages at once.

mod bulk_operation;
mod change;
mod explain;
mod messages;
mod reasons;
mod receivers;
mod resource_path;
mod send;
mod sessions;
mod settle;
mod show;
mod target_check;

use std::sync::Arc;

use access::Unauthorized;
use broker::{EntityError, RuleError};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::IF_NONE_MATCH;
use hyper::{Method, Request, StatusCode};
use serde_json::Value as Json;
use tokio::sync::oneshot;

use crate::http::request::body;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::http::routes::Route;
use crate::log::audit::HttpChange;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError};
use bulk_operation::BulkOperation;
use explain::Question;
use messages::Range;
use resource_path::ResourcePath;
use sessions::{SessionRange, parse_session};
use target_check::TargetCheck;

const PREFIX: &str = "/$railbus/entities";
/// More than any entity needs.
const BODY_BYTES: usize = 1 << 20;

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
enum ApiError {
    #[error("{0}")]
    Bad(String),
    #[error(transparent)]
    Entity(#[from] EntityError),
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error("message {0} cannot be received: it is locked, or it has gone")]
    NotReceived(u64),
    #[error("the answer of the broker does not fit the request")]
    Unexpected,
    #[error(transparent)]
    Unauthorized(#[from] Unauthorized),
}

impl ApiError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Entity(
                EntityError::NotFound
                | EntityError::NoTopic
                | EntityError::Rule(RuleError::NotFound(_) | RuleError::NoSubscription),
            ) => StatusCode::NOT_FOUND,
            Self::Entity(
                EntityError::Exists(_)
                | EntityError::ExchangeExists(_)
                | EntityError::TooMany { .. }
                | EntityError::Rule(RuleError::Exists(_) | RuleError::TooMany { .. }),
            )
            | Self::NotReceived(_) => StatusCode::CONFLICT,
            Self::Entity(EntityError::Injected(error)) => admin::data::injected(*error).status,
            Self::Entity(_) | Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::Shard(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Unexpected => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<ApiError> for Response {
    fn from(error: ApiError) -> Self {
        match &error {
            ApiError::Unauthorized(reason) => answer::unauthorized_script(reason),
            _ => answer::error(error.status(), &error.to_string()),
        }
    }
}

/// What a request asks for.
enum EntityRequest {
    Show,
    Browse(Range),
    Send(Bytes),
    Settle(Bytes),
    ShowReasons,
    ShowReceivers,
    ListSessions(SessionRange),
    ShowSessionState(String),
    Explain(Question),
    Bulk(BulkOperation, Bytes, Option<Box<HttpChange>>),
    /// Whether the resource may exist already.
    Put(Json, bool, TargetCheck),
    Patch(Json, TargetCheck),
    Delete,
}

/// Answers a request. The caller has the right for it.
pub async fn respond(
    request: Request<Incoming>,
    route: Route,
    path: &str,
    server: &Arc<NamespaceView>,
) -> Response {
    let resource = match resource_of(route, path) {
        Ok(resource) => resource,
        Err(text) => return ApiError::Bad(text).into(),
    };
    let request = match parse_request(request, route, server).await {
        Ok(request) => request,
        Err(error) => return error,
    };
    // A task of its own, so that a disconnect of the client does not stop the operation.
    let server = Arc::clone(server);
    let (client, _waiting) = oneshot::channel();
    let working = tokio::spawn(async move { handle(&server, &resource, request, client).await });
    match working.await {
        Ok(Ok((status, json))) => answer::value(status, &json),
        Ok(Err(error)) => error.into(),
        Err(error) => {
            tracing::error!(%error, "a request ended because of an internal error");
            answer::internal()
        }
    }
}

/// The path of the entity that a route at `path` is about, if it is about one. Rules are their
/// subscription's.
pub fn entity_of(route: Route, path: &str) -> Option<String> {
    let resource = path.starts_with(PREFIX).then(|| resource_of(route, path));
    resource?.ok()?.entity()
}

/// What a path below [`PREFIX`] names.
fn resource_of(route: Route, path: &str) -> Result<ResourcePath, String> {
    let path = path.strip_prefix(PREFIX).unwrap_or_default();
    // One slash at the end means nothing.
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = match route {
        Route::Messages
        | Route::Reasons
        | Route::Receivers
        | Route::Sessions
        | Route::SessionState
        | Route::Explain
        | Route::Settle
        | Route::Purge
        | Route::Redrive => parent_path(path),
        _ => path,
    };
    ResourcePath::parse(path)
}

/// The path of the entity whose messages are meant.
fn parent_path(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(path, _)| path)
}

async fn parse_request(
    mut request: Request<Incoming>,
    route: Route,
    server: &NamespaceView,
) -> Result<EntityRequest, Response> {
    let operation = match route {
        Route::Reasons => return Ok(EntityRequest::ShowReasons),
        Route::Receivers => return Ok(EntityRequest::ShowReceivers),
        Route::Sessions => {
            let range = SessionRange::parse(request.uri().query().unwrap_or_default());
            return Ok(EntityRequest::ListSessions(range.map_err(ApiError::Bad)?));
        }
        Route::SessionState => {
            let session = parse_session(request.uri().query().unwrap_or_default());
            return Ok(EntityRequest::ShowSessionState(
                session.map_err(ApiError::Bad)?,
            ));
        }
        Route::Explain => {
            let question = Question::parse(request.uri().query().unwrap_or_default());
            return Ok(EntityRequest::Explain(question.map_err(ApiError::Bad)?));
        }
        Route::Messages if request.method() != Method::POST => {
            let range = Range::parse(request.uri().query().unwrap_or_default());
            return Ok(EntityRequest::Browse(range.map_err(ApiError::Bad)?));
        }
        Route::Purge => Some(BulkOperation::Purge),
        Route::Redrive => Some(BulkOperation::Redrive),
        _ => None,
    };
    let may_be_there = request.headers().get(IF_NONE_MATCH).is_none();
    let method = request.method().clone();
    match method {
        Method::GET | Method::HEAD => return Ok(EntityRequest::Show),
        Method::DELETE => return Ok(EntityRequest::Delete),
        _ => {}
    }
    let change = request.extensions_mut().remove().map(Box::new);
    let targets = TargetCheck::of(request.extensions_mut().remove());
    let body = body::read_own(request, BODY_BYTES, server.limits().handshake).await?;
    match route {
        Route::Messages => return Ok(EntityRequest::Send(body)),
        Route::Settle => return Ok(EntityRequest::Settle(body)),
        _ => {}
    }
    if let Some(operation) = operation {
        return Ok(EntityRequest::Bulk(operation, body, change));
    }
    let json = serde_json::from_slice(&body)
        .map_err(|error| ApiError::Bad(format!("the body is not JSON: {error}")))?;
    Ok(match method {
        Method::PUT => EntityRequest::Put(json, may_be_there, targets),
        _ => EntityRequest::Patch(json, targets),
    })
}

async fn handle(
    server: &NamespaceView,
    resource: &ResourcePath,
    request: EntityRequest,
    client: oneshot::Sender<()>,
) -> Result<(StatusCode, Json), ApiError> {
    let mut shard_client = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    match request {
        EntityRequest::Show => {
            let most = server.settings().max_message_size;
            show::resource(&mut shard_client, resource, most).await
        }
        EntityRequest::Browse(range) => messages::show(&mut shard_client, resource, range).await,
        EntityRequest::Send(body) => send::handle(&mut shard_client, resource, &body, server).await,
        EntityRequest::Settle(body) => {
            settle::handle(&mut shard_client, resource, &body, server).await
        }
        EntityRequest::ShowReasons => reasons::show(&mut shard_client, resource).await,
        EntityRequest::ShowReceivers => receivers::show(&mut shard_client, resource).await,
        EntityRequest::ListSessions(range) => {
            sessions::list(&mut shard_client, resource, range).await
        }
        EntityRequest::ShowSessionState(session) => {
            sessions::show_state(&mut shard_client, resource, session).await
        }
        EntityRequest::Explain(question) => {
            explain::show(&mut shard_client, resource, question).await
        }
        EntityRequest::Bulk(operation, body, change) => {
            let log = |done: &str| {
                if let Some(change) = change {
                    change.write(done);
                }
            };
            bulk_operation::handle(&mut shard_client, resource, operation, &body, &client, log)
                .await
        }
        EntityRequest::Delete => change::delete(&mut shard_client, resource).await,
        EntityRequest::Patch(json, targets) => {
            let allow = |target: &str| targets.check(server, target);
            change::patch(&mut shard_client, resource, json, &allow).await
        }
        EntityRequest::Put(json, may_be_there, targets) => {
            let allow = |target: &str| targets.check(server, target);
            change::put(&mut shard_client, resource, json, may_be_there, &allow).await
        }
    }
}

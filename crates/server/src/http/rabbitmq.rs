//! `/api/`: the part of RabbitMQ's HTTP interface that this broker has. (docs/spec/rabbitmq.md#13)
//!
//! There are policies, operator policies, queues, exchanges, bindings and definitions of the one
//! virtual host `/`. Texts and status codes are RabbitMQ's. All of it needs the right to manage:
//! Basic with a rule's name and key, or `guest` and `guest` where the development key is not asked
//! for. What is not there is not found.

mod bindings;
mod definitions;
mod exchanges;
mod policies;
mod queues;

use std::sync::Arc;

use access::{Operation, Unauthorized};
use broker::{EntityError, PolicyLayer, RouterError};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::WWW_AUTHENTICATE;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};

use super::request::body;
use super::request::caller::Caller;
use super::response::answer;
use super::response::answer::Response;
use crate::log::refusals::Reason;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::{LocksAtEnd, ShardClient, ShardError};

/// The prefix of the interface.
const PREFIX: &str = "/api/";
/// What it has.
const RESOURCES: [&str; 7] = [
    "policies",
    "operator-policies",
    "queues",
    "exchanges",
    "bindings",
    "definitions",
    "overview",
];
/// What a token is for that is shown here, as to the broker's own interface.
const SCOPE: &str = "/$railbus";
/// The one virtual host.
const VHOST: &str = "/";
/// Room for the definitions of many queues.
const BODY_BYTES: usize = 16 << 20;

/// Whether a path is one of this interface. An entity may be called `api` too: clients of
/// management name a version.
pub fn is_call<T>(request: &Request<T>) -> bool {
    let rest = request.uri().path().strip_prefix(PREFIX);
    let resource = rest.and_then(|rest| rest.split('/').next());
    resource.is_some_and(|resource| RESOURCES.contains(&resource))
}

/// A request that has been read.
struct Call {
    method: Method,
    /// Decoded.
    segments: Vec<String>,
    query: String,
    body: Bytes,
}

/// Why a request is refused: the status, what is wrong, and why.
type Refusal = (StatusCode, &'static str, String);
/// A status and perhaps a body.
type Answered = Result<(StatusCode, Option<Json>), Failure>;

/// Why there is no answer.
enum Failure {
    Refused(Refusal),
    Shard(ShardError),
}

impl From<ShardError> for Failure {
    fn from(error: ShardError) -> Self {
        Self::Shard(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn bad_request(reason: impl Into<String>) -> Failure {
    Failure::Refused((StatusCode::BAD_REQUEST, "bad_request", reason.into()))
}

fn not_found() -> Failure {
    let reason = "Not Found".to_owned();
    Failure::Refused((StatusCode::NOT_FOUND, "Object Not Found", reason))
}

fn entity_error(error: &EntityError) -> Failure {
    match error {
        EntityError::NotFound => not_found(),
        EntityError::Router(error) => router_error(error),
        error => bad_request(error.to_string()),
    }
}

fn router_error(error: &RouterError) -> Failure {
    let (status, text) = rabbitmq::router_refusal(error);
    Failure::Refused(match (error, status) {
        (RouterError::NotFound(_) | RouterError::NoDestination(_), _) => {
            (StatusCode::NOT_FOUND, "not_found", text)
        }
        (_, 403) => (StatusCode::UNAUTHORIZED, "not_authorised", text),
        _ => (StatusCode::BAD_REQUEST, "bad_request", text),
    })
}

/// The status of what was made, or was there and is the same.
fn made(is_new: bool) -> Answered {
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::NO_CONTENT,
    };
    Ok((status, None))
}

/// Whether a query has a flag.
fn has_flag(query: &str, flag: &str) -> bool {
    let is_set = |pair: &str| pair == flag || pair == format!("{flag}=true");
    query.split('&').any(is_set)
}

/// Answers a request.
pub async fn respond(
    request: Request<Incoming>,
    caller: Caller,
    server: &Arc<NamespaceView>,
) -> Response {
    let path = request.uri().path().to_owned();
    if !caller.is_guest(server)
        && let Err(reason) = caller.check(server, Operation::Operate, SCOPE)
    {
        return unauthorized(&reason);
    }
    let segments = path.strip_prefix(PREFIX).unwrap_or_default().split('/');
    let segments = segments.map(|segment| percent_decode_str(segment).decode_utf8());
    let segments = segments.map(|segment| segment.map(|text| text.into_owned()));
    let Ok(segments) = segments.collect::<Result<Vec<_>, _>>() else {
        return refused((
            StatusCode::BAD_REQUEST,
            "bad_request",
            "not_utf8".to_owned(),
        ));
    };
    let (method, query) = (request.method().clone(), request.uri().query());
    let query = query.unwrap_or_default().to_owned();
    let body = match body::read_own(request, BODY_BYTES, server.limits().handshake).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let call = Call {
        method,
        segments,
        query,
        body,
    };
    // A task of its own, so that a disconnect of the client does not stop the operation.
    let server = Arc::clone(server);
    let working = tokio::spawn(async move { handle(&server, &call).await });
    match working.await {
        Ok(Ok((status, Some(json)))) => answer::value(status, &json),
        Ok(Ok((status, None))) => empty(status),
        Ok(Err(Failure::Refused(refusal))) => refused(refusal),
        Ok(Err(Failure::Shard(error))) => {
            answer::error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
        }
        Err(error) => {
            tracing::error!(%error, "a request ended because of an internal error");
            answer::error(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal error of the broker",
            )
        }
    }
}

async fn handle(server: &NamespaceView, call: &Call) -> Answered {
    let segments: Vec<_> = call.segments.iter().map(String::as_str).collect();
    let mut shard = ShardClient::connect_to(server, LocksAtEnd::AsConfigured).await?;
    let (resource, rest) = segments.split_first().ok_or_else(not_found)?;
    if let Some(vhost) = rest.first()
        && *vhost != VHOST
    {
        let reason = "vhost_not_found".to_owned();
        return Err(Failure::Refused((
            StatusCode::NOT_FOUND,
            "not_found",
            reason,
        )));
    }
    match *resource {
        "policies" => policies::handle(&mut shard, PolicyLayer::User, call, rest).await,
        "operator-policies" => {
            policies::handle(&mut shard, PolicyLayer::Operator, call, rest).await
        }
        "queues" => queues::handle(&mut shard, call, rest).await,
        "exchanges" => exchanges::handle(&mut shard, call, rest).await,
        "bindings" => bindings::handle(&mut shard, call, rest).await,
        "definitions" => definitions::handle(&mut shard, call).await,
        "overview" if is_read(&call.method) => Ok((StatusCode::OK, Some(overview()))),
        _ => Err(not_allowed()),
    }
}

fn overview() -> Json {
    json!({
        "product_name": "Railbus",
        "product_version": env!("CARGO_PKG_VERSION"),
        "node": NODE,
    })
}

/// The name of the one node.
const NODE: &str = "railbus";

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn not_allowed() -> Failure {
    let reason = "Method Not Allowed".to_owned();
    let status = StatusCode::METHOD_NOT_ALLOWED;
    Failure::Refused((status, "Method Not Allowed", reason))
}

/// The body of a request, which has to be an object.
fn object(body: &[u8]) -> Result<serde_json::Map<String, Json>, Failure> {
    match serde_json::from_slice(body) {
        Ok(Json::Object(object)) => Ok(object),
        _ => Err(bad_request("not_json")),
    }
}

fn refused((status, error, reason): Refusal) -> Response {
    let body = json!({"error": error, "reason": reason});
    let mut response = answer::value(status, &body);
    response.extensions_mut().insert(Reason {
        sub_code: None,
        text: error.to_owned(),
    });
    response
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Default::default());
    *response.status_mut() = status;
    response
}

fn unauthorized(reason: &Unauthorized) -> Response {
    if reason.is_temporary() {
        return answer::unauthorized(reason);
    }
    let (error, text) = match reason {
        Unauthorized::Missing(_) => ("", ""),
        Unauthorized::Claim(_) => ("not_authorised", "Not management user"),
        _ => ("not_authorized", "Not_Authorized"),
    };
    let mut response = match error {
        "" => empty(StatusCode::UNAUTHORIZED),
        error => {
            let body = json!({"error": error, "reason": text});
            answer::value(StatusCode::UNAUTHORIZED, &body)
        }
    };
    if error.is_empty() {
        let challenge = "Basic realm=\"RabbitMQ Management\"".parse();
        let challenge = challenge.expect("the text is a header's value");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response.extensions_mut().insert(Reason {
        sub_code: Some(reason.sub_code()),
        text: reason.to_string(),
    });
    response
}

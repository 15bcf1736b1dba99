//! `/api/`: the part of RabbitMQ's HTTP interface that this broker has. (docs/spec/rabbitmq.md#13)
//!
//! There are policies, operator policies, queues, exchanges, bindings and definitions, each by
//! virtual host. Texts and status codes are RabbitMQ's. All of it needs the right to manage, in the
//! namespace of the request or in the one that the path names: Basic with a rule's name and key, or
//! `guest` and `guest` where the development key is not asked for. What is not there is not found.

mod bindings;
mod definitions;
mod exchanges;
mod import;
mod overview;
mod pagination;
mod policies;
mod queues;
mod virtual_hosts;

use std::sync::Arc;

use access::{Operation, Unauthorized};
use broker::PolicyLayer;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value as Json, json};

use super::api::namespaces;
use super::request::body;
use super::request::caller::Caller;
use super::response::answer;
use super::response::answer::Response;
use crate::log::refusals::Reason;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::ShardError;
use virtual_hosts::VirtualHost;

/// The prefix of the interface.
const PREFIX: &str = "/api/";
/// What it has.
const RESOURCES: [&str; 8] = [
    "policies",
    "operator-policies",
    "queues",
    "exchanges",
    "bindings",
    "definitions",
    "overview",
    "vhosts",
];
/// Those whose lists there are by page.
const PAGINATED: [&str; 3] = ["queues", "exchanges", "vhosts"];
/// Others that RabbitMQ has: not found here. Messages of an entity with such a name go before.
const UNKNOWN: [&str; 28] = [
    "aliveness-test",
    "auth",
    "channels",
    "cluster-name",
    "connections",
    "consumers",
    "deprecated-features",
    "extensions",
    "feature-flags",
    "federation-links",
    "global-parameters",
    "hash_password",
    "health",
    "login",
    "nodes",
    "parameters",
    "permissions",
    "queue-totals",
    "rebalance",
    "reset",
    "shovels",
    "stream",
    "topic-permissions",
    "user-limits",
    "users",
    "vhost-limits",
    "whoami",
    "version",
];
/// What a token is for that is shown here, as to the broker's own interface.
const SCOPE: &str = "/$railbus";
/// Room for the definitions of many queues.
const BODY_BYTES: usize = 16 << 20;

/// Whether a path is one of this interface. An entity may be called `api` too: clients of
/// management name a version.
pub fn is_call<T>(request: &Request<T>) -> bool {
    resource(request).is_some_and(|it| RESOURCES.contains(&it))
}

/// Whether a path is one that RabbitMQ has and this interface has not.
pub fn is_unknown<T>(request: &Request<T>) -> bool {
    resource(request).is_some_and(|it| UNKNOWN.contains(&it))
}

/// Whether the path of a request names a virtual host that is not that of the request itself.
pub fn names_virtual_host<T>(request: &Request<T>) -> bool {
    let segments = segments(request.uri().path()).unwrap_or_default();
    let named = segments.get(1);
    is_call(request) && named.is_some_and(|named| named != virtual_hosts::OWN)
}

fn resource<T>(request: &Request<T>) -> Option<&str> {
    let rest = request.uri().path().strip_prefix(PREFIX)?;
    rest.split('/').next()
}

/// A request that has been read.
struct Call {
    method: Method,
    /// Decoded.
    segments: Vec<String>,
    query: String,
    body: Bytes,
    /// Where the client has found the broker, as connection strings say it.
    endpoint: String,
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
    is_tls: bool,
    server: &Arc<NamespaceView>,
) -> Response {
    let segments = segments(request.uri().path());
    let vhost = segments.as_ref().and_then(|segments| segments.get(1));
    let server = match authorize(&caller, server, vhost) {
        Ok(server) => server,
        Err(reason) => return unauthorized(&reason),
    };
    let Some(segments) = segments else {
        return refused((
            StatusCode::BAD_REQUEST,
            "bad_request",
            "not_utf8".to_owned(),
        ));
    };
    let (method, query) = (request.method().clone(), request.uri().query());
    let query = query.unwrap_or_default().to_owned();
    let endpoint = namespaces::endpoint(&request, is_tls);
    let body = match body::read_own(request, BODY_BYTES, server.limits().handshake).await {
        Ok(body) => body,
        Err(refusal) => return in_own_form(refusal),
    };
    let call = Call {
        method,
        segments,
        query,
        body,
        endpoint,
    };
    let location = bindings::location(&call);
    // A task of its own, so that a disconnect of the client does not stop the operation.
    let working = tokio::spawn(async move { handle(&server, &call).await });
    match working.await {
        Ok(Ok((status, Some(json)))) => answer::value(status, &json),
        Ok(Ok((status, None))) => {
            let mut response = empty(status);
            let location = location.and_then(|text| HeaderValue::try_from(text).ok());
            if let Some(location) = location.filter(|_| status == StatusCode::CREATED) {
                response.headers_mut().insert(LOCATION, location);
            }
            response
        }
        Ok(Err(Failure::Refused(refusal))) => refused(refusal),
        Ok(Err(Failure::Shard(error))) => in_own_form(answer::error(
            StatusCode::SERVICE_UNAVAILABLE,
            &error.to_string(),
        )),
        Err(error) => {
            tracing::error!(%error, "a request ended because of an internal error");
            in_own_form(answer::internal())
        }
    }
}

/// The parts of a path behind the prefix, decoded.
fn segments(path: &str) -> Option<Vec<String>> {
    let segments = path.strip_prefix(PREFIX).unwrap_or_default().split('/');
    let decoded = segments.map(|segment| percent_decode_str(segment).decode_utf8().ok());
    decoded.map(|text| Some(text?.into_owned())).collect()
}

/// The namespace in which the caller has the right to manage: its own, or the one of the virtual
/// host that the path names.
fn authorize(
    caller: &Caller,
    server: &Arc<NamespaceView>,
    vhost: Option<&String>,
) -> Result<Arc<NamespaceView>, Unauthorized> {
    let may = |server: &NamespaceView| caller.check(server, Operation::Operate, SCOPE);
    if caller.is_guest(server) {
        return Ok(Arc::clone(server));
    }
    may(server).map(|()| Arc::clone(server)).or_else(|reason| {
        let named = vhost.and_then(|vhost| virtual_hosts::view(server, vhost));
        named.filter(|named| may(named).is_ok()).ok_or(reason)
    })
}

/// Answers a request; a list of these resources by page, if the request names one.
async fn handle(server: &Arc<NamespaceView>, call: &Call) -> Answered {
    let (status, answer) = handle_whole(server, call).await?;
    let answer = match (call.segments.as_slice(), answer) {
        ([resource] | [resource, _], Some(Json::Array(list)))
            if PAGINATED.contains(&resource.as_str()) =>
        {
            Some(pagination::paginate(list, &call.query)?)
        }
        (_, answer) => answer,
    };
    Ok((status, answer))
}

async fn handle_whole(server: &Arc<NamespaceView>, call: &Call) -> Answered {
    let segments: Vec<_> = call.segments.iter().map(String::as_str).collect();
    let (resource, rest) = segments.split_first().ok_or_else(not_found)?;
    match (*resource, rest) {
        (resource, _) if !RESOURCES.contains(&resource) => Err(not_found()),
        ("overview", []) if is_read(&call.method) => {
            Ok((StatusCode::OK, Some(overview::read(server).await?)))
        }
        ("overview", []) => Err(not_allowed()),
        ("overview", _) => Err(not_found()),
        ("vhosts", rest) => virtual_hosts::handle(server, call, rest).await,
        ("definitions", rest) => definitions::handle(server, call, rest).await,
        (resource, [vhost, ..]) => {
            let mut host = VirtualHost::open(server, vhost).await?;
            handle_in(&mut host, resource, call, rest).await
        }
        (resource, []) if is_read(&call.method) => list_all(server, resource, call).await,
        (_, []) => Err(not_allowed()),
    }
}

/// Answers with the lists of all virtual hosts of the client, one after the other.
async fn list_all(server: &Arc<NamespaceView>, resource: &str, call: &Call) -> Answered {
    let mut all = Vec::new();
    for name in virtual_hosts::names(server) {
        let Ok(mut host) = VirtualHost::open(server, &name).await else {
            // It has been deleted meanwhile.
            continue;
        };
        if let (_, Some(Json::Array(listed))) = handle_in(&mut host, resource, call, &[]).await? {
            all.extend(listed);
        }
    }
    Ok((StatusCode::OK, Some(Json::Array(all))))
}

/// Answers a request for what one virtual host has. `rest` begins with its name, or is empty for
/// all that it has.
async fn handle_in(host: &mut VirtualHost, resource: &str, call: &Call, rest: &[&str]) -> Answered {
    match resource {
        "policies" => policies::handle(host, PolicyLayer::User, call, rest).await,
        "operator-policies" => policies::handle(host, PolicyLayer::Operator, call, rest).await,
        "queues" => queues::handle(host, call, rest).await,
        "exchanges" => exchanges::handle(host, call, rest).await,
        "bindings" => bindings::handle(host, call, rest).await,
        _ => Err(not_found()),
    }
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

/// A member that is true, false, or one of these as a text, as older tools send it; false without
/// it.
fn flag(given: &serde_json::Map<String, Json>, name: &str) -> Result<bool, Failure> {
    let shown = match given.get(name) {
        None => return Ok(false),
        Some(Json::Bool(value)) => return Ok(*value),
        Some(Json::String(text)) => match text.as_str() {
            "true" => return Ok(true),
            "false" => return Ok(false),
            other => other.to_owned(),
        },
        Some(other) => other.to_string(),
    };
    Err(bad_request(format!("[\"not_boolean\",\"{shown}\"]")))
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
        text: error.to_owned(),
        ..Reason::default()
    });
    response
}

/// A refusal of another part of the server as clients of this interface read it.
pub fn in_own_form(refusal: Response) -> Response {
    let Some(reason) = answer::reason(&refusal) else {
        return refusal;
    };
    let status = refusal.status();
    let error = match status {
        StatusCode::BAD_REQUEST => "bad_request",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "not_authorised",
        other => other.canonical_reason().unwrap_or("error"),
    };
    let body = json!({"error": error, "reason": reason.text});
    let mut response = answer::value(status, &body);
    if let Some(connection) = refusal.headers().get(CONNECTION) {
        let headers = response.headers_mut();
        headers.insert(CONNECTION, connection.clone());
    }
    response.extensions_mut().insert(reason);
    response
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Default::default());
    *response.status_mut() = status;
    response
}

fn unauthorized(reason: &Unauthorized) -> Response {
    if reason.is_temporary() {
        return in_own_form(answer::unauthorized(reason));
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
        ..Reason::default()
    });
    response
}

//! HTTP on the same ports: `/health`, `/metrics`, the broker's own interface under `/$railbus/`,
//! the opening handshake of WebSocket, messages at `{entity}/messages`, and Service Bus's
//! management everywhere else.
//!
//! The health check says whether a send would succeed. It and the root, which is an empty list of
//! services to a program and the web console to a browser, need no right (docs/spec/admin.md#1, #3,
//! #17). All other paths need Manage, or what `access::Operation` says, except with the development
//! key on a loopback listener. A queue may be called `health` or `metrics` too: clients of
//! management name a version.

mod admin;
pub mod api;
pub mod console;
mod data;
mod health;
mod identity;
pub mod metrics;
mod rabbitmq;
pub mod request;
pub mod response;
pub mod routes;
mod upgrade;

use api::backups;
use api::clock;
use api::connections;
use api::document;
use api::entities;
use api::faults;
use api::history;
use api::namespaces;
use api::overview;
use api::plan;
use api::policies;
use api::rules;
use console::events;
use console::session;
use request::origin;
use response::answer;
use response::early_refusal;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;

use access::Operation;
use dialect::Severity;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use store::NamespaceId;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::counters::counts::{RefusalReason, StatusClass};
use crate::log::audit::HttpChange;
use crate::namespaces::apply::ApplyMode;
use crate::namespaces::namespace_view::NamespaceView;
use crate::server::server_state::ServerState;
use crate::transport::connection_limiter::ConnectionPermit;
use console::ConsoleFile;
use request::caller::Caller;
use request::namespace_path::NamespacePath;
use request::request_head::{HeadReader, Heads};
use request::request_right::{RequestRight, authorize};
use request::transport::Transport;
use response::answer::Response;
use routes::{HEALTH, METRICS, OWN, Route, SESSION};

/// Headers of a request. Each property of a message over REST is one. (docs/spec/admin.md#11)
const HEADERS: usize = 256;

/// Most requests in a row on one connection that are refused for what they show.
const FAILURES: u32 = 32;

/// A stream that speaks WebSocket from now on.
#[derive(Debug)]
pub struct UpgradedStream<S> {
    pub stream: S,
    /// What was read behind the request.
    pub early: Bytes,
}

/// Serves HTTP on `stream` until the peer closes, the server stops, or a handshake turns the
/// connection into WebSocket. A loopback listener does not require the development key.
pub async fn serve<S>(
    stream: S,
    server: Arc<ServerState>,
    transport: Transport,
    permit: Arc<ConnectionPermit>,
) -> Option<UpgradedStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stopping = server.stopping.clone();
    let limits = server.limits();
    let handshake = limits.handshake;
    // The library takes no less.
    let header_bytes = limits.http_header_bytes.max(8 << 10);
    let is_upgraded = Arc::new(AtomicBool::new(false));
    let agreed = Arc::clone(&is_upgraded);
    let failures = Arc::new(AtomicU32::new(0));
    let counting = Arc::clone(&server);
    let heads = Heads::default();
    let stream = HeadReader::new(stream, heads.clone());
    let service = service_fn(move |request| {
        let (server, agreed) = (Arc::clone(&server), Arc::clone(&agreed));
        let (failures, heads) = (Arc::clone(&failures), heads.clone());
        let permit = Arc::clone(&permit);
        Box::pin(async move {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let mut response = match heads.check(&request) {
                Ok(()) => admit(request, &server, transport).await,
                Err(error) => answer::bad_head(error),
            };
            heads.end_request();
            faults::check_dropped(&response)?;
            server.counts.answer(response.status());
            log_refusal((&method, &uri), &response, &server, transport);
            delay_refusal(&response, &server, transport, permit).await;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                agreed.store(true, Ordering::Relaxed);
            }
            note_failure(&mut response, &failures);
            Ok::<_, faults::Dropped>(response)
        })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(handshake)
        .max_buf_size(header_bytes)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let asked_to_stop = tokio::select! {
        result = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Err(result),
        _ = stopping.wait_for(|stopping| *stopping) => Ok(()),
    };
    let result = match asked_to_stop {
        Err(result) => result,
        Ok(()) => {
            Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|cx| connection.poll_without_shutdown(cx)).await
        }
    };
    note_end(&result, &counting, transport);
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner().into_inner();
    if is_upgraded.load(Ordering::Relaxed) && result.is_ok() {
        let early = parts.read_buf;
        return Some(UpgradedStream { stream, early });
    }
    // A peer that takes no end is left alone.
    drop(tokio::time::timeout(handshake, stream.shutdown()).await);
    None
}

/// Waits before a guess is answered, if the address has shown too many. The connection
/// counts for that long even if its peer leaves, so a peer gains nothing by guessing on a new one.
async fn delay_refusal(
    response: &Response,
    server: &ServerState,
    transport: Transport,
    permit: Arc<ConnectionPermit>,
) {
    let sub_code = answer::reason(response).and_then(|reason| reason.sub_code);
    let is_guess =
        response.status() == StatusCode::UNAUTHORIZED && sub_code.is_some_and(access::is_guess);
    if is_guess && let Some(until) = server.delay_refusal(transport.peer.ip(), 1) {
        let mut stopping = server.stopping.clone();
        let delayed = tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
            }
            drop(permit);
        });
        drop(delayed.await);
    }
}

/// Lets a connection go on which one request after the other is refused for what it shows.
fn note_failure(response: &mut Response, failures: &AtomicU32) {
    if response.status() != StatusCode::UNAUTHORIZED {
        failures.store(0, Ordering::Relaxed);
    } else if failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
}

fn note_end(result: &hyper::Result<()>, server: &ServerState, transport: Transport) {
    if let Err(error) = result {
        tracing::debug!(%error, "an HTTP connection ended early");
        if error.is_parse() {
            // What is no request, or too large a header, has been answered before we saw it.
            server
                .counts
                .responses
                .of(StatusClass::ClientError)
                .increment();
            server.refusals.no_request(transport.peer, error);
        }
    }
}

/// Logs the answer to a request if it is an error. Clients recover from those of a stopping server.
fn log_refusal(
    request: (&Method, &Uri),
    response: &Response,
    server: &ServerState,
    transport: Transport,
) {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return;
    }
    let severity = match status {
        StatusCode::SERVICE_UNAVAILABLE if *server.stopping.borrow() => Severity::Notice,
        _ => Severity::Warning,
    };
    let reason = answer::reason(response);
    let log = &server.refusals;
    log.http(transport.peer, request, status, reason.as_ref(), severity);
}

/// Answers a request if its transport allows it.
async fn admit(
    request: Request<Incoming>,
    server: &Arc<ServerState>,
    transport: Transport,
) -> Response {
    if !transport.is_private && request.uri().path() != HEALTH {
        server.counts.refused.of(RefusalReason::Plain).increment();
        return early_refusal::in_form_of(&request, server, answer::plain());
    }
    let view = match NamespaceView::of_request(server, request.headers(), transport) {
        Ok(view) => Arc::new(view),
        // The path may choose one of those that have the key.
        Err(_) if rabbitmq::names_virtual_host(&request) => {
            Arc::new(NamespaceView::of_default_for(server, transport))
        }
        Err(error) => {
            let refusal = answer::error(StatusCode::BAD_REQUEST, &error.to_string());
            return early_refusal::in_form_of(&request, server, refusal);
        }
    };
    let server = &view;
    if origin::names_other_host(&request, server, transport) {
        return early_refusal::in_form_of(&request, server, answer::other_host());
    }
    let is_lost = match faults::before(&request, server, transport).await {
        Ok(is_lost) => is_lost,
        Err(instead) => return instead,
    };
    let response = match upgrade::respond(&request, server, transport.is_loopback) {
        Some(response) => response,
        None => respond(request, server, transport).await,
    };
    faults::after(response, is_lost)
}

async fn respond(
    mut request: Request<Incoming>,
    server: &Arc<NamespaceView>,
    transport: Transport,
) -> Response {
    if identity::is_call(&request, server, transport) {
        return identity::respond(request, server, transport).await;
    }
    // Some clients escape the dollar sign.
    let asked = request.uri().path().replace("%24", "$");
    let NamespacePath { namespace, path } = NamespacePath::of(&asked, request.method());
    let namespace = namespace.filter(|name| *name != server.name());
    let is_own = path.starts_with(OWN);
    let is_management = !is_own && admin::is_management_request(&request);
    if path == HEALTH && !is_management {
        return health::respond(request.method(), !*server.stopping.borrow());
    }
    if let Some(file) = ConsoleFile::of(&request, &path).filter(|_| !is_management) {
        return file.respond();
    }
    if path == SESSION {
        return session::respond(&request, server, transport);
    }
    if path == "/" {
        return admin::root(&request, server);
    }
    let is_metrics = path == METRICS && !is_management;
    let route = Route::of(&path, request.method());
    let is_of_other = namespace.is_some()
        || route.is_some_and(|route| history::is_of_other(route, &path, server));
    let operation = match (is_own, is_metrics) {
        (true, _) if is_of_other => Operation::Operate,
        (true, _) => route.map_or(Operation::Operate, |route| {
            route.operation(request.method())
        }),
        (_, true) => Operation::ReadMetrics,
        _ => Operation::Administer,
    };
    let mut caller = Caller::of(request.headers(), transport);
    if is_own {
        match session::of(&request, server) {
            Ok(session) => caller.set_session(session),
            Err(refusal) => return *refusal,
        }
    }
    if rabbitmq::is_call(&request) && !is_management {
        return respond_rabbitmq(request, caller, transport, server).await;
    }
    if !is_own && let Some(call) = data::call(&request, server) {
        return data::respond(request, call, caller, transport, server).await;
    }
    // After messages: an entity may have such a name too.
    if rabbitmq::is_unknown(&request) && !is_management {
        return respond_rabbitmq(request, caller, transport, server).await;
    }
    if operation == Operation::Administer {
        let change = HttpChange::of(&request, transport.peer, &caller, server);
        let server = Arc::clone(server);
        let answering = async move { admin::respond(request, caller, &server).await };
        return audited(change, answering).await;
    }
    // A token may be for a part of the path alone, which names the namespace too.
    let route_of_own = route.filter(|_| is_own && !is_of_other);
    if let Err(reason) = authorize(
        &mut caller,
        server,
        operation,
        (&asked, &path),
        route_of_own,
    ) {
        return match session::is_of_script(request.headers()) {
            true => answer::unauthorized_script(&reason),
            false => answer::unauthorized(&reason),
        };
    }
    let is_of_broker = is_metrics || is_of_other || route.is_some_and(Route::is_of_broker);
    if is_of_broker && server.namespace() != NamespaceId::default() {
        return answer::of_broker();
    }
    if is_metrics {
        return metrics::respond(request.method(), server).await;
    }
    let Some(view) = namespace.map_or(Some(Arc::clone(server)), |name| server.of_name(&name))
    else {
        return answer::no_namespace();
    };
    match route {
        Some(route) => {
            let change = HttpChange::of(&request, transport.peer, &caller, server);
            // These log what they have done themselves, since their client may leave.
            if let Some(change) = change.clone().filter(|_| route.is_bulk()) {
                request.extensions_mut().insert(change);
            }
            let change = change.filter(|_| route.changes());
            if route == Route::Events {
                let right = RequestRight::new(caller.clone(), server, operation, asked);
                request.extensions_mut().insert(right);
            }
            request.extensions_mut().insert(caller);
            let answering =
                async move { respond_own(request, route, &path, transport, &view).await };
            audited(change, answering).await
        }
        None => {
            let text = "there is no such resource; /$railbus/openapi.json lists all";
            answer::error(StatusCode::NOT_FOUND, text)
        }
    }
}

async fn respond_rabbitmq(
    request: Request<Incoming>,
    caller: Caller,
    transport: Transport,
    server: &Arc<NamespaceView>,
) -> Response {
    let change = HttpChange::of(&request, transport.peer, &caller, server);
    let server = Arc::clone(server);
    let answering =
        async move { rabbitmq::respond(request, caller, transport.is_tls, &server).await };
    audited(change, answering).await
}

/// The response, once the log tells what the request has changed. A request that may change
/// something is a task of its own: a client that leaves stops neither the change nor its line.
async fn audited(
    change: Option<HttpChange>,
    answering: impl Future<Output = Response> + Send + 'static,
) -> Response {
    let Some(change) = change else {
        return answering.await;
    };
    let working = tokio::spawn(async move {
        let response = answering.await;
        change.log(&response);
        response
    });
    working.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request ended because of an internal error");
        answer::internal()
    })
}

/// Answers a request of our own interface. The caller has the right for it.
async fn respond_own(
    request: Request<Incoming>,
    route: Route,
    path: &str,
    transport: Transport,
    server: &Arc<NamespaceView>,
) -> Response {
    if !route.allows(request.method()) {
        return answer::method_not_allowed(route.allowed());
    }
    match route {
        Route::Session => answer::not_found(),
        Route::Overview => overview::respond(server).await,
        Route::Counts => overview::respond_counts(&request, server).await,
        Route::Connections => connections::respond(&request, server).await,
        Route::Connection => connections::close(path, server),
        Route::Events => events::respond(&request, server),
        Route::Document => answer::json(StatusCode::OK, document::DOCUMENT.clone()),
        Route::Backups => backups::respond(request, server).await,
        Route::Clock => clock::respond(request, None, server).await,
        Route::TestRule => rules::respond(request, server).await,
        Route::Plan => plan::respond(request, server, ApplyMode::Show).await,
        Route::Apply => plan::respond(request, server, ApplyMode::Apply).await,
        Route::History | Route::MessageHistory => history::respond(&request, path, server).await,
        Route::Namespaces
        | Route::Namespace
        | Route::NamespaceReset
        | Route::NamespaceClock
        | Route::Faults
        | Route::Snapshots
        | Route::Snapshot
        | Route::Restore
        | Route::Fork => namespaces::respond(request, route, path, transport.is_tls, server).await,
        Route::Policies | Route::Policy => policies::respond(request, path, server).await,
        Route::Entities
        | Route::Entity
        | Route::Rules
        | Route::Rule
        | Route::Messages
        | Route::Reasons
        | Route::Receivers
        | Route::Sessions
        | Route::SessionState
        | Route::Explain
        | Route::Settle
        | Route::Purge
        | Route::Redrive => entities::respond(request, route, path, server).await,
    }
}

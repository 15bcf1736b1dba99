//! HTTP on the same ports: `/health`, `/metrics`, and the broker's own interface under `/$railbus/`.
//!
//! The health check says whether a send would succeed; it needs no right (Admin contract 1). The
//! counters and all under `/$railbus/` need Manage, except with the development key on a loopback listener.

mod answer;
mod body;
mod clock;
mod metrics;
mod rules;

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use servicebus::Unauthorized;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::door::House;
use answer::Response;

/// A request's line and headers together.
const HEADER_BYTES: usize = 16 * 1024;
const HEADERS: usize = 64;

/// Where the counters are.
const METRICS: &str = "/metrics";
/// What is ours besides the contracts.
const OWN: &str = "/$railbus/";

/// Serves HTTP on `stream` until the peer has enough or the server stops. From a trusted listener
/// nobody is asked for a key.
pub async fn serve<S>(stream: S, house: Arc<House>, is_trusted: bool)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stopping = house.stopping.clone();
    let header_time_out = house.limits.handshake;
    let service = service_fn(move |request| {
        let house = Arc::clone(&house);
        async move { Ok::<_, Infallible>(respond(request, &house, is_trusted).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time_out)
        .max_buf_size(HEADER_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        result = &mut connection => return log(result),
        _ = stopping.wait_for(|stopping| *stopping) => connection.as_mut().graceful_shutdown(),
    }
    log(connection.await);
}

fn log(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(%error, "an HTTP connection ended early");
    }
}

async fn respond(request: Request<Incoming>, house: &House, is_trusted: bool) -> Response {
    // Some clients escape the dollar sign.
    let path = request.uri().path().replace("%24", "$");
    if path == "/health" {
        return health(request.method(), !*house.stopping.borrow());
    }
    if path != METRICS && !path.starts_with(OWN) {
        return answer::nothing_here();
    }
    if let Err(reason) = authorize(request.headers(), &path, house, is_trusted) {
        return answer::unauthorized(&reason);
    }
    match &*path {
        METRICS => metrics::respond(request.method(), house).await,
        "/$railbus/clock" => clock::respond(request, house).await,
        "/$railbus/rules/test" => rules::respond(request, house).await,
        _ => answer::nothing_here(),
    }
}

/// Whether the request may manage. Credentials that are shown are always checked. A browser that
/// asks for a page from elsewhere says so by `Origin`; no page may move a developer's clock.
fn authorize(
    headers: &HeaderMap,
    path: &str,
    house: &House,
    is_trusted: bool,
) -> Result<(), Unauthorized> {
    let authorization = headers.get(AUTHORIZATION);
    if is_trusted && authorization.is_none() && !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let text = authorization.map(|value| value.to_str().unwrap_or_default());
    house
        .rules
        .check_manage(text, path, house.clock.moment().wall)
}

fn health(method: &Method, healthy: bool) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return answer::method_not_allowed("GET, HEAD");
    }
    let (status, body) = if healthy {
        (
            StatusCode::OK,
            r#"{"status":"healthy","message":"Service is healthy."}"#,
        )
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"status":"unhealthy","message":"Service not available. Please try after some time."}"#,
        )
    };
    answer::json(status, body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &Method, healthy: bool, expected: StatusCode) {
        assert_eq!(health(method, healthy).status(), expected);
    }

    #[test]
    fn health_is_ok_while_the_server_serves() {
        check(&Method::GET, true, StatusCode::OK);
        check(&Method::HEAD, true, StatusCode::OK);
    }

    #[test]
    fn health_is_unavailable_while_the_server_stops() {
        check(&Method::GET, false, StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn health_can_only_be_read() {
        check(&Method::POST, true, StatusCode::METHOD_NOT_ALLOWED);
    }
}

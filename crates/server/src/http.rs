//! HTTP on the same ports: `GET /health` for now, nothing else.
//!
//! The health check says whether a send would succeed; it needs no right. (Admin contract 1)

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// A request's line and headers together.
const HEADER_BYTES: usize = 16 * 1024;
const HEADERS: usize = 64;

/// Serves HTTP on `stream` until the peer has enough or the server stops.
pub async fn serve(
    stream: TcpStream,
    header_time_out: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let healthy = stopping.clone();
    let service = service_fn(|request| {
        let response = answer(&request, !*healthy.borrow());
        async move { Ok::<_, Infallible>(response) }
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

fn answer<Body>(request: &Request<Body>, healthy: bool) -> Response<Full<Bytes>> {
    if request.uri().path() != "/health" {
        return text(StatusCode::NOT_FOUND, "There is nothing here.\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "Only GET is allowed here.\n",
        );
        response.headers_mut().insert(
            ALLOW,
            "GET, HEAD"
                .parse()
                .expect("a list of methods is a header value"),
        );
        return response;
    }
    health(healthy)
}

fn health(healthy: bool) -> Response<Full<Bytes>> {
    if healthy {
        json(
            StatusCode::OK,
            r#"{"status":"healthy","message":"Service is healthy."}"#,
        )
    } else {
        json(
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"status":"unhealthy","message":"Service not available. Please try after some time."}"#,
        )
    }
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", body)
}

fn json(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    response(status, "application/json", body)
}

fn response(status: StatusCode, kind: &'static str, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, path: &str, healthy: bool, expected: StatusCode) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(())
            .unwrap();
        assert_eq!(answer(&request, healthy).status(), expected);
    }

    #[test]
    fn health_is_ok_while_the_server_serves() {
        check(Method::GET, "/health", true, StatusCode::OK);
        check(Method::HEAD, "/health", true, StatusCode::OK);
    }

    #[test]
    fn health_is_unavailable_while_the_server_stops() {
        check(
            Method::GET,
            "/health",
            false,
            StatusCode::SERVICE_UNAVAILABLE,
        );
    }

    #[test]
    fn other_methods_and_paths_are_refused() {
        check(
            Method::POST,
            "/health",
            true,
            StatusCode::METHOD_NOT_ALLOWED,
        );
        check(Method::GET, "/", true, StatusCode::NOT_FOUND);
        check(Method::DELETE, "/orders", true, StatusCode::NOT_FOUND);
    }
}

//! Upgrade: the opening handshake of WebSocket. [RFC 6455 4.2] (docs/spec/amqp.md#1.2)
//!
//! Azure's SDKs ask at `/$servicebus/websocket` for the sub-protocol `AMQPWSB10` or `amqp`, generic
//! clients at `/` for `amqp`. The client's first choice among those is taken.

use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HOST, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{HeaderMap, Method, Request, StatusCode, Version};
use tungstenite::handshake::derive_accept_key;

use super::request::origin;
use super::response::answer;
use super::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;

const WEBSOCKET: &str = "websocket";
const VERSION: &str = "13";
/// 16 bytes in base64.
const KEY_LENGTH: usize = 24;

/// What may be spoken where.
const AZURE: &[&str] = &["amqp", "AMQPWSB10"];
const GENERIC: &[&str] = &["amqp"];

/// Why there is no WebSocket for a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UpgradeError {
    NoUpgrade,
    Version,
    Malformed(&'static str),
    SubProtocol(&'static [&'static str]),
    Origin,
    Stopping,
}

/// Answers a request that has to do with WebSocket; `None` for any other.
pub fn respond(
    request: &Request<Incoming>,
    server: &NamespaceView,
    is_loopback: bool,
) -> Option<Response> {
    let Some(offer) = offer(request.uri().path(), request.headers()) else {
        // There is none elsewhere.
        return names(request.headers(), &UPGRADE, WEBSOCKET).then(answer::not_found);
    };
    let needs_no_secret = origin::needs_no_secret(server);
    let answer = if *server.stopping.borrow() {
        Err(UpgradeError::Stopping)
    } else if needs_no_secret && !is_allowed_origin(request.headers(), is_loopback) {
        Err(UpgradeError::Origin)
    } else if request.version() < Version::HTTP_11 {
        Err(UpgradeError::NoUpgrade)
    } else {
        accept(request.method(), request.headers(), offer)
    };
    Some(answer.unwrap_or_else(refuse))
}

/// The sub-protocols at a path; `None` when it has nothing to do with WebSocket.
fn offer(path: &str, headers: &HeaderMap) -> Option<&'static [&'static str]> {
    // Some clients escape the dollar sign.
    let path = path.replace("%24", "$");
    match path.strip_suffix('/').unwrap_or(&path) {
        "/$servicebus/websocket" => Some(AZURE),
        "" if names(headers, &UPGRADE, WEBSOCKET) => Some(GENERIC),
        _ => None,
    }
}

/// A page in a browser could do whatever needs no key: only pages of this machine or of this very
/// server may. On loopback the latter proves nothing, since any name can be made to lead here.
fn is_allowed_origin(headers: &HeaderMap, is_loopback: bool) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    origin::is_loopback(origin) || (!is_loopback && origin::is_of(origin, headers.get(HOST)))
}

fn accept(
    method: &Method,
    headers: &HeaderMap,
    offer: &'static [&'static str],
) -> Result<Response, UpgradeError> {
    if method != Method::GET || !names(headers, &UPGRADE, WEBSOCKET) {
        return Err(UpgradeError::NoUpgrade);
    }
    if !names(headers, &CONNECTION, "upgrade") {
        return Err(UpgradeError::Malformed(
            "the header Connection does not name Upgrade",
        ));
    }
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .map(HeaderValue::as_bytes)
        != Some(VERSION.as_bytes())
    {
        return Err(UpgradeError::Version);
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes);
    let key = key.filter(|key| key.len() == KEY_LENGTH && key.ends_with(b"=="));
    let key = key.ok_or(UpgradeError::Malformed(
        "Sec-WebSocket-Key is not 16 bytes in base64",
    ))?;
    let chosen = tokens(headers, &SEC_WEBSOCKET_PROTOCOL).find_map(|token| {
        let mut offer = offer.iter();
        offer.find(|&&ours| ours == token)
    });
    let chosen = chosen.ok_or(UpgradeError::SubProtocol(offer))?;
    let mut response = Response::default();
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let accept = HeaderValue::try_from(derive_accept_key(key))
        .expect("base64 consists of what a header may hold");
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(chosen));
    Ok(response)
}

fn refuse(error: UpgradeError) -> Response {
    let upgrade_required = |message| {
        let mut response = answer::error(StatusCode::UPGRADE_REQUIRED, message);
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        response
    };
    match error {
        UpgradeError::NoUpgrade => upgrade_required("this path requires WebSocket"),
        UpgradeError::Version => upgrade_required("Sec-WebSocket-Version must be 13"),
        UpgradeError::Malformed(reason) => answer::error(StatusCode::BAD_REQUEST, reason),
        UpgradeError::SubProtocol(offer) => {
            let message = format!(
                "Sec-WebSocket-Protocol names none of the sub-protocols of this path: {}",
                offer.join(", ")
            );
            answer::error(StatusCode::BAD_REQUEST, &message)
        }
        UpgradeError::Origin => {
            let message =
                "web pages of other origins cannot connect while the broker requires no key";
            answer::error(StatusCode::FORBIDDEN, message)
        }
        UpgradeError::Stopping => {
            answer::error(StatusCode::SERVICE_UNAVAILABLE, "the broker is stopping")
        }
    }
}

/// Whether a header that is a list names `token`, in whatever case.
fn names(headers: &HeaderMap, header: &HeaderName, token: &str) -> bool {
    tokens(headers, header).any(|named| named.eq_ignore_ascii_case(token))
}

/// The elements of a header that is a list.
fn tokens<'a>(headers: &'a HeaderMap, header: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(header).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[(&str, &str)] = &[
        ("host", "localhost:5672"),
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "AMQPWSB10"),
    ];

    /// The usual headers, with others instead of or besides them. An empty value takes one away.
    fn headers(changes: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for &(name, value) in REQUEST.iter().chain(changes) {
            if value.is_empty() {
                headers.remove(name);
            } else {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        headers
    }

    fn check(
        path: &str,
        changes: &[(&'static str, &'static str)],
        expected: Result<&str, UpgradeError>,
    ) {
        let headers = headers(changes);
        let offer = offer(path, &headers).expect("it has to do with WebSocket");
        let answer = accept(&Method::GET, &headers, offer);
        let chosen = answer.map(|response| {
            assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
            // The example of [RFC 6455 1.3].
            assert_eq!(
                response.headers()[SEC_WEBSOCKET_ACCEPT],
                "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
            );
            response.headers()[SEC_WEBSOCKET_PROTOCOL]
                .to_str()
                .unwrap()
                .to_owned()
        });
        assert_eq!(chosen, expected.map(str::to_owned));
    }

    #[test]
    fn an_azure_client_gets_the_first_of_ours_that_it_names() {
        for path in [
            "/$servicebus/websocket",
            "/$servicebus/websocket/",
            "/%24servicebus/websocket",
        ] {
            check(path, &[], Ok("AMQPWSB10"));
            check(path, &[("sec-websocket-protocol", "amqp")], Ok("amqp"));
            check(
                path,
                &[("sec-websocket-protocol", "mqtt, amqp,AMQPWSB10")],
                Ok("amqp"),
            );
            check(
                path,
                &[("sec-websocket-protocol", "AMQPWSB10, amqp")],
                Ok("AMQPWSB10"),
            );
        }
    }

    #[test]
    fn a_generic_client_has_to_say_amqp() {
        check("/", &[("sec-websocket-protocol", "amqp")], Ok("amqp"));
        check("/", &[], Err(UpgradeError::SubProtocol(GENERIC)));
        check(
            "/",
            &[("sec-websocket-protocol", "")],
            Err(UpgradeError::SubProtocol(GENERIC)),
        );
    }

    #[test]
    fn what_is_no_opening_handshake_is_refused() {
        let path = "/$servicebus/websocket";
        check(path, &[("upgrade", "")], Err(UpgradeError::NoUpgrade));
        check(
            path,
            &[("sec-websocket-version", "8")],
            Err(UpgradeError::Version),
        );
        check(
            path,
            &[("sec-websocket-protocol", "mqtt")],
            Err(UpgradeError::SubProtocol(AZURE)),
        );
        for (name, value) in [
            ("connection", "close"),
            ("sec-websocket-key", ""),
            ("sec-websocket-key", "short=="),
        ] {
            let answer = accept(&Method::GET, &headers(&[(name, value)]), AZURE);
            assert!(
                matches!(answer, Err(UpgradeError::Malformed(_))),
                "{name}: {value}"
            );
        }
    }

    #[test]
    fn other_requests_have_nothing_to_do_with_it() {
        assert_eq!(offer("/", &headers(&[("upgrade", "")])), None);
        assert_eq!(offer("/health", &headers(&[])), None);
        assert_eq!(offer("/$servicebus", &headers(&[])), None);
    }

    #[test]
    fn pages_from_elsewhere_may_not_come() {
        let origin = |origin, host, is_loopback| {
            is_allowed_origin(&headers(&[("origin", origin), ("host", host)]), is_loopback)
        };
        assert!(is_allowed_origin(&headers(&[]), true));
        assert!(origin("http://localhost:3000", "localhost:5672", true));
        assert!(!origin("https://evil.example", "localhost:5672", true));
        assert!(!origin("null", "localhost:5672", true));
        // A name of the page's that was made to lead to this machine.
        assert!(!origin(
            "http://evil.example:5672",
            "evil.example:5672",
            true
        ));
        assert!(origin("https://broker:5671", "broker:5671", false));
        assert!(!origin("https://evil.example", "broker:5671", false));
    }
}

//! `/$railbus/session`: signs a browser in and out.
//!
//! `POST` takes the credentials of its `Authorization` header once and answers with a cookie that
//! stands for them. Without the header it goes on with the session of the cookie, if there is one;
//! on loopback with the development key it needs neither. A script cannot read the
//! cookie, and a page of another origin cannot use it: whatever changes something needs the
//! session's token in a header, and only an answer to a page of this broker tells it.
//! (docs/spec/admin.md#17)

use access::{Operation, Rights, Unauthorized};
use broker::Wall;
use hyper::header::COOKIE as COOKIE_HEADER;
use hyper::header::{AUTHORIZATION, CACHE_CONTROL, HOST, HeaderValue, ORIGIN, SET_COOKIE};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde_json::json;

use crate::credentials::console_sessions::{ConsoleSession, LIFETIME_SECONDS};
use crate::http::request::origin;
use crate::http::request::transport::Transport;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;
use crate::server::server_state::ServerState;

/// How the names of sessions' cookies begin.
const COOKIE: &str = "railbus-session";
/// The header that a change needs.
const CSRF_HEADER: &str = "x-railbus-csrf";

/// The session of a request's cookie, if it has one and shows no credentials itself. `Err` is the
/// answer to a change without the session's token.
pub fn of<T>(
    request: &Request<T>,
    server: &NamespaceView,
) -> Result<Option<ConsoleSession>, Box<Response>> {
    let headers = request.headers();
    if headers.contains_key(AUTHORIZATION) {
        return Ok(None);
    }
    let session = find(headers, server).filter(|it| it.namespace == server.namespace());
    let Some(session) = session else {
        return Ok(None);
    };
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let shown = request.headers().get(CSRF_HEADER);
    let is_ours = shown.is_some_and(|shown| session.csrf.is(shown.as_bytes()));
    match is_read || is_ours {
        true => Ok(Some(session)),
        false => {
            let text = "a change by a session needs its token in the header x-railbus-csrf";
            Err(Box::new(answer::error(StatusCode::FORBIDDEN, text)))
        }
    }
}

/// Whether a script of a page sends a request. A browser without fetch metadata, which it leaves
/// out over plain HTTP to another machine, still has the header of the console.
pub fn is_of_script(headers: &HeaderMap) -> bool {
    let mode = headers.get("sec-fetch-mode");
    headers.contains_key(CSRF_HEADER) || mode.is_some_and(|mode| mode != "navigate")
}

/// The session of a request's cookie.
pub fn find(headers: &HeaderMap, server: &ServerState) -> Option<ConsoleSession> {
    let now = server.clock.moment().wall;
    let mut ids = ids(headers).into_iter();
    ids.find_map(|id| server.console_sessions.get(id, now))
}

/// The ids in the cookies of this broker's sessions. A browser that has signed in over TLS and over
/// plain HTTP shows both within TLS.
fn ids(headers: &HeaderMap) -> Vec<&str> {
    let cookies = headers.get_all(COOKIE_HEADER).iter();
    let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';'));
    let pairs: Vec<_> = pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .collect();
    let names = [true, false].map(|is_tls| cookie_name(headers, is_tls));
    let mut ids = Vec::new();
    for name in names {
        let of_name = pairs.iter().filter(|(shown, _)| *shown == name);
        ids.extend(of_name.map(|(_, id)| *id));
    }
    ids
}

/// The name of the cookie of a session. Cookies know no port [RFC 6265 8.5], and a browser keeps a
/// cookie of plain HTTP from taking the place of one of TLS, so the name has both.
fn cookie_name(headers: &HeaderMap, is_tls: bool) -> String {
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    let port = host.and_then(|host| Authority::try_from(host).ok()?.port_u16());
    let port = port.map_or(String::new(), |port| format!("-{port}"));
    let tls = if is_tls { "-tls" } else { "" };
    format!("{COOKIE}{port}{tls}")
}

/// Answers a request.
pub fn respond<T>(request: &Request<T>, server: &NamespaceView, transport: Transport) -> Response {
    match *request.method() {
        Method::POST => sign_in(request, server, transport),
        Method::DELETE => sign_out(request, server, transport),
        _ => answer::method_not_allowed("POST, DELETE"),
    }
}

fn sign_in<T>(request: &Request<T>, server: &NamespaceView, transport: Transport) -> Response {
    let headers = request.headers();
    let is_ours = |origin| origin::is_of(origin, headers.get(HOST));
    if !headers.get(ORIGIN).is_some_and(is_ours) {
        let text = "only a page of this broker signs in";
        return answer::error(StatusCode::FORBIDDEN, text);
    }
    let now = server.clock.moment().wall;
    if !headers.contains_key(AUTHORIZATION)
        && let Some(session) = find(headers, server)
        && session.namespace == server.namespace()
        && rights(&session, server).0 != Rights::NONE
    {
        return show(&session, server);
    }
    match credential(request, server, transport) {
        Ok((credential, expires)) => {
            let (id, session) =
                server
                    .console_sessions
                    .begin(server.namespace(), credential, expires, now);
            let mut response = show(&session, server);
            set_cookie(&mut response, headers, &id, LIFETIME_SECONDS, transport);
            response
        }
        Err(reason) => answer::unauthorized_script(&reason),
    }
}

/// What a sign-in shows, if it gives a right to the namespace or to an entity.
fn credential<T>(
    request: &Request<T>,
    server: &NamespaceView,
    transport: Transport,
) -> Result<(access::Credential, Option<Wall>), Unauthorized> {
    let directory = server.directory();
    let access = directory.access();
    let shown = request.headers().get(AUTHORIZATION);
    let missing = Unauthorized::Missing(Operation::Observe.required_right());
    let signed_in = match shown {
        None if transport.is_loopback => (access.development_credential().ok_or(missing)?, None),
        None => return Err(missing),
        Some(shown) => {
            let shown = shown.to_str().map_err(|_| Unauthorized::Malformed)?;
            let now = server.clock.moment().wall;
            access.sign_in(shown, "", transport.locality(), now)?
        }
    };
    let allows = |operation| access.check_credential(&signed_in.0, operation, "");
    allows(Operation::Observe)
        .or_else(|reason| allows(Operation::Submit).map_err(|_| reason))
        .or_else(|reason| match directory.rights_somewhere(&signed_in.0) {
            Rights::NONE => Err(reason),
            _ => Ok(()),
        })?;
    Ok(signed_in)
}

fn sign_out<T>(request: &Request<T>, server: &NamespaceView, transport: Transport) -> Response {
    if let Err(refusal) = of(request, server) {
        return *refusal;
    }
    let headers = request.headers();
    let shown = ids(headers);
    shown
        .into_iter()
        .for_each(|id| server.console_sessions.end(id));
    let mut response = answer::value(StatusCode::OK, &json!({}));
    set_cookie(&mut response, headers, "", 0, transport);
    response
}

/// The rights that a session has now to the namespace, or else, with `true`, those to entities.
fn rights(session: &ConsoleSession, server: &NamespaceView) -> (Rights, bool) {
    let directory = server.directory();
    match directory.access().rights(&session.credential, "") {
        Rights::NONE => (directory.rights_somewhere(&session.credential), true),
        rights => (rights, false),
    }
}

/// The rights of a session, and the token for changes.
fn show(session: &ConsoleSession, server: &NamespaceView) -> Response {
    let (rights, is_of_entities) = rights(session, server);
    let body = json!({
        "send": rights.send || rights.manage,
        "listen": rights.listen || rights.manage,
        "manage": rights.manage,
        "entities-only": is_of_entities,
        "csrf": session.csrf_text,
        "namespace": server.name(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    answer::value(StatusCode::OK, &body)
}

fn set_cookie(
    response: &mut Response,
    request: &HeaderMap,
    id: &str,
    seconds: u64,
    transport: Transport,
) {
    let name = cookie_name(request, transport.is_tls);
    let secure = if transport.is_tls { "; Secure" } else { "" };
    let cookie = format!(
        "{name}={id}; Path=/$railbus/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    let cookie = HeaderValue::try_from(cookie).expect("a port and an id are letters and digits");
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, cookie);
    let no_store = HeaderValue::from_static("no-store");
    headers.insert(CACHE_CONTROL, no_store);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &'static str, cookies: &'static str, expected: &[&str]) {
        let headers = [(HOST, host), (COOKIE_HEADER, cookies)];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        assert_eq!(ids(&HeaderMap::from_iter(headers)), expected, "{host}");
    }

    #[test]
    fn a_cookie_is_of_one_port_and_of_tls_or_plain_http() {
        let cookies = "a=0; railbus-session=1; railbus-session-5671=2; railbus-session-5671-tls=3";
        check("broker", cookies, &["1"]);
        check("broker:5671", cookies, &["3", "2"]);
        check("[::1]:5671", cookies, &["3", "2"]);
        check("broker:567", cookies, &[]);
    }
}

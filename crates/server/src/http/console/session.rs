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
use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, SET_COOKIE};
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde_json::json;

use crate::credentials::console_sessions::{ConsoleSession, LIFETIME_SECONDS};
use crate::http::request::origin;
use crate::http::request::transport::Transport;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;
use crate::server::server_state::ServerState;

/// The session's cookie.
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
    id(headers).and_then(|id| server.console_sessions.get(id, now))
}

/// The id in the session's cookie.
fn id(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(hyper::header::COOKIE).iter();
    let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

/// Answers a request.
pub fn respond<T>(request: &Request<T>, server: &NamespaceView, transport: Transport) -> Response {
    match *request.method() {
        Method::POST => sign_in(request, server, transport),
        Method::DELETE => sign_out(request, server),
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
            set_cookie(&mut response, &id, LIFETIME_SECONDS, transport.is_tls);
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

fn sign_out<T>(request: &Request<T>, server: &NamespaceView) -> Response {
    match of(request, server) {
        Err(refusal) => return *refusal,
        Ok(_) => {
            if let Some(id) = id(request.headers()) {
                server.console_sessions.end(id);
            }
        }
    }
    let mut response = answer::value(StatusCode::OK, &json!({}));
    set_cookie(&mut response, "", 0, false);
    response
}

/// The rights that it has now, to the namespace or else to entities, and the token for changes.
fn show(session: &ConsoleSession, server: &NamespaceView) -> Response {
    let directory = server.directory();
    let of_namespace = directory.access().rights(&session.credential, "");
    let is_of_entities = of_namespace == Rights::NONE;
    let rights = match is_of_entities {
        true => directory.rights_somewhere(&session.credential),
        false => of_namespace,
    };
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

fn set_cookie(response: &mut Response, id: &str, seconds: u64, is_tls: bool) {
    let secure = if is_tls { "; Secure" } else { "" };
    let cookie = format!(
        "{COOKIE}={id}; Path=/$railbus/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    let cookie = HeaderValue::try_from(cookie).expect("the id is hexadecimal");
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, cookie);
    let no_store = HeaderValue::from_static("no-store");
    headers.insert(hyper::header::CACHE_CONTROL, no_store);
}

//! Answers: the responses to HTTP requests. An error of the broker's own interface is JSON with
//! one sentence, `{"error": "..."}`.

use access::Unauthorized;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use serde::Serialize;

use super::response_body::ResponseBody;
use crate::http::request::request_head::HeadError;
use crate::log::refusals::Reason;

/// An answer.
pub type Response = hyper::Response<ResponseBody>;

/// A body that is JSON already.
pub fn json(status: StatusCode, body: String) -> Response {
    response(status, "application/json", body)
}

/// A body that says `value` in JSON.
pub fn value(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(body) => json(status, body),
        Err(error_text) => error(StatusCode::INTERNAL_SERVER_ERROR, &error_text.to_string()),
    }
}

/// A body that is text of some kind.
pub fn text(status: StatusCode, kind: &'static str, body: String) -> Response {
    response(status, kind, body)
}

/// What went wrong.
pub fn error(status: StatusCode, message: &str) -> Response {
    refusal(status, message, message)
}

/// The same with words of the request's body: they are sent to the client, but not logged.
pub fn error_quoting(status: StatusCode, message: &str, words: &str) -> Response {
    refusal(status, &format!("{message}: {words}"), message)
}

fn refusal(status: StatusCode, told: &str, logged: &str) -> Response {
    let mut response = json(status, serde_json::json!({ "error": told }).to_string());
    response.extensions_mut().insert(Reason {
        text: logged.to_owned(),
        ..Reason::default()
    });
    response
}

/// Why a response is a refusal, as far as it says so, in words for the log.
pub fn reason(response: &Response) -> Option<Reason> {
    let extensions = response.extensions();
    let of_management = || {
        let error = extensions.get::<admin::Error>()?;
        Some(Reason {
            sub_code: error.sub_code,
            text: error.unquoted(),
            tracking_id: extensions.get().map(|admin::TrackingId(id)| id.clone()),
        })
    };
    extensions.get().cloned().or_else(of_management)
}

pub fn not_found() -> Response {
    let body = "Not found.\n".to_owned();
    response(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", body)
}

/// For a request that a fault of the broker has ended.
pub fn internal() -> Response {
    let text = "internal error of the broker";
    error(StatusCode::INTERNAL_SERVER_ERROR, text)
}

/// For a request about a namespace that is not there.
pub fn no_namespace() -> Response {
    error(StatusCode::NOT_FOUND, "there is no namespace of that name")
}

/// For a request about the whole broker by a client of a namespace that is not the default one.
pub fn of_broker() -> Response {
    let text = "this is about the whole broker; use a key of the default namespace";
    error(StatusCode::FORBIDDEN, text)
}

/// For a request whose head must not be believed; nothing behind it is read.
pub fn bad_head(head_error: HeadError) -> Response {
    let response = error(StatusCode::BAD_REQUEST, &head_error.to_string());
    with_header(response, CONNECTION, "close")
}

/// For a request that came without TLS and must not; nothing behind it is read.
pub fn plain() -> Response {
    let message = "requests from other machines must use https, unless the broker is started with --plain everyone";
    let response = error(StatusCode::FORBIDDEN, message);
    with_header(response, CONNECTION, "close")
}

/// For a request that names another host; nothing behind it is read.
pub fn other_host() -> Response {
    let message = "the header Host names another machine: use localhost, or start the broker with that name as a --tls-name";
    let response = error(StatusCode::BAD_REQUEST, message);
    with_header(response, CONNECTION, "close")
}

pub fn method_not_allowed(allowed: &'static str) -> Response {
    let message = format!("the methods of this path are {allowed}");
    let response = error(StatusCode::METHOD_NOT_ALLOWED, &message);
    with_header(response, ALLOW, allowed)
}

/// A client with a token is not asked for Basic: its library would answer with another request.
pub fn unauthorized(reason: &Unauthorized) -> Response {
    let text = reason.to_string();
    if reason.is_temporary() {
        return error(StatusCode::SERVICE_UNAVAILABLE, &text);
    }
    let mut response = error(StatusCode::UNAUTHORIZED, &text);
    response.extensions_mut().insert(Reason {
        sub_code: Some(reason.sub_code()),
        text,
        tracking_id: None,
    });
    match reason {
        Unauthorized::Jwt(_) => response,
        _ => with_header(response, WWW_AUTHENTICATE, "Basic realm=\"railbus\""),
    }
}

/// The same for a script of a page: asked for Basic, its browser would ask the reader.
pub fn unauthorized_script(reason: &Unauthorized) -> Response {
    let mut response = unauthorized(reason);
    response.headers_mut().remove(WWW_AUTHENTICATE);
    response
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(Bytes::from(body).into());
    *response.status_mut() = status;
    with_header(response, CONTENT_TYPE, kind)
}

fn with_header(mut response: Response, name: HeaderName, value: &'static str) -> Response {
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
    response
}

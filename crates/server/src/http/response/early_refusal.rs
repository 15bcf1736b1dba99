//! Early refusals: a request that is refused before it is routed. (docs/spec/admin.md#8.2)
//!
//! Our own interface, the counters and RabbitMQ's interface answer with JSON, the latter in a form
//! of its own. Clients of Service Bus use all other paths, and read an error of management or of
//! messages.

use admin::Error;
use hyper::header::CONNECTION;
use hyper::{Request, StatusCode};

use super::answer::{self, Response};
use crate::http::rabbitmq;
use crate::http::routes::{METRICS, OWN};
use crate::server::server_state::ServerState;

/// The same refusal in the form that clients of the request's path read.
pub fn in_form_of<T>(request: &Request<T>, server: &ServerState, refusal: Response) -> Response {
    if rabbitmq::is_call(request) || rabbitmq::is_unknown(request) {
        return rabbitmq::in_own_form(refusal);
    }
    let Some(reason) = answer::reason(&refusal).filter(|_| !is_json(request)) else {
        return refusal;
    };
    let sub_code = match refusal.status() {
        StatusCode::FORBIDDEN => 40_300,
        _ => 40_000,
    };
    let error = Error::new(refusal.status(), Some(sub_code), reason.text);
    let mut response = crate::http::admin::refuse(request, server, &error);
    if let Some(connection) = refusal.headers().get(CONNECTION) {
        let headers = response.headers_mut();
        headers.insert(CONNECTION, connection.clone());
    }
    response
}

/// Whether clients of the request's path read errors in JSON.
pub fn is_json<T>(request: &Request<T>) -> bool {
    let path = request.uri().path().replace("%24", "$");
    path.starts_with(OWN)
        || path == METRICS
        || rabbitmq::is_call(request)
        || rabbitmq::is_unknown(request)
}

//! `/health`: whether a send would succeed. It needs no right.

use hyper::{Method, StatusCode};

use super::response::answer;
use super::response::answer::Response;

/// Answers a request.
pub fn respond(method: &Method, healthy: bool) -> Response {
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
        assert_eq!(respond(method, healthy).status(), expected);
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

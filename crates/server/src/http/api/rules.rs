//! `POST /$railbus/rules/test`: the result of a rule for a message.
//!
//! `{"filter": {"sql": "..."}, "action": "...", "message": {...}}` is answered with `match`,
//! `no-match` or `error`, the reason, and the changes of the action. Nothing is sent or stored.

use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use crate::http::request::body;
use crate::http::request::body::parse_object;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::namespaces::namespace_view::NamespaceView;
use entity::rules::Test;

/// A message's properties are 64 KiB at most, and JSON takes some room.
const BODY_BYTES: usize = 512 << 10;

/// Answers a request. The caller has the right to manage.
pub async fn respond(request: Request<Incoming>, server: &NamespaceView) -> Response {
    match body::read_own(request, BODY_BYTES, server.limits().handshake).await {
        Ok(body) => {
            let now = server.clock.moment().wall.0;
            test(&body, i64::try_from(now).unwrap_or(i64::MAX))
        }
        Err(refusal) => refusal,
    }
}

fn test(body: &[u8], now: i64) -> Response {
    let test: Test = match parse_object(body) {
        Ok(test) => test,
        Err(error) => {
            let message = "the body is not an object with a rule and a message";
            let words = error.to_string();
            return answer::error_quoting(StatusCode::BAD_REQUEST, message, &words);
        }
    };
    match test.run(now) {
        Ok(report) => answer::value(StatusCode::OK, &report),
        Err(refusal) => answer::value(StatusCode::BAD_REQUEST, &refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: StatusCode) {
        assert_eq!(test(body.as_bytes(), 0).status(), expected, "{body}");
    }

    #[test]
    fn a_test_is_answered_whatever_comes_of_it() {
        let rule = |sql: &str| {
            format!(r#"{{"filter": {{"sql": "{sql}"}}, "message": {{"subject": "a"}}}}"#)
        };
        check(&rule("sys.Label = 'a'"), StatusCode::OK);
        check(&rule("sys.Label = 'b'"), StatusCode::OK);
        check(&rule("sys.Label > 5"), StatusCode::OK);
        check(&rule("sys.Label >"), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn what_is_no_test_is_refused() {
        for body in [
            "",
            "{}",
            "[]",
            "5",
            r#"{"message": 5}"#,
            r#"{"message": {}, "rule": 1}"#,
        ] {
            check(body, StatusCode::BAD_REQUEST);
        }
        let deep = "[".repeat(100_000);
        check(&deep, StatusCode::BAD_REQUEST);
        check(
            &format!(r#"{{"message": {{"properties": {{"a": {deep}"#),
            StatusCode::BAD_REQUEST,
        );
    }
}

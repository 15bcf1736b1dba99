//! `/$railbus/clock`: shows and moves a virtual clock; `/$railbus/namespaces/NAME/clock`: that of
//! a namespace, which can be advanced alone but not be frozen alone.
//!
//! `GET` shows it. `POST {"advance": "PT1H"}` lets time pass and answers when everything that
//! became due has happened; `POST {"freeze": true}` stops it, `false` lets it run on. Every answer
//! shows it.

use std::time::Duration;

use bytes::Bytes;
use entity::time::checked_text;
use hyper::body::Incoming;
use hyper::{Method, Request as HttpRequest, StatusCode};
use serde::{Deserialize, Serialize};

use super::namespaces;
use crate::clocks::virtual_clock::{ClockError, ClockReading, ClockRequest};
use crate::http::request::body;
use crate::http::request::body::parse_object;
use crate::http::response::answer;
use crate::http::response::answer::Response;
use crate::log::audit::Changes;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::Message;
use crate::shard::shard_client::ask_task;
use entity::duration;
use store::NamespaceId;

/// More than enough for a request's body.
const BODY_BYTES: usize = 4 * 1024;

/// A request's body: one of these and nothing else.
#[derive(Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Change {
    Advance(String),
    Freeze(bool),
}

/// An answer's body.
#[derive(Debug, Serialize)]
struct ClockResponse {
    /// Virtual time in RFC 3339.
    now: String,
    /// Virtual less real time in ISO 8601.
    offset: String,
    frozen: bool,
}

/// Answers a request about the broker's clock, or that of the namespace of a name. The caller has
/// the right to manage the default namespace.
pub async fn respond(
    request: HttpRequest<Incoming>,
    name: Option<&str>,
    server: &NamespaceView,
) -> Response {
    let wanted = match *request.method() {
        Method::POST => change(request, server.limits().handshake).await,
        _ => Ok(ClockRequest::Show),
    };
    match wanted {
        Ok(wanted) => {
            let namespace = match name {
                Some(name) => namespaces::find(server, name).await.map(Some),
                None => Ok(None),
            };
            let mut response = match namespace {
                Ok(namespace) => ask(namespace, wanted, server).await,
                Err(error) => error.into(),
            };
            response.extensions_mut().insert(changes(name, wanted));
            response
        }
        Err(refusal) => refusal,
    }
}

fn changes(name: Option<&str>, wanted: ClockRequest) -> Changes {
    let of = name.map_or_else(String::new, |name| format!(" of namespace '{name}'"));
    Changes(match wanted {
        ClockRequest::Show => Vec::new(),
        ClockRequest::Advance(by) => vec![format!(
            "advance clock{of} by {}",
            jiff::SignedDuration::try_from(by).unwrap_or(jiff::SignedDuration::MAX)
        )],
        ClockRequest::Freeze(true) => vec![format!("freeze clock{of}")],
        ClockRequest::Freeze(false) => vec![format!("let clock{of} run")],
    })
}

async fn change(
    request: HttpRequest<Incoming>,
    patience: Duration,
) -> Result<ClockRequest, Response> {
    let body = body::read_own(request, BODY_BYTES, patience).await?;
    parse(&body).map_err(|message| answer::error(StatusCode::BAD_REQUEST, &message))
}

fn parse(body: &Bytes) -> Result<ClockRequest, String> {
    let change = parse_object(body).map_err(|error| {
        format!("the body is neither {{\"advance\": \"PT1H\"}} nor {{\"freeze\": true}}: {error}")
    })?;
    match change {
        Change::Advance(text) => {
            let millis = duration::parse(&text)?;
            Ok(ClockRequest::Advance(Duration::from_millis(millis)))
        }
        Change::Freeze(frozen) => Ok(ClockRequest::Freeze(frozen)),
    }
}

async fn ask(
    namespace: Option<NamespaceId>,
    request: ClockRequest,
    server: &NamespaceView,
) -> Response {
    let question = |answer| Message::Clock(namespace, request, answer);
    let shard = server.placement.of(namespace.unwrap_or_default());
    match ask_task(shard, question).await {
        Ok(Ok(reading)) => show(&reading),
        Ok(Err(refusal)) => {
            let status = match refusal {
                ClockError::NotVirtual => StatusCode::CONFLICT,
                ClockError::TooFar | ClockError::NotAlone => StatusCode::BAD_REQUEST,
                ClockError::NamespaceGone => StatusCode::NOT_FOUND,
            };
            answer::error(status, &refusal.to_string())
        }
        Err(error) => answer::error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

fn show(reading: &ClockReading) -> Response {
    match response(reading) {
        Some(body) => answer::json(StatusCode::OK, body),
        // Only a machine whose own clock is thousands of years off gets here.
        None => answer::error(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the clock is beyond the year 9999",
        ),
    }
}

fn response(reading: &ClockReading) -> Option<String> {
    let response = ClockResponse {
        now: checked_text(reading.wall)?,
        offset: jiff::SignedDuration::from_millis(reading.offset).to_string(),
        frozen: reading.frozen,
    };
    serde_json::to_string(&response).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker::Wall;

    fn check(body: &str, expected: Result<ClockRequest, &str>) {
        match (parse(&Bytes::copy_from_slice(body.as_bytes())), expected) {
            (Ok(request), Ok(expected)) => assert_eq!(request, expected, "{body}"),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (got, expected) => panic!("{body}: {got:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_body_says_one_thing() {
        let day = Duration::from_secs(24 * 60 * 60);
        check(r#"{"advance": "P1D"}"#, Ok(ClockRequest::Advance(day)));
        check(r#"{"advance": "PT24H"}"#, Ok(ClockRequest::Advance(day)));
        check(r#"{"freeze": true}"#, Ok(ClockRequest::Freeze(true)));
        check(r#"{"freeze": false}"#, Ok(ClockRequest::Freeze(false)));
    }

    #[test]
    fn other_bodies_are_refused() {
        check("", Err("neither"));
        check("{}", Err("neither"));
        check(r#"{"advance": 3600}"#, Err("expected a string"));
        check(r#"{"advance": "24h"}"#, Err("`24h` is not an ISO 8601"));
        check(r#"{"advance": "-PT1H"}"#, Err("`-PT1H` is not an ISO 8601"));
        check(r#"{"freeze": "yes"}"#, Err("expected a boolean"));
        check(r#"{"rewind": "PT1H"}"#, Err("unknown variant `rewind`"));
        check(r#"{"advance": "PT1H", "freeze": true}"#, Err("neither"));
    }

    #[test]
    fn an_answer_shows_time_and_offset_as_text() {
        let body = |wall, offset, frozen| {
            response(&ClockReading {
                wall: Wall(wall),
                offset,
                frozen,
            })
        };
        assert_eq!(
            body(1_700_000_000_000, 86_400_000, false).unwrap(),
            r#"{"now":"2023-11-14T22:13:20Z","offset":"PT24H","frozen":false}"#
        );
        assert_eq!(
            body(1_700_000_000_000, -1_500, true).unwrap(),
            r#"{"now":"2023-11-14T22:13:20Z","offset":"-PT1.5S","frozen":true}"#
        );
        assert_eq!(body(u64::MAX, 0, false), None);
    }
}

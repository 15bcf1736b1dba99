//! Bodies of requests: read completely, up to a limit, and only if they arrive in time.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::de::{DeserializeOwned, Error};

use crate::http::response::answer;
use crate::http::response::answer::Response;

/// Why there is no body.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BodyError {
    #[error("the body is longer than the maximum of {0} bytes")]
    TooLong(usize),
    #[error("the body did not arrive in time")]
    TooLate,
    #[error("{0}")]
    Broken(String),
}

impl BodyError {
    fn status(&self) -> StatusCode {
        match self {
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooLate => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads `body` to its end.
pub async fn read(body: Incoming, limit: usize, patience: Duration) -> Result<Bytes, BodyError> {
    let body = Limited::new(body, limit).collect();
    match tokio::time::timeout(patience, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLong(limit)),
        Ok(Err(error)) => Err(BodyError::Broken(error.to_string())),
        Err(_) => Err(BodyError::TooLate),
    }
}

/// What the JSON object in a body says. serde would take a list of its values as well.
pub fn parse_object<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    let mut characters = body.iter().filter(|it| !it.is_ascii_whitespace());
    match characters.next() {
        Some(b'[') => Err(serde_json::Error::custom("a list, expected an object")),
        _ => serde_json::from_slice(body),
    }
}

/// The body of a request of our own interface, or the error response.
pub async fn read_own(
    request: Request<Incoming>,
    limit: usize,
    patience: Duration,
) -> Result<Bytes, Response> {
    let body = read(request.into_body(), limit, patience).await;
    body.map_err(|error| answer::error(error.status(), &error.to_string()))
}

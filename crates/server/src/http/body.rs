//! Bodies of requests: read whole, with a bound on bytes and time.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use super::answer::{self, Response};

/// The body of `request`, or what its sender is told instead.
pub async fn read(
    request: Request<Incoming>,
    most_bytes: usize,
    patience: Duration,
) -> Result<Bytes, Response> {
    let body = Limited::new(request.into_body(), most_bytes).collect();
    match tokio::time::timeout(patience, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("a body here has at most {most_bytes} bytes");
            Err(answer::error(StatusCode::PAYLOAD_TOO_LARGE, &message))
        }
        Ok(Err(error)) => Err(answer::error(StatusCode::BAD_REQUEST, &error.to_string())),
        Err(_) => {
            let message = "the body did not come in time";
            Err(answer::error(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

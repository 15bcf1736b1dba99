//! Remote: a running broker, asked over HTTP. One request on one connection.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

use crate::connection_string::ConnectionString;

/// How long connecting may take. An answer may take as long as what was asked for does.
const CONNECT: Duration = Duration::from_secs(10);
/// More than any answer has.
const ANSWER_BYTES: usize = 1 << 20;

/// Why a broker did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no connection to {authority}: {reason}")]
    Connect { authority: String, reason: String },
    #[error("{authority} does not answer as Railbus does: {reason}")]
    Protocol { authority: String, reason: String },
    #[error("{authority} refused with {status}: {reason}")]
    Refused {
        authority: String,
        status: StatusCode,
        reason: String,
    },
}

/// An answer that is an error.
#[derive(Deserialize)]
struct Failure {
    #[serde(alias = "message")]
    error: String,
}

/// Sends a request with `body` as JSON and returns what the answer's JSON says.
pub async fn call<Answer: DeserializeOwned>(
    broker: &ConnectionString,
    method: Method,
    path: &str,
    body: Option<String>,
) -> Result<Answer, Error> {
    let authority = &broker.authority;
    let protocol = |reason: String| Error::Protocol {
        authority: authority.clone(),
        reason,
    };
    let request =
        request(broker, method, path, body).map_err(|error| protocol(error.to_string()))?;
    let stream = connect(authority).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| protocol(error.to_string()))?;
    // It ends with the answer; an early end shows as the answer's error.
    tokio::spawn(connection);
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| protocol(error.to_string()))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES)
        .collect()
        .await;
    let body = body
        .map_err(|error| protocol(error.to_string()))?
        .to_bytes();
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|error| protocol(error.to_string()));
    }
    let reason = serde_json::from_slice(&body).map_or_else(
        |_| String::from_utf8_lossy(&body).trim().to_owned(),
        |failure: Failure| failure.error,
    );
    Err(Error::Refused {
        authority: authority.clone(),
        status,
        reason,
    })
}

async fn connect(authority: &str) -> Result<TcpStream, Error> {
    let failed = |reason: String| Error::Connect {
        authority: authority.to_owned(),
        reason,
    };
    match tokio::time::timeout(CONNECT, TcpStream::connect(authority)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed(format!("no answer within {CONNECT:?}"))),
    }
}

fn request(
    broker: &ConnectionString,
    method: Method,
    path: &str,
    body: Option<String>,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, &broker.authority)
        .header(CONTENT_TYPE, "application/json")
        .header(CONNECTION, "close");
    if let Some(authorization) = broker.authorization() {
        request = request.header(AUTHORIZATION, authorization);
    }
    request.body(Full::new(Bytes::from(body.unwrap_or_default())))
}

//! Remote: a running broker, asked over HTTP. One request on one connection.
//!
//! The commands for entities, namespaces, policies and the like use it, with the rights of the
//! connection string. An answer is bounded in size, and one that is an error tells its text.

pub mod connection_string;
mod dial;
pub mod runtime;

use std::path::PathBuf;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderName};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::arguments::BrokerArguments;
use crate::remote::connection_string::ConnectionString;

pub use dial::{Tls, Wire, dial};

/// More than any answer has but the list of all entities, which may have many rules.
const ANSWER_BYTES: usize = 256 << 20;

/// Why a broker did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no connection to {authority}: {reason}")]
    Connect { authority: String, reason: String },
    #[error("the certificates in {path} cannot be used: {reason}")]
    Certificates { path: PathBuf, reason: String },
    #[error("{authority} does not answer as Railbus does: {reason}")]
    Protocol { authority: String, reason: String },
    #[error("{authority} refused with {status}: {reason}")]
    Refused {
        authority: String,
        status: StatusCode,
        reason: String,
    },
    /// For callers that handle the answer themselves.
    #[error("{authority} refused with {status}")]
    Answered {
        authority: String,
        status: StatusCode,
        body: Bytes,
    },
}

impl Error {
    /// The same with the text of an error response.
    #[must_use]
    pub fn explained(self) -> Self {
        let Self::Answered {
            authority,
            status,
            body,
        } = self
        else {
            return self;
        };
        let reason = serde_json::from_slice(&body).map_or_else(
            |_| String::from_utf8_lossy(&body).trim().to_owned(),
            |failure: Failure| failure.error,
        );
        Self::Refused {
            authority,
            status,
            reason,
        }
    }
}

/// A broker, and the certificates to trust for it.
#[derive(Clone, Debug)]
pub struct Remote {
    pub broker: ConnectionString,
    /// Certificates to trust besides the system's.
    ca: Option<PathBuf>,
}

/// An answer that is an error.
#[derive(Deserialize)]
struct Failure {
    #[serde(alias = "message")]
    error: String,
}

/// What is asked of a broker.
#[derive(Debug)]
pub struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
    pub headers: &'a [(HeaderName, &'a str)],
    /// In JSON.
    pub body: Option<String>,
}

impl<'a> Call<'a> {
    /// Asks for what is at `path`.
    pub fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            headers: &[],
            body: None,
        }
    }

    /// Sends `body` there.
    pub fn post(path: &'a str, body: String) -> Self {
        Self {
            method: Method::POST,
            body: Some(body),
            ..Self::get(path)
        }
    }
}

impl Remote {
    /// The broker that the command line or the environment names, or the one of this machine.
    pub fn new(arguments: &BrokerArguments) -> Result<Self, connection_string::Error> {
        let broker = match &arguments.connection_string {
            Some(text) => ConnectionString::parse(text)?,
            None => ConnectionString::development(),
        };
        Ok(Self::of(broker, arguments.ca.clone()))
    }

    /// A broker by its connection string.
    pub fn of(broker: ConnectionString, ca: Option<PathBuf>) -> Self {
        Self { broker, ca }
    }

    /// A connection to the broker.
    pub async fn dial(&self) -> Result<Wire, Error> {
        dial(&self.broker, self.ca.as_deref()).await
    }

    /// What TLS is spoken with on the way there, if it is.
    pub fn tls(&self) -> Result<Option<Tls>, Error> {
        dial::tls(&self.broker, self.ca.as_deref())
    }

    /// Sends a request and returns the JSON of the response.
    pub async fn call<Answer: DeserializeOwned>(&self, call: Call<'_>) -> Result<Answer, Error> {
        let authority = self.broker.authority.clone();
        let body = match self.ask(call).await {
            Ok(body) => body,
            Err(error) => return Err(error.explained()),
        };
        serde_json::from_slice(&body).map_err(|error| Error::Protocol {
            authority,
            reason: error.to_string(),
        })
    }

    /// Sends a request and returns the answer's body.
    ///
    /// # Errors
    /// [`Error::Answered`] if the answer is one.
    pub async fn ask(&self, call: Call<'_>) -> Result<Bytes, Error> {
        let authority = &self.broker.authority;
        let protocol = |reason: String| Error::Protocol {
            authority: authority.clone(),
            reason,
        };
        let request = self
            .request(call)
            .map_err(|error| protocol(error.to_string()))?;
        let stream = self.dial().await?;
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
            return Ok(body);
        }
        Err(Error::Answered {
            authority: authority.clone(),
            status,
            body,
        })
    }

    fn request(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(HOST, &self.broker.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(CONNECTION, "close");
        for (name, value) in call.headers {
            request = request.header(name, *value);
        }
        if let Some(authorization) = self.broker.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(Full::new(Bytes::from(call.body.unwrap_or_default())))
    }
}

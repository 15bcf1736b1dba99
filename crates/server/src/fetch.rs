//! Fetch: reads a small document from a web server, as the keys of an issuer, or sends it one.
//!
//! A document is read over https, or over http from this machine: whatever its name says, the
//! address is one of loopback. One may be sent over http to any machine. The system's certificates
//! are trusted, or those that `SSL_CERT_FILE` names, or those that the caller names. Redirects are
//! not followed, and no proxy is used.

pub mod lookup;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::http::request;
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::http::request::origin::is_loopback_host;

/// How long a document may take that is read.
const TIME_OUT: Duration = Duration::from_secs(10);
/// Longest document.
const MAX_BYTES: usize = 1 << 20;

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the URL must begin with https, or with http and a host of this machine")]
    Url,
    #[error("the URL begins with http, but its host has no loopback address")]
    NotLoopback,
    #[error("no connection: {0}")]
    Connect(#[from] std::io::Error),
    #[error("the certificate cannot be checked: {0}")]
    Tls(#[from] rustls::Error),
    #[error("no HTTP response: {0}")]
    Http(#[from] hyper::Error),
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("the answer cannot be read: {0}")]
    Body(String),
    #[error("no answer within {} seconds", .0.as_secs_f64())]
    TimeOut(Duration),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A URL that may be read.
#[derive(Debug, Eq, PartialEq)]
struct Target {
    is_tls: bool,
    host: String,
    port: u16,
    authority: String,
    path: String,
    /// Whether plain http may leave this machine.
    may_leave: bool,
    /// What is trusted instead of the system's certificates.
    authorities: Option<Arc<[CertificateDer<'static>]>>,
}

impl Target {
    fn of(url: &str, may_leave: bool) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        let host = uri.host()?;
        let (is_tls, port) = match uri.scheme_str()? {
            "https" => (true, 443),
            "http" if may_leave || is_loopback_host(host) => (false, 80),
            _ => return None,
        };
        if authority.as_str().contains('@') {
            return None;
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Some(Self {
            is_tls,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(port),
            authority: authority.to_string(),
            path: path.to_owned(),
            may_leave,
            authorities: None,
        })
    }
}

/// Whether a document at `url` may be read.
#[must_use]
pub fn is_fetchable(url: &str) -> bool {
    Target::of(url, false).is_some()
}

/// Whether a document can be sent to `url`.
#[must_use]
pub fn is_postable(url: &str) -> bool {
    Target::of(url, true).is_some()
}

/// The document at `url`.
pub async fn get(url: &str) -> Result<Bytes, FetchError> {
    let target = Target::of(url, false).ok_or(FetchError::Url)?;
    exchange(&target, Request::get(&target.path), Bytes::new(), TIME_OUT).await
}

/// Sends a body of a media type to `url`, with these headers besides, and trusts these authorities
/// if there are any. The answer is to be of that type too.
pub async fn post(
    url: &str,
    headers: &[(String, String)],
    media_type: &str,
    body: Bytes,
    time_out: Duration,
    authorities: Option<&Arc<[CertificateDer<'static>]>>,
) -> Result<(), FetchError> {
    let target = Target::of(url, true).ok_or(FetchError::Url)?;
    let target = Target {
        authorities: authorities.cloned(),
        ..target
    };
    let mut request = Request::post(&target.path)
        .header(CONTENT_TYPE, media_type)
        .header(ACCEPT, media_type);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    exchange(&target, request, body, time_out).await.map(drop)
}

async fn exchange(
    target: &Target,
    request: request::Builder,
    body: Bytes,
    time_out: Duration,
) -> Result<Bytes, FetchError> {
    let fetched = tokio::time::timeout(time_out, fetch(target, request, body)).await;
    fetched.map_err(|_| FetchError::TimeOut(time_out))?
}

async fn fetch(
    target: &Target,
    request: request::Builder,
    body: Bytes,
) -> Result<Bytes, FetchError> {
    let request = request
        .header(HOST, &target.authority)
        .header(USER_AGENT, "railbus")
        .header(CONNECTION, "close")
        .body(Full::new(body))
        .map_err(|_| FetchError::Url)?;
    let stream = TokioIo::new(connect(target).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_BYTES)
            .collect()
            .await;
        let body = body.map_err(|error| FetchError::Body(error.to_string()))?;
        Ok(body.to_bytes())
    };
    tokio::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        fetched = &mut exchange => fetched,
        // Its end comes with the answer, or instead of it.
        _ = &mut connection => exchange.await,
    }
}

async fn connect(target: &Target) -> Result<Box<dyn Stream>, FetchError> {
    let mut addresses = lookup::addresses(&target.host, target.port).await?;
    if !target.is_tls && !target.may_leave {
        // A name below localhost may lead anywhere.
        addresses.retain(|address| address.ip().to_canonical().is_loopback());
        if addresses.is_empty() {
            return Err(FetchError::NotLoopback);
        }
    }
    let stream = TcpStream::connect(&*addresses).await?;
    if !target.is_tls {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(target.host.clone()).map_err(|_| FetchError::Url)?;
    let authorities = target.authorities.clone();
    let config = tokio::task::spawn_blocking(move || client_config(authorities.as_deref())).await;
    let config = config.map_err(|error| FetchError::Body(error.to_string()))??;
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    Ok(Box::new(stream))
}

/// Trusts these authorities, or the system's. A machine without certificates trusts no server; the
/// handshake reports that.
fn client_config(
    authorities: Option<&[CertificateDer<'static>]>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(authorities) => {
            for authority in authorities {
                roots.add(authority.clone())?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs().certs;
            roots.add_parsable_certificates(found);
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: Option<(bool, &str, u16, &str)>) {
        let target = Target::of(url, false);
        let found = target
            .as_ref()
            .map(|it| (it.is_tls, it.host.as_str(), it.port, it.path.as_str()));
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        check(
            "https://issuer.example/a?b=c",
            Some((true, "issuer.example", 443, "/a?b=c")),
        );
        check(
            "https://issuer.example:8443",
            Some((true, "issuer.example", 8443, "/")),
        );
        check(
            "http://localhost:8080/a",
            Some((false, "localhost", 8080, "/a")),
        );
        check("http://[::1]:8080/a", Some((false, "::1", 8080, "/a")));
        check("http://127.0.0.1/a", Some((false, "127.0.0.1", 80, "/a")));
        for url in [
            "",
            "http://issuer.example/a",
            "http://localhost.example/a",
            "file:///etc/passwd",
            "ftp://localhost/a",
            "https://user:password@issuer.example/a",
            "/a",
            "issuer.example",
        ] {
            check(url, None);
        }
    }

    #[tokio::test]
    async fn plain_http_goes_to_no_other_machine_whatever_the_name_says() {
        let target = Target {
            is_tls: false,
            host: "192.0.2.1".to_owned(),
            port: 80,
            authority: "a.localhost".to_owned(),
            path: "/".to_owned(),
            may_leave: false,
            authorities: None,
        };
        let refused = fetch(&target, Request::get("/"), Bytes::new()).await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, FetchError::NotLoopback), "{refused}");
    }
}

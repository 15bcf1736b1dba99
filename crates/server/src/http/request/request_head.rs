//! Request head: the lines of a request as they came, and the checks that the HTTP library does
//! not make. [RFC 9112 3.2, 6.3]
//!
//! The library drops the `Content-Length` of a request that also has a `Transfer-Encoding`, so
//! the headers that it hands over do not show that a proxy may have read another length. A
//! [`HeadReader`] therefore keeps the bytes of each head on their way to the library. Bytes behind
//! a head belong to its body until the request is answered. A head that arrives together with the
//! body before it is not seen; there the library itself closes the connection behind the request.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::header::{HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::http::uri::Authority;
use hyper::{Request, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Why a request is refused before it is routed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeadError {
    #[error("a request must not have both Content-Length and Transfer-Encoding")]
    TwoLengths,
    #[error(
        "a request of HTTP/1.1 must have exactly one Host header, a host name with an optional port"
    )]
    Host,
}

/// The head that a connection reads, or has read last.
#[derive(Clone, Debug, Default)]
pub struct Heads(Arc<Mutex<Head>>);

#[derive(Debug, Default)]
struct Head {
    bytes: Vec<u8>,
    /// The empty line at its end has come: further bytes belong to the body.
    is_complete: bool,
}

impl Heads {
    /// Checks the head of a request that the library has read.
    ///
    /// # Errors
    /// When the request must be refused and its connection closed.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), HeadError> {
        check_host(request)?;
        if !request.headers().contains_key(TRANSFER_ENCODING) {
            return Ok(());
        }
        let head = self.lock();
        if head.is_of(request) && head.has_content_length() {
            return Err(HeadError::TwoLengths);
        }
        Ok(())
    }

    /// The request is answered: the next bytes are those of another head.
    pub fn end_request(&self) {
        *self.lock() = Head::default();
    }

    fn read(&self, bytes: &[u8]) {
        self.lock().read(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Head> {
        // A head is whole after each of its methods.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Head {
    /// Takes what was read up to the end of the head. The library bounds its length: it reads no
    /// further than its buffer holds without an end.
    fn read(&mut self, bytes: &[u8]) {
        if self.is_complete {
            return;
        }
        // Where the end may begin that these bytes complete.
        let known = self.bytes.len().saturating_sub(3);
        self.bytes.extend_from_slice(bytes);
        if let Some(end) = end_of_head(&self.bytes[known..]) {
            self.bytes.truncate(known + end);
            self.is_complete = true;
        }
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.bytes.split(|byte| *byte == b'\n');
        lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Whether this is the head of `request`, as far as its first line says.
    fn is_of<B>(&self, request: &Request<B>) -> bool {
        let expected = format!("{} {} ", request.method(), request.uri());
        let mut lines = self.lines().skip_while(|line| line.is_empty());
        let first = lines.next();
        self.is_complete && first.is_some_and(|line| line.starts_with(expected.as_bytes()))
    }

    fn has_content_length(&self) -> bool {
        self.lines().any(|line| {
            let name = line.split(|byte| *byte == b':').next();
            name.is_some_and(|name| name.trim_ascii().eq_ignore_ascii_case(b"content-length"))
        })
    }
}

/// Behind the empty line that ends a head, which the library takes with and without a carriage
/// return.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let ends = |bytes: &[u8]| bytes.starts_with(b"\n\n") || bytes.starts_with(b"\n\r\n");
    let start = (0..bytes.len()).find(|start| ends(&bytes[*start..]))?;
    let length = if bytes[start + 1] == b'\n' { 2 } else { 3 };
    Some(start + length)
}

fn check_host<B>(request: &Request<B>) -> Result<(), HeadError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let is_valid = match (hosts.next(), hosts.next()) {
        (Some(host), None) => is_host(host),
        (None, _) => request.version() < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    };
    if is_valid {
        Ok(())
    } else {
        Err(HeadError::Host)
    }
}

/// An empty value is sent for a target without an authority. [RFC 9112 3.2]
fn is_host(value: &HeaderValue) -> bool {
    let bytes = value.as_bytes();
    let authority = || Authority::try_from(bytes).ok();
    bytes.is_empty() || authority().is_some_and(|authority| !authority.as_str().contains('@'))
}

/// A stream that keeps the heads of the requests that are read from it.
#[derive(Debug)]
pub struct HeadReader<S> {
    stream: S,
    heads: Heads,
}

impl<S> HeadReader<S> {
    /// Reads from `stream`.
    pub fn new(stream: S, heads: Heads) -> Self {
        Self { stream, heads }
    }

    /// The stream itself.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadReader<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.heads.read(&buffer.filled()[before..]);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadReader<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a request with `headers` when its bytes arrive in `pieces`.
    fn check(headers: &[(&'static str, &'static str)], pieces: &[&str]) -> Result<(), HeadError> {
        let heads = Heads::default();
        for piece in pieces {
            heads.read(piece.as_bytes());
        }
        let mut request = Request::put("/a").body(()).expect("a request");
        for (name, value) in headers {
            let value = HeaderValue::from_static(value);
            request.headers_mut().append(*name, value);
        }
        heads.check(&request)
    }

    const CHUNKED: &[(&str, &str)] = &[("host", "h"), ("transfer-encoding", "chunked")];

    #[test]
    fn a_length_that_the_library_dropped_is_found() {
        for head in [
            "PUT /a HTTP/1.1\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n",
            "\r\nPUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\nCONTENT-LENGTH:4\r\n\r\n",
            "PUT /a HTTP/1.1\ntransfer-encoding: chunked\ncontent-length: 4\n\n",
        ] {
            assert_eq!(check(CHUNKED, &[head]), Err(HeadError::TwoLengths));
            let (first, second) = head.split_at(head.len() - 2);
            assert_eq!(check(CHUNKED, &[first, second]), Err(HeadError::TwoLengths));
        }
    }

    #[test]
    fn a_body_is_not_taken_for_a_header() {
        let head = "PUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
        let body = "10\r\n\r\ncontent-length: 4\r\n";
        assert_eq!(check(CHUNKED, &[head, body]), Ok(()));
        assert_eq!(check(CHUNKED, &[&format!("{head}{body}")]), Ok(()));
    }

    #[test]
    fn the_head_of_another_request_says_nothing() {
        let other = "GET /other HTTP/1.1\r\ncontent-length: 4\r\n\r\n";
        assert_eq!(check(CHUNKED, &[other]), Ok(()));
        assert_eq!(check(CHUNKED, &[]), Ok(()));
    }

    #[test]
    fn a_request_names_one_host() {
        for valid in ["", "h", "h:80", "[::1]:80", "a.b-c_d"] {
            assert_eq!(check(&[("host", valid)], &[]), Ok(()), "{valid}");
        }
        for invalid in ["a/b", "a b", "u@h", "h:80:80"] {
            let result = check(&[("host", invalid)], &[]);
            assert_eq!(result, Err(HeadError::Host), "{invalid}");
        }
        assert_eq!(check(&[], &[]), Err(HeadError::Host));
        assert_eq!(
            check(&[("host", "h"), ("host", "h")], &[]),
            Err(HeadError::Host)
        );
    }
}

//! HTTP client: a connection to the broker's own interface that stays open between requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Result, ensure};

/// More than any header or body of an answer.
const MOST: u64 = 64 << 10;

/// The connection.
pub struct HttpClient(BufReader<TcpStream>);

impl HttpClient {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Asks for `/$railbus/PATH`. Returns the body of the answer.
    ///
    /// # Errors
    /// When it is no success.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String> {
        let length = body.len();
        let request = format!(
            "{method} /$railbus/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let mut length = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        ensure!(length <= MOST, "an answer of {length} bytes");
        let mut body = String::new();
        self.0.by_ref().take(length).read_to_string(&mut body)?;
        ensure!(status.starts_with("HTTP/1.1 2"), "{status}: {body}");
        Ok(body)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.by_ref().take(MOST).read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "the broker ended the connection");
        Ok(line.trim_end().to_owned())
    }
}

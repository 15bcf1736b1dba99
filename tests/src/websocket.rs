//! WebSocket in the hands of a test: a blocking client whose messages are a stream of bytes.

use std::io::{self, Read, Write};

use tungstenite::client::ClientRequestBuilder;
use tungstenite::{Error, Message, WebSocket};

/// A client's end of a WebSocket, read and written as a stream.
pub struct Bytes<S> {
    socket: WebSocket<S>,
    message: tungstenite::Bytes,
    /// The code of the broker's close frame.
    pub closed: Option<u16>,
}

/// Asks for `sub_protocol` at `path` and returns the socket, or the status of the refusal.
///
/// # Errors
/// When the broker does not agree.
///
/// # Panics
/// When it answers otherwise than HTTP does.
pub fn open<S: Read + Write>(
    stream: S,
    path: &str,
    sub_protocol: &str,
    headers: &[(&str, &str)],
) -> Result<WebSocket<S>, u16> {
    let uri = format!("ws://localhost{path}").parse().expect("a path");
    let mut request = ClientRequestBuilder::new(uri).with_sub_protocol(sub_protocol);
    for &(name, value) in headers {
        request = request.with_header(name, value);
    }
    match tungstenite::client(request, stream) {
        Ok((socket, response)) => {
            let chosen = &response.headers()["sec-websocket-protocol"];
            assert_eq!(chosen, sub_protocol);
            Ok(socket)
        }
        Err(tungstenite::HandshakeError::Failure(Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

impl<S> Bytes<S> {
    /// The messages of `socket` as a stream.
    #[must_use]
    pub fn new(socket: WebSocket<S>) -> Self {
        Self {
            socket,
            message: tungstenite::Bytes::new(),
            closed: None,
        }
    }
}

impl<S: Read + Write> Read for Bytes<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.message.is_empty() {
            match self.socket.read() {
                Ok(Message::Binary(message)) => self.message = message,
                Ok(Message::Close(frame)) => self.closed = frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(0),
                Err(error) => return Err(other(error)),
            }
        }
        let count = buffer.len().min(self.message.len());
        buffer[..count].copy_from_slice(&self.message.split_to(count));
        Ok(count)
    }
}

impl<S: Read + Write> Write for Bytes<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let message = Message::Binary(tungstenite::Bytes::copy_from_slice(bytes));
        self.socket.write(message).map_err(other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush().map_err(other)
    }
}

fn other(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

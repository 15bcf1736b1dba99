//! WebSocket: an AMQP connection's bytes within binary messages. [RFC 6455]
//! (docs/spec/amqp.md#1.2)
//!
//! Message boundaries mean nothing, so no message is ever assembled: payloads are passed on as
//! they arrive, and a message may be as long as the limit allows without taking memory. A peer
//! that breaks the protocol gets a close frame with the matching code, and nothing more is read
//! from it. The log has one line for it.

mod decoder;
mod encoder;

use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::net::TcpStream;

use crate::log::refusals::RefusalLog;
use crate::transport::stream::Stream;
use decoder::Decoder;
use encoder::Encoder;

/// Reads without payload in one go; then other connections have their turn.
const READS: usize = 4;

/// A stream of WebSocket frames whose opening handshake is done.
#[derive(Debug)]
pub struct WebSocket<S> {
    inner: S,
    /// What came right behind the handshake.
    early: Bytes,
    decoder: Decoder,
    encoder: Encoder,
    peer: SocketAddr,
    refusals: Arc<RefusalLog>,
}

impl<S: Stream> WebSocket<S> {
    /// Frames of at most `max_frame_size` bytes on `inner`, the first of which may be in `early`.
    /// `refusals` gets the line about a `peer` that breaks the protocol.
    pub fn new(
        inner: S,
        early: Bytes,
        max_frame_size: u64,
        peer: SocketAddr,
        refusals: Arc<RefusalLog>,
    ) -> Self {
        Self {
            inner,
            early,
            decoder: Decoder::new(max_frame_size),
            encoder: Encoder::default(),
            peer,
            refusals,
        }
    }

    fn read_frames(&mut self, buffer: &mut BytesMut, most: usize) -> io::Result<usize> {
        if self.early.is_empty() {
            return self.inner.try_read(buffer, most);
        }
        let early = std::mem::take(&mut self.early);
        buffer.extend_from_slice(&early);
        Ok(early.len())
    }
}

impl<S: Stream> Stream for WebSocket<S> {
    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }

    fn socket(&mut self) -> &mut TcpStream {
        self.inner.socket()
    }

    fn try_read(&mut self, buffer: &mut BytesMut, most: usize) -> io::Result<usize> {
        let before = buffer.len();
        for _ in 0..READS {
            if self.decoder.is_over() || self.read_frames(buffer, most)? == 0 {
                return Ok(0);
            }
            self.decoder.decode(buffer, before);
            // Nothing is decoded after a violation, so this comes once.
            if let Some(violation) = self.decoder.violation() {
                let code = u16::from(violation.code());
                self.refusals.websocket(self.peer, code, violation);
            }
            if let Some(pong) = self.decoder.take_pong() {
                self.encoder.pong(&pong);
            }
            if buffer.len() > before {
                return Ok(buffer.len() - before);
            }
        }
        Err(ErrorKind::Interrupted.into())
    }

    fn try_write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.encoder.write(&mut self.inner, parts)
    }

    fn try_flush(&mut self) -> io::Result<()> {
        self.encoder.flush(&mut self.inner)?;
        self.inner.try_flush()
    }

    fn has_unsent(&self) -> bool {
        self.encoder.has_unsent() || self.inner.has_unsent()
    }

    fn try_close(&mut self) -> io::Result<()> {
        self.encoder.close(self.decoder.close_code());
        self.encoder.flush(&mut self.inner)?;
        self.inner.try_close()
    }
}

//! Stream: the bytes of an AMQP connection: a plain socket, or one within TLS or WebSocket.
//!
//! Only [`Stream::ready`] waits; an operation that is not possible now ends with a temporary
//! error. A stream may have bytes of its own to send (records, answers to pings); they are
//! bounded, and go out when the stream is written or flushed.

use std::future::Future;
use std::io::{self, IoSlice};

use bytes::{Buf, BufMut, BytesMut};
use endpoint::Output;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

/// Bytes that a peer may still send after our end of the stream.
const LINGER_BYTES: usize = 4 << 20;

/// Pieces that go out in one write, at most.
const PARTS: usize = 64;

/// A stream of bytes, both ways.
pub trait Stream: Send + 'static {
    /// The socket at the bottom.
    fn socket(&mut self) -> &mut TcpStream;

    /// Whether it is within TLS.
    fn is_tls(&self) -> bool;

    /// Adds to `buffer` what is there, about as much as it has room for and `most` bytes. 0 when
    /// nothing will come any more.
    fn try_read(&mut self, buffer: &mut BytesMut, most: usize) -> io::Result<usize>;

    /// Takes bytes of `parts`, from the front. What was given once is given again until it is
    /// taken.
    fn try_write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Takes bytes off `output`, and says how many.
    fn try_write_output(&mut self, output: &mut Output) -> io::Result<usize> {
        let mut parts = [IoSlice::new(&[]); PARTS];
        let count = output.chunks_vectored(&mut parts);
        let count = self.try_write(&parts[..count])?;
        output.advance(count);
        Ok(count)
    }

    /// Sends what the stream has of its own.
    fn try_flush(&mut self) -> io::Result<()>;

    /// Whether there is something to flush.
    fn has_unsent(&self) -> bool;

    /// Says that nothing more will be written. Called again after a temporary error.
    fn try_close(&mut self) -> io::Result<()>;

    /// Waits until the socket is ready for `interest`.
    fn ready(&mut self, interest: Interest) -> impl Future<Output = io::Result<()>> + Send {
        let socket = self.socket();
        async move { TcpStream::ready(socket, interest).await.map(drop) }
    }

    /// Writes `last`, ends the stream and lets the peer read both: closing a socket with unread
    /// input would reset it and discard them.
    fn close_gracefully(mut self, mut last: Output) -> impl Future<Output = io::Result<()>> + Send
    where
        Self: Sized,
    {
        async move {
            while !last.is_empty() {
                match self.try_write_output(&mut last) {
                    Ok(_) => {}
                    Err(error) => self.wait_after(error).await?,
                }
            }
            while let Err(error) = self.try_close() {
                self.wait_after(error).await?;
            }
            let socket = self.socket();
            socket.shutdown().await?;
            let mut rest = [0; 4096];
            let mut count = 0;
            while count < LINGER_BYTES {
                match socket.read(&mut rest).await? {
                    0 => break,
                    more => count += more,
                }
            }
            Ok(())
        }
    }

    /// Waits until what ended with a temporary error may be tried again.
    fn wait_after(&mut self, error: io::Error) -> impl Future<Output = io::Result<()>> + Send {
        async move {
            match error.kind() {
                io::ErrorKind::WouldBlock => self.ready(Interest::WRITABLE).await,
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            }
        }
    }
}

/// Does one `read` of `room` bytes. If it brings fewer the socket has no more, so it counts as not
/// ready again: the next read returns without a system call, and the task is woken when there is
/// more.
pub fn try_read_once(
    socket: &TcpStream,
    room: usize,
    read: impl FnOnce() -> io::Result<usize>,
) -> io::Result<usize> {
    let mut short = None;
    // What has arrived since the read began is not taken for nothing: readiness is that of before.
    let full = socket.try_io(Interest::READABLE, || match read()? {
        count if count > 0 && count < room => {
            short = Some(count);
            Err(io::ErrorKind::WouldBlock.into())
        }
        count => Ok(count),
    });
    short.map_or(full, Ok)
}

impl Stream for TcpStream {
    fn is_tls(&self) -> bool {
        false
    }

    fn socket(&mut self) -> &mut TcpStream {
        self
    }

    fn try_read(&mut self, buffer: &mut BytesMut, most: usize) -> io::Result<usize> {
        let mut limited = buffer.limit(most);
        let room = limited.chunk_mut().len();
        try_read_once(self, room, || self.try_read_buf(&mut limited))
    }

    fn try_write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match parts {
            [part] => Self::try_write(self, part),
            _ => self.try_write_vectored(parts),
        }
    }

    fn try_flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn has_unsent(&self) -> bool {
        false
    }

    fn try_close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! TLS: an AMQP connection's bytes within TLS records.
//!
//! The handshake is done. rustls is driven without IO of its own, so reading and writing wait no
//! more than on a plain socket. All bytes of one read are decrypted at once, and at most one
//! encrypted piece waits for the socket.

use std::cell::RefCell;
use std::io::{self, BufRead, ErrorKind, IoSlice, Write};

use bytes::BytesMut;
use rustls::ServerConnection;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::connection::input::is_temporary;
use crate::transport::stream::{Stream, try_read_once};

/// What one read may bring.
const READ_BYTES: usize = 64 * 1024;
/// The least that is asked for: room enough for most of a record.
const LEAST_READ: usize = 8 * 1024;

thread_local! {
    /// Records between the socket and rustls; empty outside of a read.
    static RECORDS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A socket within TLS.
#[derive(Debug)]
pub struct Tls {
    socket: TcpStream,
    session: ServerConnection,
    has_said_goodbye: bool,
}

impl Tls {
    /// What a finished handshake has made, with what came behind it.
    pub fn new(stream: TlsStream<TcpStream>) -> Self {
        let (socket, session) = stream.into_inner();
        Self {
            socket,
            session,
            has_said_goodbye: false,
        }
    }

    /// Gives `records` to rustls and adds to `buffer` what is in them.
    fn decrypt(&mut self, mut records: &[u8], buffer: &mut BytesMut) -> io::Result<()> {
        while !records.is_empty() {
            if self.session.read_tls(&mut records)? == 0 {
                break;
            }
            let processed = self.session.process_new_packets();
            self.take(buffer);
            if let Err(error) = processed {
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
        Ok(())
    }

    /// Adds to `buffer` what is decrypted.
    fn take(&mut self, buffer: &mut BytesMut) {
        let mut reader = self.session.reader();
        while let Ok(chunk) = reader.fill_buf()
            && !chunk.is_empty()
        {
            let count = chunk.len();
            buffer.extend_from_slice(chunk);
            reader.consume(count);
        }
    }

    /// Whether the peer has said that nothing more will come.
    fn has_ended(&mut self) -> bool {
        matches!(self.session.reader().fill_buf(), Ok(chunk) if chunk.is_empty())
    }
}

impl Stream for Tls {
    fn is_tls(&self) -> bool {
        true
    }

    fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    fn try_read(&mut self, buffer: &mut BytesMut, most: usize) -> io::Result<usize> {
        let before = buffer.len();
        self.take(buffer);
        if buffer.len() == before {
            RECORDS.with_borrow_mut(|records| {
                records.resize(READ_BYTES, 0);
                let room = (buffer.capacity() - before).clamp(LEAST_READ, READ_BYTES);
                let room = room.min(most);
                let records = &mut records[..room];
                match try_read_once(&self.socket, room, || self.socket.try_read(records))? {
                    0 => Ok(()),
                    count => self.decrypt(&records[..count], buffer).and_then(|()| {
                        if buffer.len() > before || self.has_ended() {
                            Ok(())
                        } else {
                            // A part of a record, or one that is no data.
                            Err(ErrorKind::Interrupted.into())
                        }
                    }),
                }
            })?;
        }
        Ok(buffer.len() - before)
    }

    fn try_write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_flush()?;
        let count = self.session.writer().write_vectored(parts)?;
        match self.try_flush() {
            // What was taken is taken, and must not be given again.
            Err(error) if !is_temporary(&error) => Err(error),
            _ => Ok(count),
        }
    }

    fn try_flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut NonBlocking(&self.socket))? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    fn try_close(&mut self) -> io::Result<()> {
        if !self.has_said_goodbye {
            self.has_said_goodbye = true;
            self.session.send_close_notify();
        }
        self.try_flush()
    }
}

/// A socket as rustls writes to it.
struct NonBlocking<'a>(&'a TcpStream);

impl Write for NonBlocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

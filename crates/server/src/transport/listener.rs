//! Listener: accepts the connections of one address, finds out their protocol and serves them.
//!
//! Every port speaks every protocol: AMQP begins with `A`, a TLS handshake with 0x16, HTTP with a
//! method in capital letters. Within TLS it is AMQP or HTTP again, and an HTTP request may turn
//! the connection into WebSocket. Anything else goes to the AMQP engine, which answers with the
//! protocol header that it supports. [AMQP 2.2]
//!
//! Connections from other machines must use TLS, unless the configuration allows plaintext. Until
//! its protocol is known, TLS included, a connection has the time of one handshake.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use broker::{Command, ConnectionId, Output};
use bytes::{Bytes, BytesMut};
use dialect::{ClockReading, Dialect};
use store::NamespaceId;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connection::Connection;
use crate::counters::counts::{RefusalReason, ServedProtocol};
use crate::dialects::{self, TlsFacts};
use crate::http::request::transport;
use crate::http::request::transport::Transport;
use crate::http::{self, UpgradedStream};
use crate::server::server_state::ServerState;
use crate::shard::{DirectoryReceiver, Message};
use crate::transport::client_certificate;
use crate::transport::connection_limiter;
use crate::transport::connection_limiter::ConnectionPermit;
use crate::transport::stream::Stream;
use crate::transport::tls::Tls;
use crate::transport::websocket::WebSocket;

/// The delay after a connection could not be accepted (too many open files).
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The header by which an AMQP client asks for TLS on a plain connection. [AMQP 5.2.1]
const AMQP_TLS: [u8; 8] = *b"AMQP\x02\x01\x00\x00";

/// The protocol that a connection's first byte indicates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Protocol {
    Amqp,
    Http,
    Tls,
}

impl Protocol {
    fn of(first: u8) -> Self {
        match first {
            0x16 => Self::Tls,
            b'B'..=b'Z' => Self::Http,
            _ => Self::Amqp,
        }
    }
}

/// A connection that was accepted, before and while its protocol is served.
struct AcceptedConnection {
    peer: SocketAddr,
    local: Option<SocketAddr>,
    /// It came through a listener that only this machine can reach.
    is_loopback: bool,
    /// The time by which its protocol has to be known.
    deadline: Instant,
    since: ClockReading,
    server: Arc<ServerState>,
    /// Its place among the connections of its address.
    permit: Arc<ConnectionPermit>,
}

/// Accepts connections until the server stops.
pub async fn accept_all(listener: TcpListener, server: Arc<ServerState>) {
    let address = listener.local_addr();
    let is_loopback = address.is_ok_and(|address| address.ip().is_loopback());
    let mut stopping = server.stopping.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => admit_connection(stream, peer, is_loopback, &server),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

fn admit_connection(
    stream: TcpStream,
    peer: SocketAddr,
    is_loopback: bool,
    server: &Arc<ServerState>,
) {
    match server.connection_limiter.admit(peer.ip()) {
        Ok(permit) => {
            let connection = AcceptedConnection {
                peer,
                local: stream.local_addr().ok(),
                is_loopback,
                deadline: Instant::now() + server.limits().handshake,
                since: server.clock.moment(),
                server: Arc::clone(server),
                permit: Arc::new(permit),
            };
            drop(tokio::spawn(connection.serve_until_closed(stream)));
        }
        Err(refusal) => {
            let reason = match refusal {
                connection_limiter::LimitExceeded::TooMany(_) => RefusalReason::Full,
                connection_limiter::LimitExceeded::TooManyFromAddress(_) => {
                    RefusalReason::FullOfAddress
                }
            };
            server.counts.refused.of(reason).increment();
            server.refusals.connection(peer, refusal);
        }
    }
}

impl AcceptedConnection {
    async fn serve_until_closed(self, stream: TcpStream) {
        let shutdown_guard = self.server.shutdown_guard.clone();
        // Without it small frames would wait for the acknowledgement of earlier ones.
        match stream.set_nodelay(true) {
            Ok(()) => self.serve(stream).await,
            Err(error) => {
                tracing::debug!(peer = %self.peer, %error, "a connection was closed before its first byte");
            }
        }
        drop(shutdown_guard);
    }

    /// Other protocols than plain AMQP are boxed, so an idle AMQP connection keeps no memory for
    /// them.
    async fn serve(&self, mut stream: TcpStream) {
        let mut first = [0];
        let Some(Ok(1)) = self.with_deadline(stream.peek(&mut first)).await else {
            return;
        };
        match Protocol::of(first[0]) {
            Protocol::Amqp => {
                let Some(header) = self.header(&mut stream).await else {
                    return;
                };
                if *header == AMQP_TLS && self.server.certificate.is_some() {
                    Box::pin(self.serve_tls_after_header(stream)).await;
                } else if !self.may_use_plaintext() {
                    self.require_tls(stream).await;
                } else {
                    self.serve_amqp(stream, header, TlsFacts::default(), self.since)
                        .await;
                }
            }
            Protocol::Http => {
                let upgraded = Box::pin(self.serve_http(stream, false)).await;
                if let Some(UpgradedStream { stream, early }) = upgraded {
                    let plain = TlsFacts::default();
                    Box::pin(self.serve_websocket(stream, early, plain)).await;
                }
            }
            Protocol::Tls => Box::pin(self.serve_tls(stream)).await,
        }
    }

    /// The header that a connection begins with; fewer bytes of one that has ended before.
    async fn header(&self, stream: &mut TcpStream) -> Option<BytesMut> {
        let mut header = BytesMut::new();
        while header.len() < AMQP_TLS.len() {
            let missing = AMQP_TLS.len() - header.len();
            let mut rest = (&mut *stream).take(missing as u64);
            if self.with_deadline(rest.read_buf(&mut header)).await?.ok()? == 0 {
                break;
            }
        }
        Some(header)
    }

    fn may_use_plaintext(&self) -> bool {
        self.server.plain.allows(self.peer.ip())
    }

    /// Answers with the protocol header that would have been right. [AMQP 2.2]
    async fn require_tls(&self, mut stream: TcpStream) {
        self.server
            .counts
            .refused
            .of(RefusalReason::Plain)
            .increment();
        self.log_refusal("connections from other machines must use TLS");
        if let Some(Ok(())) = self.with_deadline(stream.write_all(&AMQP_TLS)).await {
            drop(self.with_deadline(stream.shutdown()).await);
        }
    }

    async fn serve_tls_after_header(&self, mut stream: TcpStream) {
        if let Some(Ok(())) = self.with_deadline(stream.write_all(&AMQP_TLS)).await {
            self.serve_tls(stream).await;
        }
    }

    async fn serve_tls(&self, stream: TcpStream) {
        let Some(mut stream) = self.accept_tls(stream).await else {
            return;
        };
        let first = match self.with_deadline(stream.fill_buf()).await {
            Some(Ok(&[first, ..])) => first,
            _ => return,
        };
        let session = stream.get_ref().1;
        let handshake = TlsFacts {
            certificate: client_certificate::names(session),
            server_name: session.server_name().map(str::to_owned),
        };
        match Protocol::of(first) {
            Protocol::Amqp => {
                let (stream, nothing) = (Tls::new(stream), BytesMut::new());
                self.serve_amqp(stream, nothing, handshake, self.since)
                    .await;
            }
            Protocol::Http => {
                if let Some(upgraded) = Box::pin(self.serve_http(stream, true)).await {
                    let stream = Tls::new(upgraded.stream);
                    self.serve_websocket(stream, upgraded.early, handshake)
                        .await;
                }
            }
            Protocol::Tls => {
                self.log_refusal("TLS within TLS is not supported");
            }
        }
    }

    async fn accept_tls(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let counts = &self.server.counts;
        let Some(certificate) = &self.server.certificate else {
            counts.refused.of(RefusalReason::Tls).increment();
            self.log_refusal("the client uses TLS, and this broker has no certificate");
            return None;
        };
        let config = Arc::clone(&certificate.borrow());
        match self
            .with_deadline(TlsAcceptor::from(config).accept(stream))
            .await?
        {
            Ok(stream) => {
                counts.served.of(ServedProtocol::Tls).increment();
                Some(stream)
            }
            Err(error) => {
                counts.refused.of(RefusalReason::Tls).increment();
                self.log_refusal(format_args!("the TLS handshake failed: {error}"));
                None
            }
        }
    }

    fn log_refusal(&self, why: impl Display) {
        self.server.refusals.connection(self.peer, why);
    }

    /// The result of `work`, unless the deadline passes or the server stops first.
    async fn with_deadline<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut stopping = self.server.stopping.clone();
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => None,
            done = tokio::time::timeout_at(self.deadline, work) => {
                if done.is_err() {
                    self.server.counts.refused.of(RefusalReason::TimeOut).increment();
                    self.log_refusal("the handshake took longer than the time-out for it");
                }
                done.ok()
            }
        }
    }

    async fn serve_http<S>(&self, stream: S, is_tls: bool) -> Option<UpgradedStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.server
            .counts
            .served
            .of(ServedProtocol::Http)
            .increment();
        let transport = Transport {
            is_loopback: self.is_loopback,
            is_tls,
            is_private: is_tls || self.may_use_plaintext(),
            peer: self.peer,
            local: self.local,
        };
        let permit = Arc::clone(&self.permit);
        http::serve(stream, Arc::clone(&self.server), transport, permit).await
    }

    async fn serve_websocket(&self, stream: impl Stream, early: Bytes, handshake: TlsFacts) {
        self.server
            .counts
            .served
            .of(ServedProtocol::WebSocket)
            .increment();
        let max_frame_size = self.server.limits().unanswered_bytes as u64;
        let refusals = Arc::clone(&self.server.refusals);
        let stream = WebSocket::new(stream, early, max_frame_size, self.peer, refusals);
        // A connection may have been one of HTTP for long.
        let since = self.server.clock.moment();
        self.serve_amqp(stream, BytesMut::new(), handshake, since)
            .await;
    }

    /// Runs an AMQP connection as a task of its own, so the broker is told of its end even after a
    /// panic. `early` was read from the stream before; `since` is when the handshake began.
    async fn serve_amqp(
        &self,
        stream: impl Stream,
        early: BytesMut,
        handshake: TlsFacts,
        since: ClockReading,
    ) {
        let server = &self.server;
        server.counts.served.of(ServedProtocol::Amqp).increment();
        let id = ConnectionId(server.next_connection.fetch_add(1, Ordering::Relaxed));
        let (sender, outputs) = mpsc::unbounded_channel();
        let open = Message::Open {
            connection: id,
            sender,
        };
        let shard = server.placement.of(NamespaceId::default());
        if shard.send(open).await.is_err() {
            return;
        }
        let client = self.dialect(id, handshake, since);
        if let Err(error) = self.start(id, stream, early, outputs, client).await {
            tracing::error!(connection = id.0, %error, "a connection ended because of an internal error");
        }
        // The inbox is closed only when the shard has failed or stopped.
        let gone = Message::Commands(vec![Command::Disconnect { connection: id }]);
        drop(shard.send(gone).await);
        drop(shard.send(Message::Close { connection: id }).await);
    }

    fn dialect(
        &self,
        id: ConnectionId,
        handshake: TlsFacts,
        since: ClockReading,
    ) -> (impl Dialect + use<>, DirectoryReceiver) {
        let mut directory_receiver = self.server.directory_receiver.clone();
        let directory = Arc::clone(&directory_receiver.borrow_and_update());
        let locality = transport::locality(self.is_loopback, self.peer);
        let client = dialects::accept(&self.server, id, directory, locality, handshake, since);
        (client, directory_receiver)
    }

    /// Starts the task. Not asynchronous, since the waiting caller would keep memory for it
    /// meanwhile.
    fn start(
        &self,
        id: ConnectionId,
        stream: impl Stream,
        early: BytesMut,
        outputs: mpsc::UnboundedReceiver<Vec<Output>>,
        (client, directory_receiver): (impl Dialect, DirectoryReceiver),
    ) -> JoinHandle<()> {
        let from = (self.peer, id);
        let server = Arc::clone(&self.server);
        let connection = Connection::new(
            stream,
            early,
            client,
            outputs,
            directory_receiver,
            from,
            server,
        );
        tokio::spawn(connection.run())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_distinguishes_the_protocols() {
        assert_eq!(Protocol::of(b'A'), Protocol::Amqp);
        assert_eq!(Protocol::of(0x16), Protocol::Tls);
        for method in [
            "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
        ] {
            assert_eq!(
                Protocol::of(method.as_bytes()[0]),
                Protocol::Http,
                "{method}"
            );
        }
        assert_eq!(Protocol::of(0), Protocol::Amqp);
        assert_eq!(Protocol::of(0xff), Protocol::Amqp);
    }
}

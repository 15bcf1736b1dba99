//! Door: one listener. Tells by a connection's first byte what it speaks, and hands it over.
//!
//! Every port speaks everything: AMQP begins with `A`, a TLS handshake with 0x16, HTTP with a
//! method in capital letters. Whatever is none of these is given to the AMQP engine, which answers
//! with the protocol header it would have liked. [AMQP 2.2]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use broker::{Command, ConnectionId};
use servicebus::{AccessRules, Client};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::budget::{Budget, Share};
use crate::clock::Clock;
use crate::connection::Connection;
use crate::entrance::{Entrance, Ticket};
use crate::http;
use crate::options::Limits;
use crate::shard::{Directories, Inbox, Message};

/// How long a listener rests after the system could not give it a connection (too many open files).
const REST: Duration = Duration::from_millis(100);

/// Until TLS is part of this server.
const TLS_REFUSED: &str = "a connection is refused: it begins with a TLS handshake, \
                           and this broker speaks plain AMQP and HTTP only";

/// What all doors share.
pub struct House {
    pub clock: Clock,
    pub limits: Limits,
    pub entrance: Arc<Entrance>,
    pub budget: Arc<Budget>,
    pub settings: Arc<servicebus::Settings>,
    pub directories: Directories,
    pub rules: Arc<AccessRules>,
    /// Whether the rules are the well-known one.
    pub development_key: bool,
    pub inbox: Inbox,
    pub next_connection: AtomicU64,
    /// Whether the server stops.
    pub stopping: watch::Receiver<bool>,
    /// Dropped by the last one who leaves.
    pub inside: mpsc::Sender<()>,
}

/// What a connection's first byte says that it speaks.
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

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    peer: SocketAddr,
    /// It came through a listener that only this machine can reach.
    is_loopback: bool,
}

/// Lets connections in until the server stops.
pub async fn open(listener: TcpListener, house: Arc<House>) {
    let address = listener.local_addr();
    let is_loopback = address.is_ok_and(|address| address.ip().is_loopback());
    let mut stopping = house.stopping.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => welcome(stream, Origin { peer, is_loopback }, &house),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(REST).await;
            }
        }
    }
}

fn welcome(stream: TcpStream, origin: Origin, house: &Arc<House>) {
    let peer = origin.peer;
    match house.entrance.admit(peer.ip()) {
        Ok(ticket) => drop(tokio::spawn(receive(
            stream,
            origin,
            Arc::clone(house),
            ticket,
        ))),
        Err(refusal) => tracing::warn!(%peer, "a connection is refused: {refusal}"),
    }
}

async fn receive(stream: TcpStream, origin: Origin, house: Arc<House>, ticket: Ticket) {
    let peer = origin.peer;
    let inside = house.inside.clone();
    // Without it small frames would wait for the acknowledgement of others.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "a connection was gone at once");
        return;
    }
    let Some(first) = first_byte(&stream, &house).await else {
        return;
    };
    match Protocol::of(first) {
        Protocol::Amqp => serve_amqp(stream, &house).await,
        Protocol::Http => {
            let is_trusted = origin.is_loopback && house.development_key;
            http::serve(stream, Arc::clone(&house), is_trusted).await;
        }
        Protocol::Tls => tracing::warn!(%peer, "{TLS_REFUSED}"),
    }
    drop((ticket, inside));
}

/// Looks at the first byte without taking it. `None` when it does not come in time.
async fn first_byte(stream: &TcpStream, house: &House) -> Option<u8> {
    let mut first = [0];
    let mut stopping = house.stopping.clone();
    let peek = tokio::time::timeout(house.limits.handshake, stream.peek(&mut first));
    tokio::select! {
        _ = stopping.wait_for(|stopping| *stopping) => None,
        peeked = peek => matches!(peeked, Ok(Ok(1))).then_some(first[0]),
    }
}

/// Runs an AMQP connection as a task of its own: whatever becomes of it, the broker is told that
/// it is gone.
async fn serve_amqp(stream: TcpStream, house: &Arc<House>) {
    let id = ConnectionId(house.next_connection.fetch_add(1, Ordering::Relaxed));
    let (ear, outputs) = mpsc::unbounded_channel();
    if house
        .inbox
        .send(Message::Open {
            connection: id,
            ear,
        })
        .await
        .is_err()
    {
        return;
    }
    let mut directories = house.directories.clone();
    let directory = Arc::clone(&directories.borrow_and_update());
    let client = Client::new(
        id,
        Arc::clone(&house.settings),
        directory,
        Arc::clone(&house.rules),
        house.clock.moment(),
    );
    let share = Share::new(Arc::clone(&house.budget));
    let connection = Connection::new(
        stream,
        client,
        outputs,
        directories,
        share,
        Arc::clone(house),
    );
    if let Err(error) = tokio::spawn(connection.run()).await {
        tracing::error!(connection = id.0, %error, "a connection ended by a fault of ours");
    }
    // The inbox is closed only when the shard has failed or stopped.
    drop(
        house
            .inbox
            .send(Message::Commands(vec![Command::Disconnect {
                connection: id,
            }]))
            .await,
    );
    drop(house.inbox.send(Message::Close { connection: id }).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_the_protocols_apart() {
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

//! Ending: what a peer does with a broker that may end at any moment, and the end of a session in
//! good order. A call `..._or_end` returns `None` when the stream has ended without an answer, and
//! panics only when nothing comes for too long.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use amqp::{DeliveryState, Role};
use endpoint::{Event, LinkId, SessionId};

use super::{Peer, Received};
use crate::{Credentials, PATIENCE};

impl Peer<TcpStream> {
    /// Connects with the well-known key.
    #[must_use]
    pub fn connect_or_end(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_nodelay(true).ok()?;
        let mut peer = Self::over(stream, Credentials::DEVELOPMENT);
        let opened = peer.wait_or_end("open", |event| match event {
            Event::Opened(_) => Some(true),
            Event::Closed { .. } => Some(false),
            _ => None,
        });
        opened.filter(|is_open| *is_open).map(|_| peer)
    }

    /// Its socket, with which another thread can end it.
    ///
    /// # Panics
    /// When there is no handle left to be had.
    #[must_use]
    pub fn ender(&self) -> TcpStream {
        self.stream.try_clone().expect("there are handles left")
    }
}

impl<S: Read + Write> Peer<S> {
    /// Ends an AMQP session and waits until the broker has ended it too.
    pub fn end_session(&mut self, session: SessionId) {
        self.connection.end(session, None);
        self.flush();
        self.wait("end", |event| match event {
            Event::Ended { session: s, .. } if *s == session => Some(()),
            _ => None,
        });
    }

    /// Waits for the broker's word on a message; `None` when its link or the connection ends
    /// without it.
    #[must_use]
    pub fn outcome_or_end(&mut self, cookie: u128) -> Option<DeliveryState> {
        self.wait_or_end("outcome or end", |event| match event {
            Event::Disposed {
                cookie: c, state, ..
            } if *c == cookie => Some(state.clone()),
            Event::Detached { unsettled, .. } if unsettled.contains(&cookie) => Some(None),
            Event::Closed { .. } => Some(None),
            _ => None,
        })?
    }

    /// Opens a sender to `queue` and waits for credit.
    #[must_use]
    pub fn sender_or_end(&mut self, queue: &str) -> Option<LinkId> {
        let link = self.ask(Role::Sender, queue);
        self.wait_or_end("credit", |event| match event {
            Event::Credit { link: l, .. } if *l == link => Some(Some(link)),
            Event::Detached { link: l, .. } if *l == link => Some(None),
            Event::Closed { .. } => Some(None),
            _ => None,
        })?
    }

    /// Opens a receiver in peek-lock mode with so much credit.
    #[must_use]
    pub fn receiver_or_end(&mut self, queue: &str, credit: u32) -> Option<LinkId> {
        let link = self.ask(Role::Receiver, queue);
        let attached = self.wait_or_end("attach", |event| match event {
            Event::Attached { link: l, .. } if *l == link => Some(true),
            Event::Detached { link: l, .. } if *l == link => Some(false),
            Event::Closed { .. } => Some(false),
            _ => None,
        });
        attached.filter(|is_attached| *is_attached)?;
        self.credit(link, credit);
        Some(link)
    }

    /// Waits for a message.
    #[must_use]
    pub fn receive_or_end(&mut self, link: LinkId) -> Option<Received> {
        self.wait_or_end("message", |event| match event {
            Event::Delivery {
                link: l,
                session,
                delivery_id,
                payload,
                ..
            } if *l == link => Some(Some(Received {
                session: *session,
                delivery_id: *delivery_id,
                payload: payload.clone(),
            })),
            Event::Detached { link: l, .. } if *l == link => Some(None),
            Event::Closed { .. } => Some(None),
            _ => None,
        })?
    }

    /// Completes a message and waits until the broker has confirmed it; true if it has.
    #[must_use]
    pub fn complete_or_end(&mut self, received: &Received) -> bool {
        let (session, id) = (received.session, received.delivery_id);
        self.connection
            .dispose_received(session, id, DeliveryState::Accepted, false);
        self.flush();
        let confirmed = self.wait_or_end("settlement", |event| match event {
            Event::Updated {
                delivery_id, state, ..
            } if *delivery_id == id => Some(*state == Some(DeliveryState::Accepted)),
            Event::Closed { .. } => Some(false),
            _ => None,
        });
        confirmed.unwrap_or(false)
    }
}

//! Ending: what a peer does with a broker that may end at any moment, and the end of a session in
//! good order. A call `..._or_end` returns `None` when the stream has ended without an answer, and
//! panics only when nothing comes for too long.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use amqp::{DeliveryState, Role, Source, Symbol, Target, TargetTerminus, Value};
use endpoint::{Event, LinkId, Outgoing, SessionId};

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
    /// Waits for the broker's close without ever answering it.
    ///
    /// # Panics
    /// When nothing comes.
    pub fn closed_without_answer(&mut self) -> usize {
        let mut bytes = [0; 1024];
        self.stream
            .read(&mut bytes)
            .expect("the broker says goodbye")
    }

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

    /// Opens a receiver of one session without credit.
    #[must_use]
    pub fn session_receiver_or_end(&mut self, queue: &str, session: &str) -> Option<LinkId> {
        let name = Symbol::new("com.microsoft:session-filter");
        let source = Source {
            address: Some(Value::from(queue)),
            filter: Some(vec![(Value::Symbol(name), Value::from(session))]),
            ..Source::default()
        };
        let target = TargetTerminus::Node(Target::default());
        let link = self.ask_for(Role::Receiver, source, target);
        let attached = self.wait_or_end("attach", |event| match event {
            Event::Attached { link: l, attach } if *l == link => Some(attach.source.is_some()),
            Event::Detached { link: l, .. } if *l == link => Some(false),
            Event::Closed { .. } => Some(false),
            _ => None,
        });
        attached
            .filter(|is_attached| *is_attached)
            .map(|_attached| link)
    }

    /// Opens a link to the coordinator of transactions and waits for credit.
    #[must_use]
    pub fn coordinator_or_end(&mut self) -> Option<LinkId> {
        let target = TargetTerminus::Coordinator(Vec::new());
        let link = self.ask_for(Role::Sender, Source::default(), target);
        self.wait_or_end("credit", |event| match event {
            Event::Credit { link: l, .. } if *l == link => Some(Some(link)),
            Event::Detached { link: l, .. } if *l == link => Some(None),
            Event::Closed { .. } => Some(None),
            _ => None,
        })?
    }

    /// Uses all credit of a receiver up and returns what has arrived.
    #[must_use]
    pub fn drain_or_end(&mut self, link: LinkId, credit: u32) -> Option<Vec<Received>> {
        self.connection.set_credit(link, credit, true);
        self.flush();
        let mut all = Vec::new();
        loop {
            let next = self.wait_or_end("drain", |event| match event {
                Event::Delivery {
                    link: l,
                    session,
                    delivery_id,
                    payload,
                    ..
                } if *l == link => Some(Some(Some(Received {
                    session: *session,
                    delivery_id: *delivery_id,
                    payload: payload.clone(),
                }))),
                Event::Drained { link: l } if *l == link => Some(Some(None)),
                Event::Detached { link: l, .. } if *l == link => Some(None),
                Event::Closed { .. } => Some(None),
                _ => None,
            })??;
            match next {
                Some(received) => all.push(received),
                None => return Some(all),
            }
        }
    }

    /// Settles a message of a link and waits for the broker's answer.
    #[must_use]
    pub fn settle_or_end(
        &mut self,
        link: LinkId,
        received: &Received,
        state: DeliveryState,
    ) -> Option<DeliveryState> {
        let (session, id) = (received.session, received.delivery_id);
        self.connection.dispose_received(session, id, state, false);
        self.flush();
        self.wait_or_end("settlement", |event| match event {
            Event::Updated {
                link: l,
                delivery_id,
                state,
                ..
            } if *l == link && *delivery_id == id => Some(state.clone()),
            Event::Detached { link: l, .. } if *l == link => Some(None),
            Event::Closed { .. } => Some(None),
            _ => None,
        })?
    }

    /// Sends a message once there is credit, perhaps with a state; the result names it.
    pub fn send_or_end(
        &mut self,
        link: LinkId,
        message: &[u8],
        state: Option<DeliveryState>,
    ) -> Option<u128> {
        while self.connection.send_credit(link) == 0 {
            let has_more = self.wait_or_end("credit", |event| match event {
                Event::Credit { link: l, .. } if *l == link => Some(true),
                Event::Detached { link: l, .. } if *l == link => Some(false),
                Event::Closed { .. } => Some(false),
                _ => None,
            });
            has_more.filter(|has_more| *has_more)?;
        }
        Some(self.send_with_state(link, message, state))
    }

    /// Sends a message, perhaps with the state of a transaction; the result names it.
    pub(super) fn send_with_state(
        &mut self,
        link: LinkId,
        message: &[u8],
        state: Option<DeliveryState>,
    ) -> u128 {
        self.cookies += 1;
        let outgoing = Outgoing {
            tag: &self.cookies.to_be_bytes(),
            cookie: self.cookies,
            state,
            ..Outgoing::default()
        };
        self.connection
            .send(link, &outgoing, &[message])
            .expect("the link has credit");
        self.flush();
        self.cookies
    }

    /// Settles a message that was an answer, without waiting.
    pub fn forget(&mut self, answer: &Received) {
        let (session, id) = (answer.session, answer.delivery_id);
        self.connection
            .dispose_received(session, id, DeliveryState::Accepted, true);
        self.flush();
    }
}

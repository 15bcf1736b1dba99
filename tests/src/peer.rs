//! Peer: an AMQP client in the hands of a test.
//!
//! It is the project's own engine in the client's role on a blocking stream. Every method drives
//! the connection until what it waits for has happened; everything else is kept for later.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Error, Role, Source, Symbol, Target, TargetTerminus, Value};
use bytes::{Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, SessionId, Side};

use crate::{Credentials, PATIENCE, message};

mod arrived;
mod ending;
mod selecting;
mod send_credit;
mod virtual_host;

/// The host that a peer names.
const HOST: &str = "localhost";

/// A message that arrived.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Received {
    pub session: SessionId,
    pub delivery_id: u32,
    pub payload: Bytes,
}

impl Received {
    /// What [`message::encode`] was given.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        message::body(&self.payload)
    }
}

/// One connection.
pub struct Peer<S = TcpStream> {
    connection: Connection,
    stream: S,
    input: BytesMut,
    events: VecDeque<Event>,
    start: Instant,
    links: u32,
    cookies: u128,
}

impl Peer<TcpStream> {
    /// Connects with the well-known key and waits until the connection is open.
    ///
    /// # Panics
    /// When it does not open.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        let mut peer = Self::begin(address, Credentials::DEVELOPMENT);
        peer.wait("open", |event| {
            matches!(event, Event::Opened(_)).then_some(())
        });
        peer
    }

    /// Connects and says what a client says first, without waiting for an answer.
    ///
    /// # Panics
    /// When no broker listens.
    #[must_use]
    pub fn begin(address: SocketAddr, credentials: Credentials) -> Self {
        Self::over(connect(address), credentials)
    }

    /// Connects without showing anything, and waits until the connection is open.
    ///
    /// # Panics
    /// When it does not open.
    #[must_use]
    pub fn anonymous(address: SocketAddr) -> Self {
        let sasl = (Symbol::new("ANONYMOUS"), Vec::new());
        let mut peer = Self::with(connect(address), sasl, HOST);
        assert!(peer.try_open(), "any client may connect");
        peer
    }

    /// The socket, for tests that break rules.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }
}

/// A connection to `address` that waits no longer than [`PATIENCE`].
///
/// # Panics
/// When no broker listens.
#[must_use]
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the broker listens");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("the socket is open");
    stream.set_nodelay(true).expect("the socket is open");
    stream
}

impl<S: Read + Write> Peer<S> {
    /// Says on `stream` what a client says first, without waiting for an answer.
    #[must_use]
    pub fn over(stream: S, credentials: Credentials) -> Self {
        Self::with(stream, credentials.login(), HOST)
    }

    fn with(stream: S, sasl: (Symbol, Vec<u8>), host: &str) -> Self {
        let config = Config {
            container_id: "e2e".to_owned(),
            hostname: Some(host.to_owned()),
            client_sasl: Some(sasl),
            ..Config::default()
        };
        let mut peer = Self {
            connection: Connection::new(Side::Client, config, Mono(0)),
            stream,
            input: BytesMut::new(),
            events: VecDeque::new(),
            start: Instant::now(),
            links: 0,
            cookies: 0,
        };
        peer.flush();
        peer
    }

    /// Opens a sender to `queue` and waits for credit.
    #[must_use]
    pub fn sender(&mut self, queue: &str) -> LinkId {
        let link = self.attach(Role::Sender, queue);
        self.wait("credit", |event| match event {
            Event::Credit { link: l, .. } if *l == link => Some(()),
            _ => None,
        });
        link
    }

    /// Opens a receiver in peek-lock mode with so much credit.
    #[must_use]
    pub fn receiver(&mut self, queue: &str, credit: u32) -> LinkId {
        let link = self.attach(Role::Receiver, queue);
        self.connection.set_credit(link, credit, false);
        self.flush();
        link
    }

    /// Gives a receiver so much credit.
    pub fn credit(&mut self, link: LinkId, credit: u32) {
        self.connection.set_credit(link, credit, false);
        self.flush();
    }

    /// Asks for a link to a transaction coordinator; true if it is granted.
    #[must_use]
    pub fn coordinates(&mut self) -> bool {
        let target = TargetTerminus::Coordinator(Vec::new());
        let link = self.ask_for(Role::Sender, Source::default(), target);
        self.answer(link).is_ok()
    }

    /// Asks for a link and returns it, or why it is refused.
    ///
    /// # Errors
    /// When the broker refuses it.
    pub fn try_attach(&mut self, role: Role, node: &str) -> Result<LinkId, Error> {
        let link = self.ask(role, node);
        self.answer(link).map(|()| link)
    }

    /// Waits for the answer to an attach.
    fn answer(&mut self, link: LinkId) -> Result<(), Error> {
        let refused = self.wait("attach or refusal", |event| match event {
            Event::Attached { link: l, attach } if *l == link => match attach.role {
                Role::Sender => attach.source.is_some().then_some(Ok(())),
                Role::Receiver => attach.target.is_some().then_some(Ok(())),
            },
            Event::Detached { link: l, error, .. } if *l == link => Some(Err(error.clone())),
            _ => None,
        });
        refused.map_err(|error| error.expect("a refusal says why"))
    }

    /// Asks for a link, waits for the answer and expects it to be a refusal.
    ///
    /// # Panics
    /// When the link is granted.
    #[must_use]
    pub fn refused(&mut self, role: Role, queue: &str) -> Error {
        let link = self.ask(role, queue);
        self.wait("refusal", |event| match event {
            Event::Detached { link: l, error, .. } if *l == link => Some(error.clone()),
            _ => None,
        })
        .expect("a refusal says why")
    }

    /// Sends a message and waits for the broker's word on it.
    #[must_use]
    pub fn send(&mut self, link: LinkId, body: &[u8]) -> DeliveryState {
        let cookie = self.send_only(link, body);
        self.outcome(cookie)
    }

    /// Sends a message without waiting; the result names it.
    ///
    /// # Panics
    /// When there is no credit.
    pub fn send_only(&mut self, link: LinkId, body: &[u8]) -> u128 {
        self.send_encoded(link, &message::encode(body))
    }

    /// Sends an encoded message without waiting; the result names it.
    ///
    /// # Panics
    /// When there is no credit.
    pub fn send_encoded(&mut self, link: LinkId, message: &[u8]) -> u128 {
        self.send_with_state(link, message, None)
    }

    /// Waits for the broker's word on a message.
    #[must_use]
    pub fn outcome(&mut self, cookie: u128) -> DeliveryState {
        self.wait("outcome", |event| match event {
            Event::Disposed {
                cookie: c, state, ..
            } if *c == cookie => Some(state.clone()),
            _ => None,
        })
        .expect("an outcome has a state")
    }

    /// Waits for a message.
    #[must_use]
    pub fn receive(&mut self, link: LinkId) -> Received {
        self.wait("message", |event| match event {
            Event::Delivery {
                link: l,
                session,
                delivery_id,
                payload,
                ..
            } if *l == link => Some(Received {
                session: *session,
                delivery_id: *delivery_id,
                payload: payload.clone(),
            }),
            _ => None,
        })
    }

    /// Settles a message and waits until the broker has confirmed it.
    #[must_use]
    pub fn settle(&mut self, received: &Received, state: DeliveryState) -> Option<DeliveryState> {
        self.connection
            .dispose_received(received.session, received.delivery_id, state, false);
        self.flush();
        self.wait("settlement", |event| match event {
            Event::Updated {
                delivery_id, state, ..
            } if *delivery_id == received.delivery_id => Some(state.clone()),
            _ => None,
        })
    }

    /// Uses all credit of a receiver up: what there is arrives, then the drain is answered.
    #[must_use]
    pub fn drain(&mut self, link: LinkId, credit: u32) -> Vec<Received> {
        self.connection.set_credit(link, credit, true);
        self.flush();
        let mut all = Vec::new();
        loop {
            let next = self.wait("drain", |event| match event {
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
                Event::Drained { link: l } if *l == link => Some(None),
                _ => None,
            });
            match next {
                Some(received) => all.push(received),
                None => return all,
            }
        }
    }

    /// Waits until the broker ends the connection, and returns why.
    #[must_use]
    pub fn closed(&mut self) -> Option<Error> {
        self.wait("close", |event| match event {
            Event::Closed { error, .. } => Some(error.clone()),
            _ => None,
        })
    }

    /// Waits until the broker ends the link, and returns why.
    #[must_use]
    pub fn detached(&mut self, link: LinkId) -> Option<Error> {
        self.wait("detach", |event| match event {
            Event::Detached { link: l, error, .. } if *l == link => Some(error.clone()),
            _ => None,
        })
    }

    /// Waits until the connection is open or closed, and returns whether it is open.
    #[must_use]
    pub fn try_open(&mut self) -> bool {
        self.wait("open or close", |event| match event {
            Event::Opened(_) => Some(true),
            Event::Closed { .. } => Some(false),
            _ => None,
        })
    }

    /// Waits for the end of SASL.
    #[must_use]
    pub fn sasl_outcome(&mut self) -> amqp::sasl::Code {
        self.wait("SASL outcome", |event| match event {
            Event::SaslOutcome(code) => Some(*code),
            _ => None,
        })
    }

    /// The stream below, for tests that break its rules.
    pub fn inner(&mut self) -> &mut S {
        &mut self.stream
    }

    fn attach(&mut self, role: Role, queue: &str) -> LinkId {
        let link = self.ask(role, queue);
        let granted = self.wait("attach", |event| match event {
            Event::Attached { link: l, attach } if *l == link => {
                Some(attach.source.is_some() && attach.target.is_some())
            }
            _ => None,
        });
        assert!(granted, "the link to {queue} is refused");
        link
    }

    fn ask(&mut self, role: Role, queue: &str) -> LinkId {
        let address = Some(Value::String(queue.into()));
        let (source, address) = match role {
            Role::Sender => (None, address),
            Role::Receiver => (address, None),
        };
        let target = Target {
            address,
            ..Target::default()
        };
        let source = Source {
            address: source,
            ..Source::default()
        };
        self.ask_for(role, source, TargetTerminus::Node(target))
    }

    fn ask_for(&mut self, role: Role, source: Source, target: TargetTerminus) -> LinkId {
        self.links += 1;
        let attach = Attach {
            name: format!("link-{}", self.links),
            handle: 0,
            role,
            snd_settle_mode: Some(SenderSettleMode::Unsettled),
            rcv_settle_mode: Some(match role {
                Role::Sender => ReceiverSettleMode::First,
                Role::Receiver => ReceiverSettleMode::Second,
            }),
            source: Some(Box::new(source)),
            target: Some(Box::new(target)),
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: (role == Role::Sender).then_some(0),
            max_message_size: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        };
        let session = self.connection.begin();
        let link = self.connection.attach(session, attach);
        self.flush();
        link
    }

    /// Returns what `pick` makes of the first event that it wants; others stay.
    fn wait<T>(&mut self, what: &str, pick: impl FnMut(&Event) -> Option<T>) -> T {
        let found = self.wait_or_end(what, pick);
        found.unwrap_or_else(|| {
            let events = &self.events;
            panic!("waiting for {what}: the broker is gone; so far {events:?}")
        })
    }

    /// The same; `None` when the stream ends without it.
    fn wait_or_end<T>(
        &mut self,
        what: &str,
        mut pick: impl FnMut(&Event) -> Option<T>,
    ) -> Option<T> {
        let mut seen = 0;
        loop {
            while seen < self.events.len() {
                if let Some(found) = pick(&self.events[seen]) {
                    drop(self.events.remove(seen));
                    return Some(found);
                }
                seen += 1;
            }
            if !self.read(what) {
                return None;
            }
        }
    }

    /// Reads what there is, waiting for at least one byte. False when there is nothing to come.
    fn read(&mut self, what: &str) -> bool {
        let mut bytes = [0; 64 * 1024];
        let now = self.now();
        match self.stream.read(&mut bytes) {
            Ok(0) => return self.lose(),
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                self.connection.handle_input(now, &mut self.input);
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return self.lose(),
            Err(error) => panic!("waiting for {what}: {error}; so far {:?}", self.events),
        }
        self.gather();
        self.flush();
        true
    }

    /// The stream has ended; true if that is news.
    fn lose(&mut self) -> bool {
        let before = self.events.len();
        self.connection.handle_eof();
        self.gather();
        self.events.len() > before
    }

    fn gather(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            self.events.push_back(event);
        }
    }

    /// Writes all there is to write.
    fn flush(&mut self) {
        let now = self.now();
        let output = self.connection.output(now).split();
        // A broker that has closed the connection does not read any more.
        drop(
            self.stream
                .write_all(&output)
                .and_then(|()| self.stream.flush()),
        );
        self.gather();
    }

    fn now(&self) -> Mono {
        Mono(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

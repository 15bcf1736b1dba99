//! Pair: a client and a server engine joined in memory, with a clock that is moved by hand.

use std::collections::VecDeque;

use amqp::performative::Role;
use amqp::{Attach, Source, Symbol, Target, TargetTerminus};
use bytes::{Buf, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, SessionId, Side};

use super::script;

/// Two engines; bytes cross in pieces of at most `cut` bytes.
pub struct Pair {
    pub client: Connection,
    pub server: Connection,
    pub client_events: VecDeque<Event>,
    pub server_events: VecDeque<Event>,
    pub now: u64,
    /// Sizes of the pieces, used again and again.
    cuts: Vec<usize>,
    next_cut: usize,
    to_server: BytesMut,
    to_client: BytesMut,
}

impl Pair {
    pub fn new(client: Config, server: Config, cuts: &[usize]) -> Self {
        Self {
            client: Connection::new(Side::Client, client, Mono(0)),
            server: Connection::new(Side::Server, server, Mono(0)),
            client_events: VecDeque::new(),
            server_events: VecDeque::new(),
            now: 0,
            cuts: cuts.to_vec(),
            next_cut: 0,
            to_server: BytesMut::new(),
            to_client: BytesMut::new(),
        }
    }

    /// A pair with SASL ANONYMOUS, opened.
    pub fn opened(client: Config, server: Config, cuts: &[usize]) -> Self {
        let client = Config {
            client_sasl: Some((Symbol::new("ANONYMOUS"), Vec::new())),
            ..client
        };
        let mut pair = Self::new(client, server, cuts);
        pair.run();
        let init = pair.server_events.pop_front();
        assert!(matches!(init, Some(Event::SaslInit { .. })), "{init:?}");
        pair.server.finish_sasl(amqp::sasl::Code::Ok);
        pair.run();
        assert!(matches!(
            pair.client_events.make_contiguous(),
            [Event::SaslOutcome(amqp::sasl::Code::Ok), Event::Opened(_)]
        ));
        pair.client_events.clear();
        pair.server_events.clear();
        pair
    }

    pub fn default_opened() -> Self {
        Self::opened(script::config(), script::config(), &[usize::MAX])
    }

    /// Carries bytes both ways until nothing moves any more.
    pub fn run(&mut self) {
        while self.carry() {}
    }

    fn carry(&mut self) -> bool {
        let now = Mono(self.now);
        let to_server = self.client.output(now).split();
        let to_client = self.server.output(now).split();
        let moved = !to_server.is_empty() || !to_client.is_empty();
        for (mut bytes, server) in [(to_server, true), (to_client, false)] {
            while !bytes.is_empty() {
                let piece = self.piece(&mut bytes);
                self.feed(&piece, server);
            }
        }
        self.collect();
        moved
    }

    fn piece(&mut self, bytes: &mut BytesMut) -> BytesMut {
        let cut = self.cuts[self.next_cut % self.cuts.len()].max(1);
        self.next_cut += 1;
        let piece = bytes.split_to(cut.min(bytes.len()));
        assert!(piece.has_remaining());
        piece
    }

    fn feed(&mut self, piece: &[u8], server: bool) {
        let now = Mono(self.now);
        let (engine, input) = if server {
            (&mut self.server, &mut self.to_server)
        } else {
            (&mut self.client, &mut self.to_client)
        };
        input.extend_from_slice(piece);
        engine.handle_input(now, input);
        self.collect();
    }

    fn collect(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.client_events.push_back(event);
        }
        while let Some(event) = self.server.poll_event() {
            self.server_events.push_back(event);
        }
    }

    /// Moves the clock and lets both do what is due.
    pub fn advance(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        self.client.handle_timeout(Mono(self.now));
        self.server.handle_timeout(Mono(self.now));
        self.run();
    }

    /// Begins a session; both ids.
    pub fn begin(&mut self) -> (SessionId, SessionId) {
        let client = self.client.begin();
        self.run();
        let session = self
            .server_events
            .iter()
            .rev()
            .find_map(|event| match event {
                Event::Begun { session } => Some(*session),
                _ => None,
            });
        (client, session.expect("the server has begun"))
    }

    /// Attaches a link by the client's wish, accepted with the client's own words; both ids.
    pub fn attach(&mut self, session: SessionId, name: &str, role: Role) -> (LinkId, LinkId) {
        let client = self.client.attach(session, attach(name, role));
        self.run();
        let server = self.accept_next();
        self.run();
        assert!(self.client.is_attached(client));
        assert!(self.server.is_attached(server));
        (client, server)
    }

    /// Accepts the newest link that the client asked for.
    pub fn accept_next(&mut self) -> LinkId {
        let requested = self.server_events.iter().rev().find_map(|event| {
            if let Event::AttachRequested { link, attach, .. } = event {
                return Some((*link, (**attach).clone()));
            }
            None
        });
        let (link, mut reply) = requested.expect("the client has asked");
        reply.initial_delivery_count = None;
        self.server.accept(link, reply);
        link
    }

    pub fn take_client_events(&mut self) -> Vec<Event> {
        self.client_events.drain(..).collect()
    }

    pub fn take_server_events(&mut self) -> Vec<Event> {
        self.server_events.drain(..).collect()
    }
}

pub fn attach(name: &str, role: Role) -> Attach {
    Attach {
        name: name.to_owned(),
        handle: 0,
        role,
        snd_settle_mode: None,
        rcv_settle_mode: None,
        source: Some(Box::new(Source::default())),
        target: Some(Box::new(TargetTerminus::Node(Target::default()))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: None,
        max_message_size: None,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

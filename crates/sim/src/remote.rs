//! Remote: the client's end of one simulated connection, with one session on it at a time.

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::terminus::{Source, Target};
use amqp::{Attach, Role, Symbol, TargetTerminus, Value};
use broker::{ConnectionId, Now};
use bytes::{Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};

use crate::rng::Rng;

/// Under which a link says which session it wants, and is told which one it has.
pub const SESSION_FILTER: Symbol = Symbol::new("com.microsoft:session-filter");

/// A client's connection.
pub struct Remote {
    /// The name the broker's side has for it.
    pub connection: ConnectionId,
    /// The client's engine.
    pub endpoint: Connection,
    /// Its only open session.
    pub session: SessionId,
    /// Bytes that arrived and are not a whole frame yet.
    pub input: BytesMut,
}

impl Remote {
    /// Opens a connection to a host with everything pipelined.
    #[must_use]
    pub fn open(rng: &mut Rng, connection: ConnectionId, host: &str, now: Now) -> Self {
        let config = Config {
            hostname: Some(host.to_owned()),
            container_id: format!("sim-{}", connection.0),
            client_sasl: Some((Symbol::new("PLAIN"), b"\0sim\0simkey".to_vec())),
            max_frame_size: [512, 4_096, 65_536][rng.below(3)],
            incoming_window: [4, 100, 5_000][rng.below(3)],
            ..Config::default()
        };
        let mut endpoint = Connection::new(Side::Client, config, Mono(now.mono.0));
        let session = endpoint.begin();
        Self {
            connection,
            endpoint,
            session,
            input: BytesMut::new(),
        }
    }

    /// Ends its session, and the links with it, and begins another one.
    pub fn begin_again(&mut self) {
        self.endpoint.end(self.session, None);
        self.session = self.endpoint.begin();
    }

    /// Attaches a link that sends to `address`.
    pub fn attach_sender(&mut self, name: &str, address: &str) -> LinkId {
        let attach = Attach {
            role: Role::Sender,
            initial_delivery_count: Some(0),
            ..link(name, address)
        };
        self.endpoint.attach(self.session, attach)
    }

    /// Attaches both halves of a management pair of RabbitMQ's dialect: for requests, and for
    /// responses.
    pub fn attach_pair(&mut self) -> (LinkId, LinkId) {
        let half = |role| Attach {
            role,
            snd_settle_mode: Some(SenderSettleMode::Settled),
            initial_delivery_count: (role == Role::Sender).then_some(0),
            properties: Some(vec![(Value::Symbol("paired".into()), Value::Bool(true))]),
            ..link("management-link-pair", "/management")
        };
        let [requests, responses] = [Role::Sender, Role::Receiver].map(half);
        let requests = self.endpoint.attach(self.session, requests);
        (requests, self.endpoint.attach(self.session, responses))
    }

    /// Attaches a link to the coordinator of transactions.
    pub fn attach_coordinator(&mut self, name: &str) -> LinkId {
        let attach = Attach {
            role: Role::Sender,
            initial_delivery_count: Some(0),
            target: Some(Box::new(TargetTerminus::Coordinator(Vec::new()))),
            ..link(name, "")
        };
        self.endpoint.attach(self.session, attach)
    }

    /// Attaches a link that receives from `address`; `settled` asks for receive-and-delete.
    pub fn attach_receiver(&mut self, name: &str, address: &str, settled: bool) -> LinkId {
        let snd = if settled {
            SenderSettleMode::Settled
        } else {
            SenderSettleMode::Unsettled
        };
        let rcv = if settled {
            ReceiverSettleMode::First
        } else {
            ReceiverSettleMode::Second
        };
        let attach = Attach {
            snd_settle_mode: Some(snd),
            rcv_settle_mode: Some(rcv),
            ..link(name, address)
        };
        self.endpoint.attach(self.session, attach)
    }

    /// Attaches a consumer of RabbitMQ's dialect: it settles first, and may wait for the answer.
    pub fn attach_consumer(&mut self, name: &str, address: &str) -> LinkId {
        let attach = Attach {
            snd_settle_mode: Some(SenderSettleMode::Unsettled),
            rcv_settle_mode: Some(ReceiverSettleMode::First),
            ..link(name, address)
        };
        self.endpoint.attach(self.session, attach)
    }

    /// Attaches a link that wants a session of `address`: the one named, or the next that there is
    /// within `timeout_ms` milliseconds.
    pub fn attach_holder(
        &mut self,
        name: &str,
        address: &str,
        wanted: Option<&str>,
        timeout_ms: u32,
    ) -> LinkId {
        let mut attach = link(name, address);
        attach.snd_settle_mode = Some(SenderSettleMode::Unsettled);
        attach.rcv_settle_mode = Some(ReceiverSettleMode::Second);
        let id = wanted.map_or(Value::Null, Value::from);
        if let Some(source) = attach.source.as_deref_mut() {
            source.filter = Some(vec![(Value::Symbol(SESSION_FILTER), id)]);
        }
        let timeout = Value::Symbol(Symbol::new("com.microsoft:timeout"));
        attach.properties = Some(vec![(timeout, Value::Uint(timeout_ms))]);
        self.endpoint.attach(self.session, attach)
    }

    /// Sends `payload` over `link` as the request `id`, without an outcome; whether it went.
    pub fn request(&mut self, link: LinkId, id: u64, payload: &Bytes) -> bool {
        let tag = id.to_be_bytes();
        let outgoing = Outgoing {
            tag: &tag,
            settled: true,
            ..Outgoing::default()
        };
        self.endpoint.send(link, &outgoing, &[payload]).is_ok()
    }

    /// Takes in what has arrived and returns what it means.
    pub fn events(&mut self, now: Now) -> Vec<Event> {
        self.endpoint
            .handle_input(Mono(now.mono.0), &mut self.input);
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }
}

/// An attach with `address` at both ends; the receiver's role is the default.
fn link(name: &str, address: &str) -> Attach {
    let address = Some(Value::String(address.to_owned()));
    Attach {
        name: name.to_owned(),
        handle: 0,
        role: Role::Receiver,
        snd_settle_mode: None,
        rcv_settle_mode: None,
        source: Some(Box::new(Source {
            address: address.clone(),
            ..Source::default()
        })),
        target: Some(Box::new(TargetTerminus::Node(Target {
            address,
            ..Target::default()
        }))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: None,
        max_message_size: None,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

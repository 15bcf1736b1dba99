//! RabbitMQ's dialect: links, messages and requests of any content, before a real broker.
//!
//! The input is a program of a client that has every right. Each request gets one response, each
//! message of a link that stays gets one outcome, what is delivered is sound, and nothing is left
//! in the connection when the broker has answered.

#![no_main]

// The client, the broker and the connection between them are those of the dialect's tests.
#[path = "../../crates/servicebus/tests/dialect/client_frames.rs"]
#[allow(dead_code)]
mod client_frames;
#[path = "../../crates/rabbitmq/tests/dialect/management_client.rs"]
#[allow(dead_code)]
mod management_client;
mod program;
#[path = "../../crates/servicebus/tests/dialect/received.rs"]
#[allow(dead_code)]
mod received;
#[path = "../../crates/servicebus/tests/dialect/world.rs"]
#[allow(dead_code, unused_imports)]
mod world;

use amqp::message::{Properties, Sections};
use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Map, TargetTerminus, Value, decode};
use bytes::Bytes;
use dialect::Dialect;
use endpoint::{Event, LinkId, Outgoing};
use libfuzzer_sys::fuzz_target;
use management_client::{Management, request};
use program::Program;
use world::World;

/// Each opens a session at most, of which a connection has few.
const MOST_STEPS: usize = 64;

const ADDRESSES: [&str; 8] = [
    "/queues/",
    "/exchanges/",
    "/exchanges/amq.topic/",
    "/exchanges/amq.direct/",
    "/exchanges/x/",
    "/management",
    "/",
    "",
];
const PATHS: [&str; 8] = [
    "/queues/",
    "/exchanges/",
    "/bindings/",
    "/bindings",
    "/bindings?src=",
    "/bindings/src=",
    "/auth/tokens",
    "/",
];
const NAMES: [&str; 8] = ["orders", "a", "b", "x", "a/messages", "amq.topic", "#", ""];
const KEYS: [&str; 24] = [
    "durable",
    "auto_delete",
    "exclusive",
    "type",
    "internal",
    "source",
    "binding_key",
    "destination_queue",
    "destination_exchange",
    "x-queue-type",
    "x-message-ttl",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-delivery-limit",
    "x-single-active-consumer",
    "alternate-exchange",
    "x-match",
    "rabbitmq:priority",
    "rabbitmq:stream-offset-spec",
];
const TEXTS: [&str; 12] = [
    "quorum",
    "classic",
    "stream",
    "direct",
    "fanout",
    "topic",
    "headers",
    "orders",
    "a",
    "x",
    "reject-publish",
    "all",
];

fuzz_target!(|input: &[u8]| {
    let mut program = Program { bytes: input };
    let mut run = Run::new();
    for _ in 0..MOST_STEPS {
        if program.bytes.is_empty() || run.closed {
            return;
        }
        run.step(&mut program);
        run.check();
    }
});

/// The connection of a world, with links of RabbitMQ's dialect.
fn shared(client: servicebus::Client) -> servicebus::Client {
    let settings = rabbitmq::Settings {
        node: "node".to_owned(),
        max_message_size: 262_144,
        dynamic_nodes: Some(&[access::RequiredRight::Manage]),
    };
    let ids = dialect::MessageIds::new([9; 16]);
    client.sharing(Box::new(rabbitmq::Links::new(settings, ids)))
}

struct Run {
    world: World,
    pair: Management,
    /// Requests without a response so far.
    asked: usize,
    /// With the number of messages that have no outcome yet.
    publishers: Vec<(LinkId, usize)>,
    consumers: Vec<LinkId>,
    links: usize,
    closed: bool,
}

impl Run {
    fn new() -> Self {
        let mut world = World::new();
        let pair = management_client::open(&mut world);
        Self {
            world,
            pair,
            asked: 0,
            publishers: Vec::new(),
            consumers: Vec::new(),
            links: 0,
            closed: false,
        }
    }

    fn step(&mut self, program: &mut Program<'_>) {
        match program.byte() % 16 {
            0..2 => self.attach_publisher(program),
            2..4 => self.attach_consumer(program),
            4 => {
                let request = program.chunk();
                self.ask(&request);
            }
            5..10 => {
                let method = ["GET", "PUT", "POST", "DELETE", "get"][program.below(5)];
                let to = format!("{}{}", PATHS[program.below(8)], program.name());
                let body = program.value();
                let body_first = program.byte() & 1 == 1;
                self.ask(&request(method, &to, Some(&body), body_first));
            }
            10..13 => {
                let message = match program.byte() & 1 {
                    0 => client_frames::message("a message"),
                    _ => program.chunk(),
                };
                self.publish(program, &message);
            }
            13 => self.world.advance(u64::from(program.byte()) * 100),
            14 => {
                if let Some(link) = pick(&self.consumers, program) {
                    let credit = program.byte().into();
                    let drain = program.byte() & 1 == 1;
                    self.world.credit(link, credit, drain);
                }
            }
            _ => self.detach(program),
        }
    }

    fn ask(&mut self, request: &Bytes) {
        let outgoing = Outgoing {
            tag: b"t",
            settled: true,
            ..Outgoing::default()
        };
        let sent = self
            .world
            .client
            .send(self.pair.requests, &outgoing, &[request]);
        self.asked += usize::from(sent.is_ok());
        self.world.pump();
    }

    fn publish(&mut self, program: &mut Program<'_>, message: &Bytes) {
        let which = program.below(self.publishers.len().max(1));
        let Some((link, unanswered)) = self.publishers.get_mut(which) else {
            return;
        };
        let outgoing = Outgoing {
            tag: b"t",
            settled: program.byte() % 4 == 0,
            ..Outgoing::default()
        };
        let sent = self.world.client.send(*link, &outgoing, &[message]);
        *unanswered += usize::from(sent.is_ok() && !outgoing.settled);
        self.world.pump();
    }

    fn attach_publisher(&mut self, program: &mut Program<'_>) {
        let mut attach = client_frames::sender(&program.address());
        if program.byte() % 4 == 0
            && let Some(TargetTerminus::Node(target)) = attach.target.as_deref_mut()
        {
            target.address = program.byte().is_multiple_of(2).then(|| program.value());
            target.dynamic = program.byte() & 1 == 1;
            target.dynamic_node_properties = Some(program.value());
        }
        if let Some(link) = self.attach(program, attach) {
            self.publishers.push((link, 0));
        }
    }

    fn attach_consumer(&mut self, program: &mut Program<'_>) {
        let mode = match program.byte() & 1 {
            0 => SenderSettleMode::Settled,
            _ => SenderSettleMode::Unsettled,
        };
        let mut attach = client_frames::receiver(&program.address(), mode);
        if program.byte() % 4 == 0
            && let Some(source) = attach.source.as_deref_mut()
        {
            source.filter = program.map();
            source.dynamic = program.byte() & 1 == 1;
            source.dynamic_node_properties = Some(program.value());
            source.capabilities = vec!["queue".into(); program.below(2)];
        }
        if let Some(link) = self.attach(program, attach) {
            self.world.credit(link, 10, false);
            self.consumers.push(link);
        }
    }

    /// The link, unless it is refused.
    fn attach(&mut self, program: &mut Program<'_>, attach: Attach) -> Option<LinkId> {
        self.links += 1;
        let properties = match program.byte() % 4 {
            0 => program.map(),
            1 => Some(vec![(Value::Symbol("paired".into()), Value::Bool(true))]),
            _ => None,
        };
        let attach = Attach {
            name: format!("link {}", self.links),
            properties,
            ..attach
        };
        let session = self.world.session();
        let link = self.world.attach(session, attach);
        self.world.client.is_attached(link).then_some(link)
    }

    fn detach(&mut self, program: &mut Program<'_>) {
        let publishers = self.publishers.iter().map(|(link, _)| *link);
        let links: Vec<_> = publishers.chain(self.consumers.iter().copied()).collect();
        if let Some(link) = pick(&links, program) {
            self.world.client.detach(link, true, None);
            self.world.pump();
        }
    }

    /// Holds what the client got against what is promised, and settles it.
    fn check(&mut self) {
        let world = &mut self.world;
        let answers = world.received(self.pair.responses);
        assert!(answers.len() <= self.asked, "one response for each request");
        self.asked -= answers.len();
        answers
            .iter()
            .for_each(|answer| check_response(&answer.payload));
        for (at, link) in self.consumers.iter().enumerate() {
            for delivery in world.received(*link) {
                delivery.sections();
                if !delivery.settled {
                    let states = [
                        DeliveryState::Accepted,
                        DeliveryState::Released,
                        DeliveryState::Rejected(None),
                    ];
                    world.dispose(&delivery, states[at % 3].clone(), true);
                }
            }
        }
        for (link, unanswered) in &mut self.publishers {
            *unanswered -= world.outcomes(*link).len();
        }
        self.closed = world
            .events
            .iter()
            .any(|event| matches!(event, Event::Closed { .. }));
        world.events.clear();
        world.commands.clear();
        if self.closed {
            return;
        }
        world.credit(self.pair.responses, 100, false);
        let is_attached = |link: LinkId| world.client.is_attached(link);
        self.publishers.retain(|(link, _)| is_attached(*link));
        self.consumers.retain(|link| is_attached(*link));
        assert!(
            is_attached(self.pair.requests) && self.asked == 0,
            "all are answered"
        );
        let without = self
            .publishers
            .iter()
            .find(|(_, unanswered)| *unanswered > 0);
        assert!(without.is_none(), "messages have no outcome");
        assert_eq!(world.server.unanswered_bytes(), 0);
        assert_eq!(world.server.partial_bytes(), 0);
        assert_eq!(world.server.unwritten(), 0);
    }
}

/// A response is a message whose subject is the status of a success or of a client's fault.
fn check_response(payload: &Bytes) {
    let sections = Sections::scan(payload).expect("responses are sound");
    let properties = Properties::decode(&payload.slice(sections.properties));
    let subject = properties.expect("properties").subject;
    let status = subject.and_then(|subject| subject.parse::<u16>().ok());
    assert!(matches!(status, Some(200..500)), "{status:?}");
}

fn pick<T: Copy>(from: &[T], program: &mut Program<'_>) -> Option<T> {
    from.get(program.below(from.len().max(1))).copied()
}

impl Program<'_> {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    /// Bytes of the input as they are.
    fn chunk(&mut self) -> Bytes {
        let len = self.byte().into();
        let (chunk, rest) = self.bytes.split_at(self.bytes.len().min(len));
        self.bytes = rest;
        Bytes::copy_from_slice(chunk)
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.chunk()).into_owned()
    }

    fn name(&mut self) -> String {
        match self.byte() % 4 {
            0 => self.text(),
            _ => NAMES[self.below(NAMES.len())].to_owned(),
        }
    }

    fn address(&mut self) -> String {
        format!("{}{}", ADDRESSES[self.below(ADDRESSES.len())], self.name())
    }

    /// A map with keys that mean something, mostly.
    fn map(&mut self) -> Option<Map> {
        let entries = 0..self.byte() % 8;
        Some(entries.map(|_| (self.key(), self.leaf())).collect())
    }

    fn key(&mut self) -> Value {
        match self.byte() % 8 {
            0 => self.leaf(),
            1 => Value::Symbol(KEYS[self.below(KEYS.len())].into()),
            _ => Value::from(KEYS[self.below(KEYS.len())]),
        }
    }

    fn leaf(&mut self) -> Value {
        match self.byte() % 8 {
            0 => Value::Bool(self.byte() & 1 == 1),
            1 => Value::Ulong(self.byte().into()),
            2 => Value::Long(i64::from(self.byte()) - 64),
            3 => Value::from(self.text().as_str()),
            4 => Value::Int(i32::MIN + i32::from(self.byte())),
            5 => decode::value(&self.chunk()).unwrap_or(Value::Null),
            _ => Value::from(TEXTS[self.below(TEXTS.len())]),
        }
    }

    /// What a request has for a body: a map, with arguments in it, or anything.
    fn value(&mut self) -> Value {
        if self.byte() % 8 == 0 {
            return self.leaf();
        }
        let mut map = self.map().unwrap_or_default();
        let arguments = self.map().unwrap_or_default();
        map.push((Value::from("arguments"), Value::Map(arguments)));
        Value::Map(map)
    }
}

//! A world in memory: one client connection, the dialect, one shard and a memory store.

use std::sync::Arc;

use access::{AccessRules, Directory};
use amqp::performative::SenderSettleMode;
use amqp::{Attach, DeliveryState, Error, Symbol};
use broker::{
    Answer, BrokerSettings, Browsed, Command, ConnectionId, Ensured, EntityError, LifetimePolicy,
    NodeKind, NodeLinkId, NodeRequest, Now, Order, Output, QueueSettings, RequestId, Shard,
    Subqueue, SubqueueId, Wall,
};
use dialect::{ClockReading, Dialect, MessageIds};
use endpoint::{Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};
use servicebus::{Client, Settings};
use store::{EntityId, MemoryStore, NamespaceId, SequenceNumber};

pub use crate::client_frames::{Pair, Request, message, receiver, rules, sender, target, token};
pub use crate::received::{Received, Response};

pub const KEY: &str = "a2V5LW9mLXJvb3Q=";
pub const SEND_KEY: &str = "a2V5LW9mLXNlbmRlcg==";
pub const LISTEN_KEY: &str = "a2V5LW9mLWxpc3RlbmVy";
/// The real clock at the start, in milliseconds.
pub const START: u64 = 1_700_000_000_000;
/// The broker's own clock runs apart from the real one, as a virtual clock does.
pub const BROKER_START: u64 = 1_000_000_000_000;

/// How a client authenticates.
#[derive(Clone, Copy, Debug)]
pub enum Login {
    Plain(&'static str, &'static str),
    Mechanism(&'static str),
}

/// Everything that takes part.
pub struct World {
    pub client: Connection,
    pub server: Client,
    pub shard: Shard,
    /// What the client's endpoint reported and no test has taken yet.
    pub events: Vec<Event>,
    /// Commands that the dialect gave, all of them.
    pub commands: Vec<Command>,
    /// While true the broker gets no commands.
    pub broker_stalls: bool,
    /// While true the client gets no bytes, and the server's output piles up.
    pub client_stalls: bool,
    directory: Directory,
    elapsed: u64,
    names: u32,
    waiting: Vec<Command>,
}

impl World {
    /// With every right, and queues `orders`, `orders2` and `sessions` (which requires them).
    pub fn new() -> Self {
        Self::with(Login::Plain("root", KEY), |_| {})
    }

    pub fn with(login: Login, change: impl FnOnce(&mut Settings)) -> Self {
        let mut world = Self::offline(login, change);
        world.pump();
        world
    }

    /// Before the first byte.
    pub fn offline(login: Login, change: impl FnOnce(&mut Settings)) -> Self {
        Self::offline_under(rules(), login, change)
    }

    /// Where other rules hold than usual.
    pub fn under(rules: AccessRules, login: Login) -> Self {
        let mut world = Self::offline_under(rules, login, |_| {});
        world.pump();
        world
    }

    /// The namespace's rules are replaced.
    pub fn replace_rules(&mut self, rules: AccessRules) {
        self.directory.set_access_rules(rules);
        self.spread_directory();
    }

    pub fn recheck_access(&mut self) {
        self.directory.recheck_access();
        self.spread_directory();
    }

    fn spread_directory(&mut self) {
        let directory = Arc::new(self.directory.clone());
        self.server.set_directory(self.clock_reading(), directory);
        self.pump();
    }

    /// The same, unconnected.
    pub fn offline_under(
        rules: AccessRules,
        login: Login,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut settings = Settings::default();
        change(&mut settings);
        let now = Now {
            wall: Wall(BROKER_START),
            mono: broker::Mono(0),
        };
        let shard = Shard::open(
            BrokerSettings::default(),
            servicebus::describe_forward_error,
            Box::new(MemoryStore::new()),
            now,
        )
        .expect("a new store");
        let mut world = Self {
            client: Connection::new(Side::Client, client_config(login), Mono(0)),
            server: crate::shared(Client::new(
                ConnectionId(7),
                Arc::new(settings),
                Arc::new(Directory::new(rules.clone())),
                MessageIds::new([7; 16]),
                ClockReading {
                    mono: Mono(0),
                    wall: Wall(START),
                },
            )),
            shard,
            events: Vec::new(),
            commands: Vec::new(),
            broker_stalls: false,
            client_stalls: false,
            directory: Directory::new(rules),
            elapsed: 0,
            names: 0,
            waiting: Vec::new(),
        };
        world.create(
            "orders",
            QueueSettings {
                lock_duration: 30_000,
                max_delivery_count: 3,
                ..QueueSettings::default()
            },
        );
        world.create("orders2", QueueSettings::default());
        world.create(
            "sessions",
            QueueSettings {
                requires_session: true,
                ..QueueSettings::default()
            },
        );
        world
    }

    /// Has the client desire `capabilities` when it opens the connection.
    pub fn desire(&mut self, login: Login, capabilities: Vec<Symbol>) {
        self.open_with(login, |config| config.desired_capabilities = capabilities);
    }

    /// Has the client open the connection in its own way.
    pub fn open_with(&mut self, login: Login, change: impl FnOnce(&mut endpoint::Config)) {
        let mut config = client_config(login);
        change(&mut config);
        self.client = Connection::new(Side::Client, config, Mono(0));
    }

    /// Creates a queue, or changes its settings.
    pub fn create(&mut self, path: &str, settings: QueueSettings) -> EntityId {
        let ensured = Ensured::Queue {
            path: path.to_owned(),
            settings,
        };
        self.ensure(ensured);
        self.id(path)
    }

    /// Has an entity made, or changed to what is given.
    pub fn ensure(&mut self, ensured: Ensured) {
        self.carry_out(Order::ensure(vec![ensured]));
    }

    /// The id of an entity that is there.
    pub fn id(&self, path: &str) -> EntityId {
        self.directory.get(path).expect("there is one").id
    }

    /// Has an order of an administrator carried out.
    pub fn administer(&mut self, order: Order) {
        self.carry_out(order);
        self.pump();
    }

    /// What the broker says to an order of an administrator.
    pub fn administered(&mut self, order: Order) -> Result<Answer, EntityError> {
        let request = RequestId {
            connection: ConnectionId::SERVER,
            token: 0,
        };
        let said = self.turn(vec![Command::Administer {
            request,
            namespace: NamespaceId::default(),
            order: Box::new(order),
        }]);
        let mut answers = said.iter().filter_map(|output| match output {
            Output::Administered { result, .. } => Some((**result).clone()),
            _ => None,
        });
        let answer = answers.next().expect("an answer");
        self.hear(said);
        answer
    }

    fn carry_out(&mut self, order: Order) {
        self.administered(order).expect("it can be carried out");
    }

    /// The messages of a queue, locked ones too, as the broker shows them without taking any.
    pub fn browsed(&mut self, path: &str) -> Vec<Browsed> {
        let said = self.turn(vec![Command::Peek {
            request: RequestId {
                connection: ConnectionId::SERVER,
                token: 0,
            },
            subqueue: SubqueueId {
                entity: self.id(path),
                subqueue: Subqueue::Main,
            },
            state: None,
            from: SequenceNumber(0),
            count: 100,
            max_bytes: 1 << 20,
        }]);
        let browsed = said.into_iter().find_map(|output| match output {
            Output::Browsed { result, .. } => result.ok(),
            _ => None,
        });
        browsed.expect("an answer")
    }

    /// A dynamic node that another connection has made in a namespace.
    pub fn node_of_another(&mut self, namespace: NamespaceId) -> EntityId {
        let node = NodeRequest {
            kind: NodeKind::Queue,
            lifetime: LifetimePolicy::DeleteOnClose,
            exclusive: true,
        };
        let link = NodeLinkId {
            connection: ConnectionId(8),
            link: self.names,
        };
        self.names += 1;
        let said = self.turn(vec![Command::CreateNode {
            link,
            namespace,
            node,
        }]);
        let opened = said.into_iter().find_map(|output| match output {
            Output::NodeOpened { result, .. } => result.ok(),
            _ => None,
        });
        opened.expect("it is made").entity
    }

    /// Deletes a queue.
    pub fn remove(&mut self, path: &str) {
        let path = path.to_owned();
        self.administer(Order::Remove { path });
    }

    pub fn clock_reading(&self) -> ClockReading {
        ClockReading {
            mono: Mono(self.elapsed),
            wall: Wall(START + self.elapsed),
        }
    }

    fn now(&self) -> Now {
        Now {
            wall: Wall(BROKER_START + self.elapsed),
            mono: broker::Mono(self.elapsed),
        }
    }

    /// Lets time pass and everyone do what is due.
    pub fn advance(&mut self, milliseconds: u64) {
        self.pass(milliseconds);
        self.client.handle_timeout(Mono(self.elapsed));
        self.server.handle_timeout(self.clock_reading());
        self.pump();
    }

    /// Lets time pass, which is noticed with the next thing that happens.
    pub fn pass(&mut self, milliseconds: u64) {
        self.elapsed += milliseconds;
    }

    /// Moves bytes, commands and outputs until nothing moves.
    pub fn pump(&mut self) {
        for _ in 0..10_000 {
            if !(self.move_input() | self.move_commands() | self.move_output()) {
                return;
            }
        }
        panic!("the world does not come to rest");
    }

    fn move_input(&mut self) -> bool {
        let mut bytes = self.client.output(Mono(self.elapsed)).split();
        let moved = !bytes.is_empty();
        if moved {
            let asks = self.shard.broker.faults_match_senders();
            self.server.ask_for_senders(asks);
            self.server.handle_input(self.clock_reading(), &mut bytes);
            assert!(bytes.is_empty(), "whole frames are taken whole");
        }
        moved
    }

    fn move_commands(&mut self) -> bool {
        let commands = std::mem::take(self.server.commands());
        self.commands.extend(commands.iter().cloned());
        self.waiting.extend(commands);
        if self.broker_stalls {
            return false;
        }
        let commands = std::mem::take(&mut self.waiting);
        let moved = !commands.is_empty();
        let said = self.turn(commands);
        let said_anything = !said.is_empty();
        self.hear(said);
        moved || said_anything
    }

    /// As the server does: the connection learns of changed entities before any other output.
    fn hear(&mut self, said: Vec<Output>) {
        let (changes, said): (Vec<_>, Vec<_>) = said
            .into_iter()
            .partition(|output| output.connection() == ConnectionId::SERVER);
        for change in changes {
            match change {
                Output::EntityChanged(change) => self.directory.apply(*change),
                Output::RulesChanged(_, rules) => self.directory.set_rules(*rules),
                _ => continue,
            }
            let directory = Arc::new(self.directory.clone());
            self.server.set_directory(self.clock_reading(), directory);
        }
        for output in said {
            if output.connection() == ConnectionId(7) {
                self.server.handle_output(self.clock_reading(), output);
            }
        }
    }

    fn move_output(&mut self) -> bool {
        if self.client_stalls {
            return false;
        }
        let mut bytes = self.server.output(self.clock_reading()).split();
        let moved = !bytes.is_empty();
        if moved {
            self.server.written();
            self.client.handle_input(Mono(self.elapsed), &mut bytes);
        }
        while let Some(event) = self.client.poll_event() {
            self.events.push(event);
        }
        moved
    }

    /// Has the broker decide on all that waits for it, and keeps what it says on its way.
    pub fn deliveries_for_credit(&mut self) -> Vec<Output> {
        let commands = std::mem::take(&mut self.waiting);
        let said = self.turn(commands);
        said.into_iter()
            .filter(|output| output.connection() == ConnectionId(7))
            .collect()
    }

    /// One turn of the broker, with the reads it asks for.
    fn turn(&mut self, mut commands: Vec<Command>) -> Vec<Output> {
        let (mut said, mut reads) = (Vec::new(), Vec::new());
        let now = self.now();
        self.shard.turn(now, &mut commands, &mut said, &mut reads);
        while !reads.is_empty() {
            let reader = self.shard.store().reader();
            let loaded = reads.drain(..).map(|request| Command::Loaded {
                read: request.read,
                found: reader.read(request.after, &request.query),
            });
            let mut commands = loaded.collect();
            self.shard.turn(now, &mut commands, &mut said, &mut reads);
        }
        said
    }

    /// A link of a name in use would be stolen.
    fn fresh_name(&mut self) -> String {
        self.names += 1;
        format!("link {}", self.names)
    }

    /// A session of the client.
    pub fn session(&mut self) -> SessionId {
        let session = self.client.begin();
        self.pump();
        session
    }

    /// Asks for a link and lets it be answered.
    pub fn attach(&mut self, session: SessionId, attach: Attach) -> LinkId {
        let link = self.client.attach(session, attach);
        self.pump();
        link
    }

    /// The reply to an attach.
    pub fn reply(&self, link: LinkId) -> &Attach {
        let reply = self.events.iter().find_map(|event| match event {
            Event::Attached { link: of, attach } if *of == link => Some(attach),
            _ => None,
        });
        reply.expect("the attach is answered")
    }

    /// Why a link was refused or detached.
    pub fn detach_error(&self, link: LinkId) -> Option<&Error> {
        self.events.iter().find_map(|event| match event {
            Event::Detached {
                link: of,
                error,
                closed: true,
                ..
            } if *of == link => error.as_ref(),
            _ => None,
        })
    }

    /// A sender in a session of its own, which must be let in.
    pub fn sender(&mut self, address: &str) -> (SessionId, LinkId) {
        let session = self.session();
        let name = self.fresh_name();
        let link = self.attach(
            session,
            Attach {
                name,
                ..sender(address)
            },
        );
        assert!(
            self.client.is_attached(link),
            "{:?}",
            self.detach_error(link)
        );
        (session, link)
    }

    /// A receiver with credit in a session of its own, which must be let in.
    pub fn receiver(&mut self, address: &str, mode: SenderSettleMode, credit: u32) -> LinkId {
        let session = self.session();
        let name = self.fresh_name();
        let link = self.attach(
            session,
            Attach {
                name,
                ..receiver(address, mode)
            },
        );
        assert!(
            self.client.is_attached(link),
            "{:?}",
            self.detach_error(link)
        );
        self.client.set_credit(link, credit, false);
        self.pump();
        link
    }

    /// Why an attach is refused.
    pub fn refusal(&mut self, attach: Attach) -> Error {
        let session = self.session();
        let link = self.attach(session, attach);
        assert!(!self.client.is_attached(link), "the link is let in");
        self.detach_error(link)
            .expect("a refusal has an error")
            .clone()
    }

    /// Sends a message and lets it be answered.
    pub fn send(&mut self, link: LinkId, payload: &[u8]) {
        self.send_as(link, 0, false, payload);
    }

    pub fn send_as(&mut self, link: LinkId, message_format: u32, settled: bool, payload: &[u8]) {
        let outgoing = Outgoing {
            tag: b"t",
            message_format,
            settled,
            ..Outgoing::default()
        };
        self.client
            .send(link, &outgoing, &[payload])
            .expect("there is credit");
        self.pump();
    }

    /// The states that deliveries of a sender were given, settled ones; takes them.
    pub fn outcomes(&mut self, link: LinkId) -> Vec<DeliveryState> {
        let mut outcomes = Vec::new();
        self.events.retain(|event| match event {
            Event::Updated {
                link: of,
                settled,
                state,
                ..
            }
            | Event::Disposed {
                link: of,
                settled,
                state,
                ..
            } if *of == link => {
                assert!(settled, "answers settle");
                outcomes.push(state.clone().expect("answers have a state"));
                false
            }
            _ => true,
        });
        outcomes
    }

    /// Sends a message that must be accepted.
    pub fn enqueue(&mut self, address: &str, payload: &[u8]) {
        let (_, link) = self.sender(address);
        self.send(link, payload);
        assert_eq!(self.outcomes(link), [DeliveryState::Accepted]);
    }

    /// Messages that a link got; takes them.
    pub fn received(&mut self, link: LinkId) -> Vec<Received> {
        let mut received = Vec::new();
        self.events.retain(|event| match event {
            Event::Delivery {
                link: of,
                session,
                delivery_id,
                tag,
                settled,
                payload,
                ..
            } if *of == link => {
                received.push(Received {
                    session: *session,
                    delivery_id: *delivery_id,
                    tag: tag.clone(),
                    settled: *settled,
                    payload: payload.clone(),
                });
                false
            }
            _ => true,
        });
        received
    }

    /// Disposes of a delivery and lets it be answered.
    pub fn dispose(&mut self, received: &Received, state: DeliveryState, settled: bool) {
        self.client
            .dispose_received(received.session, received.delivery_id, state, settled);
        self.pump();
    }

    /// Gives a receiver more credit.
    pub fn credit(&mut self, link: LinkId, credit: u32, drain: bool) {
        self.client.set_credit(link, credit, drain);
        self.pump();
    }

    /// Opens a pair of links to a node.
    pub fn pair(&mut self, node: &str) -> Pair {
        let session = self.session();
        self.pair_in(session, node, Some("reply-here"))
    }

    pub fn pair_in(&mut self, session: SessionId, node: &str, reply_to: Option<&str>) -> Pair {
        let mut response = receiver(node, SenderSettleMode::Settled);
        response.target = Some(Box::new(target(reply_to)));
        response.name = self.fresh_name();
        let response = self.attach(session, response);
        let name = self.fresh_name();
        let request = self.attach(
            session,
            Attach {
                name,
                ..sender(node)
            },
        );
        assert!(
            self.client.is_attached(request),
            "{:?}",
            self.detach_error(request)
        );
        assert!(
            self.client.is_attached(response),
            "{:?}",
            self.detach_error(response)
        );
        self.credit(response, 50, false);
        Pair { request, response }
    }

    /// Sends a request and returns what is answered.
    pub fn call(&mut self, pair: &Pair, request: &Request) -> Option<Response> {
        self.call_encoded(pair, &request.encode())
    }

    pub fn call_encoded(&mut self, pair: &Pair, request: &[u8]) -> Option<Response> {
        self.send(pair.request, request);
        let mut answers = self.received(pair.response);
        assert!(answers.len() <= 1);
        answers.pop().map(Response)
    }
}

/// How the client of a world connects.
pub fn client_config(login: Login) -> endpoint::Config {
    let sasl = match login {
        Login::Plain(name, password) => (
            Symbol::new("PLAIN"),
            format!("\0{name}\0{password}").into_bytes(),
        ),
        Login::Mechanism(mechanism) => (Symbol::new(mechanism), Vec::new()),
    };
    endpoint::Config {
        container_id: "client".to_owned(),
        hostname: Some("host".to_owned()),
        client_sasl: Some(sasl),
        idle_time_out: None,
        ..endpoint::Config::default()
    }
}

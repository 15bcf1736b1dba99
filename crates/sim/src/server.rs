//! Server: the broker's side of a simulated machine, as one process that can die.
//!
//! It does what the real server does (batches of commands to the shard, outputs to connections,
//! reads off the shard), only that chance decides when.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use access::Directory;
use broker::{
    Answer, Binding, BrokerSettings, Command, ConnectionId, Ensured, EntityChange,
    NamespaceDefinition, NamespaceOrder, Now, Order, Output, ReadRequest, RequestId, RouterAnswer,
    RouterInfo, RouterOrder, RuleSnapshot, Shard, SubscriptionSettings,
};
use bytes::BytesMut;
use dialect::{ClockReading, Dialect, MessageIds};
use endpoint::Mono;
use servicebus::{Client, Settings};
use store::{MemoryStore, NamespaceId, Reader};

use crate::directories::Directories;
use crate::inbox::{Inbox, NamespaceIndex};
use crate::recording_store::{Recording, RecordingStore};
use crate::rng::Rng;
use crate::storage::Storage;
use crate::world::queues::{Definition, What};

/// The namespaces of every simulated broker, in the order of their ids. Each has entities of the
/// same names.
pub const NAMESPACES: [&str; 3] = ["default", "second", "third"];

/// One connection as the broker's side sees it.
pub struct Served {
    /// The namespace of its client.
    pub namespace: NamespaceIndex,
    /// The dialect.
    pub client: Client,
    /// Bytes that arrived and are not a whole frame yet.
    pub input: BytesMut,
    /// What the shard said to it.
    pub outputs: VecDeque<Output>,
}

/// A running broker.
pub struct Server {
    /// The deterministic core.
    pub shard: Shard,
    /// Commands that wait for the next turn.
    pub inbox: Inbox,
    /// Reads that have not been answered.
    pub reads: Vec<ReadRequest>,
    /// Its connections.
    pub served: BTreeMap<ConnectionId, Served>,
    /// What it wrote.
    pub recording: Recording,
    reader: Arc<dyn Reader>,
    directories: Arc<Directories>,
    settings: Arc<Settings>,
}

/// Now, for a client: the simulator's real clock is the broker's.
#[must_use]
pub fn moment(now: Now) -> ClockReading {
    ClockReading {
        mono: Mono(now.mono.0),
        wall: now.wall,
    }
}

impl Server {
    /// Starts a broker on what `store` holds and makes sure that `queues` exist.
    ///
    /// # Panics
    /// When the store cannot be recovered: the memory store always can.
    #[must_use]
    pub fn start(
        settings: BrokerSettings,
        store: MemoryStore,
        disk: &Storage,
        queues: &[Definition],
        now: Now,
    ) -> Self {
        let reader = store::Store::reader(&store);
        let recording = Recording::default();
        let store = Box::new(RecordingStore::new(
            store,
            recording.clone(),
            disk.waiting(),
        ));
        let mut shard = Shard::open(settings, servicebus::describe_forward_error, store, now)
            .expect("a memory store recovers");
        let reads = ensure_all(&mut shard, disk, queues, now);
        Self {
            directories: Arc::new(Directories::of(&shard)),
            shard,
            inbox: Inbox::default(),
            reads,
            served: BTreeMap::new(),
            recording,
            reader,
            settings: prepared(Settings::default()),
        }
    }

    /// The routers and bindings of a namespace. For a broker that has just started.
    pub fn topology(
        &mut self,
        disk: &Storage,
        namespace: NamespaceIndex,
        now: Now,
    ) -> (Vec<RouterInfo>, Vec<Binding>) {
        let (skip, top) = (0, usize::MAX);
        let orders = [
            RouterOrder::List { skip, top },
            RouterOrder::ListBindings {
                source: None,
                destination: None,
                key: None,
                skip,
                top,
            },
        ];
        let orders = orders.map(|order| (namespace, Order::Router(order)));
        let orders = (Vec::from(orders), now);
        let answers = carry_out(&mut self.shard, disk, orders, &mut self.reads);
        let (mut routers, mut bindings) = (Vec::new(), Vec::new());
        for answer in answers {
            match answer {
                Answer::Router(RouterAnswer::Routers(page)) => routers = page.items,
                Answer::Router(RouterAnswer::Bindings(page)) => bindings = page.items,
                _ => {}
            }
        }
        (routers, bindings)
    }

    /// An entity has changed, and the connections of its namespace hear of it.
    pub fn follow(&mut self, change: EntityChange, now: Now) {
        let namespace = change.namespace;
        let changed = self.directories.change(namespace, |it| it.apply(change));
        self.tell(changed, now);
    }

    /// The rules of a topic have changed, and the connections of its namespace hear of it.
    pub fn follow_rules(&mut self, namespace: NamespaceId, rules: RuleSnapshot, now: Now) {
        let changed = self.directories.change(namespace, |it| it.set_rules(rules));
        self.tell(changed, now);
    }

    fn tell(&mut self, directory: Option<Arc<Directory>>, now: Now) {
        let Some(directory) = directory else {
            return;
        };
        for served in self.served.values_mut() {
            if served.client.directory().namespace() == directory.namespace() {
                let directory = Arc::clone(&directory);
                served.client.set_directory(moment(now), directory);
                let commands = served.client.commands();
                self.inbox.append(served.namespace, commands);
            }
        }
    }

    /// Accepts a connection of a client that will name its namespace.
    pub fn accept(&mut self, id: ConnectionId, namespace: NamespaceIndex, now: Now) {
        let client = Client::new(
            id,
            Arc::clone(&self.settings),
            self.directories.default(),
            MessageIds::new(u128::from(id.0).to_be_bytes()),
            moment(now),
        );
        let settings = rabbitmq::Settings {
            node: self.settings.endpoint.container_id.clone(),
            max_message_size: self.settings.max_message_size,
            dynamic_nodes: self.settings.dynamic_nodes.required(),
        };
        let ids = MessageIds::new((u128::from(id.0) | 1 << 64).to_be_bytes());
        let links = rabbitmq::Links::new(settings, ids);
        let client = client.sharing(Box::new(links));
        let directories: Arc<dyn dialect::Namespaces> = Arc::clone(&self.directories) as _;
        self.served.insert(
            id,
            Served {
                namespace,
                client: client.in_namespaces(directories, None),
                input: BytesMut::new(),
                outputs: VecDeque::new(),
            },
        );
    }

    /// Lets one connection act on its input and on some of its outputs.
    pub fn serve(&mut self, rng: &mut Rng, id: ConnectionId, now: Now) {
        let Some(served) = self.served.get_mut(&id) else {
            return;
        };
        served.client.handle_input(moment(now), &mut served.input);
        let some = match served.outputs.len() {
            0 => 0,
            waiting => 1 + rng.below(waiting),
        };
        for output in served.outputs.drain(..some) {
            served.client.handle_output(moment(now), output);
        }
        self.inbox
            .append(served.namespace, served.client.commands());
    }

    /// The socket of a connection is gone.
    pub fn cut(&mut self, id: ConnectionId, now: Now) {
        if let Some(mut served) = self.served.remove(&id) {
            served.client.handle_eof(moment(now));
            self.inbox
                .append(served.namespace, served.client.commands());
        }
    }

    /// Lets the clocks of all connections do what is due.
    pub fn tick(&mut self, now: Now) {
        for served in self.served.values_mut() {
            if served
                .client
                .deadline()
                .is_some_and(|deadline| deadline <= moment(now).mono)
            {
                served.client.handle_timeout(moment(now));
                self.inbox
                    .append(served.namespace, served.client.commands());
            }
        }
    }

    /// One turn of the shard. Returns what it said.
    pub fn turn(&mut self, now: Now) -> Vec<Output> {
        let mut said = Vec::new();
        let mut commands = self.inbox.take();
        self.shard
            .turn(now, &mut commands, &mut said, &mut self.reads);
        said
    }

    /// Answers one of the waiting reads, any of them.
    pub fn answer_read(&mut self, rng: &mut Rng) {
        if self.reads.is_empty() {
            return;
        }
        let request = self.reads.swap_remove(rng.below(self.reads.len()));
        let found = self.reader.read(request.after, &request.query);
        self.inbox.push_own(Command::Loaded {
            read: request.read,
            found,
        });
    }
}

/// The settings of connections that speak both dialects, as the real server has them.
fn prepared(mut settings: Settings) -> Arc<Settings> {
    let endpoint = &mut settings.endpoint;
    endpoint.properties = Some(rabbitmq::open_properties(&endpoint.container_id, "sim"));
    endpoint.offered_capabilities = rabbitmq::CAPABILITIES.to_vec();
    endpoint.shares_name = rabbitmq::may_share_name;
    Arc::new(settings)
}

/// Makes sure that the namespaces and their entities exist, in one batch each and before any client
/// connects, as the real server does. Returns the reads that a recovered broker asks for meanwhile.
fn ensure_all(
    shard: &mut Shard,
    disk: &Storage,
    definitions: &[Definition],
    now: Now,
) -> Vec<ReadRequest> {
    let known: Vec<_> = shard.broker.namespaces().collect();
    let is_there = |name: &str| {
        let mut known = known.iter().filter_map(|it| it.definition.as_ref());
        known.any(|definition| definition.name == name)
    };
    let missing = NAMESPACES[1..].iter().filter(|name| !is_there(name));
    let create = |name: &&str| NamespaceOrder::Create {
        definition: Box::new(NamespaceDefinition {
            name: (*name).to_owned(),
            ..NamespaceDefinition::default()
        }),
        like: None,
    };
    let orders: Vec<_> = missing
        .map(|name| (0, Order::Namespaces(create(name))))
        .collect();
    let mut reads = Vec::new();
    carry_out(shard, disk, (orders, now), &mut reads);
    let ensured = |index| {
        let all = definitions.iter().map(ensured).collect();
        (index, Order::ensure(all))
    };
    let orders = (0..NAMESPACES.len()).map(ensured).collect();
    carry_out(shard, disk, (orders, now), &mut reads);
    reads
}

/// Has orders carried out that can be. Returns their answers.
fn carry_out(
    shard: &mut Shard,
    disk: &Storage,
    (orders, now): (Vec<(NamespaceIndex, Order)>, Now),
    reads: &mut Vec<ReadRequest>,
) -> Vec<Answer> {
    let wanted = orders.len();
    let request = RequestId {
        connection: ConnectionId::SERVER,
        token: 0,
    };
    let orders = orders.into_iter();
    let mut commands: Vec<_> = orders
        .map(|(index, order)| administer(request, index, order))
        .collect();
    let mut said = Vec::new();
    shard.turn(now, &mut commands, &mut said, reads);
    disk.sync_all();
    shard.turn(now, &mut commands, &mut said, reads);
    let answered = |output: Output| match output {
        Output::Administered { result, .. } => result.ok(),
        _ => None,
    };
    let answers: Vec<_> = said.into_iter().filter_map(answered).collect();
    assert_eq!(answers.len(), wanted, "orders can be carried out");
    answers
}

/// The id of one of the namespaces. They are made in their order, before all others.
pub(crate) fn namespace_id(index: NamespaceIndex) -> NamespaceId {
    NamespaceId(u32::try_from(index).expect("there are few"))
}

/// The command that has an order carried out.
pub(crate) fn administer(request: RequestId, namespace: NamespaceIndex, order: Order) -> Command {
    Command::Administer {
        request,
        namespace: namespace_id(namespace),
        order: Box::new(order),
    }
}

/// An entity as a batch names it.
pub(crate) fn ensured(definition: &Definition) -> Ensured {
    let (path, settings) = (definition.path.to_owned(), definition.settings.clone());
    match &definition.what {
        What::Queue => Ensured::Queue { path, settings },
        What::Topic => Ensured::Topic { path, settings },
        What::Subscription {
            topic,
            name,
            dead_letters_failures,
            ..
        } => Ensured::Subscription {
            topic: (*topic).to_owned(),
            name: (*name).to_owned(),
            settings: Box::new(SubscriptionSettings {
                queue: settings,
                dead_lettering_on_filter_evaluation_exceptions: *dead_letters_failures,
            }),
            rules: definition.rules(),
        },
    }
}

//! Server: the broker's side of a simulated machine, as one process that can die.
//!
//! It does what the real server does (batches of commands to the shard, outputs to connections,
//! reads off the shard), only that chance decides when.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use access::{AccessRule, AccessRules, Directory, Entity, Rights, Secret};
use broker::{
    BrokerSettings, Command, ConnectionId, Ensured, EntityChange, Now, Order, Output, ReadRequest,
    RequestId, RuleSnapshot, Shard, SubscriptionSettings,
};
use bytes::BytesMut;
use dialect::{ClockReading, Dialect};
use endpoint::Mono;
use servicebus::{Client, MessageIds, Settings};
use store::{MemoryStore, NamespaceId, Reader};

use crate::recording_store::{Recording, RecordingStore};
use crate::rng::Rng;
use crate::storage::Storage;
use crate::world::queues::{Definition, What};

/// One connection as the broker's side sees it.
pub struct Served {
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
    pub inbox: Vec<Command>,
    /// Reads that have not been answered.
    pub reads: Vec<ReadRequest>,
    /// Its connections.
    pub served: BTreeMap<ConnectionId, Served>,
    /// What it wrote.
    pub recording: Recording,
    reader: Arc<dyn Reader>,
    directory: Arc<Directory>,
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
        let (mut directory, reads) = ensure_all(&mut shard, disk, queues, now);
        let rule = AccessRule {
            name: "sim".to_owned(),
            primary: Secret::new("simkey".to_owned()),
            secondary: None,
            rights: Rights::ALL,
            entity: None,
        };
        directory.set_access_rules(AccessRules {
            rules: vec![rule],
            ..AccessRules::default()
        });
        Self {
            shard,
            inbox: Vec::new(),
            reads,
            served: BTreeMap::new(),
            recording,
            reader,
            directory: Arc::new(directory),
            settings: Arc::new(Settings::default()),
        }
    }

    /// An entity has changed, and every connection hears of it.
    pub fn follow(&mut self, change: EntityChange, now: Now) {
        let mut directory = Directory::clone(&self.directory);
        directory.apply(change);
        self.publish(directory, now);
    }

    /// The rules of a topic have changed, and every connection hears of it.
    pub fn follow_rules(&mut self, rules: RuleSnapshot, now: Now) {
        let mut directory = Directory::clone(&self.directory);
        directory.set_rules(rules);
        self.publish(directory, now);
    }

    fn publish(&mut self, directory: Directory, now: Now) {
        self.directory = Arc::new(directory);
        for served in self.served.values_mut() {
            let directory = Arc::clone(&self.directory);
            served.client.set_directory(moment(now), directory);
            self.inbox.append(served.client.commands());
        }
    }

    /// Accepts a connection.
    pub fn accept(&mut self, id: ConnectionId, now: Now) {
        let client = Client::new(
            id,
            Arc::clone(&self.settings),
            Arc::clone(&self.directory),
            MessageIds::new(u128::from(id.0).to_be_bytes()),
            moment(now),
        );
        self.served.insert(
            id,
            Served {
                client,
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
        self.inbox.append(served.client.commands());
    }

    /// The socket of a connection is gone.
    pub fn cut(&mut self, id: ConnectionId, now: Now) {
        if let Some(mut served) = self.served.remove(&id) {
            served.client.handle_eof(moment(now));
            self.inbox.append(served.client.commands());
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
                self.inbox.append(served.client.commands());
            }
        }
    }

    /// One turn of the shard. Returns what it said.
    pub fn turn(&mut self, now: Now) -> Vec<Output> {
        let mut said = Vec::new();
        self.shard
            .turn(now, &mut self.inbox, &mut said, &mut self.reads);
        said
    }

    /// Answers one of the waiting reads, any of them.
    pub fn answer_read(&mut self, rng: &mut Rng) {
        if self.reads.is_empty() {
            return;
        }
        let request = self.reads.swap_remove(rng.below(self.reads.len()));
        let found = self.reader.read(request.after, &request.query);
        self.inbox.push(Command::Loaded {
            read: request.read,
            found,
        });
    }
}

/// Makes sure that the entities exist, in one batch and before any client connects, as the real
/// server does. Reads that a recovered broker asks for meanwhile are still to be answered.
fn ensure_all(
    shard: &mut Shard,
    disk: &Storage,
    definitions: &[Definition],
    now: Now,
) -> (Directory, Vec<ReadRequest>) {
    let request = RequestId {
        connection: ConnectionId::SERVER,
        token: 0,
    };
    let order = Order::ensure(definitions.iter().map(ensured).collect());
    let mut commands = vec![administer(request, order)];
    let (mut said, mut reads) = (Vec::new(), Vec::new());
    shard.turn(now, &mut commands, &mut said, &mut reads);
    disk.sync_all();
    shard.turn(now, &mut commands, &mut said, &mut reads);
    let is_done = said
        .iter()
        .any(|output| matches!(output, Output::Administered { result, .. } if result.is_ok()));
    assert!(is_done, "every entity can be ensured: {said:?}");
    let mut directory = Directory::default();
    for info in shard.broker.queues() {
        directory.insert(Entity {
            id: info.id,
            path: info.path,
            kind: info.kind,
            settings: info.settings,
            replaces: None,
        });
    }
    for (_, rules) in shard.broker.rules() {
        directory.set_rules(rules);
    }
    (directory, reads)
}

/// The command that has an order carried out.
pub(crate) fn administer(request: RequestId, order: Order) -> Command {
    Command::Administer {
        request,
        namespace: NamespaceId(0),
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

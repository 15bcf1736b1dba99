//! Shop: a broker on a real store, driven command by command at the times of a test.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use broker::{
    Access, BrokerSettings, Command, ConnectionId, Delivery, Mono, Now, Outcome, Output, QueueInfo,
    ReadRequest, ReceiveMode, ReceiverId, RequestId, Shard, Subqueue, SubqueueId, Wall,
};
use bytes::Bytes;
use rocks::{Options, RocksStore};
use store::{EntityId, NamespaceId, StoreError};

/// Midnight on the first of January 2026, when the stores here were made.
pub const START: u64 = 1_767_225_600_000;

/// The requesting connection.
const CONNECTION: ConnectionId = ConnectionId(1);
pub const REQUEST: RequestId = RequestId {
    connection: CONNECTION,
    token: 0,
};
pub const NAMESPACE: NamespaceId = NamespaceId(0);

/// A broker that gets one command at a time.
pub struct Shop {
    shard: Shard,
    now: u64,
    links: u32,
    progress: Receiver<()>,
}

impl Shop {
    /// Opens the store at `path`, `after` milliseconds after the start.
    pub fn open(path: &Path, after: u64) -> Result<Self, StoreError> {
        let (wake, progress) = mpsc::channel();
        let wake = Arc::new(move || wake.send(()).unwrap_or_default());
        let store = RocksStore::open(path, Options::default(), wake)?;
        let now = START + after;
        let shard = Shard::open(
            // Nothing is ever written here, so nothing that is given must count as unwritten.
            BrokerSettings {
                output_buffer_bytes: usize::MAX,
                ..BrokerSettings::default()
            },
            servicebus::describe_forward_error,
            Box::new(store),
            clock(now),
        )?;
        Ok(Self {
            shard,
            now,
            links: 0,
            progress,
        })
    }

    pub fn close(self) {
        self.shard.close().expect("the disk is well");
    }

    /// The same bytes, staged on the disk if the store stages bodies of this size.
    pub fn stage(&self, body: Bytes) -> Bytes {
        let stager = self.shard.store().stager();
        match stager.filter(|stager| stager.min_size() <= body.len()) {
            Some(stager) => stager.stage(body),
            None => body,
        }
    }

    /// Says one thing, and returns what is said when all is durable and everything asked is read.
    pub fn tell(&mut self, command: Command) -> Vec<Output> {
        let (mut said, mut reads) = (Vec::new(), Vec::new());
        self.turn(vec![command], &mut said, &mut reads);
        while !(reads.is_empty() && self.shard.is_durable()) {
            if reads.is_empty() {
                self.progress.recv().expect("the store lives");
            }
            let answers = reads.drain(..).map(|read| self.answer(&read)).collect();
            self.turn(answers, &mut said, &mut reads);
        }
        // What became durable between the last turn and the last look.
        self.turn(Vec::new(), &mut said, &mut reads);
        assert!(reads.is_empty(), "nothing new was asked for");
        said
    }

    fn turn(
        &mut self,
        commands: Vec<Command>,
        say: &mut Vec<Output>,
        reads: &mut Vec<ReadRequest>,
    ) {
        let mut commands = commands;
        self.shard.turn(clock(self.now), &mut commands, say, reads);
    }

    fn answer(&self, request: &ReadRequest) -> Command {
        let reader = self.shard.store().reader();
        let read = request.read;
        let found = reader.read(request.after, &request.query);
        Command::Loaded { read, found }
    }

    /// Lets time pass until `after` milliseconds after the start.
    pub fn wait_until(&mut self, after: u64) -> Vec<Output> {
        self.now = START + after;
        self.tell(Command::Tick)
    }

    /// An entity as it is counted.
    pub fn entity(&self, path: &str) -> QueueInfo {
        let mut entities = self.shard.broker.queues();
        entities
            .find(|entity| entity.path == path)
            .expect("it is there")
    }

    pub fn id(&self, path: &str) -> EntityId {
        self.entity(path).id
    }

    /// How many entities there are.
    pub fn entities(&self) -> usize {
        self.shard.broker.queues().count()
    }

    /// A receiver's name that was not used before.
    pub fn receiver(&mut self) -> ReceiverId {
        self.links += 1;
        let (connection, link) = (CONNECTION, self.links);
        ReceiverId { connection, link }
    }

    /// Everything that is available in a subqueue, locked, in its order.
    pub fn receive(&mut self, path: &str, subqueue: Subqueue) -> Vec<Delivery> {
        let (entity, receiver) = (self.id(path), self.receiver());
        let mode = ReceiveMode::PeekLock;
        self.tell(Command::Attach {
            receiver,
            subqueue: SubqueueId { entity, subqueue },
            access: Access::Consume(mode),
            selector: None,
        });
        self.take(receiver)
    }

    /// All that a receiver can have.
    pub fn take(&mut self, receiver: ReceiverId) -> Vec<Delivery> {
        let (limit, drain) = (100, true);
        deliveries(self.tell(Command::Credit {
            receiver,
            limit,
            drain,
        }))
    }

    /// Ends a lock.
    pub fn settle(&mut self, path: &str, delivery: &Delivery, outcome: Outcome) {
        let said = self.tell(Command::Settle {
            request: Some(REQUEST),
            subqueue: SubqueueId {
                entity: self.id(path),
                subqueue: Subqueue::Main,
            },
            token: delivery.token,
            session: None,
            outcome,
        });
        let settled = |output: &Output| matches!(output, Output::Settled { result: Ok(()), .. });
        assert!(said.iter().any(settled), "{said:?}");
    }
}

/// The messages among what was said.
fn deliveries(said: Vec<Output>) -> Vec<Delivery> {
    let delivered = said.into_iter().filter_map(|output| match output {
        Output::Deliver { delivery, .. } => Some(*delivery),
        _ => None,
    });
    delivered.collect()
}

fn clock(now: u64) -> Now {
    Now {
        wall: Wall(now),
        mono: Mono(now),
    }
}

/// A message with a subject and a body. [AMQP 3.2.4, 3.2.6]
pub fn message(subject: &str, body: &[u8]) -> Bytes {
    let length = u8::try_from(subject.len()).expect("a short subject");
    let mut message = vec![0x00, 0x53, 0x73, 0xc0, length + 6, 4, 0x40, 0x40, 0x40];
    message.extend([0xa1, length]);
    message.extend(subject.as_bytes());
    message.extend([0x00, 0x53, 0x75, 0xb0]);
    let length = u32::try_from(body.len()).expect("a short body");
    message.extend(length.to_be_bytes());
    message.extend(body);
    Bytes::from(message)
}

//! World: a shard with its disk and its clocks, for tests that throw commands at it at random.

use broker::{
    Access, BrokerSettings, Command, ConnectionId, Ensured, Mono, Now, Order, Output,
    QueueSettings, ReadRequest, ReceiveMode, ReceiverId, RequestId, Shard, Subqueue, SubqueueId,
    Wall,
};
use store::image::MessageKey;
use store::{EntityId, Found, MemoryDisk, NamespaceId, StoreError};

use crate::script::{START, describe};

type Answer = Result<Found, StoreError>;

/// The only queue.
pub const QUEUE: EntityId = EntityId(1);

/// A shard under virtual time whose reads are answered when the test says so.
pub struct World {
    pub disk: MemoryDisk,
    pub shard: Shard,
    pub mono: u64,
    /// How far the wall clock has jumped.
    pub jumped: i64,
    /// Reads that were asked for; some of them were made then and wait to be answered.
    pub waiting: Vec<(ReadRequest, Option<Answer>)>,
    settings: BrokerSettings,
}

impl World {
    /// A world with one queue, on a disk where everything is durable at once.
    pub fn new(settings: BrokerSettings, queue: QueueSettings) -> Self {
        let mut world = Self::empty(settings);
        world.turn(ensure(Ensured::Queue {
            path: "q".to_owned(),
            settings: queue,
        }));
        world
    }

    /// A world without queues, on a disk where everything is durable at once.
    pub fn empty(settings: BrokerSettings) -> Self {
        let disk = MemoryDisk::new();
        disk.set_automatic(true);
        Self {
            shard: open(&settings, &disk, now(0, 0)),
            disk,
            mono: 0,
            jumped: 0,
            waiting: Vec::new(),
            settings,
        }
    }

    /// One turn with one command.
    pub fn turn(&mut self, command: Command) -> Vec<Output> {
        self.turn_with(vec![command])
    }

    /// One turn.
    pub fn turn_with(&mut self, mut commands: Vec<Command>) -> Vec<Output> {
        let (mut said, mut asked) = (Vec::new(), Vec::new());
        self.shard
            .turn(self.now(), &mut commands, &mut said, &mut asked);
        for request in asked {
            // Every other one sees the store as it is now, the others as it is when they are
            // answered.
            let early = request.read.0.is_multiple_of(2);
            let rows = early.then(|| self.read(&request));
            self.waiting.push((request, rows));
        }
        said
    }

    /// Goes on to the shard's next deadline up to `to`. Returns whether there was one.
    pub fn step_to(&mut self, to: u64) -> bool {
        let deadline = self.shard.deadline();
        let mono = deadline.and_then(|d| d.mono).map(|mono| mono.0);
        let wall = deadline.and_then(|d| d.wall);
        let wall = wall.map(|wall| {
            let ahead = wall.0.saturating_sub(self.now().wall.0);
            self.mono.saturating_add(ahead)
        });
        let next = mono.into_iter().chain(wall).min();
        let reached = next.is_some_and(|at| at <= to);
        self.mono = self.mono.max(next.unwrap_or(to).min(to));
        reached
    }

    /// The answer to one of the reads that wait.
    pub fn answer(&mut self, which: usize) -> Option<Command> {
        let index = which.checked_rem(self.waiting.len())?;
        let (request, found) = self.waiting.remove(index);
        let found = found.unwrap_or_else(|| self.read(&request));
        let read = request.read;
        Some(Command::Loaded { read, found })
    }

    fn read(&self, request: &ReadRequest) -> Answer {
        let reader = self.shard.store().reader();
        reader.read(request.after, &request.query)
    }

    /// The process ends, losing what is not durable, and another one starts.
    pub fn restart(&mut self) {
        self.settings.seed[0] = self.settings.seed[0].wrapping_add(1);
        self.waiting.clear();
        self.shard = open(&self.settings, &self.disk, self.now());
    }

    /// What the clocks say.
    pub fn now(&self) -> Now {
        now(self.mono, self.jumped)
    }

    /// What the store holds is in good order and agrees with the counters.
    pub fn audit(&self) {
        assert_eq!(self.disk.violations(), vec![]);
        self.disk.with_current(|image| {
            let borrows = |key: &MessageKey| {
                let row = &image.messages[key];
                self.shard.broker.borrows(key.0, row)
            };
            assert_eq!(image.audit_with(borrows), vec![]);
            let info = self.shard.broker.queue(QUEUE);
            // A deleted queue has a head until its rows are gone.
            let (Some(head), Some(info)) = (image.heads.get(&QUEUE), info) else {
                return;
            };
            let count = |part| head.part(part).count;
            let dead = count(store::Part::DeadLetter) + count(store::Part::DeadLetterDeferred);
            assert_eq!(info.active, count(store::Part::Active));
            assert_eq!(info.deferred, count(store::Part::Deferred));
            assert_eq!(info.scheduled, count(store::Part::Scheduled));
            assert_eq!(info.dead_letter, dead);
        });
        crate::script::audits::expiries(&self.disk);
        crate::script::audits::schedule(&self.disk);
        crate::script::audit_sessions(&self.disk);
    }
}

fn open(settings: &BrokerSettings, disk: &MemoryDisk, now: Now) -> Shard {
    let store = Box::new(disk.crash());
    Shard::open(settings.clone(), describe, store, now).unwrap()
}

fn now(mono: u64, jumped: i64) -> Now {
    Now {
        wall: Wall((START + mono).saturating_add_signed(jumped)),
        mono: Mono(mono),
    }
}

/// Each receiver has a connection of its own.
pub fn receiver(index: u64) -> ReceiverId {
    ReceiverId {
        connection: ConnectionId(index),
        link: 0,
    }
}

/// A request of a connection that no script uses.
pub fn request(token: u64) -> RequestId {
    RequestId {
        connection: ConnectionId(99),
        token,
    }
}

/// What has an order carried out.
pub fn administer(request: RequestId, order: Order) -> Command {
    Command::Administer {
        request,
        namespace: NamespaceId(0),
        order: Box::new(order),
    }
}

/// What makes an entity, or changes it to what is given.
pub fn ensure(ensured: Ensured) -> Command {
    administer(request(0), Order::ensure(vec![ensured]))
}

/// What deletes the entity of a path.
pub fn remove(path: &str) -> Command {
    let path = path.to_owned();
    administer(request(0), Order::Remove { path })
}

/// What becomes of a receiver by its index: both subqueues and both modes occur.
pub fn role(index: u64) -> (Subqueue, ReceiveMode) {
    let subqueue = if index % 3 == 2 {
        Subqueue::DeadLetter
    } else {
        Subqueue::Main
    };
    let mode = if index % 5 == 4 {
        ReceiveMode::ReceiveAndDelete
    } else {
        ReceiveMode::PeekLock
    };
    (subqueue, mode)
}

/// Makes a receiver appear.
pub fn attach(index: u64) -> Command {
    let (subqueue, mode) = role(index);
    Command::Attach {
        receiver: receiver(index),
        subqueue: SubqueueId {
            entity: QUEUE,
            subqueue,
        },
        access: Access::Consume(mode),
        selector: None,
    }
}

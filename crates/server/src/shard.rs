//! Shard task: passes commands from its inbox to one shard, and the shard's outputs to
//! connections.
//!
//! Each round takes all messages that arrived, reads the clock once and makes one turn; each
//! connection gets its outputs as one batch. Sending to a connection never waits: the broker
//! bounds its outputs. Reads run on blocking threads and come back as commands. Changes of
//! entities go into the directory that all connections watch, before any connection gets the other
//! outputs of the same turn.

pub mod commit_mode;
pub mod connection_outputs;
pub mod deletion_pause;
pub mod placement;
pub mod report;
pub mod shard_client;
pub mod staging;
pub mod store_view;
pub mod task_usage;

use std::sync::Arc;
use std::thread;

use access::Directory;
use broker::{
    Activity, ActivityWanted, Command, ConnectionId, HttpFault, HttpRequest, LineageReader, Output,
    ReadRequest, Shard,
};
use rustc_hash::FxHashMap;
use store::{CallerLoad, EntityId, NamespaceId, Reader, StoreError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::clocks::broker_clock::BrokerClock;
use crate::clocks::virtual_clock::{ClockRequest, ReplySender, ShardProgress};
use crate::namespaces::namespace_registry::{DirectoryChange, NamespaceRegistry};
use crate::shard::commit_mode::CommitMode;
use crate::shard::connection_outputs::{ConnectionOutputs, OutputSender};
use crate::shard::deletion_pause::DeletionPause;
use crate::shard::report::{Measured, Report};
use crate::shard::store_view::StoreView;
use crate::shard::task_usage::TaskUsage;

/// Batches that wait for the shard before connections have to.
const INBOX: usize = 1_024;
/// Batches that are decided in one turn.
const BATCHES_PER_TURN: usize = 128;

/// The newest directory of entities, and word of newer ones.
pub type DirectoryReceiver = watch::Receiver<Arc<Directory>>;

/// A message to a shard task.
#[derive(Debug)]
pub enum Message {
    /// A connection registers for its outputs.
    Open {
        connection: ConnectionId,
        sender: OutputSender,
    },
    /// Commands of one connection, in order.
    Commands(Vec<Command>),
    /// A read has come back.
    Loaded(Command),
    /// A connection is gone; nothing more comes from it.
    Close { connection: ConnectionId },
    /// Asks for the receivers, locks and sessions of an entity, or what is wanted of them.
    Activity(EntityId, ActivityWanted, oneshot::Sender<Option<Activity>>),
    /// Asks for the record of what has happened to the messages of a namespace, if there is one.
    Lineage(NamespaceId, oneshot::Sender<Option<LineageReader>>),
    /// Asks for reads of all that was answered.
    StoreView(oneshot::Sender<StoreView>),
    /// Asks what a fault rule does to an HTTP request.
    HttpFault(Box<(HttpRequest, oneshot::Sender<Option<HttpFault>>)>),
    /// Asks for the figures of the shard, and of these entities.
    Measure(Measured, oneshot::Sender<Report>),
    /// Asks something of the broker's clock, or of a namespace's.
    Clock(Option<NamespaceId>, ClockRequest, ReplySender),
    /// Nothing more comes: finish what has arrived and end.
    Stop,
}

/// The way to a shard task.
pub type Inbox = mpsc::Sender<Message>;

/// One shard and all it needs to run.
pub struct ShardTask {
    shard: Shard,
    reader: Arc<dyn Reader>,
    clock: BrokerClock,
    progress: Arc<Notify>,
    inbox: mpsc::Receiver<Message>,
    /// For what comes back from reads.
    own_inbox: Inbox,
    connections: FxHashMap<ConnectionId, ConnectionOutputs>,
    /// Other tasks may change other parts of it.
    namespaces: Arc<NamespaceRegistry>,
    commands: Vec<Command>,
    outputs: Vec<Output>,
    reads: Vec<ReadRequest>,
    /// Reads that have not come back.
    reads_under_way: usize,
    usage: TaskUsage,
    commit_mode: CommitMode,
    deletion_pause: DeletionPause,
}

impl ShardTask {
    /// A task for `shard`, whose store tells of progress by `progress`. It keeps the entities of
    /// `namespaces`.
    pub fn new(
        shard: Shard,
        clock: BrokerClock,
        progress: Arc<Notify>,
        namespaces: Arc<NamespaceRegistry>,
    ) -> (Self, Inbox) {
        let (own_inbox, inbox) = mpsc::channel(INBOX);
        let task = Self {
            reader: shard.store().reader(),
            shard,
            clock,
            progress,
            inbox,
            own_inbox: own_inbox.clone(),
            connections: FxHashMap::default(),
            namespaces,
            commands: Vec::new(),
            outputs: Vec::new(),
            reads: Vec::new(),
            reads_under_way: 0,
            usage: TaskUsage::default(),
            commit_mode: CommitMode::default(),
            deletion_pause: DeletionPause::default(),
        };
        (task, own_inbox)
    }

    /// Runs until told to stop; everything decided by then is durable when this returns.
    ///
    /// # Errors
    /// When the store fails, be it while it is closed. That is final.
    pub async fn run(mut self) -> Result<(), StoreError> {
        let worked = self.work().await;
        // Reads that wait for room in it would keep the store open.
        self.inbox.close();
        let decided = match worked {
            Ok(()) => self.wait_until_durable().await,
            failed => failed,
        };
        decided.and(self.close().await)
    }

    /// Makes one turn after the other until told to stop.
    async fn work(&mut self) -> Result<(), StoreError> {
        let mut arrived = Vec::new();
        let mut stopping = false;
        let has_one_worker = Handle::current().metrics().num_workers() == 1;
        while !stopping {
            self.wait(&mut arrived).await;
            if has_one_worker && arrived.len() <= 1 {
                self.collect_after_yield(&mut arrived).await;
            }
            let round = self.usage.begin();
            let batches = arrived.len();
            for message in arrived.drain(..) {
                stopping |= self.handle_message(message);
            }
            let inbox_is_empty = self.inbox.is_empty();
            let caller = (self.commit_mode).choose(batches, self.commands.len(), inbox_is_empty);
            self.turn(caller)?;
            self.commit_mode.observe(caller, self.inbox.is_empty());
            self.usage.end(&round);
        }
        Ok(())
    }

    /// Waits until something arrived, the store made progress, or a deadline is reached.
    async fn wait(&mut self, arrived: &mut Vec<Message>) {
        let (deadline, under_way) = (self.shard.deadline(), self.under_way());
        let moves_namespace = self.clock.moves_namespace(&self.shard);
        tokio::select! {
            biased;
            _ = self.inbox.recv_many(arrived, BATCHES_PER_TURN) => {}
            () = self.progress.notified() => {}
            () = self.clock.sleep(deadline, under_way, moves_namespace) => {}
            () = self.deletion_pause.finished() => {}
        }
    }

    /// If all tasks share one thread, other connections can send only while this task yields.
    async fn collect_after_yield(&mut self, arrived: &mut Vec<Message>) {
        tokio::task::yield_now().await;
        while arrived.len() < BATCHES_PER_TURN
            && let Ok(message) = self.inbox.try_recv()
        {
            arrived.push(message);
        }
    }

    /// Returns whether this was the last message.
    fn handle_message(&mut self, message: Message) -> bool {
        match message {
            Message::Open { connection, sender } => {
                let outputs = ConnectionOutputs::new(sender);
                self.connections.insert(connection, outputs);
            }
            Message::Commands(mut commands) => {
                self.clock.translate(&mut commands, &self.shard.broker);
                if self.commands.is_empty() {
                    std::mem::swap(&mut self.commands, &mut commands);
                } else {
                    self.commands.append(&mut commands);
                }
            }
            Message::Loaded(command) => {
                self.reads_under_way = self.reads_under_way.saturating_sub(1);
                self.commands.push(command);
            }
            Message::Close { connection } => {
                self.connections.remove(&connection);
            }
            // The requester may have gone meanwhile.
            Message::Activity(entity, wanted, answer) => {
                let now = self.clock.now();
                drop(answer.send(self.shard.broker.activity(entity, now, &wanted)));
            }
            Message::Lineage(namespace, answer) => {
                drop(answer.send(self.shard.lineage(namespace)));
            }
            Message::StoreView(answer) => {
                let durable = self.shard.store().durable();
                drop(answer.send(StoreView::new(Arc::clone(&self.reader), durable)));
            }
            Message::HttpFault(question) => {
                let (now, (request, answer)) = (self.clock.now(), *question);
                let _ = answer.send(self.shard.broker.http_fault(&request, now));
            }
            Message::Measure(measured, answer) => drop(answer.send(self.report(measured))),
            Message::Clock(namespace, request, answer) => {
                self.clock.ask(namespace, request, answer, &self.shard);
            }
            Message::Stop => return true,
        }
        false
    }

    fn report(&self, measured: Measured) -> Report {
        let (broker, now) = (&self.shard.broker, self.clock.now());
        let (entities, unmeasured) = match measured {
            Measured::Oldest(most) => (
                broker.queues_at(now).take(most).collect(),
                broker.queues().skip(most).count(),
            ),
            Measured::Of(namespace) => (broker.queues_of(namespace, now).collect(), 0),
        };
        let store = self.shard.store();
        let (fault_rules, injected_faults) = broker.faults();
        Report {
            fault_rules,
            injected_faults,
            unmeasured,
            entities,
            connections: self.connections.len(),
            reads: self.reads_under_way,
            undecided: self.inbox.len(),
            usage: self.usage,
            commits: store.statistics(),
            nearly_full: store.is_nearly_full(),
            free_bytes: store.free_bytes(),
        }
    }

    fn turn(&mut self, caller: CallerLoad) -> Result<(), StoreError> {
        self.usage.commands += self.commands.len() as u64;
        self.deletion_pause.update(Instant::now(), &mut self.shard);
        self.shard.blocking_turn(
            self.clock.now(),
            &mut self.commands,
            caller,
            &mut self.outputs,
            &mut self.reads,
        );
        self.namespaces.follow_faults(&self.shard.broker);
        // Checked after the turn, so that no output rests on a commit that failed.
        if let Some(failure) = self.shard.store().failure() {
            return Err(failure);
        }
        self.start_reads();
        self.send_outputs();
        let progress = ShardProgress {
            deadline: self.shard.deadline(),
            reads: self.under_way(),
            submitted: self.shard.submitted(),
            released: self.shard.released(),
        };
        self.clock
            .advance_to_deadline(progress, &self.shard, &mut self.commands);
        Ok(())
    }

    /// What has to finish before time may be advanced: reads, and a piece of a deletion.
    fn under_way(&self) -> usize {
        self.reads_under_way + usize::from(self.shard.is_deleting())
    }

    fn start_reads(&mut self) {
        self.reads_under_way = self.reads_under_way.saturating_add(self.reads.len());
        for request in self.reads.drain(..) {
            let reader = Arc::clone(&self.reader);
            let inbox = self.own_inbox.clone();
            tokio::task::spawn_blocking(move || {
                let found = reader.read(request.after, &request.query);
                // The store logs damage itself, and only once.
                if let Err(error) = &found
                    && !error.is_damage()
                {
                    tracing::error!(%error, query = ?request.query, "a read failed");
                }
                let loaded = Command::Loaded {
                    read: request.read,
                    found,
                };
                // The inbox is closed only when the server has stopped.
                drop(inbox.blocking_send(Message::Loaded(loaded)));
            });
        }
    }

    /// Sends each connection its outputs as one batch. A connection that has just ended gets none.
    fn send_outputs(&mut self) {
        let mut addressed = Vec::new();
        let mut changes = Vec::new();
        // For all of them together: each may have been the only one before.
        let mut room = self.outputs.len();
        for output in self.outputs.drain(..) {
            let output = match output {
                Output::EntityChanged(change) => {
                    changes.push(DirectoryChange::Entity(change));
                    continue;
                }
                Output::RulesChanged(namespace, rules) => {
                    changes.push(DirectoryChange::Rules(namespace, *rules));
                    continue;
                }
                Output::NamespaceChanged(change) => {
                    changes.push(DirectoryChange::Namespace(*change));
                    continue;
                }
                output => output,
            };
            let connection = output.connection();
            let Some(outputs) = self.connections.get_mut(&connection) else {
                continue;
            };
            if outputs.push(output, &mut room) {
                addressed.push(connection);
            }
        }
        self.namespaces.apply(changes);
        for connection in addressed {
            if let Some(outputs) = self.connections.get_mut(&connection) {
                outputs.send();
            }
        }
    }

    /// Waits until everything decided is durable. No connection is left to be told.
    async fn wait_until_durable(&mut self) -> Result<(), StoreError> {
        while !self.shard.is_durable() {
            if let Some(failure) = self.shard.store().failure() {
                return Err(failure);
            }
            self.progress.notified().await;
        }
        Ok(())
    }

    /// Closes the store, which blocks, on a thread of its own: the threads for reads may all be
    /// stuck on the very disk that failed.
    async fn close(self) -> Result<(), StoreError> {
        let Self { shard, reader, .. } = self;
        let (done, closed) = oneshot::channel();
        let closing = thread::Builder::new().name("closing".to_owned());
        let started = closing.spawn(move || {
            // A reader keeps the store open.
            drop(reader);
            drop(done.send(shard.close()));
        });
        started.map_err(|error| StoreError::Io(format!("starting a thread: {error}")))?;
        let panicked = || StoreError::Poisoned("the store panicked while it was closed".to_owned());
        closed.await.unwrap_or_else(|_| Err(panicked()))
    }
}

#[cfg(test)]
mod tests {
    use broker::{BrokerSettings, Ensured, Order};
    use store::MemoryStore;

    use super::*;
    use crate::clocks::clock::Clock;

    #[test]
    fn the_end_frees_reads_that_wait_for_the_inbox_and_does_not_wait_for_other_reads() {
        // One thread for all reads, and one read more than it can do at a time.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let (stuck, unstuck) = std::sync::mpsc::channel::<()>();
        let outcome = runtime.block_on(async {
            let clock = BrokerClock::new(Clock::start(), false);
            let store = Box::new(MemoryStore::new());
            let describe = servicebus::describe_forward_error;
            let settings = BrokerSettings::default();
            let shard = Shard::open(settings, describe, store, clock.now()).unwrap();
            let (task, inbox) = ShardTask::new(shard, clock, Arc::default(), Arc::default());
            inbox.send(Message::Stop).await.unwrap();
            // As reads do whose answers come back faster than they are taken.
            let waiting = tokio::task::spawn_blocking(move || {
                while inbox.blocking_send(Message::Commands(Vec::new())).is_ok() {}
            });
            // As a read does on a disk that does not answer.
            tokio::task::spawn_blocking(move || unstuck.recv().unwrap_or_default());
            let outcome = task.run().await;
            waiting.await.unwrap();
            outcome
        });
        drop(stuck);
        assert_eq!(outcome, Ok(()));
    }

    fn ensure(path: &str, token: u64) -> Command {
        let ensured = Ensured::Queue {
            path: path.to_owned(),
            settings: broker::QueueSettings::default(),
        };
        administer(Order::ensure(vec![ensured]), token)
    }

    fn administer(order: Order, token: u64) -> Command {
        Command::Administer {
            request: request(token),
            namespace: store::NamespaceId(0),
            order: Box::new(order),
        }
    }

    fn request(token: u64) -> broker::RequestId {
        let connection = ConnectionId::SERVER;
        broker::RequestId { connection, token }
    }

    fn is_done(said: &[Output]) -> bool {
        matches!(said, [Output::Administered { result, .. }] if result.is_ok())
    }

    #[test]
    fn the_directory_has_changed_before_the_change_is_answered() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        runtime.block_on(async {
            let clock = BrokerClock::new(Clock::start(), false);
            let store = Box::new(MemoryStore::new());
            let describe = servicebus::describe_forward_error;
            let settings = BrokerSettings::default();
            let shard = Shard::open(settings, describe, store, clock.now()).unwrap();
            let namespaces = Arc::new(NamespaceRegistry::default());
            let receiver = namespaces.subscribe(store::NamespaceId(0)).unwrap();
            let (task, inbox) = ShardTask::new(shard, clock, Arc::default(), namespaces);
            let running = tokio::spawn(task.run());
            let known = || receiver.borrow().get("orders").map(|entity| entity.id);
            let (sender, mut outputs) = mpsc::unbounded_channel();
            let connection = ConnectionId::SERVER;
            inbox
                .send(Message::Open { connection, sender })
                .await
                .unwrap();
            let mut ids = Vec::new();
            for token in 0..2 {
                let commands = vec![ensure("Orders", token)];
                inbox.send(Message::Commands(commands)).await.unwrap();
                let batch = outputs.recv().await.unwrap();
                assert!(is_done(&batch), "{batch:?}");
                ids.push(known().expect("it is in the directory"));
                let path = "orders".to_owned();
                let commands = vec![administer(Order::Remove { path }, token)];
                inbox.send(Message::Commands(commands)).await.unwrap();
                let batch = outputs.recv().await.unwrap();
                assert!(is_done(&batch), "{batch:?}");
                assert_eq!(known(), None);
            }
            assert_ne!(ids[0], ids[1], "an id is not used again");
            inbox.send(Message::Stop).await.unwrap();
            running.await.unwrap().unwrap();
        });
    }
}

//! Shard task: feeds one shard from its inbox and hands out what it says.
//!
//! Each round takes all that has arrived, reads the clock once and makes one turn; outputs go to
//! each connection as one batch. Sending to a connection never waits: what a connection may be
//! sent is bounded by the broker. Reads happen on blocking threads and come back as commands.

use std::collections::HashMap;
use std::sync::Arc;

use broker::{Command, ConnectionId, Output, QueueInfo, ReadRequest, Shard};
use store::{Reader, StoreError};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::clock::Clock;

/// Batches that wait for the shard before connections have to.
const INBOX: usize = 1_024;
/// Batches that are decided in one turn.
const BATCHES_PER_TURN: usize = 128;

/// A connection's ear: batches of what the broker says to it.
pub type Ear = mpsc::UnboundedSender<Vec<Output>>;

/// A connection as the shard task sees it, with what is to be said to it after this turn.
struct Listener {
    ear: Ear,
    batch: Vec<Output>,
}

/// What a shard task is told.
#[derive(Debug)]
pub enum Message {
    /// A connection wants to hear what is said to it from now on.
    Open { connection: ConnectionId, ear: Ear },
    /// Commands in order, all of one connection or about one read.
    Commands(Vec<Command>),
    /// A connection is gone; nothing more comes from it.
    Close { connection: ConnectionId },
    /// Asks which queues there are.
    Queues(oneshot::Sender<Vec<QueueInfo>>),
    /// Nothing more comes: finish what has arrived and end.
    Stop,
}

/// The way to a shard task.
pub type Inbox = mpsc::Sender<Message>;

/// One shard and all it needs to run.
pub struct ShardTask {
    shard: Shard,
    reader: Arc<dyn Reader>,
    clock: Clock,
    progress: Arc<Notify>,
    inbox: mpsc::Receiver<Message>,
    /// For what comes back from reads.
    own_inbox: Inbox,
    listeners: HashMap<ConnectionId, Listener>,
    commands: Vec<Command>,
    said: Vec<Output>,
    reads: Vec<ReadRequest>,
}

impl ShardTask {
    /// A task for `shard`, whose store tells of progress by `progress`.
    pub fn new(shard: Shard, clock: Clock, progress: Arc<Notify>) -> (Self, Inbox) {
        let (own_inbox, inbox) = mpsc::channel(INBOX);
        let task = Self {
            reader: shard.store().reader(),
            shard,
            clock,
            progress,
            inbox,
            own_inbox: own_inbox.clone(),
            listeners: HashMap::new(),
            commands: Vec::new(),
            said: Vec::new(),
            reads: Vec::new(),
        };
        (task, own_inbox)
    }

    /// Runs until told to stop; everything decided by then is durable when this returns.
    ///
    /// # Errors
    /// When the store fails. That is final.
    pub async fn run(mut self) -> Result<(), StoreError> {
        let mut arrived = Vec::new();
        let mut stopping = false;
        while !stopping {
            self.wait(&mut arrived).await;
            for message in arrived.drain(..) {
                stopping |= self.take(message);
            }
            self.turn()?;
        }
        self.settle_down().await
    }

    /// Waits until something arrived, the store made progress, or a deadline is reached.
    async fn wait(&mut self, arrived: &mut Vec<Message>) {
        let wake = self
            .shard
            .deadline()
            .and_then(|deadline| self.clock.wake(deadline));
        tokio::select! {
            biased;
            _ = self.inbox.recv_many(arrived, BATCHES_PER_TURN) => {}
            () = self.progress.notified() => {}
            () = sleep_until(wake) => {}
        }
    }

    /// Returns whether this was the last message.
    fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Open { connection, ear } => {
                self.listeners.insert(
                    connection,
                    Listener {
                        ear,
                        batch: Vec::new(),
                    },
                );
            }
            Message::Commands(mut commands) if self.commands.is_empty() => {
                std::mem::swap(&mut self.commands, &mut commands);
            }
            Message::Commands(mut commands) => self.commands.append(&mut commands),
            Message::Close { connection } => {
                self.listeners.remove(&connection);
            }
            // Who asked may have gone meanwhile.
            Message::Queues(answer) => drop(answer.send(self.shard.broker.queues().collect())),
            Message::Stop => return true,
        }
        false
    }

    fn turn(&mut self) -> Result<(), StoreError> {
        self.shard.turn(
            self.clock.now(),
            &mut self.commands,
            &mut self.said,
            &mut self.reads,
        );
        // Checked after the turn, so that nothing is said that rests on a commit that failed.
        if let Some(failure) = self.shard.store().failure() {
            return Err(failure);
        }
        self.start_reads();
        self.hand_out();
        Ok(())
    }

    fn start_reads(&mut self) {
        for request in self.reads.drain(..) {
            let reader = Arc::clone(&self.reader);
            let inbox = self.own_inbox.clone();
            tokio::task::spawn_blocking(move || {
                let found = reader.read(request.after, &request.query);
                if let Err(error) = &found {
                    tracing::error!(%error, query = ?request.query, "a read failed");
                }
                let loaded = Command::Loaded {
                    read: request.read,
                    found,
                };
                // The inbox is closed only when the server has stopped.
                drop(inbox.blocking_send(Message::Commands(vec![loaded])));
            });
        }
    }

    /// Sends each connection what is said to it, as one batch. A connection that has just ended
    /// hears nothing.
    fn hand_out(&mut self) {
        let mut addressed = Vec::new();
        for output in self.said.drain(..) {
            let connection = output.connection();
            let Some(listener) = self.listeners.get_mut(&connection) else {
                continue;
            };
            if listener.batch.is_empty() {
                addressed.push(connection);
            }
            listener.batch.push(output);
        }
        for connection in addressed {
            if let Some(listener) = self.listeners.get_mut(&connection) {
                drop(listener.ear.send(std::mem::take(&mut listener.batch)));
            }
        }
    }

    /// Waits until nothing that was submitted is left, then closes the store.
    async fn settle_down(mut self) -> Result<(), StoreError> {
        while self.shard.pending_bytes() > 0 {
            self.progress.notified().await;
            self.turn()?;
        }
        // Closing the store joins its threads, which blocks.
        let closing = tokio::task::spawn_blocking(move || drop(self));
        drop(closing.await);
        Ok(())
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

//! Shard client: sends commands to the shard and waits for the outputs that answer them.
//!
//! [`ShardClient::ask`] is one command and its answer. It is bounded by [`ANSWER_TIME`], and a
//! caller may drop it at any time: the shard still carries the command out, and a late answer is
//! not taken for that of another request. A shard that has ended is [`ShardError::Stopping`]
//! everywhere. The shard treats a client as a connection of its own, which ends when the client is
//! dropped. Its outputs, like all outputs of a shard, rest on a durable commit.

use std::sync::atomic::Ordering;
use std::time::Duration;
use std::vec;

use broker::{
    ActiveSession, Activity, ActivityWanted, Answer, ClientNames, Command, ConnectionId,
    EntityError, LineageReader, Order, Output, Page, QueueInfo, RequestId,
};
use bytes::Bytes;
use store::{EntityId, NamespaceId};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::report::Measured;
use crate::shard::staging::{CommandStager, staged};
use crate::shard::store_view::StoreView;
use crate::shard::{Inbox, Message};
use crate::telemetry::ConnectionTracer;

/// The most time between a command and its answer. A disk that takes longer for a commit or a read
/// is stuck, and its client should not be.
const ANSWER_TIME: Duration = Duration::from_secs(120);

/// What is asked for in one order of a list.
const PAGE: usize = 1_000;

/// Why a command has no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ShardError {
    /// The shard has failed, or the server stops.
    #[error("the broker is stopping")]
    Stopping,
    /// A fault rule of the namespace has the request lost.
    #[error("a fault rule drops the request; it may have been carried out")]
    Dropped,
    /// The shard is alive, and its disk may be stuck.
    #[error(
        "the broker has not answered within {} seconds; it may still carry out the request",
        ANSWER_TIME.as_secs()
    )]
    NoAnswer,
}

/// What the end of a client means for the messages that it has locked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LocksAtEnd {
    /// As those of a lost connection.
    AsConfigured,
    /// They stay locked, whatever the settings say of lost connections.
    Keep,
}

/// A connection to the shard within the server.
pub struct ShardClient {
    inbox: Inbox,
    connection: ConnectionId,
    namespace: NamespaceId,
    locks: LocksAtEnd,
    /// For large messages.
    command_stager: Option<CommandStager>,
    /// Makes the spans of what it does, where telemetry is on.
    tracer: Option<Box<ConnectionTracer>>,
    outputs: mpsc::UnboundedReceiver<Vec<Output>>,
    /// Outputs that have arrived and were not looked at.
    arrived: vec::IntoIter<Output>,
    /// The token of the next request.
    next_token: u64,
    /// [`ANSWER_TIME`].
    answer_time: Duration,
}

impl ShardClient {
    /// Registers a client of the default namespace that the shard knows as `connection`.
    pub async fn open(inbox: &Inbox, connection: ConnectionId) -> Result<Self, ShardError> {
        let (sender, outputs) = mpsc::unbounded_channel();
        let open = Message::Open { connection, sender };
        inbox.send(open).await.map_err(|_| ShardError::Stopping)?;
        Ok(Self {
            inbox: inbox.clone(),
            connection,
            namespace: NamespaceId::default(),
            locks: LocksAtEnd::AsConfigured,
            command_stager: None,
            tracer: None,
            outputs,
            arrived: Vec::new().into_iter(),
            next_token: 0,
            answer_time: ANSWER_TIME,
        })
    }

    /// Registers a client of a namespace of a running server, under a new connection id. Fault
    /// rules know it by the name of its request's caller.
    pub async fn connect_to(server: &NamespaceView, locks: LocksAtEnd) -> Result<Self, ShardError> {
        let connection = ConnectionId(server.next_connection.fetch_add(1, Ordering::Relaxed));
        let mut client = Self::open(server.placement.of(server.namespace()), connection).await?;
        client.enter(server.namespace());
        client.locks = locks;
        client.command_stager.clone_from(&server.command_stager);
        let directory = server.namespaces.subscribe(server.namespace());
        if let (Some(tracer), Some(directory)) = (&server.tracer, directory) {
            let endpoints = server.endpoints().cloned();
            let tracer = ConnectionTracer::of_request(tracer, connection, endpoints, directory);
            client.tracer = Some(Box::new(tracer));
        }
        if let Some(caller) = server.caller() {
            let names = ClientNames {
                keys: vec![caller.to_owned()],
                ..ClientNames::default()
            };
            let introduction = Command::Introduce {
                connection,
                client: Box::new(names),
            };
            client.send_commands(vec![introduction]).await?;
        }
        Ok(client)
    }

    /// From now on it is a client of that namespace.
    pub fn enter(&mut self, namespace: NamespaceId) {
        self.namespace = namespace;
    }

    /// Has the shard carry out the command that `command` makes for a request id, and waits for the
    /// output that answers it. `pick` takes the answer out of that output. Large messages are
    /// staged first.
    pub async fn ask<T>(
        &mut self,
        command: impl FnOnce(RequestId) -> Command,
        pick: impl Fn(Output) -> Option<T>,
    ) -> Result<T, ShardError> {
        let request = self.new_request();
        let mut command = command(request);
        self.trace(std::slice::from_mut(&mut command));
        let command = staged(command, self.command_stager.as_ref()).await;
        let command = command.ok_or(ShardError::Stopping)?;
        self.submit(vec![command]).await?;
        self.answer(|output| match request_of(&output) {
            Some(answered) if answered == request => pick(output),
            _ => None,
        })
        .await
    }

    /// Has the broker carry out an order.
    pub async fn order(&mut self, order: Order) -> Result<Result<Answer, EntityError>, ShardError> {
        let namespace = self.namespace;
        let command = |request| Command::Administer {
            request,
            namespace,
            order: Box::new(order),
        };
        self.ask(command, |output| match output {
            Output::Administered { result, .. } => Some(*result),
            _ => None,
        })
        .await
    }

    /// All items of a list, asked for in pages: `order` makes that for one page of how many it
    /// skips and how many it has at most. What is gone by now has none.
    pub async fn list<T>(
        &mut self,
        order: impl Fn(usize, usize) -> Order,
        page: impl Fn(Answer) -> Option<Page<T>>,
    ) -> Result<Vec<T>, ShardError> {
        let mut all = Vec::new();
        loop {
            let answer = self.order(order(all.len(), PAGE)).await?;
            let Some(page) = answer.ok().and_then(&page) else {
                return Ok(all);
            };
            all.extend(page.items);
            if !page.more {
                return Ok(all);
            }
        }
    }

    /// Every entity of the namespace, in no order.
    pub async fn entities(&mut self) -> Result<Vec<QueueInfo>, ShardError> {
        let namespace = self.namespace;
        let question = |answer| Message::Measure(Measured::Of(namespace), answer);
        Ok(ask_task(&self.inbox, question).await?.entities)
    }

    /// The receivers, locks and sessions of an entity, `most` of each, if it is there.
    pub async fn activity(
        &self,
        entity: EntityId,
        most: usize,
    ) -> Result<Option<Activity>, ShardError> {
        let wanted = ActivityWanted::First(most);
        let question = |answer| Message::Activity(entity, wanted, answer);
        ask_task(&self.inbox, question).await
    }

    /// Sessions of an entity by their ids, with their holders, if the entity is there.
    pub async fn sessions(
        &self,
        entity: EntityId,
        ids: Vec<Bytes>,
    ) -> Result<Option<Vec<ActiveSession>>, ShardError> {
        let wanted = ActivityWanted::Sessions(ids);
        let question = |answer| Message::Activity(entity, wanted, answer);
        let activity = ask_task(&self.inbox, question).await?;
        Ok(activity.map(|activity| activity.sessions))
    }

    /// The record of what has happened to the messages of a namespace, if there is one.
    pub async fn lineage(
        &self,
        namespace: NamespaceId,
    ) -> Result<Option<LineageReader>, ShardError> {
        let question = |answer| Message::Lineage(namespace, answer);
        ask_task(&self.inbox, question).await
    }

    /// Reads of all that was answered.
    pub async fn store_view(&self) -> Result<StoreView, ShardError> {
        ask_task(&self.inbox, Message::StoreView).await
    }

    /// Sends commands that may have several answers, or none.
    pub async fn send_commands(&mut self, mut commands: Vec<Command>) -> Result<(), ShardError> {
        self.trace(&mut commands);
        self.submit(commands).await
    }

    fn trace(&mut self, commands: &mut [Command]) {
        if let Some(tracer) = &mut self.tracer {
            tracer.begin(commands);
        }
    }

    async fn submit(&self, commands: Vec<Command>) -> Result<(), ShardError> {
        let sent = self.inbox.send(Message::Commands(commands)).await;
        sent.map_err(|_| ShardError::Stopping)
    }

    /// What `pick` takes out of the first output that it takes; outputs before it are dropped.
    /// Waits for as long as it takes. No output is lost if the future is dropped.
    pub async fn wait_for<T>(
        &mut self,
        pick: impl Fn(Output) -> Option<T>,
    ) -> Result<T, ShardError> {
        loop {
            for output in &mut self.arrived {
                if let Output::Dropped { .. } | Output::Ended { .. } = output {
                    return Err(ShardError::Dropped);
                }
                if let Some(found) = pick(output) {
                    return Ok(found);
                }
            }
            let batch = self.outputs.recv().await.ok_or(ShardError::Stopping)?;
            if let Some(tracer) = &mut self.tracer {
                batch.iter().for_each(|output| tracer.end(output));
            }
            self.arrived = batch.into_iter();
        }
    }

    /// The same, for an output that answers a command and so is due.
    pub async fn answer<T>(&mut self, pick: impl Fn(Output) -> Option<T>) -> Result<T, ShardError> {
        let answer = tokio::time::timeout(self.answer_time, self.wait_for(pick)).await;
        answer.unwrap_or(Err(ShardError::NoAnswer))
    }

    /// All outputs that have arrived, at least one, when some are due.
    pub async fn answers(&mut self) -> Result<Vec<Output>, ShardError> {
        let first = self.answer(Some).await?;
        Ok(std::iter::once(first).chain(&mut self.arrived).collect())
    }

    /// The id that the broker knows it by.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// The id of a further request, which its answer repeats.
    pub fn new_request(&mut self) -> RequestId {
        let token = self.next_token;
        self.next_token += 1;
        RequestId {
            connection: self.connection,
            token,
        }
    }
}

impl Drop for ShardClient {
    /// Tells the shard that the client is gone. If the inbox is full, a task of its own waits for
    /// room. The inbox is closed only when the shard has failed or stopped.
    fn drop(&mut self) {
        let connection = self.connection;
        let last = match self.locks {
            LocksAtEnd::AsConfigured => Command::Disconnect { connection },
            LocksAtEnd::Keep => Command::Leave { connection },
        };
        let messages = [Message::Commands(vec![last]), Message::Close { connection }];
        if let Ok(room) = self.inbox.try_reserve_many(messages.len()) {
            room.zip(messages)
                .for_each(|(room, message)| room.send(message));
        } else if let Ok(runtime) = Handle::try_current() {
            let inbox = self.inbox.clone();
            drop(runtime.spawn(async move {
                for message in messages {
                    drop(inbox.send(message).await);
                }
            }));
        }
    }
}

/// The request that an output answers, if it answers one.
fn request_of(output: &Output) -> Option<RequestId> {
    match output {
        Output::Administered { request, .. }
        | Output::RuleChanged { request, .. }
        | Output::Rules { request, .. }
        | Output::Sent { request, .. }
        | Output::Published { request, .. }
        | Output::Settled { request, .. }
        | Output::Renewed { request, .. }
        | Output::Browsed { request, .. }
        | Output::Deferred { request, .. }
        | Output::Cancelled { request, .. }
        | Output::SenderAttached { request, .. }
        | Output::Deleted { request, .. }
        | Output::Declared { request, .. }
        | Output::Discharged { request, .. }
        | Output::SessionRenewed { request, .. }
        | Output::SessionState { request, .. }
        | Output::SessionStateSet { request, .. }
        | Output::Sessions { request, .. } => Some(*request),
        Output::EntityChanged(_)
        | Output::RulesChanged(..)
        | Output::NamespaceChanged(_)
        | Output::Deliver { .. }
        | Output::Dropped { .. }
        | Output::Ended { .. }
        | Output::CreditWithheld { .. }
        | Output::Drained { .. }
        | Output::DeliveryTimedOut { .. }
        | Output::LockEnded { .. }
        | Output::Activity { .. }
        | Output::Evicted { .. }
        | Output::Subscribed { .. }
        | Output::SessionAccepted { .. }
        | Output::SessionRefused { .. }
        | Output::SessionLost { .. }
        | Output::NodeOpened { .. }
        | Output::NodeClosed { .. }
        | Output::TimedOut { .. } => None,
    }
}

/// Asks the shard task about itself or its clock. It answers in its own time.
pub async fn ask_task<T>(
    inbox: &Inbox,
    question: impl FnOnce(oneshot::Sender<T>) -> Message,
) -> Result<T, ShardError> {
    let (sender, answer) = oneshot::channel();
    let sent = inbox.send(question(sender)).await;
    sent.map_err(|_| ShardError::Stopping)?;
    answer.await.map_err(|_| ShardError::Stopping)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use tokio::sync::mpsc::{Receiver, UnboundedSender};

    use super::*;

    const CONNECTION: ConnectionId = ConnectionId(7);

    fn command(request: RequestId) -> Command {
        Command::CancelScheduled {
            request,
            entity: store::EntityId(1),
            numbers: Vec::new(),
        }
    }

    fn cancelled(token: u64) -> Output {
        Output::Cancelled {
            request: RequestId {
                connection: CONNECTION,
                token,
            },
            result: Ok(()),
        }
    }

    /// The next thing that a shard with this inbox is told.
    fn told(inbox: &mut Receiver<Message>) -> String {
        match inbox.try_recv() {
            Ok(Message::Commands(commands)) => format!("{:?}", commands[0]),
            Ok(Message::Close { .. }) => "close".to_owned(),
            other => format!("{other:?}"),
        }
    }

    /// Runs `test` with a client, the inbox of its shard, and the sender of the shard's outputs.
    fn check<F: Future<Output = ()>>(
        test: impl FnOnce(ShardClient, Receiver<Message>, UnboundedSender<Vec<Output>>) -> F,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (sender, mut inbox) = mpsc::channel(2);
            let client = ShardClient::open(&sender, CONNECTION).await.unwrap();
            let Some(Message::Open { sender, .. }) = inbox.recv().await else {
                panic!("a client registers first");
            };
            test(client, inbox, sender).await;
        });
    }

    #[test]
    fn an_answer_to_a_request_that_was_dropped_is_not_taken_for_the_next_one() {
        check(|mut client, mut inbox, outputs| async move {
            let mut context = Context::from_waker(Waker::noop());
            assert_eq!(
                pin!(client.ask(command, Some)).poll(&mut context),
                Poll::Pending
            );
            outputs.send(vec![cancelled(0), cancelled(1)]).unwrap();
            assert_eq!(client.ask(command, Some).await, Ok(cancelled(1)));
            assert!(told(&mut inbox).starts_with("CancelScheduled"));
        });
    }

    #[test]
    fn outputs_behind_an_answer_are_kept() {
        check(|mut client, _inbox, outputs| async move {
            outputs.send(vec![cancelled(5), cancelled(6)]).unwrap();
            assert_eq!(client.wait_for(Some).await, Ok(cancelled(5)));
            outputs.send(vec![cancelled(7)]).unwrap();
            assert_eq!(client.answers().await, Ok(vec![cancelled(6)]));
            assert_eq!(client.answers().await, Ok(vec![cancelled(7)]));
        });
    }

    #[test]
    fn a_shard_that_does_not_answer_in_time_is_told_from_one_that_has_ended() {
        check(|mut client, inbox, outputs| async move {
            client.answer_time = Duration::ZERO;
            assert_eq!(
                client.ask(command, Some).await,
                Err(ShardError::NoAnswer),
                "there is no answer"
            );
            drop(outputs);
            assert_eq!(client.ask(command, Some).await, Err(ShardError::Stopping));
            drop(inbox);
            assert_eq!(client.ask(command, Some).await, Err(ShardError::Stopping));
            assert_eq!(client.entities().await.err(), Some(ShardError::Stopping));
        });
    }

    #[test]
    fn the_end_of_a_client_reaches_a_shard_whose_inbox_is_full() {
        for locks in [LocksAtEnd::AsConfigured, LocksAtEnd::Keep] {
            check(|mut client, mut inbox, _outputs| async move {
                client.locks = locks;
                let commands = vec![command(client.new_request())];
                client.send_commands(commands).await.unwrap();
                drop(client);
                assert!(told(&mut inbox).starts_with("CancelScheduled"));
                tokio::task::yield_now().await;
                let last = match locks {
                    LocksAtEnd::AsConfigured => "Disconnect",
                    LocksAtEnd::Keep => "Leave",
                };
                assert!(told(&mut inbox).starts_with(last));
                assert_eq!(told(&mut inbox), "close");
            });
        }
    }
}

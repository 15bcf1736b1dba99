//! Shard client: sends commands to the shard and waits for the outputs that answer them.
//!
//! The shard treats it as a connection of its own until it is closed. Its outputs, like all
//! outputs of a shard, rest on a durable commit.

use std::sync::atomic::Ordering;

use broker::{Answer, Command, ConnectionId, EntityError, Order, Output, QueueInfo, RequestId};
use store::NamespaceId;
use tokio::sync::{mpsc, oneshot};

use crate::server_state::ServerState;
use crate::shard::{Inbox, Message};

/// The only namespace there is so far.
pub const NAMESPACE: NamespaceId = NamespaceId(0);

/// The shard has failed, or the server stops.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the broker is stopping")]
pub struct Closed;

/// A connection to the shard within the server.
pub struct ShardClient {
    inbox: Inbox,
    connection: ConnectionId,
    outputs: mpsc::UnboundedReceiver<Vec<Output>>,
}

impl ShardClient {
    /// Registers a client that the shard knows as `connection`.
    pub async fn open(inbox: &Inbox, connection: ConnectionId) -> Result<Self, Closed> {
        let (sender, outputs) = mpsc::unbounded_channel();
        let shard_client = Self {
            inbox: inbox.clone(),
            connection,
            outputs,
        };
        shard_client
            .send(Message::Open { connection, sender })
            .await?;
        Ok(shard_client)
    }

    /// Registers a client of a running server, under a new connection id.
    pub async fn connect_to(server: &ServerState) -> Result<Self, Closed> {
        let connection = ConnectionId(server.next_connection.fetch_add(1, Ordering::Relaxed));
        Self::open(&server.inbox, connection).await
    }

    /// Has the broker carry out an order.
    pub async fn order(&mut self, order: Order) -> Result<Result<Answer, EntityError>, Closed> {
        let command = Command::Administer {
            request: self.request(0),
            namespace: NAMESPACE,
            order: Box::new(order),
        };
        self.send(Message::Commands(vec![command])).await?;
        loop {
            let said = self.outputs.recv().await.ok_or(Closed)?;
            let answer = said.into_iter().find_map(|output| match output {
                Output::Administered { result, .. } => Some(*result),
                _ => None,
            });
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }

    /// Sends commands that may have several answers, or none.
    pub async fn send_commands(&self, commands: Vec<Command>) -> Result<(), Closed> {
        self.send(Message::Commands(commands)).await
    }

    /// The next batch of outputs.
    pub async fn next_outputs(&mut self) -> Result<Vec<Output>, Closed> {
        self.outputs.recv().await.ok_or(Closed)
    }

    /// Every entity there is, in no order.
    pub async fn entities(&mut self) -> Result<Vec<QueueInfo>, Closed> {
        let (answer, queues) = oneshot::channel();
        self.send(Message::Queues(answer)).await?;
        queues.await.map_err(|_| Closed)
    }

    /// Ends the client, as a lost connection ends.
    pub async fn close(self) {
        let connection = self.connection;
        _ = self
            .send_commands(vec![Command::Disconnect { connection }])
            .await;
        // The inbox is closed only when the shard has failed or stopped.
        _ = self.send(Message::Close { connection }).await;
    }

    /// Ends the client, but keeps its locks, whatever happens to those of lost connections.
    pub async fn leave(self) {
        let connection = self.connection;
        _ = self
            .send_commands(vec![Command::Leave { connection }])
            .await;
        _ = self.send(Message::Close { connection }).await;
    }

    /// The id that the broker knows it by.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// The id of a request, which its answer repeats.
    pub fn request(&self, token: u64) -> RequestId {
        let connection = self.connection;
        RequestId { connection, token }
    }

    async fn send(&self, message: Message) -> Result<(), Closed> {
        self.inbox.send(message).await.map_err(|_| Closed)
    }
}

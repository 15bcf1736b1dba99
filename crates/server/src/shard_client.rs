//! Desk: where the broker is asked something, and what it says is waited for.
//!
//! The shard knows it as a connection of its own for as long as it is there. What it says rests on
//! a commit that is durable, as everything does that leaves a shard.

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

/// One asker's way to the shard.
pub struct ShardClient {
    inbox: Inbox,
    connection: ConnectionId,
    outputs: mpsc::UnboundedReceiver<Vec<Output>>,
}

impl ShardClient {
    /// A desk that the shard knows as `connection`.
    pub async fn open(inbox: &Inbox, connection: ConnectionId) -> Result<Self, Closed> {
        let (output_sender, outputs) = mpsc::unbounded_channel();
        let shard_client = Self {
            inbox: inbox.clone(),
            connection,
            outputs,
        };
        shard_client
            .send(Message::Open {
                connection,
                output_sender,
            })
            .await?;
        Ok(shard_client)
    }

    /// A desk in a house that people come to.
    pub async fn connect_to(server: &ServerState) -> Result<Self, Closed> {
        let connection = ConnectionId(server.next_connection.fetch_add(1, Ordering::Relaxed));
        Self::open(&server.inbox, connection).await
    }

    /// Has an order carried out.
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

    /// Says something that may have several answers, or none.
    pub async fn send_commands(&self, commands: Vec<Command>) -> Result<(), Closed> {
        self.send(Message::Commands(commands)).await
    }

    /// What is said next.
    pub async fn next_outputs(&mut self) -> Result<Vec<Output>, Closed> {
        self.outputs.recv().await.ok_or(Closed)
    }

    /// Every entity there is, in no order.
    pub async fn entities(&mut self) -> Result<Vec<QueueInfo>, Closed> {
        let (answer, queues) = oneshot::channel();
        self.send(Message::Queues(answer)).await?;
        queues.await.map_err(|_| Closed)
    }

    /// Nobody asks any more, and nobody receives.
    pub async fn close(self) {
        let connection = self.connection;
        _ = self
            .send_commands(vec![Command::Disconnect { connection }])
            .await;
        // The inbox is closed only when the shard has failed or stopped.
        _ = self.send(Message::Close { connection }).await;
    }

    /// Nobody asks any more, and nobody receives. Locks that were taken here go on, whatever becomes
    /// of those of connections that are lost.
    pub async fn leave(self) {
        let connection = self.connection;
        _ = self
            .send_commands(vec![Command::Leave { connection }])
            .await;
        _ = self.send(Message::Close { connection }).await;
    }

    /// As whom the broker knows it.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// A question that its answer names.
    pub fn request(&self, token: u64) -> RequestId {
        let connection = self.connection;
        RequestId { connection, token }
    }

    async fn send(&self, message: Message) -> Result<(), Closed> {
        self.inbox.send(message).await.map_err(|_| Closed)
    }
}

//! Desk: where an HTTP request asks the broker, and waits for what is said to it.
//!
//! The shard knows it as a connection of its own for as long as it is there. What it says rests on
//! a commit that is durable, as everything does that leaves a shard.

use std::sync::atomic::Ordering;

use broker::{Answer, Command, ConnectionId, EntityError, Order, Output, RequestId};
use store::NamespaceId;
use tokio::sync::mpsc;

use crate::door::House;
use crate::shard::Message;

/// The only namespace there is so far.
const NAMESPACE: NamespaceId = NamespaceId(0);

/// One request's way to the shard.
pub struct Desk<'a> {
    house: &'a House,
    connection: ConnectionId,
    outputs: mpsc::UnboundedReceiver<Vec<Output>>,
}

impl<'a> Desk<'a> {
    /// A desk that the shard knows; `None` when the server stops or has failed.
    pub async fn open(house: &'a House) -> Option<Self> {
        let connection = ConnectionId(house.next_connection.fetch_add(1, Ordering::Relaxed));
        let (ear, outputs) = mpsc::unbounded_channel();
        let opening = Message::Open { connection, ear };
        house.inbox.send(opening).await.ok()?;
        Some(Self {
            house,
            connection,
            outputs,
        })
    }

    /// Has an order carried out; `None` when the server stops or has failed.
    pub async fn order(&mut self, order: Order) -> Option<Result<Answer, EntityError>> {
        let request = RequestId {
            connection: self.connection,
            token: 0,
        };
        let command = Command::Administer {
            request,
            namespace: NAMESPACE,
            order: Box::new(order),
        };
        let commands = Message::Commands(vec![command]);
        self.house.inbox.send(commands).await.ok()?;
        loop {
            let said = self.outputs.recv().await?;
            let answer = said.into_iter().find_map(|output| match output {
                Output::Administered { result, .. } => Some(*result),
                _ => None,
            });
            if answer.is_some() {
                return answer;
            }
        }
    }

    /// Nobody asks any more.
    pub async fn close(self) {
        let connection = self.connection;
        // The inbox is closed only when the shard has failed or stopped.
        drop(self.house.inbox.send(Message::Close { connection }).await);
    }
}

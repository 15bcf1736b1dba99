//! One queue of the broker with the steps that tests repeat: send, receive in both modes, peek,
//! empty.
//!
//! The client settles without waiting for the broker's answer, so what a settlement did is read
//! back by a peek on the same session, which the broker sees after it.

use anyhow::{Context, Result, ensure};
use fe2o3_amqp::link::delivery::Delivery;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp::types::messaging::{Body, Message, SerializableBody};
use fe2o3_amqp::{Receiver, Sender};
use serde_amqp::Value;

use crate::management::Management;
use crate::support::{Client, LULL, Received, patiently, sequence_number, unique_id};

/// A delivery whose body may be of any kind.
pub type AnyDelivery = Delivery<Body<Value>>;

/// A queue, and the client that looks at it.
pub struct Queue {
    pub client: Client,
    pub name: String,
}

impl Queue {
    /// The queue `fe2o3-<suffix>`, emptied.
    pub async fn cleared(suffix: &str) -> Result<Self> {
        let mut queue = Self {
            client: Client::connect().await?,
            name: format!("fe2o3-{suffix}"),
        };
        queue.clear(&queue.name.clone()).await?;
        queue.clear(&queue.dead_letter()).await?;
        Ok(queue)
    }

    pub fn dead_letter(&self) -> String {
        format!("{}/$DeadLetterQueue", self.name)
    }

    /// Removes everything, also what an interrupted run left locked or deferred.
    async fn clear(&mut self, node: &str) -> Result<()> {
        let mut management = Management::attach(&mut self.client.session, node).await?;
        loop {
            let left = management.peek().await?;
            if left.is_empty() {
                return management.close().await;
            }
            let deferred = deferred_numbers(&left)?;
            if deferred.is_empty() {
                self.delete_some(node, left.len()).await?;
            } else {
                management.receive_by_number(&deferred, 0).await?;
            }
        }
    }

    async fn delete_some(&mut self, node: &str, count: usize) -> Result<()> {
        let mut receiver = self.deleting_receiver(node).await?;
        for _ in 0..count {
            if next(&mut receiver).await?.is_none() {
                break;
            }
        }
        receiver.close().await?;
        Ok(())
    }

    pub async fn sender(&mut self) -> Result<Sender> {
        Ok(Sender::attach(&mut self.client.session, unique_id(), self.name.as_str()).await?)
    }

    /// Sends and awaits `accepted` for each.
    pub async fn send<B: SerializableBody>(
        &mut self,
        messages: impl IntoIterator<Item = Message<B>>,
    ) -> Result<()> {
        let mut sender = self.sender().await?;
        for message in messages {
            let outcome = patiently("a send", sender.send(message)).await??;
            ensure!(outcome.is_accepted(), "a send ended {outcome:?}");
        }
        sender.close().await?;
        Ok(())
    }

    /// A peek-lock receiver that takes one message at a time.
    pub async fn receiver(&mut self) -> Result<Receiver> {
        let name = self.name.clone();
        self.receiver_from(&name).await
    }

    /// The same on another node, such as the dead-letter queue.
    pub async fn receiver_from(&mut self, node: &str) -> Result<Receiver> {
        Ok(Receiver::builder()
            .name(unique_id())
            .source(node)
            .sender_settle_mode(SenderSettleMode::Unsettled)
            .receiver_settle_mode(ReceiverSettleMode::Second)
            .credit_mode(CreditMode::Manual)
            .attach(&mut self.client.session)
            .await?)
    }

    pub async fn deleting_receiver(&mut self, node: &str) -> Result<Receiver> {
        Ok(Receiver::builder()
            .name(unique_id())
            .source(node)
            .sender_settle_mode(SenderSettleMode::Settled)
            .credit_mode(CreditMode::Manual)
            .attach(&mut self.client.session)
            .await?)
    }

    /// Receives exactly `count` messages in receive-and-delete.
    pub async fn take(&mut self, count: usize) -> Result<Vec<Received>> {
        let name = self.name.clone();
        self.take_from(&name, count).await
    }

    pub async fn take_dead(&mut self) -> Result<Received> {
        let node = self.dead_letter();
        let mut taken = self.take_from(&node, 1).await?;
        taken.pop().context("one dead letter")
    }

    async fn take_from(&mut self, node: &str, count: usize) -> Result<Vec<Received>> {
        let mut receiver = self.deleting_receiver(node).await?;
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(receive(&mut receiver).await?.into_message());
        }
        receiver.close().await?;
        Ok(taken)
    }

    pub async fn management(&mut self) -> Result<Management> {
        let name = self.name.clone();
        Management::attach(&mut self.client.session, &name).await
    }

    pub async fn peek(&mut self) -> Result<Vec<Received>> {
        let name = self.name.clone();
        self.peek_at(&name).await
    }

    pub async fn peek_dead(&mut self) -> Result<Vec<Received>> {
        let node = self.dead_letter();
        self.peek_at(&node).await
    }

    async fn peek_at(&mut self, node: &str) -> Result<Vec<Received>> {
        let mut management = Management::attach(&mut self.client.session, node).await?;
        let peeked = management.peek().await?;
        management.close().await?;
        Ok(peeked)
    }

    pub async fn must_be_empty(&mut self) -> Result<()> {
        let left = self.peek().await?;
        ensure!(
            left.is_empty(),
            "{} messages are left in {}",
            left.len(),
            self.name
        );
        Ok(())
    }
}

fn deferred_numbers(messages: &[Received]) -> Result<Vec<i64>> {
    let deferred = messages.iter().filter(|one| {
        crate::support::annotation(one, "x-opt-message-state") == Some(&Value::Int(1))
    });
    deferred.map(sequence_number).collect()
}

/// One message, for which credit is given first.
pub async fn receive(receiver: &mut Receiver) -> Result<AnyDelivery> {
    receiver.set_credit(1).await?;
    Ok(patiently("a delivery", receiver.recv()).await??)
}

/// One message, or nothing when none comes for a while; the credit is then taken back.
pub async fn next(receiver: &mut Receiver) -> Result<Option<AnyDelivery>> {
    receiver.set_credit(1).await?;
    if let Ok(delivery) = tokio::time::timeout(LULL, receiver.recv()).await {
        return Ok(Some(delivery?));
    }
    receiver.set_credit(0).await?;
    Ok(None)
}

//! `POST /$railbus/entities/{path}/settle`: receives one message by its sequence number and settles
//! it.
//!
//! The body is `{"sequence-number": 5, "part": "dead-letter", "outcome": "redrive"}`. An active
//! message is received as by any receiver, so its delivery count rises where a receiver's would; a
//! deferred one is received by its number. A dead letter that is redriven with a `message` is
//! replaced. In a queue the message is sent while the lock on the dead letter is held, and then
//! the dead letter is completed: if the broker ends between the two, both are there, and neither
//! is lost. In a subscription, which only its topic sends to, it takes the dead letter's place at
//! once.

use std::sync::Arc;

use broker::{
    Access, Command, Delivery, EntityKind, Eviction, LockToken, MessageState, Outcome, Output,
    QueueInfo, ReceiveMode, ReceiverId, RedrivenMessage, SubqueueId,
};
use bytes::Bytes;
use entity::rules::MessageDescription;
use filter::Selector;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use store::SequenceNumber;

use super::messages::{MessagePart, browse};
use super::send::{read, send};
use super::{ApiError, ResourcePath, show};
use crate::http::request::body::parse_object;
use crate::namespaces::namespace_view::NamespaceView;
use crate::shard::shard_client::ShardClient;

/// A request's body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SettleRequest {
    sequence_number: u64,
    #[serde(default)]
    part: MessagePart,
    outcome: WantedOutcome,
    reason: Option<String>,
    description: Option<String>,
    message: Option<MessageDescription>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum WantedOutcome {
    Complete,
    Abandon,
    Defer,
    DeadLetter,
    Redrive,
}

/// Settles it.
pub async fn handle(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    body: &Bytes,
    server: &NamespaceView,
) -> Result<(StatusCode, Json), ApiError> {
    let path = resource.messages().map_err(ApiError::Bad)?;
    let request: SettleRequest =
        parse_object(body).map_err(|error| ApiError::Bad(error.to_string()))?;
    let queue = show::describe(shard_client, &path).await?.queue;
    request.check(&queue)?;
    let delivery = request.receive(shard_client, &queue).await?;
    let subqueue = request.subqueue(&queue);
    let result = request
        .settle(shard_client, &queue, &delivery, server)
        .await;
    if result.is_err() {
        // A lock that is settled already is not there any more.
        let outcome = Outcome::Release;
        settle(shard_client, subqueue, delivery.token, outcome)
            .await
            .ok();
    }
    result
}

impl SettleRequest {
    fn check(&self, queue: &QueueInfo) -> Result<(), ApiError> {
        let is_dead = matches!(
            self.part,
            MessagePart::DeadLetter | MessagePart::TransferDeadLetter
        );
        let text = match self.outcome {
            _ if queue.kind == EntityKind::Topic => {
                "a topic has no messages to settle; its subscriptions do"
            }
            _ if self.part == MessagePart::Scheduled => {
                "a scheduled message cannot be received; a purge cancels it"
            }
            WantedOutcome::Redrive if !is_dead => "only a dead letter can be redriven",
            WantedOutcome::DeadLetter if is_dead => "the message is a dead letter already",
            WantedOutcome::Redrive if self.is_for_later() && queue.kind != EntityKind::Queue => {
                "message.scheduled-enqueue-time: a message of a subscription cannot be scheduled"
            }
            WantedOutcome::Redrive => return Ok(()),
            _ if self.message.is_some() => "message is allowed only with the outcome redrive",
            _ => return Ok(()),
        };
        Err(ApiError::Bad(text.to_owned()))
    }

    fn is_for_later(&self) -> bool {
        let message = self.message.as_ref();
        message.is_some_and(MessageDescription::is_scheduled)
    }

    fn subqueue(&self, queue: &QueueInfo) -> SubqueueId {
        SubqueueId {
            entity: queue.id,
            subqueue: self.part.subqueue_and_state().0,
        }
    }

    /// Locks the message.
    async fn receive(
        &self,
        shard_client: &mut ShardClient,
        queue: &QueueInfo,
    ) -> Result<Delivery, ApiError> {
        let number = self.sequence_number;
        let found = browse(shard_client, queue.id, self.part, number, 1).await?;
        let state = found.first().filter(|message| message.number.0 == number);
        let subqueue = self.subqueue(queue);
        let delivery = match state.map(|message| message.state) {
            Some(MessageState::Deferred) => {
                receive_deferred(shard_client, subqueue, number).await?
            }
            Some(_) => receive_selected(shard_client, subqueue, number).await?,
            None => None,
        };
        delivery.ok_or(ApiError::NotReceived(number))
    }

    async fn settle(
        &self,
        shard_client: &mut ShardClient,
        queue: &QueueInfo,
        delivery: &Delivery,
        server: &NamespaceView,
    ) -> Result<(StatusCode, Json), ApiError> {
        let subqueue = self.subqueue(queue);
        let changes = Vec::new();
        let outcome = match (self.outcome, &self.message) {
            (WantedOutcome::Redrive, None) => {
                let message = RedrivenMessage::Unchanged(delivery.message.payload.clone());
                return redrive(shard_client, subqueue, delivery.token, message).await;
            }
            (WantedOutcome::Redrive, Some(message)) if queue.kind != EntityKind::Queue => {
                let message = RedrivenMessage::Edited(Box::new(read(queue, message, server)?));
                return redrive(shard_client, subqueue, delivery.token, message).await;
            }
            (WantedOutcome::Redrive, Some(message)) => {
                let message = read(queue, message, server)?;
                let number = send(shard_client, queue, message).await?;
                settle(shard_client, subqueue, delivery.token, Outcome::Complete).await?;
                let answer = json!({"settled": true, "sent": number.0});
                return Ok((StatusCode::OK, answer));
            }
            (WantedOutcome::Complete, _) => Outcome::Complete,
            (WantedOutcome::Abandon, _) => Outcome::abandon(changes),
            (WantedOutcome::Defer, _) => Outcome::Defer { changes },
            (WantedOutcome::DeadLetter, _) => {
                let (reason, description) = (self.reason.as_deref(), self.description.as_deref());
                let changes = servicebus::dead_letter_words(reason, description);
                let changes = changes.map_err(|error| {
                    ApiError::Bad(error.description.as_deref().unwrap_or_default().to_owned())
                })?;
                Outcome::DeadLetter { changes }
            }
        };
        settle(shard_client, subqueue, delivery.token, outcome).await?;
        Ok((StatusCode::OK, json!({"settled": true})))
    }
}

async fn redrive(
    shard_client: &mut ShardClient,
    subqueue: SubqueueId,
    token: LockToken,
    message: RedrivenMessage,
) -> Result<(StatusCode, Json), ApiError> {
    let command = |request| Command::Redrive {
        request,
        subqueue,
        token,
        message,
    };
    settled(shard_client, command).await?;
    Ok((StatusCode::OK, json!({"settled": true})))
}

async fn settle(
    shard_client: &mut ShardClient,
    subqueue: SubqueueId,
    token: LockToken,
    outcome: Outcome,
) -> Result<(), ApiError> {
    let command = |request| Command::Settle {
        request: Some(request),
        session: None,
        subqueue,
        token,
        outcome,
    };
    settled(shard_client, command).await
}

async fn settled(
    shard_client: &mut ShardClient,
    command: impl FnOnce(broker::RequestId) -> Command,
) -> Result<(), ApiError> {
    let settled = shard_client.ask(command, |output| match output {
        Output::Settled { result, .. } => Some(result),
        _ => None,
    });
    let settled = settled.await?;
    settled.map_err(|error| ApiError::Bad(error.to_string()))
}

/// Locks a deferred message, unless another receiver has it.
async fn receive_deferred(
    shard_client: &mut ShardClient,
    subqueue: SubqueueId,
    number: u64,
) -> Result<Option<Delivery>, ApiError> {
    let command = |request| Command::ReceiveDeferred {
        request,
        session: None,
        subqueue,
        numbers: vec![SequenceNumber(number)],
        mode: ReceiveMode::PeekLock,
        max_bytes: usize::MAX,
    };
    let found = shard_client.ask(command, |output| match output {
        Output::Deferred { result, .. } => Some(result),
        _ => None,
    });
    match found.await? {
        Ok(found) => Ok(found.into_iter().next()),
        Err(broker::RequestError::MessageNotFound(_)) => Ok(None),
        Err(error) => Err(ApiError::Bad(error.to_string())),
    }
}

/// Locks an available message as a receiver that selects it alone.
async fn receive_selected(
    shard_client: &mut ShardClient,
    subqueue: SubqueueId,
    number: u64,
) -> Result<Option<Delivery>, ApiError> {
    let receiver = ReceiverId {
        connection: shard_client.connection(),
        link: 0,
    };
    let selector = Selector::of_filter(&format!("sys.SequenceNumber = {number}"));
    let selector = selector.map_err(|error| ApiError::Bad(error.to_string()))?;
    let attach = Command::Attach {
        receiver,
        subqueue,
        access: Access::Consume(ReceiveMode::PeekLock),
        selector: Some(Arc::new(selector)),
    };
    let credit = Command::Credit {
        receiver,
        limit: 1,
        drain: true,
    };
    shard_client.send_commands(vec![attach, credit]).await?;
    shard_client
        .answer(|output| match output {
            Output::Deliver { delivery, .. } => Some(Ok(Some(*delivery))),
            Output::Drained { .. } => Some(Ok(None)),
            Output::Evicted { reason, .. } => Some(Err(evicted(reason))),
            _ => None,
        })
        .await?
}

fn evicted(reason: Eviction) -> ApiError {
    let hint = match reason {
        Eviction::SessionRequired => "; only the holder of its session can receive the message",
        Eviction::Forwarding => "; messages cannot be taken from it",
        Eviction::NotFound
        | Eviction::Disabled
        | Eviction::Exclusive
        | Eviction::Restored
        | Eviction::Injected(_)
        | Eviction::Unreadable { .. } => "",
    };
    ApiError::Bad(format!("{reason}{hint}"))
}

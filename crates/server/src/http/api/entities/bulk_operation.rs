//! `POST .../purge` and `.../redrive`: deletes messages of an entity, or moves dead letters back
//! to their entity.
//!
//! The body is `{"part": "dead-letter", "filter": "reason = 'x'", "limit": 100, "rate": 10,
//! "dry-run": true}`, with everything optional: a filter is a condition of a rule, the rate is
//! messages a second, and a dry run only counts. Each message is handled by itself, whole or not
//! at all; messages that others have locked stay. The number of messages at the begin is the most
//! that an operation handles, so it never redrives a message that comes back meanwhile. It ends
//! when its client disconnects. However it ends, the audit log tells how many messages it handled.

mod browse_run;
mod receive_run;

use std::sync::Arc;
use std::time::Duration;

use broker::{EntityInfo, MessageState, Subqueue, SubqueueId};
use bytes::Bytes;
use filter::Selector;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use store::EntityId;
use tokio::sync::oneshot;

use super::{ApiError, ResourcePath, show};
use crate::http::request::body::parse_object;
use crate::shard::shard_client::ShardClient;
use browse_run::BrowseRun;
use receive_run::ReceiveRun;

/// The operation on each message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BulkOperation {
    Purge,
    Redrive,
}

/// A request's body.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct BulkRequest {
    part: Option<MessagePart>,
    filter: Option<String>,
    limit: Option<u64>,
    /// A second.
    rate: Option<u32>,
    dry_run: bool,
}

/// The part of the entity that the messages are in.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum MessagePart {
    Active,
    Scheduled,
    Deferred,
    DeadLetter,
    TransferDeadLetter,
}

/// A checked request.
#[derive(Debug)]
struct Job {
    operation: BulkOperation,
    entity: EntityId,
    subqueue: Subqueue,
    /// The state of messages that no receiver gets, if they are the ones to purge.
    browsed_state: Option<MessageState>,
    selector: Option<Arc<Selector>>,
    /// The most messages to handle.
    limit: u64,
    /// The time from one message to the next.
    interval: Option<Duration>,
    dry_run: bool,
}

/// Runs the operation; `client` is closed when the client has gone.
pub async fn handle(
    shard_client: &mut ShardClient,
    resource: &ResourcePath,
    operation: BulkOperation,
    body: &Bytes,
    client: &oneshot::Sender<()>,
    log: impl FnOnce(&str),
) -> Result<(StatusCode, Json), ApiError> {
    let path = resource.messages().map_err(ApiError::Bad)?;
    let request = match &body[..] {
        [] => BulkRequest::default(),
        body => parse_object(body).map_err(|error| ApiError::Bad(error.to_string()))?,
    };
    let info = show::describe(shard_client, &path).await?;
    let job = Job::new(operation, &request, &info)?;
    let (end, result) = match job.browsed_state {
        Some(state) => {
            let mut run = BrowseRun::new(shard_client, &job, state);
            (run.run(client).await, run.result())
        }
        None => {
            let mut run = ReceiveRun::new(shard_client, &job);
            (run.run(client).await, run.result())
        }
    };
    if result.count > 0 && !job.dry_run {
        log(&job.change(result.count, &info.queue.path));
    }
    end?;
    let name = match operation {
        _ if job.dry_run => "selected",
        BulkOperation::Purge => "purged",
        BulkOperation::Redrive => "redriven",
    };
    let answer = json!({name: result.count, "kept": result.kept, "dry-run": job.dry_run});
    Ok((StatusCode::OK, answer))
}

impl Job {
    fn subqueue_id(&self) -> SubqueueId {
        SubqueueId {
            entity: self.entity,
            subqueue: self.subqueue,
        }
    }

    /// What it has done, for the audit log.
    fn change(&self, count: u64, path: &str) -> String {
        let operation = match self.operation {
            BulkOperation::Purge => "purge",
            BulkOperation::Redrive => "redrive",
        };
        let part = match (self.subqueue, self.browsed_state) {
            (Subqueue::DeadLetter, _) => "dead-letter",
            (Subqueue::TransferDeadLetter, _) => "transfer-dead-letter",
            (Subqueue::Main, Some(MessageState::Scheduled)) => "scheduled",
            (Subqueue::Main, Some(MessageState::Deferred)) => "deferred",
            (Subqueue::Main, Some(MessageState::Active) | None) => "active",
        };
        format!("{operation} {path}: {count} {part} messages")
    }

    fn new(
        operation: BulkOperation,
        request: &BulkRequest,
        info: &EntityInfo,
    ) -> Result<Self, ApiError> {
        let queue = &info.queue;
        let part = request.part.unwrap_or(match operation {
            BulkOperation::Purge => MessagePart::Active,
            BulkOperation::Redrive => MessagePart::DeadLetter,
        });
        let (subqueue, count) = match part {
            MessagePart::Active => (Subqueue::Main, queue.active),
            MessagePart::Scheduled => (Subqueue::Main, queue.scheduled),
            MessagePart::Deferred => (Subqueue::Main, queue.deferred),
            MessagePart::DeadLetter => (Subqueue::DeadLetter, queue.dead_letter),
            MessagePart::TransferDeadLetter => {
                (Subqueue::TransferDeadLetter, queue.transfer_dead_letter)
            }
        };
        if operation == BulkOperation::Redrive && subqueue == Subqueue::Main {
            let text = "part must be dead-letter or transfer-dead-letter: only dead letters can be redriven";
            return Err(ApiError::Bad(text.to_owned()));
        }
        if queue.kind == broker::EntityKind::Topic && part != MessagePart::Scheduled {
            let text =
                "a topic holds scheduled messages only; other messages are in its subscriptions";
            return Err(ApiError::Bad(text.to_owned()));
        }
        if request.rate == Some(0) {
            return Err(ApiError::Bad(
                "rate must be at least 1 message a second".to_owned(),
            ));
        }
        let selector = request.filter.as_deref().map(Selector::of_filter);
        let selector = selector
            .transpose()
            .map_err(|error| ApiError::Bad(format!("the filter: {error}")))?;
        Ok(Self {
            operation,
            entity: queue.id,
            subqueue,
            browsed_state: match part {
                MessagePart::Scheduled => Some(MessageState::Scheduled),
                MessagePart::Deferred => Some(MessageState::Deferred),
                MessagePart::Active | MessagePart::DeadLetter | MessagePart::TransferDeadLetter => {
                    None
                }
            },
            selector: selector.map(Arc::new),
            limit: request.limit.unwrap_or(u64::MAX).min(count),
            interval: request.rate.map(|rate| Duration::from_secs(1) / rate),
            dry_run: request.dry_run,
        })
    }
}

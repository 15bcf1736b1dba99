//! Setup: makes the configured queues exist before the first client is let in.
//!
//! A queue that exists takes over what may change; what may not change stays as it is stored, and
//! the difference is logged. (Admin contract 12, "Entity exists in the store")

use std::collections::HashMap;

use broker::{Command, ConnectionId, Output, QueueInfo, RequestError, RequestId};
use servicebus::{Directory, Entity};
use store::NamespaceId;
use tokio::sync::{mpsc, oneshot};

use crate::options::QueueDefinition;
use crate::shard::{Inbox, Message};

/// The server itself, where it talks to the broker. Clients' connections begin at 1.
const SELF: ConnectionId = ConnectionId(0);
/// The only namespace there is so far.
const NAMESPACE: NamespaceId = NamespaceId(0);

/// Why the queues could not be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("the queue {path} was refused: {reason}")]
    Refused { path: String, reason: RequestError },
    #[error("the shard has ended")]
    ShardEnded,
}

/// Makes `queues` exist, and returns all entities there are.
pub async fn prepare(inbox: &Inbox, queues: Vec<QueueDefinition>) -> Result<Directory, Error> {
    if !queues.is_empty() {
        let stored = stored(inbox).await?;
        ensure(
            inbox,
            queues
                .into_iter()
                .map(|queue| reconcile(queue, &stored))
                .collect(),
        )
        .await?;
    }
    let mut directory = Directory::default();
    for queue in list(inbox).await? {
        directory.insert(Entity {
            id: queue.id,
            path: queue.path,
            settings: queue.settings,
        });
    }
    Ok(directory)
}

async fn list(inbox: &Inbox) -> Result<Vec<QueueInfo>, Error> {
    let (answer, queues) = oneshot::channel();
    inbox
        .send(Message::Queues(answer))
        .await
        .map_err(|_| Error::ShardEnded)?;
    queues.await.map_err(|_| Error::ShardEnded)
}

async fn stored(inbox: &Inbox) -> Result<HashMap<String, QueueInfo>, Error> {
    Ok(list(inbox)
        .await?
        .into_iter()
        .map(|queue| (queue.path.to_lowercase(), queue))
        .collect())
}

/// The queue as it can be: what may not change is taken from the stored one.
fn reconcile(mut queue: QueueDefinition, stored: &HashMap<String, QueueInfo>) -> QueueDefinition {
    let Some(known) = stored.get(&queue.path.to_lowercase()) else {
        return queue;
    };
    let wanted = &mut queue.settings;
    keep(
        &queue.path,
        "requires-session",
        &mut wanted.requires_session,
        known.settings.requires_session,
    );
    keep(
        &queue.path,
        "requires-duplicate-detection",
        &mut wanted.requires_duplicate_detection,
        known.settings.requires_duplicate_detection,
    );
    queue
}

fn keep(path: &str, property: &str, wanted: &mut bool, stored: bool) {
    if *wanted != stored {
        tracing::error!(
            queue = path,
            "{property} can not be changed after creation: it stays {stored}; delete the queue to change it"
        );
        *wanted = stored;
    }
}

async fn ensure(inbox: &Inbox, queues: Vec<QueueDefinition>) -> Result<(), Error> {
    let (ear, mut outputs) = mpsc::unbounded_channel();
    send(
        inbox,
        Message::Open {
            connection: SELF,
            ear,
        },
    )
    .await?;
    let paths: Vec<String> = queues.iter().map(|queue| queue.path.clone()).collect();
    send(
        inbox,
        Message::Commands(queues.into_iter().zip(0..).map(command).collect()),
    )
    .await?;
    let mut answered = 0;
    while answered < paths.len() {
        let batch = outputs.recv().await.ok_or(Error::ShardEnded)?;
        answered += check(batch, &paths)?;
    }
    send(inbox, Message::Close { connection: SELF }).await
}

async fn send(inbox: &Inbox, message: Message) -> Result<(), Error> {
    inbox.send(message).await.map_err(|_| Error::ShardEnded)
}

fn command((queue, token): (QueueDefinition, u64)) -> Command {
    Command::EnsureQueue {
        request: RequestId {
            connection: SELF,
            token,
        },
        namespace: NAMESPACE,
        path: queue.path,
        settings: queue.settings,
    }
}

/// Returns how many answers there are in `batch`, or the first refusal.
fn check(batch: Vec<Output>, paths: &[String]) -> Result<usize, Error> {
    let mut count = 0;
    for output in batch {
        let Output::Ensured { request, result } = output else {
            continue;
        };
        count += 1;
        result.map_err(|reason| {
            let index = usize::try_from(request.token).unwrap_or(usize::MAX);
            Error::Refused {
                path: paths.get(index).cloned().unwrap_or_default(),
                reason,
            }
        })?;
    }
    Ok(count)
}

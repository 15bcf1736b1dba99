//! Setup: makes the configured entities exist before the first client is let in.
//!
//! What exists takes over what may change; what may not change stays as it is stored, and
//! the difference is logged. (Admin contract 12, "Entity exists in the store")

use std::collections::HashMap;

use broker::{Command, ConnectionId, Output, QueueInfo, QueueSettings, RequestError, RequestId};
use store::NamespaceId;
use tokio::sync::{mpsc, oneshot};

use crate::options::{QueueDefinition, SubscriptionDefinition, TopicDefinition};
use crate::shard::{Inbox, Message};

/// As which the server talks to the broker.
const SELF: ConnectionId = ConnectionId::SERVER;
/// The only namespace there is so far.
const NAMESPACE: NamespaceId = NamespaceId(0);

/// Why the queues could not be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("{path} was refused: {reason}")]
    Refused { path: String, reason: RequestError },
    #[error("the shard has ended")]
    ShardEnded,
}

/// Makes queues and topics exist.
pub async fn prepare(
    inbox: &Inbox,
    queues: Vec<QueueDefinition>,
    topics: Vec<TopicDefinition>,
) -> Result<(), Error> {
    if queues.is_empty() && topics.is_empty() {
        return Ok(());
    }
    let stored = stored(inbox).await?;
    let queues = queues
        .into_iter()
        .map(|queue| Wanted::queue(queue, &stored));
    let topics = topics
        .into_iter()
        .flat_map(|topic| Wanted::topic(topic, &stored));
    ensure(inbox, queues.chain(topics).collect()).await
}

/// An entity, and what makes it exist.
struct Wanted {
    path: String,
    command: Box<dyn FnOnce(RequestId) -> Command + Send>,
}

impl Wanted {
    fn queue(queue: QueueDefinition, stored: &HashMap<String, QueueInfo>) -> Self {
        let QueueDefinition { path, mut settings } = queue;
        reconcile(&path, &mut settings, stored);
        Self {
            path: path.clone(),
            command: Box::new(move |request| Command::EnsureQueue {
                request,
                namespace: NAMESPACE,
                path,
                settings,
            }),
        }
    }

    /// A topic, then its subscriptions.
    fn topic(topic: TopicDefinition, stored: &HashMap<String, QueueInfo>) -> Vec<Self> {
        let TopicDefinition {
            path,
            mut settings,
            subscriptions,
        } = topic;
        reconcile(&path, &mut settings, stored);
        let of_topic = path.clone();
        let subscriptions = subscriptions
            .into_iter()
            .map(|subscription| Self::subscription(&of_topic, subscription, stored));
        let topic = Self {
            path: path.clone(),
            command: Box::new(move |request| Command::EnsureTopic {
                request,
                namespace: NAMESPACE,
                path,
                settings,
            }),
        };
        std::iter::once(topic).chain(subscriptions).collect()
    }

    fn subscription(
        topic: &str,
        subscription: SubscriptionDefinition,
        stored: &HashMap<String, QueueInfo>,
    ) -> Self {
        let SubscriptionDefinition {
            name,
            mut settings,
            rules,
        } = subscription;
        let path = format!("{topic}/Subscriptions/{name}");
        reconcile(&path, &mut settings.queue, stored);
        let topic = topic.to_owned();
        Self {
            path,
            command: Box::new(move |request| Command::EnsureSubscription {
                request,
                namespace: NAMESPACE,
                topic,
                name,
                settings: Box::new(settings),
                rules,
            }),
        }
    }
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

/// Settings as they can be: what may not change is taken from the stored entity.
fn reconcile(path: &str, wanted: &mut QueueSettings, stored: &HashMap<String, QueueInfo>) {
    let Some(known) = stored.get(&path.to_lowercase()) else {
        return;
    };
    keep(
        path,
        "requires-session",
        &mut wanted.requires_session,
        known.settings.requires_session,
    );
    keep(
        path,
        "requires-duplicate-detection",
        &mut wanted.requires_duplicate_detection,
        known.settings.requires_duplicate_detection,
    );
}

fn keep(path: &str, property: &str, wanted: &mut bool, stored: bool) {
    if *wanted != stored {
        tracing::error!(
            entity = path,
            "{property} can not be changed after creation: it stays {stored}; delete the entity to change it"
        );
        *wanted = stored;
    }
}

async fn ensure(inbox: &Inbox, wanted: Vec<Wanted>) -> Result<(), Error> {
    let (ear, mut outputs) = mpsc::unbounded_channel();
    send(
        inbox,
        Message::Open {
            connection: SELF,
            ear,
        },
    )
    .await?;
    let paths: Vec<String> = wanted.iter().map(|wanted| wanted.path.clone()).collect();
    let commands = wanted.into_iter().zip(0..).map(|(wanted, token)| {
        let connection = SELF;
        (wanted.command)(RequestId { connection, token })
    });
    let commands = commands.collect();
    send(inbox, Message::Commands(commands)).await?;
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

//! Setup: makes the configured entities exist before the first client is let in.
//!
//! What exists takes over what may change; what may not change stays as it is stored, and
//! the difference is logged. (Admin contract 12, "Entity exists in the store")

use std::collections::HashMap;

use broker::{Command, ConnectionId, QueueInfo, QueueSettings};

use crate::desk::{Change, Closed, Desk, NAMESPACE};
use crate::namespace::SUBSCRIPTIONS;
use crate::options::{QueueDefinition, SubscriptionDefinition, TopicDefinition};
use crate::shard::Inbox;

/// Why the entities could not be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("{path} was refused: {reason}")]
    Refused { path: String, reason: String },
    #[error(transparent)]
    Closed(#[from] Closed),
}

/// Makes queues and topics exist.
pub async fn prepare(
    inbox: &Inbox,
    mut queues: Vec<QueueDefinition>,
    mut topics: Vec<TopicDefinition>,
) -> Result<(), Error> {
    if queues.is_empty() && topics.is_empty() {
        return Ok(());
    }
    let mut desk = Desk::open(inbox, ConnectionId::SERVER).await?;
    let stored = Stored::read(&mut desk).await?;
    for queue in &mut queues {
        stored.reconcile(&queue.path, &mut queue.settings);
    }
    for topic in &mut topics {
        stored.reconcile(&topic.path, &mut topic.settings);
        for subscription in &mut topic.subscriptions {
            let path = format!("{}{SUBSCRIPTIONS}{}", topic.path, subscription.name);
            stored.reconcile(&path, &mut subscription.settings.queue);
        }
    }
    let (mut paths, changes): (Vec<_>, Vec<_>) = ensuring(queues, topics).into_iter().unzip();
    let refused = desk.change(changes).await?;
    desk.close().await;
    match refused.into_iter().next() {
        None => Ok(()),
        Some((index, reason)) => Err(Error::Refused {
            path: paths.swap_remove(index),
            reason,
        }),
    }
}

/// What makes queues and topics exist, each with its path.
pub fn ensuring(
    queues: Vec<QueueDefinition>,
    topics: Vec<TopicDefinition>,
) -> Vec<(String, Change)> {
    let queues = queues.into_iter().map(ensure_queue);
    queues
        .chain(topics.into_iter().flat_map(ensure_topic))
        .collect()
}

fn ensure_queue(queue: QueueDefinition) -> (String, Change) {
    let QueueDefinition { path, settings } = queue;
    let change = {
        let path = path.clone();
        Change::new(move |request| Command::EnsureQueue {
            request,
            namespace: NAMESPACE,
            path,
            settings,
        })
    };
    (path, change)
}

/// A topic, then its subscriptions.
fn ensure_topic(topic: TopicDefinition) -> Vec<(String, Change)> {
    let TopicDefinition {
        path,
        settings,
        subscriptions,
    } = topic;
    let of_topic = path.clone();
    let subscriptions = subscriptions
        .into_iter()
        .map(|subscription| ensure_subscription(&of_topic, subscription));
    let change = {
        let path = path.clone();
        Change::new(move |request| Command::EnsureTopic {
            request,
            namespace: NAMESPACE,
            path,
            settings,
        })
    };
    std::iter::once((path, change))
        .chain(subscriptions)
        .collect()
}

fn ensure_subscription(topic: &str, subscription: SubscriptionDefinition) -> (String, Change) {
    let SubscriptionDefinition {
        name,
        settings,
        rules,
    } = subscription;
    let path = format!("{topic}{SUBSCRIPTIONS}{name}");
    let topic = topic.to_owned();
    let change = Change::new(move |request| Command::EnsureSubscription {
        request,
        namespace: NAMESPACE,
        topic,
        name,
        settings: Box::new(settings),
        rules,
    });
    (path, change)
}

/// What was there before, by path in lower case.
struct Stored(HashMap<String, QueueInfo>);

impl Stored {
    async fn read(desk: &mut Desk) -> Result<Self, Closed> {
        let entities = desk.entities().await?.into_iter();
        let by_path = entities.map(|entity| (entity.path.to_lowercase(), entity));
        Ok(Self(by_path.collect()))
    }

    /// Settings as they can be: what may not change is taken from the stored entity.
    fn reconcile(&self, path: &str, wanted: &mut QueueSettings) {
        let Some(known) = self.0.get(&path.to_lowercase()) else {
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

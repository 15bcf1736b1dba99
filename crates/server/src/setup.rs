//! Setup: creates the configured entities before the first client is served.
//!
//! All of them or none. An existing entity takes over the properties that may change. A property
//! that may not change keeps its stored value, and the difference is logged.
//! (docs/spec/admin.md#12, "Entity exists in the store")

use std::collections::HashMap;

use broker::{Batch, ConnectionId, EntityError, Order, Policy, QueueInfo, QueueSettings};
use entity::{QueueDefinition, TopicDefinition, ensured};

use crate::namespace::SUBSCRIPTIONS;
use crate::shard::Inbox;
use crate::shard_client::{ShardClient, ShardError};

/// Why the entities could not be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("the entities were refused: {0}")]
    Refused(EntityError),
    #[error(transparent)]
    Shard(#[from] ShardError),
}

/// Makes queues, topics and policies exist.
pub async fn prepare(
    inbox: &Inbox,
    mut queues: Vec<QueueDefinition>,
    mut topics: Vec<TopicDefinition>,
    policies: Vec<Policy>,
) -> Result<(), Error> {
    if queues.is_empty() && topics.is_empty() && policies.is_empty() {
        return Ok(());
    }
    let mut shard_client = ShardClient::open(inbox, ConnectionId::SERVER).await?;
    let stored = StoredEntities::read(&mut shard_client).await?;
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
    let batch = Batch {
        ensured: ensured(queues, topics),
        policies,
        ..Batch::default()
    };
    let result = shard_client.order(Order::Apply(Box::new(batch))).await?;
    result.map(drop).map_err(Error::Refused)
}

/// What was there before, by path in lower case.
struct StoredEntities(HashMap<String, QueueInfo>);

impl StoredEntities {
    async fn read(shard_client: &mut ShardClient) -> Result<Self, ShardError> {
        let entities = shard_client.entities().await?.into_iter();
        let by_path = entities.map(|entity| (entity.path.to_lowercase(), entity));
        Ok(Self(by_path.collect()))
    }

    /// Settings as they can be: what may not change is taken from the stored entity.
    fn reconcile(&self, path: &str, wanted: &mut QueueSettings) {
        let Some(known) = self.0.get(&path.to_lowercase()) else {
            return;
        };
        let kept = entity::keep_fixed(known.kind, wanted, &known.settings);
        for (property, stored) in kept {
            tracing::error!(
                entity = path,
                "{property} cannot be changed after creation and stays {stored}; delete the entity to change it"
            );
        }
    }
}

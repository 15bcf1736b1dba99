//! Setup: creates the configured namespaces and entities before the first client is served.
//!
//! All entities of a namespace or none. An existing entity takes over the properties that may
//! change. A property that may not change keeps its stored value, and the difference is logged.
//! (docs/spec/admin.md#12, "Entity exists in the store")

use std::collections::HashMap;

use broker::{
    Answer, Batch, ConnectionId, DEFAULT_NAMESPACE, EntityError, EntityKind, FaultRule,
    NamespaceAnswer, NamespaceDefinition, NamespaceOrder, Order, Policy, QueueInfo, QueueSettings,
    Tier,
};
use entity::{QueueDefinition, TopicDefinition, ensured};
use store::NamespaceId;

use crate::http::api::faults::warn_of_faults;
use crate::namespaces::namespace::SUBSCRIPTIONS;
use crate::namespaces::namespace_registry::NamespaceRegistry;
use crate::options::Options;
use crate::shard::Inbox;
use crate::shard::shard_client::{ShardClient, ShardError};

/// Why the entities could not be made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("the entities were refused: {0}")]
    Refused(EntityError),
    #[error(transparent)]
    Shard(#[from] ShardError),
}

/// Makes the configured namespaces, queues, topics and policies exist.
pub async fn prepare(
    inbox: &Inbox,
    options: &Options,
    namespaces: &NamespaceRegistry,
) -> Result<(), Error> {
    let mut shard_client = ShardClient::open(inbox, ConnectionId::SERVER).await?;
    make(
        &mut shard_client,
        options.queues.clone(),
        options.topics.clone(),
        options.policies.clone(),
    )
    .await?;
    inject(&mut shard_client, DEFAULT_NAMESPACE, &options.faults).await?;
    for namespace in options.namespaces.iter().cloned() {
        let name = namespace.definition.name.clone();
        let id = declare(&mut shard_client, namespace.definition).await?;
        shard_client.enter(id);
        make(
            &mut shard_client,
            namespace.queues,
            namespace.topics,
            namespace.policies,
        )
        .await?;
        inject(&mut shard_client, &name, &namespace.faults).await?;
    }
    warn_of_tier(&mut shard_client, options.broker.tier, namespaces).await?;
    Ok(())
}

/// Tells the operator's log of the queues and topics that go on although the tier does not have
/// them: the store was made in another one. (docs/spec/entities.md#4)
async fn warn_of_tier(
    shard_client: &mut ShardClient,
    tier: Tier,
    namespaces: &NamespaceRegistry,
) -> Result<(), ShardError> {
    if tier.has_topics() {
        return Ok(());
    }
    let default = std::iter::once(DEFAULT_NAMESPACE.to_owned());
    for namespace in default.chain(namespaces.names()) {
        let Some(id) = namespaces.of_name(&namespace) else {
            continue;
        };
        shard_client.enter(id);
        let mut entities = shard_client.entities().await?;
        // A topic stands for its subscriptions.
        entities.retain(|entity| entity.kind != EntityKind::Subscription);
        for entity in entities {
            if let Some(what) = tier.lacks(entity.kind, &entity.settings) {
                tracing::warn!(
                    entity = entity.path,
                    namespace,
                    "kept from another tier: a namespace of the {} tier does not have {what}",
                    tier.name()
                );
            }
        }
    }
    Ok(())
}

/// Makes a namespace, or gives the one that is there these hosts and keys.
async fn declare(
    shard_client: &mut ShardClient,
    definition: NamespaceDefinition,
) -> Result<NamespaceId, Error> {
    let definition = Box::new(definition);
    let create = NamespaceOrder::Create {
        definition: definition.clone(),
        like: None,
    };
    let mut made = shard_client.order(Order::Namespaces(create)).await?;
    if let Err(EntityError::NamespaceExists(_)) = made {
        let replace = NamespaceOrder::Replace(definition);
        made = shard_client.order(Order::Namespaces(replace)).await?;
    }
    match made.map_err(Error::Refused)? {
        Answer::Namespaces(NamespaceAnswer::One(made)) => Ok(made.id),
        other => unreachable!("a namespace that was made is answered by itself, not {other:?}"),
    }
}

/// Makes entities and policies of one namespace, all of them or none. A reset goes back to these,
/// also if there are none.
async fn make(
    shard_client: &mut ShardClient,
    mut queues: Vec<QueueDefinition>,
    mut topics: Vec<TopicDefinition>,
    policies: Vec<Policy>,
) -> Result<(), Error> {
    let stored = StoredEntities::read(shard_client).await?;
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
        is_template: true,
        ..Batch::default()
    };
    let result = shard_client.order(Order::Apply(Box::new(batch))).await?;
    result.map(drop).map_err(Error::Refused)
}

/// Gives a namespace its fault rules.
async fn inject(
    shard_client: &mut ShardClient,
    name: &str,
    faults: &[FaultRule],
) -> Result<(), Error> {
    if faults.is_empty() {
        return Ok(());
    }
    warn_of_faults(name, faults.len());
    let replace = NamespaceOrder::ReplaceFaults {
        name: name.to_owned(),
        rules: faults.to_vec(),
    };
    let result = shard_client.order(Order::Namespaces(replace)).await?;
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

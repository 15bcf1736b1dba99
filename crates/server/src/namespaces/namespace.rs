//! Namespace: all entities of one namespace with their settings and rules, as they are now.
//!
//! They are read from the shard by several orders, so other clients may change them meanwhile; the
//! version of the first order tells an `apply` whether that has happened. Plans and the broker's
//! own interface start from here.

use broker::{
    Answer, EntityInfo, Listing, Order, Policy, PolicyLayer, RuleDescription, SubscriptionSettings,
};
use entity::{Namespace, QueueDefinition, SubscriptionDefinition, TopicDefinition};

use crate::shard::shard_client::{ShardClient, ShardError};

/// Between a topic's path and a subscription's name.
pub(crate) const SUBSCRIPTIONS: &str = "/Subscriptions/";

/// All there is, with what the broker says of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamespaceSnapshot {
    pub queues: Vec<EntityInfo>,
    pub topics: Vec<TopicSnapshot>,
    pub policies: Vec<Policy>,
    /// What the broker called its state before the first of it was asked for.
    pub version: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct TopicSnapshot {
    pub info: EntityInfo,
    pub subscriptions: Vec<SubscriptionSnapshot>,
}

#[derive(Clone, Debug)]
pub(crate) struct SubscriptionSnapshot {
    pub info: EntityInfo,
    pub rules: Vec<RuleDescription>,
}

impl NamespaceSnapshot {
    /// Reads the namespace. Other clients may change it meanwhile.
    pub(crate) async fn make(shard_client: &mut ShardClient) -> Result<Self, ShardError> {
        let version = match shard_client.order(Order::DescribeNamespace).await? {
            Ok(Answer::Namespace(info)) => Some(info.version),
            _ => None,
        };
        let queues = list_queues(shard_client).await?;
        let mut topics = Vec::new();
        for info in list(shard_client, &Listing::Topics).await? {
            let subscriptions = subscriptions(shard_client, &info.queue.path).await?;
            topics.push(TopicSnapshot {
                info,
                subscriptions,
            });
        }
        let mut policies = list_policies(shard_client, PolicyLayer::User).await?;
        policies.extend(list_policies(shard_client, PolicyLayer::Operator).await?);
        Ok(Self {
            queues,
            topics,
            policies,
            version,
        })
    }
}

impl From<NamespaceSnapshot> for Namespace {
    fn from(snapshot: NamespaceSnapshot) -> Self {
        let queues = snapshot.queues.into_iter();
        let topics = snapshot.topics.into_iter();
        Self {
            version: snapshot.version,
            policies: snapshot.policies,
            queues: queues
                // Those that belong to connections come and go with them.
                .filter(|info| !info.queue.settings.exclusive)
                .map(|info| QueueDefinition {
                    path: info.queue.path,
                    settings: info.queue.settings,
                })
                .collect(),
            topics: topics
                .map(|topic| TopicDefinition {
                    path: topic.info.queue.path,
                    settings: topic.info.queue.settings,
                    // Those that clients made come and go with the clients.
                    subscriptions: topic
                        .subscriptions
                        .into_iter()
                        .filter(|it| it.info.client_affine.is_none())
                        .map(Into::into)
                        .collect(),
                })
                .collect(),
        }
    }
}

impl From<SubscriptionSnapshot> for SubscriptionDefinition {
    fn from(subscription: SubscriptionSnapshot) -> Self {
        let SubscriptionSnapshot { info, rules } = subscription;
        Self {
            name: last_segment(&info.queue.path).to_owned(),
            settings: settings_of(&info),
            rules: Some(rules),
        }
    }
}

/// What a subscription is told.
pub(crate) fn settings_of(info: &EntityInfo) -> SubscriptionSettings {
    SubscriptionSettings {
        queue: info.queue.settings.clone(),
        dead_lettering_on_filter_evaluation_exceptions: info
            .dead_lettering_on_filter_evaluation_exceptions,
    }
}

/// A subscription's name.
pub(crate) fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A topic's subscriptions with their rules.
pub(crate) async fn subscriptions(
    shard_client: &mut ShardClient,
    topic: &str,
) -> Result<Vec<SubscriptionSnapshot>, ShardError> {
    let mut all = Vec::new();
    for info in list(shard_client, &Listing::Subscriptions(topic.to_owned())).await? {
        let rules = rules(shard_client, &info.queue.path).await?;
        all.push(SubscriptionSnapshot { info, rules });
    }
    Ok(all)
}

/// The policies of a layer, by name.
pub(crate) async fn list_policies(
    shard_client: &mut ShardClient,
    layer: PolicyLayer,
) -> Result<Vec<Policy>, ShardError> {
    match shard_client.order(Order::ListPolicies(layer)).await? {
        Ok(Answer::Policies(policies)) => Ok(policies),
        _ => Ok(Vec::new()),
    }
}

/// Every queue.
pub(crate) async fn list_queues(
    shard_client: &mut ShardClient,
) -> Result<Vec<EntityInfo>, ShardError> {
    list(shard_client, &Listing::Queues).await
}

async fn list(shard_client: &mut ShardClient, of: &Listing) -> Result<Vec<EntityInfo>, ShardError> {
    let order = |skip, top| Order::List {
        of: of.clone(),
        skip,
        top,
    };
    let page = |answer| match answer {
        Answer::Entities(page) => Some(page),
        _ => None,
    };
    shard_client.list(order, page).await
}

/// The rules of the subscription of a path.
pub(crate) async fn rules(
    shard_client: &mut ShardClient,
    subscription: &str,
) -> Result<Vec<RuleDescription>, ShardError> {
    let order = |skip, top| Order::ListRules {
        subscription: subscription.to_owned(),
        skip,
        top,
    };
    let page = |answer| match answer {
        Answer::Rules(page) => Some(page),
        _ => None,
    };
    shard_client.list(order, page).await
}

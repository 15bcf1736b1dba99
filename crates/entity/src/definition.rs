//! Definitions: entities as a file wants them, or as a namespace has them.

use broker::{Ensured, Policy, QueueSettings, RuleDescription, SubscriptionSettings};

/// A queue as the configuration wants it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QueueDefinition {
    /// In the case in which it is shown.
    pub path: String,
    /// Its properties.
    pub settings: QueueSettings,
}

/// A topic as the configuration wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicDefinition {
    /// In the case in which it is shown.
    pub path: String,
    /// Its properties.
    pub settings: QueueSettings,
    /// What takes copies.
    pub subscriptions: Vec<SubscriptionDefinition>,
}

/// A subscription as the configuration wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptionDefinition {
    /// In the case in which it is shown.
    pub name: String,
    /// Its properties.
    pub settings: SubscriptionSettings,
    /// A new subscription selects everything if there are none.
    pub rules: Option<Vec<RuleDescription>>,
}

/// All there is, in the order of paths and names without regard to case.
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    /// Queues.
    pub queues: Vec<QueueDefinition>,
    /// Topics with their subscriptions; each has its rules.
    pub topics: Vec<TopicDefinition>,
    /// Of users and of operators.
    pub policies: Vec<Policy>,
    /// What the broker called its state when this was asked for.
    pub version: Option<u64>,
}

/// Queues and topics that are to be there, each topic before its subscriptions.
#[must_use]
pub fn ensured(queues: Vec<QueueDefinition>, topics: Vec<TopicDefinition>) -> Vec<Ensured> {
    let queues = queues.into_iter().map(|queue| Ensured::Queue {
        path: queue.path,
        settings: queue.settings,
    });
    queues
        .chain(topics.into_iter().flat_map(ensured_topic))
        .collect()
}

fn ensured_topic(topic: TopicDefinition) -> impl Iterator<Item = Ensured> {
    let TopicDefinition {
        path,
        settings,
        subscriptions,
    } = topic;
    let of_topic = path.clone();
    let subscriptions = subscriptions
        .into_iter()
        .map(move |subscription| Ensured::Subscription {
            topic: of_topic.clone(),
            name: subscription.name,
            settings: Box::new(subscription.settings),
            rules: subscription.rules,
        });
    std::iter::once(Ensured::Topic { path, settings }).chain(subscriptions)
}

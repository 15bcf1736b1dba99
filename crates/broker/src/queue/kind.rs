//! Kind: what tells queues, topics, subscriptions and transfer queues apart inside the core, with
//! the state that only one kind has. Everything else they have in common.
//!
//! `api/kind.rs` has the three kinds that clients and administrators see. A topic keeps no message
//! that a client could receive: what arrives goes on to its subscriptions. A subscription is a
//! queue that only its topic can write to. (docs/spec/entities.md#1) A transfer queue is the
//! broker's own and counts as a queue; clients do not see it. (docs/spec/amqp.md#8.2)

use store::EntityId;

use crate::api::client_affine::ClientAffineProperties;
use crate::api::kind::EntityKind;
use crate::api::rule::RuleUsage;
use crate::queue::subscription::Subscription;
use crate::topic::Topic;

/// What an entity is, with what only its kind has.
#[derive(Debug)]
pub(crate) enum Kind {
    Queue,
    Topic(Topic),
    Subscription(Box<Subscription>),
    /// Messages that are sent via an entity wait in it.
    Transfer {
        via: EntityId,
    },
}

impl Kind {
    pub(crate) fn seen(&self) -> EntityKind {
        match self {
            Self::Queue | Self::Transfer { .. } => EntityKind::Queue,
            Self::Topic(_) => EntityKind::Topic,
            Self::Subscription(_) => EntityKind::Subscription,
        }
    }

    /// How many subscriptions a topic has.
    pub(crate) fn subscriptions(&self) -> usize {
        match self {
            Self::Topic(topic) => topic.subscriptions.len(),
            Self::Queue | Self::Subscription(_) | Self::Transfer { .. } => 0,
        }
    }

    /// What the rules of a topic take up.
    pub(crate) fn rule_room(&self) -> RuleUsage {
        match self {
            Self::Topic(topic) => topic.room(),
            Self::Queue | Self::Subscription(_) | Self::Transfer { .. } => RuleUsage::default(),
        }
    }

    /// What a subscription has that a client made.
    pub(crate) fn client_affine(&self) -> Option<&ClientAffineProperties> {
        match self {
            Self::Subscription(subscription) => subscription.client_affine.as_ref(),
            Self::Queue | Self::Topic(_) | Self::Transfer { .. } => None,
        }
    }

    /// Whether it goes with its last consumer.
    pub(crate) fn ends_with_consumers(&self) -> bool {
        self.client_affine().is_some_and(|it| !it.is_durable)
    }

    /// The topic of a subscription.
    pub(crate) fn topic(&self) -> Option<EntityId> {
        match self {
            Self::Subscription(subscription) => Some(subscription.topic),
            Self::Queue | Self::Topic(_) | Self::Transfer { .. } => None,
        }
    }
}

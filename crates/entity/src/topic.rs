//! Topics and their subscriptions, as files and our own interface write them.
//! (docs/spec/entities.md#2.2, #2.3)

#![allow(
    missing_docs,
    reason = "the fields are named for the contract's properties"
)]

use std::collections::BTreeMap;

use broker::{Expiry, QueueSettings, RuleDescription, Status, SubscriptionSettings};
use serde::Deserialize;

use super::name::{EntityPath, SubscriptionName};
use super::queue::{
    DeliveryCount, HistoryWindow, IdleTime, LockDuration, MaxMessageSize, MaxSize, TimeToLive,
    delivery_count,
};
use crate::definition::{SubscriptionDefinition, TopicDefinition};
use crate::rules::{Filter, TypedValue};

/// One of `[[topics]]`. Every key but the name is optional; an unknown key is an error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopicConfig {
    pub name: EntityPath,
    /// Default and maximum for its subscriptions and messages.
    pub default_message_time_to_live: Option<TimeToLive>,
    /// Of the topic with its subscriptions.
    pub max_size_in_megabytes: Option<MaxSize>,
    /// Of one message. The broker's setting otherwise.
    pub max_message_size: Option<MaxMessageSize>,
    pub requires_duplicate_detection: Option<bool>,
    pub duplicate_detection_history_time_window: Option<HistoryWindow>,
    pub status: Option<Status>,
    /// Deleted with its subscriptions when it has not been used for this time.
    pub auto_delete_on_idle: Option<IdleTime>,
    #[serde(default)]
    pub subscriptions: Vec<SubscriptionConfig>,
}

/// One of `[[topics.subscriptions]]`. Every key but the name is optional; an unknown key is an
/// error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SubscriptionConfig {
    pub name: SubscriptionName,
    /// How long a receiver may hold a message before it is available again.
    pub lock_duration: Option<LockDuration>,
    /// Deliveries before a message is dead-lettered.
    pub max_delivery_count: Option<DeliveryCount>,
    /// Default and ceiling of messages' own time to live.
    pub default_message_time_to_live: Option<TimeToLive>,
    pub dead_lettering_on_message_expiration: Option<bool>,
    /// Whether a message is dead-lettered when a rule cannot be evaluated on it.
    pub dead_lettering_on_filter_evaluation_exceptions: Option<bool>,
    /// The broker's setting otherwise.
    pub expiry: Option<Expiry>,
    pub requires_session: Option<bool>,
    pub forward_to: Option<EntityPath>,
    pub forward_dead_lettered_messages_to: Option<EntityPath>,
    pub status: Option<Status>,
    /// Deleted with its messages when it has not been used for this time.
    pub auto_delete_on_idle: Option<IdleTime>,
    /// A new subscription without any selects everything.
    #[serde(default)]
    pub rules: Vec<RuleConfig>,
}

/// One of `[[topics.subscriptions.rules]]`. (docs/spec/entities.md#2.4)
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleConfig {
    pub name: String,
    /// Selects every message by default.
    #[serde(default)]
    pub filter: Filter,
    /// What an SQL filter refers to as `@name`.
    #[serde(default)]
    pub filter_parameters: BTreeMap<String, TypedValue>,
    /// In SQL.
    pub action: Option<String>,
    /// What the action refers to as `@name`.
    #[serde(default)]
    pub action_parameters: BTreeMap<String, TypedValue>,
}

impl From<TopicConfig> for TopicDefinition {
    fn from(topic: TopicConfig) -> Self {
        let default = QueueSettings::default();
        let settings = QueueSettings {
            default_message_time_to_live: topic
                .default_message_time_to_live
                .map_or(default.default_message_time_to_live, |millis| millis.0),
            max_size: topic
                .max_size_in_megabytes
                .map_or(default.max_size, |megabytes| megabytes.0 << 20),
            max_message_size: topic.max_message_size.map(|size| size.0),
            requires_duplicate_detection: topic
                .requires_duplicate_detection
                .unwrap_or(default.requires_duplicate_detection),
            duplicate_detection_history_time_window: topic
                .duplicate_detection_history_time_window
                .map_or(default.duplicate_detection_history_time_window, |millis| {
                    millis.0
                }),
            status: topic.status.unwrap_or_default(),
            auto_delete_on_idle: topic
                .auto_delete_on_idle
                .map_or(default.auto_delete_on_idle, |millis| millis.0),
            ..default
        };
        let subscriptions = topic.subscriptions.into_iter().map(Into::into);
        Self {
            path: topic.name.into_string(),
            settings,
            subscriptions: subscriptions.collect(),
        }
    }
}

impl From<SubscriptionConfig> for SubscriptionDefinition {
    fn from(subscription: SubscriptionConfig) -> Self {
        let default = SubscriptionSettings::default();
        let dead_lettering = subscription.dead_lettering_on_filter_evaluation_exceptions;
        let settings = SubscriptionSettings {
            dead_lettering_on_filter_evaluation_exceptions: dead_lettering
                .unwrap_or(default.dead_lettering_on_filter_evaluation_exceptions),
            queue: queue_settings(&subscription),
        };
        let rules: Vec<_> = subscription.rules.into_iter().map(Into::into).collect();
        Self {
            name: subscription.name.into_string(),
            settings,
            rules: (!rules.is_empty()).then_some(rules),
        }
    }
}

fn queue_settings(subscription: &SubscriptionConfig) -> QueueSettings {
    let default = QueueSettings::default();
    let target = |path: &Option<EntityPath>| path.clone().map(EntityPath::into_string);
    QueueSettings {
        lock_duration: subscription
            .lock_duration
            .map_or(default.lock_duration, |millis| millis.0),
        max_delivery_count: subscription
            .max_delivery_count
            .map_or(default.max_delivery_count, delivery_count),
        default_message_time_to_live: subscription
            .default_message_time_to_live
            .map_or(default.default_message_time_to_live, |millis| millis.0),
        dead_lettering_on_message_expiration: subscription
            .dead_lettering_on_message_expiration
            .unwrap_or(default.dead_lettering_on_message_expiration),
        expiry: subscription.expiry,
        requires_session: subscription
            .requires_session
            .unwrap_or(default.requires_session),
        forward_to: target(&subscription.forward_to),
        forward_dead_lettered_messages_to: target(&subscription.forward_dead_lettered_messages_to),
        status: subscription.status.unwrap_or_default(),
        auto_delete_on_idle: subscription
            .auto_delete_on_idle
            .map_or(default.auto_delete_on_idle, |millis| millis.0),
        ..default
    }
}

impl From<RuleConfig> for RuleDescription {
    fn from(rule: RuleConfig) -> Self {
        let values = |values: BTreeMap<String, TypedValue>| {
            let values = values.into_iter();
            values.map(|(name, value)| (name, value.0)).collect()
        };
        Self {
            name: rule.name,
            filter: rule.filter.0,
            filter_parameters: values(rule.filter_parameters),
            action: rule.action,
            action_parameters: values(rule.action_parameters),
            ..Self::default()
        }
    }
}

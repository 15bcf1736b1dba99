//! Properties of entities as JSON: each by the name that files have for it, with its value.
//!
//! The result can be read again and gives the same entity; an absent property has no value. A
//! subscription does not repeat the properties of its topic.

use broker::{QueueSettings, RuleDescription, SubscriptionSettings};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::definition::{QueueDefinition, SubscriptionDefinition, TopicDefinition};
use crate::duration;
use crate::rules::{Filter, TypedValue};

/// Properties by name.
pub type Properties = Map<String, Json>;

/// A queue's.
#[must_use]
pub fn of_queue(settings: &QueueSettings) -> Properties {
    let mut shown = received(settings);
    shown.extend(sent_to(settings));
    shown
}

/// A topic's.
#[must_use]
pub fn of_topic(settings: &QueueSettings) -> Properties {
    let mut shown = common(settings);
    shown.extend(sent_to(settings));
    shown
}

/// A subscription's.
#[must_use]
pub fn of_subscription(settings: &SubscriptionSettings) -> Properties {
    let mut shown = received(&settings.queue);
    shown.insert(
        "dead-lettering-on-filter-evaluation-exceptions".to_owned(),
        settings
            .dead_lettering_on_filter_evaluation_exceptions
            .into(),
    );
    shown
}

/// A rule's. A value that has no form in JSON (a list, a decimal) is left out: no filter can equal
/// it.
#[must_use]
pub fn of_rule(rule: &RuleDescription) -> Properties {
    let mut shown = Properties::new();
    shown.insert("filter".to_owned(), json(&Filter(rule.filter.clone())));
    insert(&mut shown, "action", rule.action.clone());
    for (name, values) in [
        ("filter-parameters", &rule.filter_parameters),
        ("action-parameters", &rule.action_parameters),
    ] {
        if !values.is_empty() {
            let values = values.iter();
            let values =
                values.map(|(name, value)| (name.clone(), json(&TypedValue(value.clone()))));
            shown.insert(name.to_owned(), Json::Object(values.collect()));
        }
    }
    shown
}

/// A whole file of our own shape.
#[must_use]
pub fn of_file(queues: &[QueueDefinition], topics: &[TopicDefinition]) -> Properties {
    let named = |mut shown: Properties, name: &str| {
        shown.insert("name".to_owned(), name.into());
        shown
    };
    let subscription = |definition: &SubscriptionDefinition| {
        let mut shown = named(of_subscription(&definition.settings), &definition.name);
        let rules = definition.rules.iter().flatten();
        let rules: Vec<_> = rules.map(|rule| named(of_rule(rule), &rule.name)).collect();
        if !rules.is_empty() {
            shown.insert("rules".to_owned(), json(&rules));
        }
        shown
    };
    let topic = |definition: &TopicDefinition| {
        let mut shown = named(of_topic(&definition.settings), &definition.path);
        let below: Vec<_> = definition.subscriptions.iter().map(subscription).collect();
        shown.insert("subscriptions".to_owned(), json(&below));
        shown
    };
    let queues = queues.iter();
    let queues: Vec<_> = queues
        .map(|queue| named(of_queue(&queue.settings), &queue.path))
        .collect();
    let topics: Vec<_> = topics.iter().map(topic).collect();
    let mut file = Properties::new();
    file.insert("queues".to_owned(), json(&queues));
    file.insert("topics".to_owned(), json(&topics));
    file
}

fn json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

fn insert(shown: &mut Properties, name: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        shown.insert(name.to_owned(), value.into());
    }
}

/// What every entity has.
fn common(settings: &QueueSettings) -> Properties {
    let mut shown = Properties::new();
    for (name, millis) in [
        (
            "default-message-time-to-live",
            settings.default_message_time_to_live,
        ),
        ("auto-delete-on-idle", settings.auto_delete_on_idle),
    ] {
        insert(&mut shown, name, Some(duration::text(millis)));
    }
    shown.insert("status".to_owned(), json(&settings.status));
    shown
}

/// What entities have that are received from.
fn received(settings: &QueueSettings) -> Properties {
    let mut shown = common(settings);
    insert(
        &mut shown,
        "lock-duration",
        Some(duration::text(settings.lock_duration)),
    );
    insert(
        &mut shown,
        "max-delivery-count",
        Some(settings.max_delivery_count),
    );
    insert(
        &mut shown,
        "dead-lettering-on-message-expiration",
        Some(settings.dead_lettering_on_message_expiration),
    );
    insert(&mut shown, "expiry", settings.expiry.as_ref().map(json));
    insert(
        &mut shown,
        "requires-session",
        Some(settings.requires_session),
    );
    insert(&mut shown, "forward-to", settings.forward_to.clone());
    insert(
        &mut shown,
        "forward-dead-lettered-messages-to",
        settings.forward_dead_lettered_messages_to.clone(),
    );
    shown
}

/// What entities have that are sent to.
fn sent_to(settings: &QueueSettings) -> Properties {
    let mut shown = Properties::new();
    insert(
        &mut shown,
        "max-size-in-megabytes",
        Some(settings.max_size >> 20),
    );
    insert(&mut shown, "max-message-size", settings.max_message_size);
    insert(
        &mut shown,
        "requires-duplicate-detection",
        Some(settings.requires_duplicate_detection),
    );
    insert(
        &mut shown,
        "duplicate-detection-history-time-window",
        Some(duration::text(
            settings.duplicate_detection_history_time_window,
        )),
    );
    shown
}

#[cfg(test)]
mod tests {
    use broker::{Expiry, FilterDescription, Status};

    use super::*;
    use crate::{QueueConfig, RuleConfig, SubscriptionConfig, TopicConfig};

    fn named<T: serde::de::DeserializeOwned>(mut shown: Properties) -> T {
        shown.insert("name".to_owned(), "n".into());
        serde_json::from_value(Json::Object(shown)).unwrap()
    }

    /// Nothing of it is as it would be by default.
    fn unusual() -> QueueSettings {
        QueueSettings {
            lock_duration: 5_500,
            max_delivery_count: 7,
            default_message_time_to_live: 86_400_000,
            dead_lettering_on_message_expiration: true,
            max_size: 2 << 20,
            max_message_size: Some(1_000),
            expiry: Some(Expiry::Cloud),
            requires_session: true,
            requires_duplicate_detection: true,
            duplicate_detection_history_time_window: 20_000,
            forward_to: Some("a".to_owned()),
            forward_dead_lettered_messages_to: Some("b".to_owned()),
            status: Status::SendDisabled,
            auto_delete_on_idle: 300_000,
        }
    }

    #[test]
    fn a_queue_that_is_shown_can_be_read_again() {
        for settings in [unusual(), QueueSettings::default()] {
            let read: QueueConfig = named(of_queue(&settings));
            assert_eq!(QueueDefinition::from(read).settings, settings);
        }
    }

    #[test]
    fn a_topic_shows_what_topics_have() {
        let settings = QueueSettings {
            default_message_time_to_live: 86_400_000,
            max_size: 2 << 20,
            max_message_size: Some(1_000),
            requires_duplicate_detection: true,
            duplicate_detection_history_time_window: 20_000,
            status: Status::SendDisabled,
            auto_delete_on_idle: 300_000,
            ..QueueSettings::default()
        };
        let read: TopicConfig = named(of_topic(&settings));
        assert_eq!(TopicDefinition::from(read).settings, settings);
    }

    #[test]
    fn a_subscription_that_is_shown_can_be_read_again() {
        let default = QueueSettings::default();
        let settings = SubscriptionSettings {
            dead_lettering_on_filter_evaluation_exceptions: false,
            queue: QueueSettings {
                max_size: default.max_size,
                max_message_size: default.max_message_size,
                requires_duplicate_detection: default.requires_duplicate_detection,
                duplicate_detection_history_time_window: default
                    .duplicate_detection_history_time_window,
                ..unusual()
            },
        };
        let read: SubscriptionConfig = named(of_subscription(&settings));
        assert_eq!(SubscriptionDefinition::from(read).settings, settings);
    }

    #[test]
    fn a_rule_that_is_shown_can_be_read_again() {
        let read = |json: &str| {
            let rule: RuleConfig = serde_json::from_str(json).unwrap();
            RuleDescription::from(rule)
        };
        for json in [
            r#"{"name": "n"}"#,
            r#"{"name": "n", "filter": false}"#,
            r#"{"name": "n", "filter": {"sql": "a > @b"}, "filter-parameters": {"b": {"type": "int", "value": 5}}}"#,
            r#"{"name": "n", "filter": {"correlation": {"subject": "red", "properties": {"at": {"type": "uri", "value": "x"}}}},
                "action": "SET a = @c", "action-parameters": {"c": 1.5}}"#,
        ] {
            let rule = read(json);
            let shown: RuleConfig = named(of_rule(&rule));
            assert_eq!(RuleDescription::from(shown), rule);
        }
        assert!(of_rule(&RuleDescription::default())["filter"] == Json::Bool(true));
        assert_eq!(FilterDescription::default(), FilterDescription::True);
    }
}

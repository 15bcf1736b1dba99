//! Properties of entities as JSON: each by the name that files have for it, with its value.
//!
//! The result can be read again and gives the same entity; an absent property has no value. A
//! subscription does not repeat the properties of its topic.

use broker::{EntityDescription, EntityKind, QueueSettings, RuleDescription, SubscriptionSettings};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::definition::{QueueDefinition, SubscriptionDefinition, TopicDefinition};
use crate::rules::{Filter, TypedValue};
use crate::table::named;

/// Properties by name.
pub type Properties = Map<String, Json>;

/// A queue's.
#[must_use]
pub fn of_queue(settings: &QueueSettings) -> Properties {
    of_kind(EntityKind::Queue, settings, true)
}

/// A topic's.
#[must_use]
pub fn of_topic(settings: &QueueSettings) -> Properties {
    of_kind(EntityKind::Topic, settings, true)
}

/// A subscription's.
#[must_use]
pub fn of_subscription(settings: &SubscriptionSettings) -> Properties {
    let dead_lettering = settings.dead_lettering_on_filter_evaluation_exceptions;
    of_kind(EntityKind::Subscription, &settings.queue, dead_lettering)
}

fn of_kind(kind: EntityKind, settings: &QueueSettings, dead_lettering: bool) -> Properties {
    let mut description = EntityDescription {
        settings: settings.clone(),
        dead_lettering_on_filter_evaluation_exceptions: dead_lettering,
        ..EntityDescription::default()
    };
    let shown = named(kind)
        .filter_map(|(name, property)| Some((name.to_owned(), property.get(&mut description)?)));
    shown.collect()
}

/// A rule's. A value that has no form in JSON (a list, a decimal) is left out: no filter can equal
/// it.
#[must_use]
pub fn of_rule(rule: &RuleDescription) -> Properties {
    let mut shown = Properties::new();
    shown.insert("filter".to_owned(), json(&Filter(rule.filter.clone())));
    if let Some(action) = &rule.action {
        shown.insert("action".to_owned(), action.clone().into());
    }
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

#[cfg(test)]
mod tests {
    use broker::{Expiry, FilterDescription, Status};

    use super::*;
    use crate::RuleConfig;

    fn read<T: serde::de::DeserializeOwned>(mut shown: Properties) -> T {
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
            let read: QueueDefinition = read(of_queue(&settings));
            assert_eq!(read.settings, settings);
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
        let read: TopicDefinition = read(of_topic(&settings));
        assert_eq!(read.settings, settings);
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
        let read: SubscriptionDefinition = read(of_subscription(&settings));
        assert_eq!(read.settings, settings);
    }

    #[test]
    fn a_rule_that_is_shown_can_be_read_again() {
        let rule_of = |json: &str| {
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
            let rule = rule_of(json);
            let shown: RuleConfig = read(of_rule(&rule));
            assert_eq!(RuleDescription::from(shown), rule);
        }
        assert!(of_rule(&RuleDescription::default())["filter"] == Json::Bool(true));
        assert_eq!(FilterDescription::default(), FilterDescription::True);
    }
}

//! Properties of entities as JSON: each by the name that files have for it, with its value.
//!
//! The result can be read again and gives the same entity; an absent property has no value. A
//! subscription does not repeat the properties of its topic.

use broker::{
    EntityDescription, EntityKind, Policy, QueueSettings, RuleDescription, SubscriptionSettings,
};
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

/// A policy's, without its name and its layer.
#[must_use]
pub fn of_policy(policy: &Policy) -> Properties {
    let mut shown = Properties::new();
    shown.insert("pattern".to_owned(), policy.pattern.clone().into());
    shown.insert("apply-to".to_owned(), json(&policy.apply_to));
    shown.insert("priority".to_owned(), json(&policy.priority));
    let definition = policy.definition.clone();
    shown.insert("definition".to_owned(), definition.into());
    shown
}

/// A whole file of our own shape.
#[must_use]
pub fn of_file(
    queues: &[QueueDefinition],
    topics: &[TopicDefinition],
    policies: &[Policy],
) -> Properties {
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
    file.insert("policies".to_owned(), json(&policies));
    file
}

fn json(value: &impl Serialize) -> Json {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use broker::{FilterDescription, RetryBackoff};

    use super::*;
    use crate::duration;
    use crate::property::{Given, Slot};
    use crate::rule_config::RuleConfig;

    fn read<T: serde::de::DeserializeOwned>(mut shown: Properties) -> T {
        shown.insert("name".to_owned(), "n".into());
        serde_json::from_value(Json::Object(shown)).unwrap()
    }

    /// A description in which no property of the kind is as it would be by default.
    fn unusual(kind: EntityKind) -> EntityDescription {
        let mut description = EntityDescription::default();
        for (name, property) in named(kind) {
            let duration = duration::text(*property.range.start() + 500);
            let given = match (property.slot)(&mut description) {
                Slot::Flag(flag) => Given::Flag(!*flag),
                Slot::Duration(..) => Given::Text(&duration),
                Slot::Count(_) | Slot::Megabytes(_) | Slot::Limit(_) => Given::Number(3),
                Slot::Bytes(_) => Given::Number(1_000),
                Slot::RetryBackoff(_) => Given::RetryBackoff(RetryBackoff {
                    min: 500,
                    max: 60_000,
                    factor: 3,
                }),
                Slot::Target(..) | Slot::Text(_) => Given::Text(name),
                slot => Given::Text(slot.choices().last().unwrap()),
            };
            assert_eq!(property.set(&mut description, given), Ok(()), "{name}");
            assert_ne!(property.get(&mut description), property.default(), "{name}");
        }
        description
    }

    #[test]
    fn a_queue_that_is_shown_can_be_read_again() {
        for settings in [
            unusual(EntityKind::Queue).settings,
            QueueSettings::default(),
        ] {
            let read: QueueDefinition = read(of_queue(&settings));
            assert_eq!(read.settings, settings);
        }
    }

    #[test]
    fn a_topic_that_is_shown_can_be_read_again() {
        for settings in [
            unusual(EntityKind::Topic).settings,
            QueueSettings::default(),
        ] {
            let read: TopicDefinition = read(of_topic(&settings));
            assert_eq!(read.settings, settings);
        }
    }

    #[test]
    fn a_subscription_that_is_shown_can_be_read_again() {
        let unusual = unusual(EntityKind::Subscription);
        let settings = SubscriptionSettings {
            dead_lettering_on_filter_evaluation_exceptions: unusual
                .dead_lettering_on_filter_evaluation_exceptions,
            queue: unusual.settings,
        };
        for settings in [settings, SubscriptionSettings::default()] {
            let read: SubscriptionDefinition = read(of_subscription(&settings));
            assert_eq!(read.settings, settings);
        }
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

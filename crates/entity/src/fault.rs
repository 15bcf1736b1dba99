//! Faults of entities that no single value shows: names that are taken, rules that
//! are invalid. The checks are the same for every file format.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use broker::{EntityKind, RuleDescription, RuleError, RuleUsage, Tier};

use crate::definition::{QueueDefinition, SubscriptionDefinition, TopicDefinition};

/// Where a fault is: by index, as the file lists it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FaultLocation {
    /// By index.
    Queue(usize),
    /// By index.
    Topic(usize),
    /// By topic and subscription.
    Subscription(usize, usize),
    /// By topic, subscription and rule.
    Rule(usize, usize, usize, RulePart),
}

/// What of a rule it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum RulePart {
    Name,
    Filter,
    Action,
}

/// Why a file is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Where it is.
    pub location: FaultLocation,
    /// What it is.
    pub message: String,
    /// Where the name that is taken stands as well.
    pub first: Option<FaultLocation>,
}

impl Fault {
    fn new(location: FaultLocation, message: impl Into<String>) -> Self {
        Self {
            location,
            message: message.into(),
            first: None,
        }
    }

    /// The text of the error, in a file that calls its places so.
    #[must_use]
    pub fn text<Path: Display>(&self, path_of: impl Fn(FaultLocation) -> Path) -> String {
        match self.first {
            Some(first) => format!("{}, as {}", self.message, path_of(first)),
            None => self.message.clone(),
        }
    }
}

/// Names in any case, and where they were seen first.
#[derive(Default)]
struct Names(HashMap<String, FaultLocation>);

impl Names {
    fn add(&mut self, what: &str, name: &str, location: FaultLocation) -> Result<(), Fault> {
        match self.0.insert(name.to_lowercase(), location) {
            None => Ok(()),
            Some(first) => Err(Fault {
                first: Some(first),
                ..Fault::new(location, format!("the {what} `{name}` is there already"))
            }),
        }
    }
}

/// Finds the first fault.
///
/// # Errors
/// When there is one.
pub fn check(queues: &[QueueDefinition], topics: &[TopicDefinition]) -> Result<(), Fault> {
    let mut names = Names::default();
    for (index, queue) in queues.iter().enumerate() {
        let location = FaultLocation::Queue(index);
        names.add("queue", &queue.path, location)?;
    }
    for (index, topic) in topics.iter().enumerate() {
        let location = FaultLocation::Topic(index);
        names.add("entity", &topic.path, location)?;
        check_topic(index, topic)?;
    }
    Ok(())
}

/// Finds the first entity that the tier does not have. Queues get the tier's limits.
///
/// # Errors
/// When there is one.
pub fn admit(
    tier: Tier,
    queues: &mut [QueueDefinition],
    topics: &[TopicDefinition],
) -> Result<(), Fault> {
    for (index, queue) in queues.iter_mut().enumerate() {
        tier.admit(EntityKind::Queue, &mut queue.settings)
            .map_err(|error| Fault::new(FaultLocation::Queue(index), error.to_string()))?;
    }
    for (index, topic) in topics.iter().enumerate() {
        tier.admit(EntityKind::Topic, &mut topic.settings.clone())
            .map_err(|error| Fault::new(FaultLocation::Topic(index), error.to_string()))?;
    }
    Ok(())
}

fn check_topic(topic_index: usize, topic: &TopicDefinition) -> Result<(), Fault> {
    let mut names = Names::default();
    let mut room = RuleUsage::default();
    for (index, subscription) in topic.subscriptions.iter().enumerate() {
        let location = FaultLocation::Subscription(topic_index, index);
        names.add("subscription", &subscription.name, location)?;
        check_rules(topic_index, index, subscription, &mut room)?;
    }
    Ok(())
}

fn check_rules(
    topic: usize,
    subscription_index: usize,
    subscription: &SubscriptionDefinition,
    room: &mut RuleUsage,
) -> Result<(), Fault> {
    if subscription.rules.is_none() {
        let location = FaultLocation::Subscription(topic, subscription_index);
        room.add(&RuleDescription::default_rule())
            .map_err(|error| Fault::new(location, error.to_string()))?;
    }
    let mut names = Names::default();
    for (index, rule) in subscription.rules.iter().flatten().enumerate() {
        let location = |part| FaultLocation::Rule(topic, subscription_index, index, part);
        names.add("rule", &rule.name, location(RulePart::Name))?;
        rule.check()
            .map_err(|error| Fault::new(location(part_of(rule, &error)), error.to_string()))?;
        room.add(rule)
            .map_err(|error| Fault::new(location(RulePart::Name), error.to_string()))?;
    }
    Ok(())
}

/// What of a rule an error is about.
fn part_of(rule: &RuleDescription, error: &RuleError) -> RulePart {
    let without_action = RuleDescription {
        action: None,
        ..rule.clone()
    };
    match error {
        RuleError::Invalid { .. } if without_action.check().is_ok() => RulePart::Action,
        RuleError::Invalid { .. } => RulePart::Filter,
        _ => RulePart::Name,
    }
}

/// The paths of all queues and topics, in lower case.
#[must_use]
pub fn names(queues: &[QueueDefinition], topics: &[TopicDefinition]) -> HashSet<String> {
    let queues = queues.iter().map(|queue| &queue.path);
    let paths = queues.chain(topics.iter().map(|topic| &topic.path));
    paths.map(|path| path.to_lowercase()).collect()
}

/// A queue or subscription whose messages go to a queue or topic that the file does not have.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MissingTarget {
    /// Where it is.
    pub location: FaultLocation,
    /// The path of the queue, or of the subscription's topic.
    pub path: String,
    /// Whether its dead letters go there.
    pub of_dead_letters: bool,
    /// The path that they go to.
    pub target: String,
}

/// All of them, in the order of the file.
#[must_use]
pub fn missing_targets(
    queues: &[QueueDefinition],
    topics: &[TopicDefinition],
) -> Vec<MissingTarget> {
    let known = names(queues, topics);
    let of_queues = queues
        .iter()
        .enumerate()
        .map(|(index, queue)| (FaultLocation::Queue(index), &queue.path, &queue.settings));
    let of_topics = topics.iter().enumerate().flat_map(|(topic, definition)| {
        let subscriptions = definition.subscriptions.iter().enumerate();
        subscriptions.map(move |(index, it)| {
            let location = FaultLocation::Subscription(topic, index);
            (location, &definition.path, &it.settings.queue)
        })
    });
    let mut missing = Vec::new();
    for (location, path, settings) in of_queues.chain(of_topics) {
        for (of_dead_letters, target) in [
            (false, &settings.forward_to),
            (true, &settings.forward_dead_lettered_messages_to),
        ] {
            if let Some(target) = target
                && !known.contains(&target.to_lowercase())
            {
                missing.push(MissingTarget {
                    location,
                    path: path.clone(),
                    of_dead_letters,
                    target: target.clone(),
                });
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use broker::{Correlation, FilterDescription, QueueSettings};

    use super::*;

    fn topic(rules: usize, filter: &FilterDescription) -> TopicDefinition {
        let rule = |number| RuleDescription {
            name: format!("r{number}"),
            filter: filter.clone(),
            ..RuleDescription::default()
        };
        TopicDefinition {
            path: "t".to_owned(),
            settings: QueueSettings::default(),
            subscriptions: vec![SubscriptionDefinition {
                name: "s".to_owned(),
                settings: Default::default(),
                rules: Some((0..rules).map(rule).collect()),
            }],
        }
    }

    #[test]
    fn more_rules_than_a_topic_can_have_are_found_without_a_broker() {
        let sql = FilterDescription::Sql("a = 1".to_owned());
        assert_eq!(check(&[], &[topic(2_000, &sql)]), Ok(()));
        let fault = check(&[], &[topic(2_001, &sql)]).unwrap_err();
        assert_eq!(
            fault.location,
            FaultLocation::Rule(0, 0, 2_000, RulePart::Name)
        );
        assert_eq!(fault.message, "a topic can have 2000 SQL filters");
        let long = FilterDescription::Correlation(Box::new(Correlation {
            label: Some("x".repeat(60_000)),
            ..Correlation::default()
        }));
        let fault = check(&[], &[topic(1_200, &long)]).unwrap_err();
        assert_eq!(
            fault.message,
            "the rules of a topic can take 67108864 bytes"
        );
    }
}

//! Plan: the changes that make the namespace equal to a file, and the changes that are impossible.
//!
//! Entities and rules of the file are created or changed. Entities that the file does not name
//! stay, unless the file is authoritative. A plan with a refusal is wrong as a whole and is never
//! carried out. Making a plan changes nothing. The broker checks the rest (how much room there is)
//! without carrying the plan out. A plan is applied as one, and only if nothing has changed since
//! it was made.

mod differences;

use std::collections::HashMap;
use std::fmt;

use broker::{Batch, EntityError, Policy, PolicyLayer, RuleDescription};
use serde::{Deserialize, Serialize};

use crate::definition::{
    Namespace, QueueDefinition, SubscriptionDefinition, TopicDefinition, ensured,
};
use crate::properties::{of_policy, of_queue, of_rule, of_subscription, of_topic};
use crate::table::PROPERTIES;

pub use differences::{Difference, between};

/// The namespace that a file describes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DesiredNamespace {
    /// Queues.
    pub queues: Vec<QueueDefinition>,
    /// Topics with their subscriptions and rules.
    pub topics: Vec<TopicDefinition>,
    /// Of users and of operators.
    pub policies: Vec<Policy>,
    /// Whether there should be nothing else.
    pub authoritative: bool,
}

/// What has to change.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Plan {
    /// All of it is done as one.
    pub changes: Vec<Change>,
    /// Changes that are refused.
    pub refused: Vec<RefusedChange>,
    /// Queues to make or change.
    #[serde(skip)]
    queues: Vec<QueueDefinition>,
    /// Topics, with the subscriptions and rules of them to make or change.
    #[serde(skip)]
    topics: Vec<TopicDefinition>,
    /// The paths of entities that go.
    #[serde(skip)]
    removed: Vec<String>,
    /// Rules that go, by subscription and name.
    #[serde(skip)]
    removed_rules: Vec<(String, String)>,
    /// Policies to make or change.
    #[serde(skip)]
    policies: Vec<Policy>,
    /// Policies that go.
    #[serde(skip)]
    removed_policies: Vec<(PolicyLayer, String)>,
    /// Of the namespace that it was made for.
    #[serde(skip)]
    version: Option<u64>,
}

/// One thing that changes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Change {
    /// What happens to it.
    pub action: Action,
    /// What it is.
    pub kind: ResourceKind,
    /// Where it is; a rule is below its subscription.
    pub path: String,
    /// What is different then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Difference>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.action, self.kind, self.path)?;
        for (index, difference) in self.properties.iter().enumerate() {
            let between = if index == 0 { ": " } else { ", " };
            write!(f, "{between}{difference}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        })
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Topic => "topic",
            Self::Subscription => "subscription",
            Self::Rule => "rule",
            Self::Policy => "policy",
            Self::OperatorPolicy => "operator policy",
        })
    }
}

impl fmt::Display for RefusedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.path, self.reason)
    }
}

/// What happens to an entity or a rule.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum Action {
    Create,
    Update,
    Delete,
}

/// What a change is about.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum ResourceKind {
    Queue,
    Topic,
    Subscription,
    Rule,
    Policy,
    OperatorPolicy,
}

impl From<PolicyLayer> for ResourceKind {
    fn from(layer: PolicyLayer) -> Self {
        match layer {
            PolicyLayer::User => Self::Policy,
            PolicyLayer::Operator => Self::OperatorPolicy,
        }
    }
}

/// A refused change, and the reason.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RefusedChange {
    /// Of the entity or rule; empty when it is the whole.
    pub path: String,
    /// One sentence.
    pub reason: String,
}

impl From<EntityError> for RefusedChange {
    fn from(error: EntityError) -> Self {
        let reason = error.cause().to_string();
        let path = match error {
            EntityError::At { path, .. } => path,
            _ => String::new(),
        };
        Self { path, reason }
    }
}

impl Plan {
    /// The changes that make `namespace` equal to `wanted`.
    #[must_use]
    pub fn new(namespace: &Namespace, wanted: &DesiredNamespace) -> Self {
        let mut planner = Planner {
            plan: Self::default(),
            queues: by_path(&namespace.queues, |queue| &queue.path),
            topics: by_path(&namespace.topics, |topic| &topic.path),
            authoritative: wanted.authoritative,
        };
        for queue in &wanted.queues {
            planner.queue(queue);
        }
        for topic in &wanted.topics {
            planner.topic(topic);
        }
        for policy in &wanted.policies {
            planner.policy(policy, &namespace.policies);
        }
        if wanted.authoritative {
            planner.remove_others(namespace, wanted);
        }
        planner.plan.version = namespace.version;
        planner.plan
    }

    /// As one, for the namespace that it was made for and no other.
    #[must_use]
    pub fn batch(&self) -> Batch {
        Batch {
            version: self.version,
            removed: self.removed.clone(),
            removed_rules: self.removed_rules.clone(),
            ensured: ensured(self.queues.clone(), self.topics.clone()),
            policies: self.policies.clone(),
            removed_policies: self.removed_policies.clone(),
            dry_run: false,
            is_template: false,
        }
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.refused.is_empty()
    }
}

/// Whether a property may not change. (docs/spec/entities.md#2.1)
fn is_fixed(name: &str) -> bool {
    let known = PROPERTIES.iter().find(|known| known.name == Some(name));
    known.is_some_and(|known| known.fixed)
}

fn by_path<T>(all: &[T], path: impl Fn(&T) -> &str) -> HashMap<String, &T> {
    let all = all.iter();
    all.map(|one| (path(one).to_lowercase(), one)).collect()
}

/// Whether two policies are of one layer and name.
fn is_same(one: &Policy, other: &Policy) -> bool {
    (one.layer, &one.name) == (other.layer, &other.name)
}

struct Planner<'a> {
    plan: Plan,
    queues: HashMap<String, &'a QueueDefinition>,
    topics: HashMap<String, &'a TopicDefinition>,
    authoritative: bool,
}

impl Planner<'_> {
    fn queue(&mut self, wanted: &QueueDefinition) {
        let key = wanted.path.to_lowercase();
        if self.topics.contains_key(&key) {
            return self.refuse(&wanted.path, "it is a topic, so no queue can be there");
        }
        let after = of_queue(&wanted.settings);
        let known = self.queues.get(&key);
        let before = known.map(|known| of_queue(&known.settings));
        let default = of_queue(&Default::default());
        let differences = between(before.as_ref().unwrap_or(&default), &after);
        if self.note(
            ResourceKind::Queue,
            &wanted.path,
            before.is_none(),
            differences,
        ) {
            self.plan.queues.push(wanted.clone());
        }
    }

    fn topic(&mut self, wanted: &TopicDefinition) {
        let key = wanted.path.to_lowercase();
        if self.queues.contains_key(&key) {
            return self.refuse(&wanted.path, "it is a queue, so no topic can be there");
        }
        let known = self.topics.get(&key).copied();
        let after = of_topic(&wanted.settings);
        let before = known.map(|known| of_topic(&known.settings));
        let default = of_topic(&Default::default());
        let differences = between(before.as_ref().unwrap_or(&default), &after);
        let mut changes = self.note(
            ResourceKind::Topic,
            &wanted.path,
            before.is_none(),
            differences,
        );
        let known = known.map_or(&[][..], |known| &known.subscriptions);
        let known = by_path(known, |subscription| &subscription.name);
        let mut subscriptions = Vec::new();
        for subscription in &wanted.subscriptions {
            let known = known.get(&subscription.name.to_lowercase()).copied();
            subscriptions.extend(self.subscription(&wanted.path, subscription, known));
        }
        changes |= !subscriptions.is_empty();
        if changes {
            self.plan.topics.push(TopicDefinition {
                subscriptions,
                ..wanted.clone()
            });
        }
    }

    /// What of a subscription is to be made or changed, if anything is.
    fn subscription(
        &mut self,
        topic: &str,
        wanted: &SubscriptionDefinition,
        known: Option<&SubscriptionDefinition>,
    ) -> Option<SubscriptionDefinition> {
        let path = format!("{topic}/Subscriptions/{}", wanted.name);
        let shown = |definition: &SubscriptionDefinition| of_subscription(&definition.settings);
        let after = shown(wanted);
        let before = known.map(shown);
        let default = of_subscription(&Default::default());
        let differences = between(before.as_ref().unwrap_or(&default), &after);
        let changes = self.note(
            ResourceKind::Subscription,
            &path,
            known.is_none(),
            differences,
        );
        let known_rules = known.map_or(&[][..], |known| known.rules.as_deref().unwrap_or_default());
        let changed_rules = self.rules(&path, wanted, known_rules);
        let rules = match known {
            None => wanted.rules.clone(),
            Some(_) => Some(changed_rules).filter(|rules| !rules.is_empty()),
        };
        (changes || rules.is_some()).then(|| SubscriptionDefinition {
            rules,
            ..wanted.clone()
        })
    }

    /// Which rules are to be made or changed; those that are to go are noted.
    fn rules(
        &mut self,
        subscription: &str,
        wanted: &SubscriptionDefinition,
        known: &[RuleDescription],
    ) -> Vec<RuleDescription> {
        let default = [RuleDescription::default_rule()];
        let wanted = match &wanted.rules {
            Some(rules) => &rules[..],
            // A new subscription gets it by itself, and a file that says nothing changes nothing.
            None if self.authoritative && !known.is_empty() => &default,
            None => return Vec::new(),
        };
        let known = by_path(known, |rule| &rule.name);
        let mut changed = Vec::new();
        for rule in wanted {
            let known = known.get(&rule.name.to_lowercase());
            let before = known.map(|known| of_rule(known));
            let nothing = Default::default();
            let differences = between(before.as_ref().unwrap_or(&nothing), &of_rule(rule));
            let path = format!("{subscription}/Rules/{}", rule.name);
            if self.note(ResourceKind::Rule, &path, before.is_none(), differences) {
                changed.push(rule.clone());
            }
        }
        if self.authoritative {
            let mut others: Vec<_> = known.into_values().collect();
            others.retain(|rule| {
                !wanted
                    .iter()
                    .any(|it| it.name.to_lowercase() == rule.name.to_lowercase())
            });
            others.sort_by(|one, other| one.name.cmp(&other.name));
            for RuleDescription { name, .. } in others {
                self.note_removal(ResourceKind::Rule, format!("{subscription}/Rules/{name}"));
                let rule = (subscription.to_owned(), name.clone());
                self.plan.removed_rules.push(rule);
            }
        }
        changed
    }

    fn policy(&mut self, wanted: &Policy, known: &[Policy]) {
        let known = known.iter().find(|known| is_same(known, wanted));
        let before = known.map(of_policy);
        let nothing = Default::default();
        let differences = between(before.as_ref().unwrap_or(&nothing), &of_policy(wanted));
        let kind = wanted.layer.into();
        if self.note(kind, &wanted.name, before.is_none(), differences) {
            self.plan.policies.push(wanted.clone());
        }
    }

    /// Removes entities that the file does not name. A topic's subscriptions go with it.
    fn remove_others(&mut self, namespace: &Namespace, wanted: &DesiredNamespace) {
        let topics = by_path(&wanted.topics, |topic| &topic.path);
        let queues = by_path(&wanted.queues, |queue| &queue.path);
        for topic in &namespace.topics {
            match topics.get(&topic.path.to_lowercase()) {
                None => self.remove_entity(ResourceKind::Topic, topic.path.clone()),
                Some(wanted) => {
                    let kept = by_path(&wanted.subscriptions, |subscription| &subscription.name);
                    let others = topic.subscriptions.iter();
                    for other in others.filter(|it| !kept.contains_key(&it.name.to_lowercase())) {
                        let path = format!("{}/Subscriptions/{}", topic.path, other.name);
                        self.remove_entity(ResourceKind::Subscription, path);
                    }
                }
            }
        }
        for queue in &namespace.queues {
            if !queues.contains_key(&queue.path.to_lowercase()) {
                self.remove_entity(ResourceKind::Queue, queue.path.clone());
            }
        }
        let others = namespace.policies.iter();
        for other in others.filter(|it| !wanted.policies.iter().any(|kept| is_same(kept, it))) {
            self.note_removal(other.layer.into(), other.name.clone());
            let policy = (other.layer, other.name.clone());
            self.plan.removed_policies.push(policy);
        }
    }

    fn remove_entity(&mut self, kind: ResourceKind, path: String) {
        self.note_removal(kind, path.clone());
        self.plan.removed.push(path);
    }

    fn note_removal(&mut self, kind: ResourceKind, path: String) {
        self.plan.changes.push(Change {
            action: Action::Delete,
            kind,
            path,
            properties: Vec::new(),
        });
    }

    /// Notes what happens to an entity or a rule. Returns whether anything does.
    fn note(
        &mut self,
        kind: ResourceKind,
        path: &str,
        is_new: bool,
        properties: Vec<Difference>,
    ) -> bool {
        if !is_new && properties.is_empty() {
            return false;
        }
        let fixed = properties
            .iter()
            .find(|difference| !is_new && is_fixed(&difference.property));
        if let Some(difference) = fixed {
            let reason =
                format!("{difference} cannot be changed after creation; delete it to change that");
            self.refuse(path, &reason);
            return false;
        }
        let action = if is_new {
            Action::Create
        } else {
            Action::Update
        };
        self.plan.changes.push(Change {
            action,
            kind,
            path: path.to_owned(),
            properties,
        });
        true
    }

    fn refuse(&mut self, path: &str, reason: &str) {
        self.plan.refused.push(RefusedChange {
            path: path.to_owned(),
            reason: reason.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests;

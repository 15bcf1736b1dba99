//! Snapshot: a topic's rules between two changes of them, for callers that evaluate them.
//!
//! Each change makes another generation. What was made of a message by the rules of one generation
//! says nothing about any other.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use filter::{Environment, Facts, Message, RuleSubset, TopicRules};
use store::EntityId;

use super::distribution::{Distribution, Generation};

/// A topic's rules as they are now.
#[derive(Debug, Default)]
pub(crate) struct CurrentRules {
    /// Never changed while they are evaluated.
    rules: Arc<TopicRules<EntityId>>,
    generation: Generation,
    /// The generation that others have been told of.
    published: Generation,
}

/// The rules of a topic as they are between two changes of them.
#[derive(Clone)]
pub struct RuleSnapshot {
    /// Whose they are.
    pub topic: EntityId,
    generation: Generation,
    rules: Arc<TopicRules<EntityId>>,
}

impl CurrentRules {
    /// The rules, to change: from now on they are of another generation.
    pub(crate) fn change(&mut self) -> &mut TopicRules<EntityId> {
        self.generation = self.generation.next();
        Arc::make_mut(&mut self.rules)
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// As they are now, of the topic of this id.
    pub(crate) fn snapshot(&self, topic: EntityId) -> RuleSnapshot {
        RuleSnapshot {
            topic,
            generation: self.generation,
            rules: Arc::clone(&self.rules),
        }
    }

    /// The same, if they have changed since this was last asked.
    pub(crate) fn publish(&mut self, topic: EntityId) -> Option<RuleSnapshot> {
        let changed = self.published != self.generation;
        self.published = self.generation;
        changed.then(|| self.snapshot(topic))
    }
}

impl Deref for CurrentRules {
    type Target = TopicRules<EntityId>;

    fn deref(&self) -> &Self::Target {
        &self.rules
    }
}

impl PartialEq for RuleSnapshot {
    fn eq(&self, other: &Self) -> bool {
        (self.topic, self.generation) == (other.topic, other.generation)
    }
}

impl Eq for RuleSnapshot {}

impl fmt::Debug for RuleSnapshot {
    /// Not all of the rules: there may be a hundred thousand.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSnapshot")
            .field("topic", &self.topic)
            .field("generation", &self.generation.0)
            .field("rules", &self.rules.len())
            .finish()
    }
}

impl RuleSnapshot {
    /// Whether evaluating them takes any time worth speaking of.
    #[must_use]
    pub fn is_costly(&self) -> bool {
        self.rules.any_costly()
    }

    /// What becomes of an encoded message that is sent to the topic now; nothing if that cannot
    /// be read. `steps`, of some nanoseconds each, grow by those it took.
    #[must_use]
    pub fn distribute(&self, payload: &[u8], steps: &mut u64) -> Option<Distribution> {
        let facts = Facts {
            delivery_count: Some(0),
            state: Some(0),
            ..Facts::default()
        };
        let message = Message::read(payload, facts).ok()?;
        let mut distribution = Distribution::of(self.generation);
        // What makes new ids is left to the broker, so there is no need of a seed.
        *steps += distribution.add(
            &self.rules,
            RuleSubset::Early,
            &message,
            Environment::default(),
        );
        Some(distribution)
    }
}

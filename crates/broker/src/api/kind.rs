//! Kind: whether an entity is a queue, a topic or a subscription, for callers of the core.
//!
//! It is a name without state, for descriptions, metrics and messages to users. What the core keeps
//! for each kind is in `queue/kind.rs`, which has transfer queues as well: callers see them as
//! queues, if at all. (docs/spec/entities.md#1)

use std::fmt;

/// What an entity is, as others see it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs, reason = "the variants are named for what they are")]
pub enum EntityKind {
    #[default]
    Queue,
    Topic,
    Subscription,
}

impl EntityKind {
    /// Its word, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Topic => "topic",
            Self::Subscription => "subscription",
        }
    }
}

impl fmt::Display for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

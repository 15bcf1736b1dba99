//! Distribution: what a topic's rules make of a message: which subscriptions get a copy, and how it
//! is changed.
//!
//! Rules do not change while they are evaluated, so a snapshot of them tells what becomes of a
//! message before the broker has it. That holds for the generation of the snapshot only, and only
//! for rules that do not ask for what is settled with the message's arrival; the broker adds what
//! the others make of it. (docs/spec/entities.md#17.2, #17.9)

use std::cmp::Ordering;

use bytes::Bytes;
use filter::{Environment, Message, Outcome, RuleSubset, TopicRules};
use store::EntityId;

/// Why a copy is dead-lettered that an action has made too large. (docs/spec/amqp.md#4.7)
pub(crate) const TOO_LARGE: &str = "HeaderSizeExceeded";

/// What one copy costs in memory, besides its bytes.
const OVERHEAD: usize = 64;

/// Counts the changes of a topic's rules.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Generation(pub(super) u64);

impl Generation {
    pub(super) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What rules make of a message, as far as they can say before it has arrived.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Distribution {
    pub(crate) generation: Generation,
    /// The subscriptions that get the message as it was sent, ascending, each with the place of the
    /// rule that selects it.
    plain: Vec<(EntityId, u64)>,
    /// Other copies, and failures, in the order in which their subscriptions get them.
    special: Vec<Special>,
}

/// A copy that is to be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PlannedCopy<'a> {
    pub subscription: EntityId,
    /// Its rule's place within the subscription.
    pub place: u64,
    pub content: &'a Content,
}

/// A copy that is not as sent.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Special {
    subscription: EntityId,
    /// Its rule's place within the subscription.
    place: u64,
    content: Content,
}

/// What a subscription gets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Content {
    AsSent,
    /// As a rule's action has made it.
    Changed {
        payload: Bytes,
        /// If the action changes it: the time to live instead of the sender's, `u64::MAX` for none.
        ttl_ms: Option<u64>,
    },
    /// As sent, and dead: an action has made it too large.
    TooLarge(String),
    /// As sent, and dead, if the subscription wants that: reason and description.
    Failed(&'static str, String),
}

impl Distribution {
    /// Of rules of this generation, which have said nothing yet.
    pub(crate) fn of(generation: Generation) -> Self {
        Self {
            generation,
            ..Self::default()
        }
    }

    /// What it takes of memory, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let special = self.special.iter().map(|special| match &special.content {
            Content::AsSent => 0,
            Content::Changed { payload, .. } => payload.len(),
            Content::TooLarge(text) | Content::Failed(_, text) => text.len(),
        });
        let bytes = special.fold(0, |sum: usize, bytes| sum.saturating_add(bytes + OVERHEAD));
        bytes.saturating_add(OVERHEAD + self.plain.len() * size_of::<(EntityId, u64)>())
    }

    /// Adds what some of the rules make of the message. Returns the steps it took.
    pub(crate) fn add(
        &mut self,
        rules: &TopicRules<EntityId>,
        subset: RuleSubset,
        message: &Message<'_>,
        environment: Environment,
    ) -> u64 {
        let evaluation = rules.evaluate_subset(subset, message, environment);
        for (subscription, outcome) in evaluation.outcomes {
            if let Some(place) = outcome.plain {
                self.plain.push((subscription, place));
            }
            self.add_special(subscription, &outcome, message);
        }
        self.plain.sort_unstable();
        self.plain.dedup_by_key(|(subscription, _)| *subscription);
        self.special.sort_by(Special::order);
        evaluation.steps
    }

    fn add_special(&mut self, subscription: EntityId, outcome: &Outcome, message: &Message<'_>) {
        let changed = outcome.changed.iter().map(|changed| {
            let ttl = changed.changes.time_to_live();
            let content = match changed.changes.apply(message) {
                Ok(payload) => Content::Changed {
                    payload,
                    ttl_ms: ttl.map(|ttl| ttl.unwrap_or(u64::MAX)),
                },
                Err(error) => Content::TooLarge(error.to_string()),
            };
            (changed.place, content)
        });
        // One dead letter a message, however many rules fail.
        let failed = outcome.dead_letter().into_iter().map(|failed| {
            let content = Content::Failed(failed.reason(), failed.description());
            (failed.place, content)
        });
        let all = changed.chain(failed).map(|(place, content)| Special {
            subscription,
            place,
            content,
        });
        self.special.extend(all);
    }

    /// The copies in the order of their subscriptions, and within one: as sent, changed ones in
    /// the order of their rules, and the first failure.
    pub(crate) fn copies(&self) -> impl Iterator<Item = PlannedCopy<'_>> {
        let mut plain = self.plain.iter().copied().peekable();
        let mut special = self.special.iter().peekable();
        let mut failed = None;
        std::iter::from_fn(move || {
            loop {
                let next = special.peek().map(|special| special.subscription);
                let is_first = |(first, _): &_| next.is_none_or(|next| *first <= next);
                if let Some((subscription, place)) = plain.next_if(is_first) {
                    return Some(PlannedCopy {
                        subscription,
                        place,
                        content: &Content::AsSent,
                    });
                }
                let copy = special.next()?;
                let is_failure = copy.content.is_failure();
                if !is_failure || failed != Some(copy.subscription) {
                    failed = is_failure.then_some(copy.subscription);
                    return Some(PlannedCopy {
                        subscription: copy.subscription,
                        place: copy.place,
                        content: &copy.content,
                    });
                }
            }
        })
    }
}

impl Special {
    /// Failures come last within a subscription.
    fn order(&self, other: &Self) -> Ordering {
        let key = |special: &Self| {
            let is_failure = special.content.is_failure();
            (special.subscription, is_failure, special.place)
        };
        key(self).cmp(&key(other))
    }
}

impl Content {
    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(..))
    }

    pub(crate) fn is_as_sent(&self) -> bool {
        !matches!(self, Self::Changed { .. })
    }
}

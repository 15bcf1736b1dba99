//! Batch: entities and rules that are made, changed and deleted as one.
//!
//! It is bounded by how many it names and by the bytes of its rules, since one turn carries it
//! out. What is checked of it besides is in `administration/batch.rs`.

use crate::api::entity_error::EntityError;
use crate::api::kind::EntityKind;
use crate::api::policy::{Policy, PolicyLayer};
use crate::api::rule::RuleDescription;
use crate::api::settings::{QueueSettings, SubscriptionSettings};
use crate::api::tier::Tier;

/// Entities and rules of one batch, so that a turn that carries one out stays one of moderate
/// length. Twice as many as one topic can have.
pub const MAX_BATCH: usize = 250_000;
/// What the rules of one batch can take, in bytes. Twice as much as those of one topic can.
pub const MAX_BATCH_BYTES: usize = 128 << 20;

/// Changes that are made as one. No entity and no rule may be named twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// What the namespace's version has to be; whatever it is, if there is none.
    pub version: Option<u64>,
    /// The paths of entities that go, with all that is in them.
    pub removed: Vec<String>,
    /// Rules that go: the path of the subscription, and the name.
    pub removed_rules: Vec<(String, String)>,
    /// Topics before their subscriptions.
    pub ensured: Vec<Ensured>,
    /// Policies that go.
    pub removed_policies: Vec<(PolicyLayer, String)>,
    /// Policies that are there then.
    pub policies: Vec<Policy>,
    /// Whether it is only looked at, and not done.
    pub dry_run: bool,
    /// Whether a reset of the namespace goes back to what it ensures and to its policies.
    pub is_template: bool,
}

/// An entity that is there then, and as it is described.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub enum Ensured {
    Queue {
        path: String,
        settings: QueueSettings,
    },
    Topic {
        path: String,
        settings: QueueSettings,
    },
    /// A new one has these `rules`, or selects everything if none are given; one that is there
    /// keeps its rules and gets these besides.
    Subscription {
        topic: String,
        name: String,
        settings: Box<SubscriptionSettings>,
        rules: Option<Vec<RuleDescription>>,
    },
}

impl Ensured {
    /// Whether the namespace's tier has that.
    pub(crate) fn admit(&mut self, tier: Tier) -> Result<(), EntityError> {
        let (path, admitted) = match self {
            Self::Queue { path, settings } => (path, tier.admit(EntityKind::Queue, settings)),
            Self::Topic { path, settings } => (path, tier.admit(EntityKind::Topic, settings)),
            Self::Subscription {
                topic, settings, ..
            } => {
                let settings = &mut settings.queue;
                (topic, tier.admit(EntityKind::Subscription, settings))
            }
        };
        admitted.map_err(|error| EntityError::At {
            path: path.clone(),
            error: Box::new(error),
        })
    }
}

/// Whether a batch is not too large to be carried out in one turn.
pub(crate) fn check_size(batch: &Batch) -> Result<(), EntityError> {
    let policies = batch.removed_policies.len() + batch.policies.len();
    let count = batch.removed.len() + batch.removed_rules.len() + batch.ensured.len() + policies;
    if count.saturating_add(rules(batch).count()) > MAX_BATCH {
        let (limit, what) = (MAX_BATCH, "entities and rules in one batch");
        return Err(EntityError::TooMany { limit, what });
    }
    let bytes: usize = rules(batch).map(RuleDescription::bytes).sum();
    if bytes > MAX_BATCH_BYTES {
        let (limit, what) = (MAX_BATCH_BYTES, "bytes of rules in one batch");
        return Err(EntityError::TooMany { limit, what });
    }
    Ok(())
}

fn rules(batch: &Batch) -> impl Iterator<Item = &RuleDescription> {
    let rules = batch.ensured.iter().filter_map(|ensured| match ensured {
        Ensured::Subscription { rules, .. } => rules.as_ref(),
        Ensured::Queue { .. } | Ensured::Topic { .. } => None,
    });
    rules.flatten()
}

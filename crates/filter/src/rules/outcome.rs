//! Outcome: the copies and failures that the rules of one subscription make of one message.
//! (docs/spec/entities.md#17.2, #17.9)

use std::sync::Arc;

use crate::message::changes::Changes;
use crate::rules::rule::{Rule, RuleError};

/// The copies that a subscription gets, and the rules that failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// One copy as it is: some rule without an action matches. The place of the first one in the
    /// order of creation.
    pub plain: Option<u64>,
    /// One copy for each rule with an action that matches.
    pub changed: Vec<ChangedCopy>,
    /// Rules that failed, in the order of their creation.
    pub failed: Vec<RuleFailure>,
}

/// A copy that an action changes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct ChangedCopy {
    /// Its rule's place in the order of creation.
    pub place: u64,
    pub rule: Arc<Rule>,
    pub changes: Changes,
}

/// A rule that failed.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub struct RuleFailure {
    /// Its rule's place in the order of creation.
    pub place: u64,
    pub rule: Arc<Rule>,
    pub error: RuleError,
}

impl Outcome {
    /// How many copies there are, without a dead letter.
    #[must_use]
    pub fn copies(&self) -> usize {
        usize::from(self.plain.is_some()) + self.changed.len()
    }

    /// The failure that the message is dead-lettered for, if the subscription wants that: one a
    /// message, however many rules fail.
    #[must_use]
    pub fn dead_letter(&self) -> Option<&RuleFailure> {
        self.failed.first()
    }
}

impl RuleFailure {
    /// The reason of the dead letter.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.error.reason()
    }

    /// The description of the dead letter.
    #[must_use]
    pub fn description(&self) -> String {
        format!("Rule '{}': {}.", self.rule.name, self.error)
    }
}

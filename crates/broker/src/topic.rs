//! Topic: where publishers send to, and the subscriptions that take copies.
//!
//! What arrives at a topic is a message of its own, with a number, a time to live and a history of
//! ids; at the end of the step it goes to all subscriptions that select it, in one write set.
//! Scheduled messages wait here. A topic counts towards its size what its subscriptions hold.
//! (docs/spec/entities.md#2.2, #17)

pub(crate) mod command;
pub(crate) mod fan_out;
mod rules;
pub(crate) mod sizes;

use std::collections::{BTreeMap, BTreeSet};

use amqp::Value;
use store::EntityId;

use crate::api::rule::{CurrentRules, OriginalValue};
use crate::api::time::Wall;

/// What only a topic has.
#[derive(Debug, Default)]
pub(crate) struct Topic {
    /// In the order of their creation.
    pub subscriptions: BTreeSet<EntityId>,
    /// All of them, ready for use.
    pub rules: CurrentRules,
    /// What their texts and values take.
    rule_bytes: usize,
    /// How many of them are correlation filters.
    correlation_filters: usize,
    /// What is known of each besides, by subscription and name in lower case.
    facts: BTreeMap<(EntityId, String), RuleFacts>,
    /// Tells the order of those that were created at the same time.
    next_rule: u64,
}

/// What a rule's description says and its evaluation does not need.
#[derive(Clone, Debug, Default)]
struct RuleFacts {
    created: Wall,
    place: u64,
    filter_parameters: Vec<(String, Value)>,
    action_parameters: Vec<(String, Value)>,
    filter_texts: Vec<OriginalValue>,
    action_texts: Vec<OriginalValue>,
}

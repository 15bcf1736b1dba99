//! Rules: all rules of all subscriptions of a topic, compiled together.
//! (docs/spec/entities.md#17.1, #17.2)
//!
//! A message is evaluated once for the topic: one index finds the matching correlation filters of
//! all subscriptions; only SQL filters and true filters are evaluated one by one. Rules that read
//! values assigned on arrival can be left to a second evaluation.
//!
//! In an `Arc` this is a snapshot. While an evaluation still uses the old one, `Arc::make_mut`
//! changes a copy, which shares nearly everything with it.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::correlation::Index;
use crate::expression::evaluation::Environment;
use crate::message::Message;
use crate::rules::outcome::Outcome;
use crate::rules::rule::{Filter, Rule};
use crate::rules::sharded::Sharded;

mod evaluate;
pub mod outcome;
pub mod rule;
pub mod sharded;
pub mod tester;

pub use evaluate::{Evaluation, RuleSubset};

/// A rule's place in the order of creation within its subscription.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct RuleId(u64);

/// A block of consecutive rules of a subscription, small enough that a change copies few rules.
const BLOCK: u64 = 256;

type Block = Arc<BTreeMap<RuleId, Arc<Rule>>>;

/// There is a rule of this name in any case.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a rule of this name exists")]
pub struct RuleExists;

/// The rules of subscriptions, which are known by `S`.
#[derive(Clone, Debug)]
pub struct TopicRules<S> {
    /// By subscription and number of the block.
    blocks: BTreeMap<(S, u64), Block>,
    /// By name without its case.
    names: Sharded<(S, String), RuleId>,
    /// Rules that every message is tested with.
    tested: Arc<Tested<S>>,
    /// Late rules that every message is tested with.
    tested_late: Arc<Tested<S>>,
    correlations: Index<(S, RuleId)>,
    /// How many of the correlation filters' rules are late.
    late_correlations: usize,
    /// How many neither are late nor select everything as it is, so that they cost something.
    costly: usize,
    len: usize,
}

type Tested<S> = BTreeMap<(S, RuleId), Arc<Rule>>;

impl<S> Default for TopicRules<S> {
    fn default() -> Self {
        Self {
            blocks: BTreeMap::new(),
            names: Sharded::default(),
            tested: Arc::default(),
            tested_late: Arc::default(),
            correlations: Index::default(),
            late_correlations: 0,
            costly: 0,
            len: 0,
        }
    }
}

impl<S: Copy + Hash + Ord> TopicRules<S> {
    /// No rules, which select nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule to a subscription.
    ///
    /// # Errors
    /// When the subscription has a rule of this name.
    pub fn add(&mut self, subscription: S, rule: Rule) -> Result<(), RuleExists> {
        let name = (subscription, rule.name.to_lowercase());
        if self.names.get(&name).is_some() {
            return Err(RuleExists);
        }
        let id = self.next_id(subscription);
        let place = (subscription, id);
        let rule = Arc::new(rule);
        let is_late = rule.is_late();
        match &rule.filter {
            Filter::Correlation(filter) => {
                self.correlations.insert(place, filter.clone());
                self.late_correlations += usize::from(is_late);
            }
            Filter::True | Filter::Sql(_) | Filter::Selector(_) => {
                Arc::make_mut(self.tested_mut(is_late)).insert(place, rule.clone());
            }
            Filter::False => {}
        }
        self.costly += usize::from(is_costly(&rule));
        self.names.insert(name, id);
        let block = self.blocks.entry(block_of(place)).or_default();
        Arc::make_mut(block).insert(id, rule);
        self.len += 1;
        Ok(())
    }

    /// Behind all rules that the subscription has.
    fn next_id(&self, subscription: S) -> RuleId {
        let mut blocks = self
            .blocks
            .range((subscription, 0)..=(subscription, u64::MAX));
        let last = blocks
            .next_back()
            .and_then(|(_, block)| block.keys().next_back());
        last.map_or(RuleId(0), |last| RuleId(last.0 + 1))
    }

    /// Removes and returns a subscription's rule of this name in any case.
    pub fn remove(&mut self, subscription: S, name: &str) -> Option<Arc<Rule>> {
        let id = self.names.remove(&(subscription, name.to_lowercase()))?;
        let place = (subscription, id);
        let rule = self.take(place)?;
        let is_late = rule.is_late();
        match &rule.filter {
            Filter::Correlation(filter) => {
                self.correlations.remove(place, filter);
                self.late_correlations -= usize::from(is_late);
            }
            Filter::True | Filter::Sql(_) | Filter::Selector(_) => {
                Arc::make_mut(self.tested_mut(is_late)).remove(&place);
            }
            Filter::False => {}
        }
        self.costly -= usize::from(is_costly(&rule));
        Some(rule)
    }

    fn tested_mut(&mut self, late: bool) -> &mut Arc<Tested<S>> {
        if late {
            &mut self.tested_late
        } else {
            &mut self.tested
        }
    }

    fn take(&mut self, place: (S, RuleId)) -> Option<Arc<Rule>> {
        let block = self.blocks.get_mut(&block_of(place))?;
        let rule = Arc::make_mut(block).remove(&place.1)?;
        if block.is_empty() {
            self.blocks.remove(&block_of(place));
        }
        self.len -= 1;
        Some(rule)
    }

    /// Removes all rules of a subscription.
    pub fn remove_all(&mut self, subscription: S) {
        let names: Vec<String> = self
            .of(subscription)
            .map(|rule| rule.name.clone())
            .collect();
        for name in names {
            self.remove(subscription, &name);
        }
    }

    /// The rule of this name in any case.
    #[must_use]
    pub fn get(&self, subscription: S, name: &str) -> Option<&Arc<Rule>> {
        let id = self.names.get(&(subscription, name.to_lowercase()))?;
        self.rule((subscription, *id))
    }

    /// The rule of a subscription at this place in the order of creation.
    #[must_use]
    pub fn at(&self, subscription: S, place: u64) -> Option<&Arc<Rule>> {
        self.rule((subscription, RuleId(place)))
    }

    fn rule(&self, place: (S, RuleId)) -> Option<&Arc<Rule>> {
        self.blocks.get(&block_of(place))?.get(&place.1)
    }

    /// A subscription's rules in the order of their creation.
    pub fn of(&self, subscription: S) -> impl Iterator<Item = &Arc<Rule>> {
        let blocks = self
            .blocks
            .range((subscription, 0)..=(subscription, u64::MAX));
        blocks.flat_map(|(_, block)| block.values())
    }

    /// How many rules there are in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether any can be followed only once the message has arrived.
    #[must_use]
    pub fn any_late(&self) -> bool {
        !self.tested_late.is_empty() || self.late_correlations > 0
    }

    /// Whether evaluating those that are not late costs more than looking at how many there are.
    #[must_use]
    pub fn any_costly(&self) -> bool {
        self.costly > 0
    }
}

/// Whether the rule takes some time, before its message has arrived.
fn is_costly(rule: &Rule) -> bool {
    let plain = matches!(rule.filter, Filter::True) && rule.action.is_none();
    !(plain || matches!(rule.filter, Filter::False) || rule.is_late())
}

/// The block that a rule is in.
fn block_of<S>((subscription, id): (S, RuleId)) -> (S, u64) {
    (subscription, id.0 / BLOCK)
}

/// The rules of one subscription alone.
#[derive(Clone, Debug, Default)]
pub struct RuleSet(TopicRules<()>);

impl RuleSet {
    /// No rules, which select nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// When there is a rule of this name.
    pub fn add(&mut self, rule: Rule) -> Result<(), RuleExists> {
        self.0.add((), rule)
    }

    /// Removes and returns the rule of this name in any case.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Rule>> {
        self.0.remove((), name)
    }

    /// The rule of this name in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Rule>> {
        self.0.get((), name)
    }

    /// The rules in the order of their creation.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.0.of(())
    }

    /// Evaluates `message`.
    #[must_use]
    pub fn evaluate(&self, message: &Message<'_>, environment: Environment) -> Outcome {
        let outcomes = self.0.evaluate(message, environment);
        let outcome = outcomes.into_iter().next();
        outcome.map(|(_, outcome)| outcome).unwrap_or_default()
    }
}

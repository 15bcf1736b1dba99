//! Rules: all rules of all subscriptions of a topic, compiled together. (Entities contract 17.1, 17.2)
//!
//! A message is evaluated once for the topic: correlation filters are found through one index,
//! however many subscriptions they belong to; only SQL filters and true filters are gone through.
//! Kept in an `Arc` this is a snapshot. While somebody still evaluates the old one,
//! `Arc::make_mut` changes a copy, which shares nearly everything with it.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::correlation::Index;
use crate::evaluation::Environment;
use crate::message::Message;
use crate::outcome::{Changed, Failed, Outcome};
use crate::rule::{Filter, Rule, RuleError};
use crate::sharded::Sharded;

/// A rule's place in the order of creation within its subscription.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct RuleId(u64);

/// Rules of a subscription that follow each other, so many that few are copied with one.
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
    tested: Arc<BTreeMap<(S, RuleId), Arc<Rule>>>,
    correlations: Index<(S, RuleId)>,
    len: usize,
}

impl<S> Default for TopicRules<S> {
    fn default() -> Self {
        Self {
            blocks: BTreeMap::new(),
            names: Sharded::default(),
            tested: Arc::default(),
            correlations: Index::default(),
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
        match &rule.filter {
            Filter::Correlation(filter) => self.correlations.insert(place, filter.clone()),
            Filter::True | Filter::Sql(_) => {
                Arc::make_mut(&mut self.tested).insert(place, rule.clone());
            }
            Filter::False => {}
        }
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
        if self.tested.contains_key(&place) {
            Arc::make_mut(&mut self.tested).remove(&place);
        }
        if let Filter::Correlation(filter) = &rule.filter {
            self.correlations.remove(place, filter);
        }
        Some(rule)
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

    /// What becomes of `message`: one outcome for each subscription where any rule matches or
    /// fails, in the subscriptions' order. The seed in `environment` is to be the message's own.
    #[must_use]
    pub fn evaluate(&self, message: &Message<'_>, environment: Environment) -> Vec<(S, Outcome)> {
        let mut outcomes = Outcomes {
            message,
            environment,
            all: Vec::new(),
        };
        for (number, ((subscription, _), rule, matched)) in (0..).zip(self.candidates(message)) {
            outcomes.add(number, subscription, rule, matched);
        }
        outcomes.all
    }

    /// Rules that match, or whose filters are still to be evaluated, in order.
    fn candidates(&self, message: &Message<'_>) -> Vec<((S, RuleId), &Arc<Rule>, bool)> {
        let mut matching = Vec::new();
        self.correlations.matches(message, &mut matching);
        let tested = self
            .tested
            .iter()
            .map(|(place, rule)| (*place, rule, false));
        let matching = matching
            .iter()
            .filter_map(|place| Some((*place, self.rule(*place)?, true)));
        let mut candidates: Vec<_> = tested.chain(matching).collect();
        candidates.sort_unstable_by_key(|(place, ..)| *place);
        candidates
    }
}

/// The block that a rule is in.
fn block_of<S>((subscription, id): (S, RuleId)) -> (S, u64) {
    (subscription, id.0 / BLOCK)
}

struct Outcomes<'m, 'b, S> {
    message: &'m Message<'b>,
    environment: Environment,
    all: Vec<(S, Outcome)>,
}

impl<S: Copy + Ord> Outcomes<'_, '_, S> {
    fn add(&mut self, number: u128, subscription: S, rule: &Arc<Rule>, matched: bool) {
        // No two rules share what `newid()` makes its ids of.
        let environment = Environment {
            seed: self.environment.seed.wrapping_add(number << 64),
            ..self.environment
        };
        let matches = if matched {
            Ok(true)
        } else {
            rule.filter.matches(self.message, environment)
        };
        match matches {
            Ok(false) => {}
            Ok(true) => self.follow(subscription, rule, environment),
            Err(error) => self.fail(subscription, rule, RuleError::Filter(error)),
        }
    }

    fn follow(&mut self, subscription: S, rule: &Arc<Rule>, environment: Environment) {
        match rule.changes(self.message, environment) {
            Ok(None) => self.outcome(subscription).plain = true,
            Ok(Some(changes)) => {
                let rule = rule.clone();
                let changed = Changed { rule, changes };
                self.outcome(subscription).changed.push(changed);
            }
            Err(error) => self.fail(subscription, rule, RuleError::Action(error)),
        }
    }

    fn fail(&mut self, subscription: S, rule: &Arc<Rule>, error: RuleError) {
        let rule = rule.clone();
        self.outcome(subscription)
            .failed
            .push(Failed { rule, error });
    }

    /// The outcome for a subscription; rules come in their subscriptions' order.
    fn outcome(&mut self, subscription: S) -> &mut Outcome {
        if self
            .all
            .last()
            .is_none_or(|(last, _)| *last != subscription)
        {
            self.all.push((subscription, Outcome::default()));
        }
        let (_, outcome) = self
            .all
            .last_mut()
            .expect("one was added if there was none");
        outcome
    }
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

    /// What becomes of `message`.
    #[must_use]
    pub fn evaluate(&self, message: &Message<'_>, environment: Environment) -> Outcome {
        let outcomes = self.0.evaluate(message, environment);
        let outcome = outcomes.into_iter().next();
        outcome.map(|(_, outcome)| outcome).unwrap_or_default()
    }
}

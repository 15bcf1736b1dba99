//! Evaluate: runs all rules of a topic, or a subset of them, on a message.

use std::hash::Hash;
use std::sync::Arc;

use super::{RuleId, TopicRules};
use crate::expression::evaluation::{Environment, Run};
use crate::message::Message;
use crate::rules::outcome::{ChangedCopy, Outcome, RuleFailure};
use crate::rules::rule::{Rule, RuleError};

/// Which of the rules to evaluate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RuleSubset {
    /// All of them.
    All,
    /// Those that can be evaluated before the message has arrived.
    Early,
    /// The others.
    Late,
}

/// The result of evaluating rules on a message.
#[derive(Clone, Debug)]
pub struct Evaluation<S> {
    /// One for each subscription where any rule matches or fails, in the subscriptions' order.
    pub outcomes: Vec<(S, Outcome)>,
    /// The cost, in steps of some nanoseconds.
    pub steps: u64,
}

/// The fixed cost of a rule besides its fuel, and of a message besides its rules.
const STEPS: u64 = 8;

impl<S: Copy + Hash + Ord> TopicRules<S> {
    /// Evaluates `message`: one outcome for each subscription where any rule matches or
    /// fails, in the subscriptions' order. The seed in `environment` is to be the message's own.
    #[must_use]
    pub fn evaluate(&self, message: &Message<'_>, environment: Environment) -> Vec<(S, Outcome)> {
        self.evaluate_subset(RuleSubset::All, message, environment)
            .outcomes
    }

    /// As [`evaluate`](Self::evaluate), by some of the rules only. What the early and the late
    /// ones make of a message are together what all of them do.
    #[must_use]
    pub fn evaluate_subset(
        &self,
        subset: RuleSubset,
        message: &Message<'_>,
        environment: Environment,
    ) -> Evaluation<S> {
        let mut outcomes = Outcomes {
            message,
            environment,
            all: Vec::new(),
            steps: STEPS,
        };
        let candidates = self.candidates(subset, message);
        for (number, (place, rule, matched)) in (0..).zip(candidates) {
            outcomes.add(number, place, rule, matched);
        }
        Evaluation {
            outcomes: outcomes.all,
            steps: outcomes.steps,
        }
    }

    /// Rules that match, or whose filters are still to be evaluated, in order.
    fn candidates(
        &self,
        subset: RuleSubset,
        message: &Message<'_>,
    ) -> Vec<((S, RuleId), &Arc<Rule>, bool)> {
        let (early, late) = (subset != RuleSubset::Late, subset != RuleSubset::Early);
        let tested = [(early, &self.tested), (late, &self.tested_late)];
        let tested = tested.into_iter().filter(|(wanted, _)| *wanted);
        let tested = tested.flat_map(|(_, tested)| tested.iter());
        let mut candidates: Vec<_> = tested.map(|(place, rule)| (*place, rule, false)).collect();
        if early || self.late_correlations > 0 {
            let mut matching = Vec::new();
            self.correlations.matches(message, &mut matching);
            let matching = matching
                .iter()
                .filter_map(|place| Some((*place, self.rule(*place)?, true)));
            let wanted = |rule: &Rule| match subset {
                RuleSubset::All => true,
                _ if self.late_correlations == 0 => early,
                _ => rule.is_late() == late,
            };
            candidates.extend(matching.filter(|(_, rule, _)| wanted(rule)));
        }
        candidates.sort_unstable_by_key(|(place, ..)| *place);
        candidates
    }
}

struct Outcomes<'m, 'b, S> {
    message: &'m Message<'b>,
    environment: Environment,
    all: Vec<(S, Outcome)>,
    steps: u64,
}

impl<S: Copy + Ord> Outcomes<'_, '_, S> {
    fn add(&mut self, number: u128, place: (S, RuleId), rule: &Arc<Rule>, matched: bool) {
        // No two rules share what `newid()` makes its ids of.
        let environment = Environment {
            seed: self.environment.seed.wrapping_add(number << 64),
            ..self.environment
        };
        let matches = if matched {
            Ok(true)
        } else {
            let mut run = Run::new(environment);
            let matches = rule.filter.run(self.message, &mut run);
            self.charge(&run);
            matches
        };
        match matches {
            Ok(false) => {}
            Ok(true) => self.apply(place, rule, environment),
            Err(error) => self.fail(place, rule, RuleError::Filter(error)),
        }
    }

    fn apply(&mut self, place: (S, RuleId), rule: &Arc<Rule>, environment: Environment) {
        let mut run = Run::new(environment);
        let changes = rule.changes(self.message, &mut run);
        self.charge(&run);
        match changes {
            Ok(None) => {
                self.outcome(place.0).plain.get_or_insert(place.1.0);
            }
            Ok(Some(changes)) => {
                let rule = rule.clone();
                let changed = ChangedCopy {
                    place: place.1.0,
                    rule,
                    changes,
                };
                self.outcome(place.0).changed.push(changed);
            }
            Err(error) => self.fail(place, rule, RuleError::Action(error)),
        }
    }

    fn charge(&mut self, run: &Run) {
        self.steps += STEPS + u64::from(run.fuel.spent());
    }

    fn fail(&mut self, place: (S, RuleId), rule: &Arc<Rule>, error: RuleError) {
        let failed = RuleFailure {
            place: place.1.0,
            rule: rule.clone(),
            error,
        };
        self.outcome(place.0).failed.push(failed);
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

//! Administration: what orders and changes of rules must do, and what they are answered. (I13)
//!
//! The broker carries them out one after another in the turn that brings them. So what each one
//! finds follows from the store as it was before the turn and from those before it. The ledger
//! says beforehand what changes, what is refused and what is shown: the write sets of the turn
//! must agree with the changes, and the answers with the rest.

mod plan;

use std::collections::{BTreeMap, BTreeSet};

use broker::{Answer, Command, EntityError, EntityInfo, Order, RequestId, RuleError, Status};

use super::Ledger;
use super::answers::Asked;
use super::routing::{Bound, listed};
use crate::violation::Violation;

/// Why a change is refused, as far as this simulation provokes it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reason {
    Missing,
    Exists,
    /// The namespace is not what the batch was made for.
    Changed,
    Immutable,
    Invalid,
    Limit,
}

/// What an answer shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Shown {
    Nothing,
    Entity {
        path: String,
        status: Status,
        lock_duration: u64,
    },
    Entities(Vec<String>, More),
    Rule(String),
    Rules(Vec<String>, More),
    Namespace,
    /// Of an order about routers that lists none, none.
    Bindings(BTreeSet<Bound>),
}

/// Whether a list goes on after the page that is shown.
type More = bool;

/// What a request must be answered with.
#[derive(Debug)]
pub(super) struct Change {
    expected: Result<Shown, Reason>,
    /// How often the namespace had changed.
    changes: u64,
    /// How often routers and bindings had, this request included.
    routings: u64,
}

/// What this turn's requests make of entities and rules. Paths are in lower case.
#[derive(Debug, Default)]
pub(super) struct Planned {
    /// Whether there is an entity, of those that come or go.
    entities: BTreeMap<String, bool>,
    /// Entities that come, also those that another request of the turn removes.
    made: BTreeSet<String>,
    /// Entities that go, also those that another request of the turn makes again.
    removed: BTreeSet<String>,
    /// All rules of the subscriptions whose rules change.
    rules: BTreeMap<String, BTreeSet<String>>,
}

impl Planned {
    /// Whether a request of this turn makes that entity.
    pub(super) fn makes(&self, path: &str) -> bool {
        self.made.contains(&path.to_lowercase())
    }

    /// Whether a request of this turn removes that entity.
    pub(super) fn ends(&self, path: &str) -> bool {
        self.removed.contains(&path.to_lowercase())
    }

    /// Whether the last request about that entity removes it.
    pub(super) fn removes(&self, path: &str) -> bool {
        self.entities.get(&path.to_lowercase()) == Some(&false)
    }
}

/// How often the namespace has changed, and at which of these times it showed which version.
#[derive(Debug, Default)]
pub(super) struct Versions {
    changes: u64,
    seen: BTreeMap<u64, u64>,
}

impl Versions {
    /// An entity or a rule changes.
    pub(super) fn note_change(&mut self) {
        self.changes += 1;
    }

    /// Versions mean nothing to a broker that has started again.
    pub(super) fn crashed(&mut self) {
        self.seen.clear();
    }
}

impl Ledger {
    pub(super) fn observe_order(&mut self, request: RequestId, order: &Order) {
        let changes = self.versions.changes;
        let expected = self.plan(order);
        let routings = self.routing.topology.changes();
        let change = Change {
            expected,
            changes,
            routings,
        };
        self.answers.expect(request, Asked::Change(change));
    }

    /// A rule comes or goes by a request of a client.
    pub(super) fn observe_rule(&mut self, command: &Command) {
        let (request, entity) = match command {
            Command::AddRule {
                request, entity, ..
            }
            | Command::RemoveRule {
                request, entity, ..
            } => (*request, *entity),
            _ => return,
        };
        self.note_use(entity);
        let expected = match (self.path_of(entity), command) {
            (None, _) => Err(Reason::Missing),
            (Some(path), Command::AddRule { rule, .. }) => self.plan_new_rule(path, &rule.name),
            (Some(path), Command::RemoveRule { name, .. }) => self.plan_rule_removal(path, name),
            _ => return,
        };
        let change = Change {
            expected: expected.map(|_| Shown::Nothing),
            changes: self.versions.changes,
            routings: self.routing.topology.changes(),
        };
        self.answers.expect(request, Asked::Change(change));
    }

    /// An order is answered.
    pub(super) fn verify_order(
        &mut self,
        request: RequestId,
        asked: Option<&Asked>,
        result: &Result<Answer, EntityError>,
    ) -> Result<(), Violation> {
        let Some(Asked::Change(change)) = asked else {
            return Ok(());
        };
        self.routing.topology.note_sure(change.routings);
        if let Ok(Answer::Namespace(namespace)) = result {
            let changes = self.versions.seen.entry(namespace.version);
            let changes = *changes.or_insert(change.changes);
            if changes != change.changes {
                let what = format!("version {} of the namespace comes back", namespace.version);
                return Err(Violation::new("I13", what));
            }
        }
        let said = result.as_ref().map(shown).map_err(reason);
        answered(request, change, &said)
    }

    /// A change of a rule is answered.
    pub(super) fn verify_rule(
        &self,
        request: RequestId,
        asked: Option<&Asked>,
        result: &Result<(), RuleError>,
    ) -> Result<(), Violation> {
        let Some(Asked::Change(change)) = asked else {
            return Ok(());
        };
        let said = result.as_ref().map(|()| Shown::Nothing);
        answered(request, change, &said.map_err(rule_reason))
    }

    /// What was written in this turn is what its requests make of entities and rules.
    pub(super) fn check_planned(&self) -> Result<(), Violation> {
        for (path, there) in &self.turn.planned.entities {
            if self.live(path).is_some() != *there {
                let what = format!("whether {path} is there should be {there}");
                return Err(Violation::new("I13", what));
            }
        }
        for (path, rules) in &self.turn.planned.rules {
            let Some(entity) = self.live(path) else {
                continue;
            };
            let written: BTreeSet<_> = self.books.rules(entity).into_iter().collect();
            if written != *rules {
                let what = format!("{path} has the rules {written:?} and should have {rules:?}");
                return Err(Violation::new("I13", what));
            }
        }
        Ok(())
    }
}

fn answered(
    request: RequestId,
    change: &Change,
    said: &Result<Shown, Reason>,
) -> Result<(), Violation> {
    if *said == change.expected {
        return Ok(());
    }
    let expected = &change.expected;
    let what = format!("{request:?} was answered with {said:?} and should be with {expected:?}");
    Err(Violation::new("I13", what))
}

fn shown(answer: &Answer) -> Shown {
    match answer {
        Answer::Router(answer) => Shown::Bindings(listed(answer)),
        Answer::Done | Answer::Namespaces(_) | Answer::Policies(_) | Answer::Put { .. } => {
            Shown::Nothing
        }
        Answer::Entity(info) => shown_entity(info),
        Answer::Entities(page) => {
            let paths = page.items.iter().map(|info| info.queue.path.clone());
            Shown::Entities(paths.collect(), page.more)
        }
        Answer::Rule(rule) => Shown::Rule(rule.name.clone()),
        Answer::Rules(page) => {
            let names = page.items.iter().map(|rule| rule.name.clone());
            Shown::Rules(names.collect(), page.more)
        }
        Answer::Namespace(_) => Shown::Namespace,
    }
}

fn shown_entity(info: &EntityInfo) -> Shown {
    Shown::Entity {
        path: info.queue.path.clone(),
        status: info.queue.settings.status,
        lock_duration: info.queue.settings.lock_duration,
    }
}

fn reason(error: &EntityError) -> Reason {
    match error.cause() {
        EntityError::NotFound | EntityError::NoTopic | EntityError::NoNamespace(_) => {
            Reason::Missing
        }
        EntityError::Exists(_)
        | EntityError::ExchangeExists(_)
        | EntityError::NamespaceExists(_)
        | EntityError::NoSnapshot(_)
        | EntityError::SnapshotExists(_) => Reason::Exists,
        EntityError::Changed => Reason::Changed,
        EntityError::Immutable { .. } => Reason::Immutable,
        EntityError::TooMany { .. } | EntityError::DiskNearlyFull => Reason::Limit,
        EntityError::Rule(error) => rule_reason(error),
        EntityError::NotInTier(_)
        | EntityError::HasConsumers
        | EntityError::Invalid(_)
        | EntityError::Destination(_)
        | EntityError::Router(_)
        | EntityError::Injected(_)
        | EntityError::At { .. } => Reason::Invalid,
    }
}

fn rule_reason(error: &RuleError) -> Reason {
    match error {
        RuleError::NoSubscription | RuleError::NotFound(_) => Reason::Missing,
        RuleError::Exists(_) => Reason::Exists,
        RuleError::TooMany { .. } | RuleError::TooLarge { .. } => Reason::Limit,
        RuleError::Name(_) | RuleError::Invalid { .. } | RuleError::Injected(_) => Reason::Invalid,
    }
}

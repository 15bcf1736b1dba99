//! Error counters: how often this end closed, ended or detached with an error, by condition.
//!
//! The conditions with a counter of their own are a fixed set, so a peer cannot make more of them;
//! all other conditions count as `other`.

use amqp::Symbol;
use amqp::error::condition;
use endpoint::Scope;

use crate::counters::counter::Counter;

/// The label of conditions outside the set.
const OTHER: &str = "other";

/// Conditions of a close. [AMQP 2.8.16; docs/spec/amqp.md#9]
static CONNECTION: &[Symbol] = &[
    condition::CONNECTION_FORCED,
    condition::DECODE_ERROR,
    condition::FRAMING_ERROR,
    condition::ILLEGAL_STATE,
    condition::INVALID_FIELD,
    condition::NOT_ALLOWED,
    condition::NOT_IMPLEMENTED,
    condition::RESOURCE_LIMIT_EXCEEDED,
    condition::UNAUTHORIZED_ACCESS,
];

/// Conditions of an end. [AMQP 2.8.17]
static SESSION: &[Symbol] = &[
    condition::ERRANT_LINK,
    condition::FRAME_SIZE_TOO_SMALL,
    condition::HANDLE_IN_USE,
    condition::INVALID_FIELD,
    condition::RESOURCE_LIMIT_EXCEEDED,
    condition::UNATTACHED_HANDLE,
    condition::WINDOW_VIOLATION,
];

/// Conditions of a detach, and of a refused attach. [AMQP 2.8.18; docs/spec/amqp.md#9]
static LINK: &[Symbol] = &[
    condition::DETACH_FORCED,
    condition::ENTITY_DISABLED,
    condition::INTERNAL_ERROR,
    condition::INVALID_FIELD,
    condition::MESSAGE_SIZE_EXCEEDED,
    condition::NOT_ALLOWED,
    condition::NOT_FOUND,
    condition::NOT_IMPLEMENTED,
    condition::RESOURCE_LIMIT_EXCEEDED,
    condition::SERVER_BUSY,
    condition::SESSION_CANNOT_BE_LOCKED,
    condition::SESSION_LOCK_LOST,
    condition::STOLEN,
    condition::TIMEOUT,
    condition::TRANSFER_LIMIT_EXCEEDED,
    condition::UNAUTHORIZED_ACCESS,
];

/// The counters of one scope: one for each condition of the set, and one for all other conditions.
#[derive(Debug)]
struct ConditionCounters {
    scope: &'static str,
    conditions: &'static [Symbol],
    counters: Vec<Counter>,
    others: Counter,
}

impl ConditionCounters {
    fn new(scope: &'static str, conditions: &'static [Symbol]) -> Self {
        Self {
            scope,
            conditions,
            counters: conditions.iter().map(|_| Counter::default()).collect(),
            others: Counter::default(),
        }
    }

    fn of(&self, condition: &Symbol) -> &Counter {
        let mut known = self.conditions.iter().zip(&self.counters);
        let found = known.find(|(known, _)| *known == condition);
        found.map_or(&self.others, |(_, counter)| counter)
    }

    fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let known = self.conditions.iter().map(Symbol::as_str);
        let known = known.zip(&self.counters);
        known
            .chain([(OTHER, &self.others)])
            .map(|(condition, counter)| (self.scope, condition, counter.get()))
    }
}

/// Counters of errors, for connections, sessions and links.
#[derive(Debug)]
pub struct ErrorCounters {
    connections: ConditionCounters,
    sessions: ConditionCounters,
    links: ConditionCounters,
}

impl Default for ErrorCounters {
    fn default() -> Self {
        Self {
            connections: ConditionCounters::new("connection", CONNECTION),
            sessions: ConditionCounters::new("session", SESSION),
            links: ConditionCounters::new("link", LINK),
        }
    }
}

impl ErrorCounters {
    /// The counter of a condition that ends a connection, a session or a link.
    pub fn of(&self, scope: Scope, condition: &Symbol) -> &Counter {
        let counters = match scope {
            Scope::Connection => &self.connections,
            Scope::Session => &self.sessions,
            Scope::Link => &self.links,
        };
        counters.of(condition)
    }

    /// What ended, by which condition, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let all = [&self.connections, &self.sessions, &self.links];
        all.into_iter().flat_map(ConditionCounters::iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counters: &ErrorCounters) -> Vec<(&'static str, &'static str, u64)> {
        counters.iter().filter(|(_, _, count)| *count > 0).collect()
    }

    #[test]
    fn a_condition_counts_for_what_it_ended() {
        let counters = ErrorCounters::default();
        let condition = condition::RESOURCE_LIMIT_EXCEEDED;
        counters.of(Scope::Connection, &condition).increment();
        counters.of(Scope::Link, &condition).add(2);
        let expected = [
            ("connection", "amqp:resource-limit-exceeded", 1),
            ("link", "amqp:resource-limit-exceeded", 2),
        ];
        assert_eq!(counted(&counters), expected);
    }

    #[test]
    fn conditions_beyond_the_set_count_together_and_make_no_counter() {
        let counters = ErrorCounters::default();
        let before = counters.iter().count();
        for name in ["x:one", "x:two"] {
            counters.of(Scope::Session, &Symbol::new(name)).increment();
        }
        assert_eq!(counted(&counters), [("session", "other", 2)]);
        assert_eq!(counters.iter().count(), before);
    }
}

//! Error counts: the errors with which this end closed, ended and detached, by condition.
//!
//! The owner takes the counts when it likes. Every error goes out through the outbox, so none is
//! missed; the conditions are the owner's and ours, never the peer's, so there are few of them.

use std::collections::BTreeMap;

use amqp::{Error, Performative, Symbol};

/// What an error ends.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    /// Sent in a close.
    Connection,
    /// Sent in an end.
    Session,
    /// Sent in a detach, be it the refusal of an attach.
    Link,
}

/// How often each condition was sent, by scope.
#[derive(Debug, Default)]
pub(crate) struct ErrorCounts(BTreeMap<(Scope, Symbol), u64>);

impl ErrorCounts {
    /// Counts the error in a frame, if it has one.
    pub(crate) fn count(&mut self, performative: &Performative) {
        if let Some((scope, error)) = error_of(performative) {
            *self.0.entry((scope, error.condition.clone())).or_default() += 1;
        }
    }

    /// What was counted since the last call.
    pub(crate) fn take(&mut self) -> BTreeMap<(Scope, Symbol), u64> {
        std::mem::take(&mut self.0)
    }
}

fn error_of(performative: &Performative) -> Option<(Scope, &Error)> {
    let (scope, error) = match performative {
        Performative::Close(close) => (Scope::Connection, &close.error),
        Performative::End(end) => (Scope::Session, &end.error),
        Performative::Detach(detach) => (Scope::Link, &detach.error),
        _ => return None,
    };
    error.as_ref().map(|error| (scope, error))
}

//! Lease: how long an entity has had no receiver.
//!
//! An attached receiver keeps its entity, with credit or without; sending, browsing by request and
//! administration do not. A queue that deletes itself goes with its last receiver. The time begins
//! when the last receiver goes, when the entity is made and when the process starts. A change of
//! the setting does not begin it anew. (docs/spec/rabbitmq.md#12.3) The lease of an exclusive queue
//! without its connection is over.

use crate::api::time::Mono;
use crate::context::Context;
use crate::queue::Queue;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    has_receivers: bool,
    /// Whether it has had one.
    was_used: bool,
    /// Since when it has none.
    since: Mono,
}

impl Lease {
    /// The time begins to run.
    pub(crate) fn start(&mut self, now: Mono) {
        self.since = now;
    }
}

impl Queue {
    /// Whether it has a receiver, or one that waits for a session.
    pub(super) fn has_receivers(&self) -> bool {
        let sessions = self.sessions.as_ref();
        let attached = self.subs.iter().any(|sub| sub.attached > 0);
        attached || sessions.is_some_and(|sessions| sessions.has_waiters())
    }

    /// At the end of a step: the last receiver may have gone.
    pub(super) fn note_receivers(&mut self, now: Mono) {
        let has_receivers = self.has_receivers();
        if self.lease.has_receivers && !has_receivers {
            self.lease.start(now);
            self.lease.was_used = true;
        }
        self.lease.has_receivers = has_receivers;
    }

    /// When it will have had no receiver for too long, if none comes. What forwards has no
    /// receivers, so it stays.
    pub(super) fn lease_end(&self) -> Option<Mono> {
        if self.settings.exclusive && self.owner.is_none() {
            return Some(self.lease.since);
        }
        let goes_with_last = self.settings.auto_delete && self.lease.was_used;
        let expires = if goes_with_last {
            0
        } else {
            self.settings.expires
        };
        let runs = expires != u64::MAX && self.settings.forward_to.is_none();
        let runs = runs && !self.lease.has_receivers;
        runs.then(|| self.lease.since.after(expires))
    }

    /// Whether it has had no receiver for too long.
    pub(crate) fn is_lease_over(&self, cx: &Context<'_>) -> bool {
        self.lease_end().is_some_and(|end| end <= cx.now.mono)
    }
}

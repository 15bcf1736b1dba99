//! Clocks: how far the clock of each namespace is ahead of the broker's.
//!
//! The broker's time is what the caller passes in as `Now`. A namespace has that time until its own
//! clock is advanced; then the difference is added to the wall clock and to the monotonic clock
//! alike. `broker/clock.rs` chooses the namespace of a step and brings alarms forward; requests of
//! users are queued in `namespace_clocks` of the crate `server`. A namespace's clock never goes
//! back, and it is the broker's again after a restart. Invariant: what is kept for a namespace is
//! not 0.

use std::collections::BTreeMap;

use store::NamespaceId;

use crate::api::time::{Mono, Now, Wall};

/// The clocks of the namespaces that have one of their own.
#[derive(Debug, Default)]
pub(crate) struct Clocks(BTreeMap<NamespaceId, u64>);

impl Clocks {
    /// Whether all namespaces go by the broker's time.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How far a namespace is ahead, in milliseconds.
    pub(crate) fn ahead(&self, namespace: NamespaceId) -> u64 {
        self.0.get(&namespace).copied().unwrap_or(0)
    }

    /// What a namespace's clock shows at a moment of the broker's.
    pub(crate) fn now(&self, namespace: NamespaceId, broker: Now) -> Now {
        let ahead = self.ahead(namespace);
        Now {
            wall: Wall(broker.wall.0.saturating_add(ahead)),
            mono: Mono(broker.mono.0.saturating_add(ahead)),
        }
    }

    /// More time passes in a namespace.
    pub(crate) fn advance(&mut self, namespace: NamespaceId, ms: u64) {
        if ms > 0 {
            let ahead = self.0.entry(namespace).or_default();
            *ahead = ahead.saturating_add(ms);
        }
    }

    /// A namespace is gone.
    pub(crate) fn forget(&mut self, namespace: NamespaceId) {
        self.0.remove(&namespace);
    }
}

//! Sizes: what the subscriptions of each topic hold together.
//!
//! A topic counts towards its size what its subscriptions hold, so each row that is put into a
//! subscription or removed from it is weighed here, and each state of a session.
//! (docs/spec/entities.md#2.2)

use std::collections::BTreeMap;

use store::EntityId;

/// What the subscriptions of each topic hold together, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Sizes(BTreeMap<EntityId, u64>);

impl Sizes {
    /// A subscription of a topic has grown, or shrunk.
    pub(crate) fn weigh(&mut self, topic: EntityId, bytes: i64) {
        let size = self.0.entry(topic).or_default();
        *size = size.saturating_add_signed(bytes);
    }

    pub(crate) fn bytes_below(&self, topic: EntityId) -> u64 {
        self.0.get(&topic).copied().unwrap_or(0)
    }

    /// A topic is gone.
    pub(crate) fn forget(&mut self, topic: EntityId) {
        self.0.remove(&topic);
    }
}

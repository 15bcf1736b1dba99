//! Lent bodies: those that messages of live entities point to and that belong to a snapshot.
//!
//! A snapshot of an entity owns the bodies that the entity had until then, so when a message
//! with such a body is settled, its row alone goes. The bodies stay under the entity that they
//! arrived at, its home, even when that is deleted. (`snapshot.rs`)

use std::collections::BTreeMap;

use store::{BodyPointer, EntityId, SequenceNumber};

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    /// Bodies of a home below this number belong to a snapshot.
    below: BTreeMap<EntityId, SequenceNumber>,
    /// Whether a snapshot that was removed may be needed by no entity any more.
    pub is_to_check: bool,
}

impl Lent {
    /// Whether a body belongs to a snapshot.
    pub(crate) fn covers(&self, body: BodyPointer) -> bool {
        let below = self.below.get(&body.home);
        below.is_some_and(|below| body.number.arrival() < *below)
    }

    /// Whether a snapshot has bodies whose home is this entity.
    pub(crate) fn is_home(&self, entity: EntityId) -> bool {
        self.below.contains_key(&entity)
    }

    /// Below which number the bodies of a home belong to a snapshot.
    pub(crate) fn below(&self, home: EntityId) -> SequenceNumber {
        self.below.get(&home).copied().unwrap_or(SequenceNumber(0))
    }

    /// The bodies of a home below a number belong to a snapshot from now on.
    pub(crate) fn lend(&mut self, home: EntityId, below: SequenceNumber) {
        self.below.insert(home, below);
    }

    /// What belongs to the snapshots that are left.
    pub(crate) fn replace(&mut self, below: BTreeMap<EntityId, SequenceNumber>) {
        self.below = below;
    }
}

//! Origins: where the messages of an entity come from that was made of a snapshot, and which
//! snapshots own bodies of messages that are in it. (`snapshot.rs`)

use serde::{Deserialize, Serialize};
use store::{BodyPointer, EntityId, SequenceNumber};

/// See the head of this file.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Origins {
    /// Numbers, ascending, and entities: a message that was given a number below the first one
    /// arrived at the first entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    homes: Vec<(u64, u64)>,
    /// Snapshots that may own bodies of messages that are here. One that owns none is not here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    snapshots: Vec<u64>,
}

impl Origins {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The body of a message that was scheduled under this number, by an entity or by what it was
    /// made of.
    pub(crate) fn body_of(&self, entity: EntityId, number: SequenceNumber) -> BodyPointer {
        let mut homes = self.homes.iter();
        let home = homes.find(|(below, _)| number.0 < *below);
        BodyPointer {
            home: home.map_or(entity, |(_, home)| EntityId(*home)),
            number,
        }
    }

    /// Those of a copy of the entity, in which numbers below this one are given out.
    pub(crate) fn of_copy(&self, entity: EntityId, below: SequenceNumber) -> Self {
        let mut copy = self.clone();
        if below > self.own_from() {
            copy.homes.push((below.0, entity.0));
        }
        copy
    }

    /// From which number on messages have arrived at the entity itself.
    pub(crate) fn own_from(&self) -> SequenceNumber {
        SequenceNumber(self.homes.last().map_or(0, |(below, _)| *below))
    }

    /// The entity itself gives out numbers from this one on, which is none before
    /// [`own_from`](Self::own_from).
    pub(crate) fn give_from(&mut self, first: SequenceNumber) {
        if let Some((below, _)) = self.homes.last_mut() {
            *below = first.0;
        }
    }

    /// A snapshot owns bodies of what is here.
    pub(crate) fn borrow_from(&mut self, snapshot: EntityId) {
        self.snapshots.push(snapshot.0);
    }

    /// Whether a snapshot may own bodies of what is here.
    pub(crate) fn borrows(&self) -> bool {
        !self.snapshots.is_empty()
    }

    /// Whether this snapshot may.
    pub(crate) fn borrows_from(&self, snapshot: EntityId) -> bool {
        self.snapshots.contains(&snapshot.0)
    }

    /// There is no message here any more.
    pub(crate) fn forget_snapshots(&mut self) {
        self.snapshots.clear();
    }
}

//! Snapshot: what the entities of a namespace had at one moment, to go back to or to make another
//! namespace of.
//!
//! Taking one copies the rows of each entity in the store under an id of their own, in one write,
//! and no bodies. From then on the snapshot owns the bodies: live entities borrow them, and when
//! such a message is settled its body stays ([`Lent`](crate::context::lent::Lent)). Going back
//! makes new entities of copies of the copies, which borrow too; the entities before are deleted.
//! So ids and numbers are never used again, and nothing of the time before acts on the time after:
//! locks are void, links end, sequence numbers go on.
//!
//! A snapshot that was removed stays, without a name, until no entity borrows from it any more:
//! until each has been empty once or is gone. One that owns no body, since no message had come
//! after the snapshot before, lends none and goes at once. Then its rows go in pieces, as those of
//! a deleted queue do, and with them the bodies that it owns. Exchanges, policies, dynamic nodes,
//! subscriptions that go with their consumers, fault rules and what transactions hold are no part
//! of it.
//!
//! Invariant: of the rows that point to a body, exactly one says when it goes: the row of the first
//! snapshot that was taken of it, or the only one.

pub(crate) mod free;
mod hold;
pub(crate) mod load;
mod recovery;
pub(crate) mod restore;
pub(crate) mod take;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use store::{EntityId, Entry, Head, MessageRow, NamespaceId, Part, SequenceNumber};

use crate::api::entity_error::EntityError;
use crate::api::snapshot::SnapshotDescription;
use crate::api::time::Wall;
use crate::queue::origins::Origins;
use hold::{Hold, Purpose};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub namespace: NamespaceId,
    /// Nothing once it was removed.
    pub name: Option<String>,
    pub created: Wall,
    frozen: BTreeMap<EntityId, Frozen>,
    /// How many of those still have rows, once these are being removed.
    left: Option<usize>,
}

/// What a snapshot has of an entity.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// The entity.
    pub source: EntityId,
    /// The bodies whose home is the entity belong to the snapshot from this number on.
    pub owned_from: SequenceNumber,
    pub path: String,
    /// As the row of an entity has it.
    pub definition: Bytes,
    pub origins: Origins,
    pub head: Head,
    /// Of a subscription.
    pub rules: Vec<Entry>,
    /// Blocks of numbers with their least deadlines.
    pub expiries: Vec<(u64, u64)>,
}

/// Every snapshot, by the id of its row.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    by_id: BTreeMap<EntityId, Snapshot>,
    /// The snapshot of each part.
    parts: BTreeMap<EntityId, EntityId>,
    /// Why some stay though they have no name.
    holds: BTreeMap<EntityId, Hold>,
}

impl Snapshot {
    pub(crate) fn new(namespace: NamespaceId, name: Option<String>, created: Wall) -> Self {
        Self {
            namespace,
            name,
            created,
            frozen: BTreeMap::new(),
            left: None,
        }
    }

    fn describe(&self) -> Option<SnapshotDescription> {
        let name = self.name.clone()?;
        let parts = || {
            let heads = self.frozen.values().map(|frozen| &frozen.head);
            heads.flat_map(|head| head.parts.iter())
        };
        Some(SnapshotDescription {
            name,
            created: self.created,
            entities: self.frozen.len(),
            messages: parts().fold(0, |sum, part| part.count.saturating_add(sum)),
            bytes: parts().fold(0, |sum, part| part.bytes.saturating_add(sum)),
        })
    }

    /// The bodies that it owns: of each home, from a number on.
    fn owned(&self) -> BTreeMap<EntityId, SequenceNumber> {
        let frozen = self.frozen.values();
        frozen
            .map(|frozen| (frozen.source, frozen.owned_from))
            .collect()
    }

    /// Whether a message may have come since the snapshot before. If not, no entity needs this one.
    fn owns_bodies(&self) -> bool {
        let mut frozen = self.frozen.values();
        frozen.any(|frozen| frozen.owned_from < frozen.head.next_number)
    }

    /// Whether what it has may point to bodies of another one.
    fn borrows_from(&self, other: EntityId) -> bool {
        let mut frozen = self.frozen.values();
        frozen.any(|frozen| frozen.origins.borrows_from(other))
    }
}

impl Snapshots {
    /// A snapshot that the store had, or that is taken.
    pub(crate) fn insert(&mut self, id: EntityId, snapshot: Snapshot) {
        self.by_id.insert(id, snapshot);
    }

    /// What a snapshot that is there has of an entity.
    fn insert_part(&mut self, snapshot: EntityId, part: EntityId, frozen: Frozen) {
        let of = self.by_id.get_mut(&snapshot).expect(FOUND);
        of.frozen.insert(part, frozen);
        self.parts.insert(part, snapshot);
    }

    /// What the store has of a part besides its definition.
    pub(crate) fn part_mut(&mut self, part: EntityId) -> Option<&mut Frozen> {
        let snapshot = self.parts.get(&part)?;
        self.by_id.get_mut(snapshot)?.frozen.get_mut(&part)
    }

    /// Whether an id is that of a part of a snapshot.
    pub(crate) fn is_part(&self, id: EntityId) -> bool {
        self.parts.contains_key(&id)
    }

    /// Below which number the bodies of each home belong to snapshots.
    pub(crate) fn lent(&self) -> BTreeMap<EntityId, SequenceNumber> {
        let mut lent = BTreeMap::new();
        let frozen = self.by_id.values().flat_map(|it| it.frozen.values());
        for frozen in frozen {
            let below = lent.entry(frozen.source).or_insert(SequenceNumber(0));
            *below = frozen.head.next_number.max(*below);
        }
        lent
    }

    /// The snapshots of a namespace, in the order in which they were taken.
    pub(crate) fn list(&self, namespace: NamespaceId) -> Vec<SnapshotDescription> {
        let of_it = self.by_id.values().filter(|it| it.namespace == namespace);
        of_it.filter_map(Snapshot::describe).collect()
    }

    /// Whether the body that a row points to belongs to another row: to that of a snapshot.
    pub(crate) fn lend_body(&self, entity: EntityId, row: &MessageRow) -> bool {
        let owners = self.by_id.iter().filter(|(_, snapshot)| {
            let mut frozen = snapshot.frozen.values();
            frozen.any(|frozen| {
                frozen.source == row.body.home
                    && row.body.number.arrival() < frozen.head.next_number
                    && row.body.number.arrival() >= frozen.owned_from
            })
        });
        let mut owners = owners.map(|(id, _)| *id);
        match owners.next() {
            Some(owner) => self.parts.get(&entity) != Some(&owner),
            None => false,
        }
    }

    /// How many snapshots a namespace has, with those that were removed and are still needed. What
    /// is being loaded belongs to none yet.
    fn count(&self, namespace: NamespaceId) -> usize {
        let is_loading = |id| {
            let hold = self.holds.get(id);
            hold.is_some_and(|hold| matches!(hold.purpose, Purpose::Load(_)))
        };
        let all = self.by_id.iter();
        let of_it = all.filter(|(id, it)| it.namespace == namespace && !is_loading(*id));
        of_it.count()
    }

    fn find(&self, namespace: NamespaceId, name: &str) -> Result<EntityId, EntityError> {
        let mut all = self.by_id.iter();
        let found =
            all.find(|(_, it)| it.namespace == namespace && it.name.as_deref() == Some(name));
        let found = found.map(|(id, _)| *id);
        found.ok_or_else(|| EntityError::NoSnapshot(name.to_owned()))
    }
}

/// The whole of what is counted in a head.
fn messages_in(head: &Head) -> u64 {
    let parts = Part::ALL.iter().map(|part| head.part(*part).count);
    parts.fold(0, u64::saturating_add)
}

/// Why there is a snapshot.
const FOUND: &str = "the caller has found it";

type Owned = Arc<BTreeMap<EntityId, SequenceNumber>>;

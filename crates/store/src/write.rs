//! Write set: the results of one turn, durable all together or not at all.

#![allow(missing_docs, reason = "the fields are named for what they are")]

use std::ops::Range;

use bytes::Bytes;

use crate::entry::{EntryKey, Index};
use crate::id::{EntityId, Part, SequenceNumber};
use crate::record::{BodyPointer, EntityRow, Head, MessageRow};

/// One fact that holds once its set is durable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Write {
    /// Defines an entity or replaces its definition. Also raises the greatest entity id given out.
    PutEntity(EntityRow),
    /// Removes an entity's definition, head, expiry rows, entries, messages and every body whose
    /// home it is, shared or not: no row elsewhere may point to one. Nothing is known of the bodies
    /// that its rows share with others; an entity that goes alone releases them beforehand, in as
    /// many sets as that takes. Nothing is written for that entity afterwards.
    RemoveEntity(EntityId),
    /// Of several heads of one entity in a group of sets only the last needs to be written.
    PutHead { entity: EntityId, head: Head },
    PutMessage {
        entity: EntityId,
        part: Part,
        number: SequenceNumber,
        row: MessageRow,
    },
    /// Removes the row only; the body has its own write. A removed row is never put again in the
    /// same part, but for one that goes from [`Part::Active`] to [`Part::Scheduled`] in one set and
    /// comes back in another, any number of times.
    RemoveMessage {
        entity: EntityId,
        part: Part,
        number: SequenceNumber,
    },
    /// A body is put once, in the set that first puts a row which points to it.
    PutBody { pointer: BodyPointer, body: Bytes },
    /// After the only pointer was removed, those that [`Copy`](Self::Copy) made included. Never for
    /// a shared body.
    RemoveBody { pointer: BodyPointer },
    /// `copies` rows, one or more, point to this body. Once, in the set of its `PutBody` or a later
    /// one, for it never gets more; a body without it has one pointer.
    ShareBody { pointer: BodyPointer, copies: u32 },
    /// One of the rows that share this body was removed. The body and its count go with the last of
    /// them.
    ReleaseBody { pointer: BodyPointer },
    PutDeliveryCount {
        entity: EntityId,
        number: SequenceNumber,
        count: u32,
    },
    RemoveDeliveryCount {
        entity: EntityId,
        number: SequenceNumber,
    },
    /// Properties changed since arrival; replaces the patch before.
    PutPatch {
        entity: EntityId,
        number: SequenceNumber,
        patch: Bytes,
    },
    RemovePatch {
        entity: EntityId,
        number: SequenceNumber,
    },
    /// `block` as in [`ExpiryRow`](crate::ExpiryRow).
    PutExpiry {
        entity: EntityId,
        part: Part,
        block: u64,
        due_ms: u64,
    },
    RemoveExpiry {
        entity: EntityId,
        part: Part,
        block: u64,
    },
    /// Replaces the entry before, if there is one.
    PutEntry {
        entity: EntityId,
        index: Index,
        key: EntryKey,
        value: Bytes,
    },
    /// Nothing happens if it is not there.
    RemoveEntry {
        entity: EntityId,
        index: Index,
        key: EntryKey,
    },
    /// Removes those with `start <= key < end` that are there, however many; none if the end comes
    /// first. Boxed, since it travels among smaller ones and is rare.
    RemoveEntries {
        entity: EntityId,
        index: Index,
        keys: Box<Range<EntryKey>>,
    },
    /// Gives `to`, which has nothing of these, all that `from` has besides its definition and head:
    /// rows, which point to the same bodies, delivery counts, patches, expiries and entries. No
    /// body is copied and no count of copies changes, so of two rows that point to one body only
    /// one says that it goes. Nothing else in the same set is about the messages or entries of
    /// either entity.
    Copy { from: EntityId, to: EntityId },
}

impl Write {
    /// The entity that it is about; of a body, the one that is its home.
    #[inline]
    #[must_use]
    pub fn entity(&self) -> EntityId {
        match self {
            Self::PutEntity(row) => row.id,
            Self::RemoveEntity(entity)
            | Self::PutHead { entity, .. }
            | Self::PutMessage { entity, .. }
            | Self::RemoveMessage { entity, .. }
            | Self::PutDeliveryCount { entity, .. }
            | Self::RemoveDeliveryCount { entity, .. }
            | Self::PutPatch { entity, .. }
            | Self::RemovePatch { entity, .. }
            | Self::PutExpiry { entity, .. }
            | Self::RemoveExpiry { entity, .. }
            | Self::PutEntry { entity, .. }
            | Self::RemoveEntry { entity, .. }
            | Self::RemoveEntries { entity, .. } => *entity,
            Self::Copy { to, .. } => *to,
            Self::PutBody { pointer, .. }
            | Self::RemoveBody { pointer }
            | Self::ShareBody { pointer, .. }
            | Self::ReleaseBody { pointer } => pointer.home,
        }
    }
}

/// Writes in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WriteSet {
    writes: Vec<Write>,
    has_copy: bool,
}

impl WriteSet {
    /// An empty set with room for this many writes.
    #[must_use]
    pub fn with_capacity(writes: usize) -> Self {
        Self {
            writes: Vec::with_capacity(writes),
            has_copy: false,
        }
    }

    /// Adds one write.
    #[inline]
    pub fn push(&mut self, write: Write) {
        self.has_copy |= matches!(write, Write::Copy { .. });
        self.writes.push(write);
    }

    /// Whether an entity is copied, which is as large a change as the entity.
    #[must_use]
    pub fn has_copy(&self) -> bool {
        self.has_copy
    }

    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The writes in the order in which they were added.
    #[must_use]
    pub fn as_slice(&self) -> &[Write] {
        &self.writes
    }

    /// The bodies that are put, with whose they are, to be replaced.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = (BodyPointer, &mut Bytes)> {
        self.writes.iter_mut().filter_map(|write| match write {
            Write::PutBody { pointer, body } => Some((*pointer, body)),
            _ => None,
        })
    }

    /// The writes, consumed.
    #[must_use]
    pub fn into_vec(self) -> Vec<Write> {
        self.writes
    }
}

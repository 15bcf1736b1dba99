//! Records: the stored data of each entity and each message.
//!
//! Times are milliseconds since the Unix epoch (wall clock).

#![allow(missing_docs, reason = "the fields are named for what they are")]

use bytes::Bytes;

use crate::entry::Entry;
use crate::id::{EntityId, NamespaceId, Part, SequenceNumber};

/// An entity's definition. `definition` belongs to the broker; the store does not look inside.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EntityRow {
    pub id: EntityId,
    pub namespace: NamespaceId,
    /// As written at creation; unique within the namespace without regard to case, but for the name
    /// of a router.
    pub path: String,
    pub definition: Bytes,
}

/// Where a message's body lies: under the number and entity it first arrived at, or, if queues
/// share it from the beginning, under a number of the entity that is its home.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BodyPointer {
    pub home: EntityId,
    pub number: SequenceNumber,
}

/// A message's row, written once when it enters a part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MessageRow {
    pub enqueued_ms: u64,
    /// The effective time to live; `u64::MAX` is "never expires".
    pub ttl_ms: u64,
    /// `u64::MAX` is "never".
    pub expires_ms: u64,
    /// Bytes of the encoded message as received.
    pub size: u32,
    /// Reserved bits, kept as written.
    pub flags: u32,
    /// For sessions; 0 without one.
    pub session_hash: u64,
    /// Its number where it first arrived, if it was forwarded from there; else 0.
    pub enqueued_number: u64,
    pub body: BodyPointer,
}

/// Where one part of an entity begins and how much is in it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PartHead {
    pub count: u64,
    pub bytes: u64,
    /// Every live number below `resume` is among `stragglers`; a scan starts at `resume`.
    pub resume: u64,
    /// Few (at most [`Head::MAX_STRAGGLERS`]) and ascending.
    pub stragglers: Vec<SequenceNumber>,
}

/// An entity's counters and pointers: all that a restart reads of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Head {
    pub next_number: SequenceNumber,
    /// The greatest enqueued time given out, so that it never decreases.
    pub last_enqueued_ms: u64,
    /// When each period began whose message ids are still remembered, ascending; at most
    /// [`Head::MAX_PERIODS`].
    pub periods: Vec<u64>,
    /// Time and number: of what is scheduled nothing comes before this, so a scan starts here.
    pub schedule_from: (u64, SequenceNumber),
    /// Bytes of the states of all its sessions.
    pub session_state_bytes: u64,
    /// When it was used last, to within a minute; 0 is never.
    pub accessed_ms: u64,
    /// By [`Part`] number. Boxed, since a head travels in a [`Write`](crate::Write) among small
    /// ones.
    pub parts: Box<[PartHead; Part::ALL.len()]>,
}

impl Head {
    /// More stragglers than this in one part are not recorded: `resume` stays below them.
    pub const MAX_STRAGGLERS: usize = 16;
    /// Most periods that are recorded.
    pub const MAX_PERIODS: usize = 16;

    /// An entity without messages.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            next_number: SequenceNumber::FIRST,
            last_enqueued_ms: 0,
            periods: Vec::new(),
            schedule_from: (0, SequenceNumber(0)),
            session_state_bytes: 0,
            accessed_ms: 0,
            parts: Default::default(),
        }
    }

    /// One part's head.
    #[must_use]
    pub fn part(&self, part: Part) -> &PartHead {
        &self.parts[part as usize]
    }

    /// One part's head, to change.
    pub fn part_mut(&mut self, part: Part) -> &mut PartHead {
        &mut self.parts[part as usize]
    }
}

/// The least deadline of a block of 1,024 consecutive numbers of one part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExpiryRow {
    pub entity: EntityId,
    pub part: Part,
    /// `number / 1024`.
    pub block: u64,
    pub due_ms: u64,
}

/// How many numbers share an [`ExpiryRow`].
pub const EXPIRY_BLOCK: u64 = 1_024;

/// The result of [`recover`](crate::Store::recover).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Recovery {
    pub entities: Vec<EntityRow>,
    /// For entities that ever had a message.
    pub heads: Vec<(EntityId, Head)>,
    pub expiries: Vec<ExpiryRow>,
    /// The entries of the index [`Rule`](crate::Index::Rule), by entity and in their order.
    pub rules: Vec<(EntityId, Entry)>,
    /// The greatest entity id ever given out.
    pub last_entity: Option<EntityId>,
}

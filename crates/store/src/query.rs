//! Query: the questions of a broker to its store. Every scan names both of its bounds.

#![allow(missing_docs, reason = "the fields are named for what they are")]

use bytes::Bytes;

use crate::entry::{Entry, EntryKey, Index};
use crate::error::StoreError;
use crate::id::{EntityId, Part, SequenceNumber};
use crate::record::MessageRow;

/// A question to a [`Reader`](crate::Reader).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Query {
    /// Messages of one part with `from <= number < until`, at most `limit` of them and, when bodies
    /// are asked for, no more once `max_bytes` of bodies are collected (at least one).
    Range {
        entity: EntityId,
        part: Part,
        from: SequenceNumber,
        until: SequenceNumber,
        limit: usize,
        bodies: bool,
        max_bytes: usize,
    },
    /// The named messages of one part; those that are not there are left out. When bodies are
    /// asked for, no more once `max_bytes` of bodies are collected (at least one).
    Points {
        entity: EntityId,
        part: Part,
        numbers: Vec<SequenceNumber>,
        bodies: bool,
        max_bytes: usize,
    },
    /// Bodies and patches of messages of one part whose rows are known; those that are not there
    /// are left out. One that was removed after its row was read may still be found. A wrong
    /// location does not matter: bodies are found where they are.
    Bodies {
        entity: EntityId,
        part: Part,
        known: Vec<KnownMessage>,
    },
    /// Entries with `from <= key < until`, at most `limit` of them and no more once `max_bytes`
    /// are collected (at least one).
    Entries {
        entity: EntityId,
        index: Index,
        from: EntryKey,
        until: EntryKey,
        limit: usize,
        max_bytes: usize,
    },
    /// The named entries; those that are not there are left out.
    EntryPoints {
        entity: EntityId,
        index: Index,
        keys: Vec<EntryKey>,
    },
    /// The first entry of each group after the one named, at most `limit` of them.
    Groups {
        entity: EntityId,
        index: Index,
        after: Option<Bytes>,
        limit: usize,
    },
}

impl Query {
    /// The entity that it is about.
    #[must_use]
    pub fn entity(&self) -> EntityId {
        match self {
            Self::Range { entity, .. }
            | Self::Points { entity, .. }
            | Self::Bodies { entity, .. }
            | Self::Entries { entity, .. }
            | Self::EntryPoints { entity, .. }
            | Self::Groups { entity, .. } => *entity,
        }
    }
}

/// The known data of a message whose body is requested; it is returned with the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KnownMessage {
    pub number: SequenceNumber,
    pub row: MessageRow,
    pub delivery_count: u32,
    pub body_location: BodyLocation,
}

/// Where a store last saw a body, to save a look-up; the body may have moved since. The meaning of
/// the words is private to the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyLocation(pub [u64; 3]);

impl BodyLocation {
    /// The location is not known.
    pub const UNKNOWN: Self = Self([0; 3]);
}

/// The result of a [`Query`]: messages for one about messages, entries for one about entries.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Found {
    Messages(Vec<StoredMessage>),
    Entries(Vec<Entry>),
}

impl Found {
    /// The messages of the result.
    ///
    /// # Errors
    /// When the store answered with something else.
    pub fn into_messages(self) -> Result<Vec<StoredMessage>, StoreError> {
        match self {
            Self::Messages(messages) => Ok(messages),
            Self::Entries(_) => Err(unexpected_result("entries instead of messages")),
        }
    }

    /// The entries of the result.
    ///
    /// # Errors
    /// When the store answered with something else.
    pub fn into_entries(self) -> Result<Vec<Entry>, StoreError> {
        match self {
            Self::Entries(entries) => Ok(entries),
            Self::Messages(_) => Err(unexpected_result("messages instead of entries")),
        }
    }
}

fn unexpected_result(detail: &str) -> StoreError {
    StoreError::Corrupt {
        what: "the answer to a query".to_owned(),
        detail: detail.to_owned(),
    }
}

/// A stored message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredMessage {
    pub part: Part,
    pub number: SequenceNumber,
    pub row: MessageRow,
    pub delivery_count: u32,
    /// Read together with the body.
    pub patch: Option<Bytes>,
    /// Present if requested; verified against its checksum.
    pub body: Option<Bytes>,
    /// Set if the body was not requested and the store knows its location.
    pub body_location: BodyLocation,
}

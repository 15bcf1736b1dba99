//! Partition key: what a partitioned entity groups messages by. (docs/spec/entities.md#19)
//!
//! The session id comes first, then the partition key that the sender gave. A message that is sent
//! via an entity is grouped there by a key of its own. Keys are compared by a hash, as session ids
//! are: whatever their letter case.

use std::num::NonZeroU64;

use amqp::message::Sections;
use bytes::Bytes;

use crate::message::properties::{Properties, items, text};
use crate::queue::session_key::SessionIds;

/// A key's hash.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PartitionKey(NonZeroU64);

impl PartitionKey {
    /// The key of an id.
    pub(crate) fn new(id: &[u8]) -> Option<Self> {
        let hash = SessionIds::Folded.key(id).hash;
        NonZeroU64::new(hash | 1)
            .filter(|_| !id.is_empty())
            .map(Self)
    }

    /// The key of a message in the entity that keeps it.
    pub(crate) fn of(payload: &Bytes) -> Option<Self> {
        let session = Properties::of(payload).session_id;
        let session = session.and_then(|session| Self::new(&session));
        session.or_else(|| Self::annotated(payload, b"x-opt-partition-key"))
    }

    /// The key of a message in the entity that it is sent via.
    pub(crate) fn of_passing(payload: &Bytes) -> Option<Self> {
        Self::annotated(payload, b"x-opt-via-partition-key")
    }

    fn annotated(payload: &Bytes, name: &[u8]) -> Option<Self> {
        let sections = Sections::scan(payload).ok()?;
        let mut items = items(payload.get(sections.message_annotations)?)?;
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            if symbol_or_text(key) == Some(name) {
                return text(value).and_then(Self::new);
            }
        }
        None
    }
}

fn symbol_or_text(item: &[u8]) -> Option<&[u8]> {
    match item {
        [0xa3, _, text @ ..] | [0xb3, _, _, _, _, text @ ..] => Some(text),
        other => text(other),
    }
}

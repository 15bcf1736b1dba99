//! One message: its row's flags, its changes, its body, and what is read of it.
//!
//! Nothing here knows where a message stands. Bodies are kept for all entities together, within one
//! budget.

pub(crate) mod bodies;
pub(crate) mod entry;
pub(crate) mod id;
pub(crate) mod partition_key;
pub(crate) mod patch;
pub(crate) mod properties;
pub(crate) mod route;
pub(crate) mod row;
pub(crate) mod stored;

use bytes::Bytes;
use store::{EntityId, MessageRow, Part, SequenceNumber, StoredMessage};

use crate::api::id::Subqueue;
use crate::api::output::{Browsed, MessageState};
use crate::api::time::{Now, Wall};
use crate::message::entry::Entry;
use crate::message::patch::Patch;

/// A message that is to move or to go, with what the store knows of it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub number: SequenceNumber,
    pub part: Part,
    pub row: MessageRow,
    pub delivery_count: u32,
    pub patch: Option<Box<Patch>>,
}

impl Message {
    /// Milliseconds since it was enqueued; none of a dead letter, which keeps the time of the
    /// message that it was.
    pub(crate) fn time_since_enqueued(&self, subqueue: Subqueue, now: Now) -> Option<u64> {
        let waited_ms = now.wall.0.saturating_sub(self.row.enqueued_ms);
        (subqueue == Subqueue::Main).then_some(waited_ms)
    }

    /// A message that was read from the store, with its patch if that was read.
    pub(crate) fn stored(stored: &StoredMessage, patch: Option<Box<Patch>>) -> Self {
        Self {
            number: stored.number,
            part: stored.part,
            row: stored.row,
            delivery_count: stored.delivery_count,
            patch,
        }
    }

    /// An available message.
    pub(crate) fn available(
        part: Part,
        number: SequenceNumber,
        entry: &Entry,
        patch: Option<Box<Patch>>,
    ) -> Self {
        Self {
            number,
            part,
            row: entry.row,
            delivery_count: entry.delivery_count,
            patch,
        }
    }

    /// As a receiver or browser sees it while it is not locked.
    pub(crate) fn shown(&self, entity: EntityId, state: MessageState, payload: Bytes) -> Browsed {
        let MessageRow {
            enqueued_ms,
            ttl_ms,
            expires_ms,
            enqueued_number,
            ..
        } = self.row;
        Browsed {
            entity,
            number: self.number,
            enqueued_number: match enqueued_number {
                0 => self.number,
                first => SequenceNumber(first),
            },
            was_forwarded: row::hops(&self.row) > 0,
            was_scheduled: row::was_scheduled(&self.row),
            lock: None,
            enqueued: Wall(enqueued_ms),
            ttl_ms: (ttl_ms != u64::MAX).then_some(ttl_ms),
            expires: (expires_ms != u64::MAX).then_some(Wall(expires_ms)),
            delivery_count: self.delivery_count,
            acquired_count: self.delivery_count,
            state,
            payload,
            additions: self.patch.as_ref().map(|patch| Box::new(patch.additions())),
        }
    }
}

//! Room: whether an entity takes more messages, by its size and by its length.
//!
//! Sends and forwards are refused by these conditions. [`EntityInfo::is_full_for`] puts the same
//! ones to a description of the entity, for the explanation of a forward that waits.

use crate::api::info::EntityInfo;
use crate::api::kind::EntityKind;
use crate::api::settings::{Overflow, QueueSettings};

impl QueueSettings {
    /// Whether an entity that holds `held` bytes has room for `more`.
    pub(crate) fn has_room(&self, held: u64, more: u64) -> bool {
        held.saturating_add(more) <= self.max_size
    }

    /// Whether a queue refuses new messages at the limit of its length.
    pub(crate) fn rejects_at_length(&self) -> bool {
        self.requires_session || self.overflow != Overflow::DropHead
    }

    /// The limit of its length that `count` available messages of `bytes` together exceed.
    pub(crate) fn exceeded_length(&self, count: u64, bytes: u64) -> Option<(&'static str, u64)> {
        let too_many = self.max_length.filter(|limit| count > *limit);
        let too_large = self.max_length_bytes.filter(|limit| bytes > *limit);
        let too_many = too_many.map(|limit| ("max-length", limit));
        too_many.or(too_large.map(|limit| ("max-length-bytes", limit)))
    }
}

impl EntityInfo {
    /// Whether a message of `size` bytes that is forwarded here finds no room.
    #[must_use]
    pub fn is_full_for(&self, size: u64) -> bool {
        let (queue, settings) = (&self.queue, self.queue.in_force());
        let held = queue.bytes.saturating_add(self.below.bytes);
        let available = queue.active.saturating_sub(queue.locked).saturating_add(1);
        let bytes = queue.available_bytes.saturating_add(size);
        let is_too_long = queue.kind == EntityKind::Queue
            && settings.rejects_at_length()
            && settings.exceeded_length(available, bytes).is_some();
        is_too_long || !settings.has_room(held, size)
    }
}

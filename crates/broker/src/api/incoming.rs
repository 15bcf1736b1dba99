//! Incoming: a message on its way in, as a sender hands it over.

use std::sync::Arc;

use bytes::Bytes;
use store::NamespaceId;

use crate::api::rule::Distribution;
use crate::api::time::Wall;

/// A message on its way in. The payload is stored as it is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Incoming {
    /// The encoded message as received (header to footer).
    pub payload: Bytes,
    /// The sender's own time to live in milliseconds. With 0 only receivers that wait for the
    /// message when it comes get it.
    pub ttl_ms: Option<u64>,
    /// The priority that its sender gave it. (docs/spec/rabbitmq.md#10.7)
    pub priority: Option<u8>,
    /// The encoded message id; what is the same to its sender is the same here.
    pub message_id: Option<Bytes>,
    /// In UTF-8.
    pub session_id: Option<Bytes>,
    /// When to become available, if that is later than now.
    pub scheduled: Option<Wall>,
    /// What the rules of the topic that it is sent to make of it, if the caller has evaluated them.
    pub distribution: Option<Box<Distribution>>,
    /// The path of the entity that it goes on to from the one that it is sent to, which it only
    /// passes. The same for all messages of a send. (docs/spec/amqp.md#8.2)
    pub transfer_to: Option<Arc<str>>,
    /// The namespace that the entity has to be in, if its sender knows the address of a dynamic
    /// node alone. The same for all messages of a send.
    pub only_in: Option<NamespaceId>,
}

impl Incoming {
    /// What it takes of memory, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let distribution = self.distribution.as_ref().map_or(0, |it| it.bytes());
        self.payload.len().saturating_add(distribution)
    }

    /// Whether it waits for a later time.
    pub(crate) fn is_later(&self, now: Wall) -> bool {
        self.scheduled.is_some_and(|due| due > now)
    }
}

//! Lineage: what has happened to messages, as the broker records it and as it is asked for.
//!
//! An event is about the message of one number in one entity. Messages that come of others name
//! them, so that a message is followed from the entity that accepted it to where it has ended.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use store::{EntityId, NamespaceId, SequenceNumber};

use crate::api::id::{ConnectionId, Subqueue};
use crate::api::time::Wall;

/// A message's place: its number in an entity.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MessagePlace {
    pub entity: EntityId,
    /// 0 where the event is about all messages of the entity.
    pub number: SequenceNumber,
}

/// What has happened to a message. `T` is a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MessageEvent<T> {
    Accepted {
        message_id: Option<T>,
        session_id: Option<T>,
    },
    /// Accepted, for later.
    Scheduled {
        message_id: Option<T>,
        session_id: Option<T>,
        due: Wall,
    },
    /// It was published to this router, whose bindings led here by this key.
    Routed {
        router: T,
        key: T,
    },
    /// Another message with its id was sent here, and dropped.
    DuplicateDropped,
    /// Its time has come, and it has got a new number.
    Activated {
        from: MessagePlace,
    },
    /// The rules of its topic have made this number of copies of it.
    Distributed {
        copies: u32,
    },
    /// It is a copy of a topic's message, by this rule.
    Copied {
        from: MessagePlace,
        rule: Option<T>,
    },
    /// It has gone on to this entity.
    Forwarded {
        to: EntityId,
    },
    /// It has come from another entity.
    Arrived {
        from: MessagePlace,
    },
    /// It has gone, and no other entity has got it.
    Dropped {
        why: DropReason,
    },
    Locked {
        connection: ConnectionId,
        /// How many deliveries had failed before.
        delivery_count: u32,
    },
    Renewed {
        connection: ConnectionId,
    },
    /// The lock has ended without a settlement.
    LockLost {
        why: LockEnd,
    },
    Settled {
        how: Settlement,
        /// The connection that has settled it.
        by: Option<ConnectionId>,
    },
    /// It waits for its next delivery.
    Delayed {
        until: Wall,
    },
    /// It has waited, and is available again.
    Resumed,
    DeadLettered {
        to: Subqueue,
        reason: Option<T>,
    },
    /// It was a dead letter, and is a new message here.
    Redriven {
        from: MessagePlace,
        by: ConnectionId,
    },
    Expired,
    /// It was deleted without being received.
    Purged,
    /// It was scheduled, and has been taken back.
    Cancelled,
    /// The entity of this path was deleted, with all messages in it.
    EntityDeleted {
        path: T,
    },
}

/// How a message was settled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Settlement {
    Completed,
    /// Received in receive-and-delete mode.
    ReceivedAndDeleted,
    Abandoned,
    Deferred,
    Rejected,
    Released,
    /// The broker could not write the delivery to its connection.
    Undelivered,
}

/// Why a lock has ended without a settlement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LockEnd {
    /// Its time was up, or that of its session.
    Expired,
    /// Its receiver was detached, or has lost its connection.
    ReceiverGone,
}

/// Why a message has gone on to no entity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DropReason {
    /// The entity that it was forwarded to has had a message with its id.
    Duplicate,
    /// No queue takes the dead letter from its router.
    Unroutable,
    /// It is a dead letter of a queue of RabbitMQ's clients without a dead-letter exchange.
    NoDeadLetterRouter,
}

impl<T> MessageEvent<T> {
    /// The same with other texts.
    pub fn map<U>(self, mut text: impl FnMut(T) -> U) -> MessageEvent<U> {
        use MessageEvent as To;
        match self {
            Self::Accepted {
                message_id,
                session_id,
            } => To::Accepted {
                message_id: message_id.map(&mut text),
                session_id: session_id.map(text),
            },
            Self::Scheduled {
                message_id,
                session_id,
                due,
            } => To::Scheduled {
                message_id: message_id.map(&mut text),
                session_id: session_id.map(text),
                due,
            },
            Self::Routed { router, key } => To::Routed {
                router: text(router),
                key: text(key),
            },
            Self::DuplicateDropped => To::DuplicateDropped,
            Self::Activated { from } => To::Activated { from },
            Self::Distributed { copies } => To::Distributed { copies },
            Self::Copied { from, rule } => To::Copied {
                from,
                rule: rule.map(text),
            },
            Self::Forwarded { to } => To::Forwarded { to },
            Self::Arrived { from } => To::Arrived { from },
            Self::Dropped { why } => To::Dropped { why },
            Self::Locked {
                connection,
                delivery_count,
            } => To::Locked {
                connection,
                delivery_count,
            },
            Self::Renewed { connection } => To::Renewed { connection },
            Self::LockLost { why } => To::LockLost { why },
            Self::Settled { how, by } => To::Settled { how, by },
            Self::Delayed { until } => To::Delayed { until },
            Self::Resumed => To::Resumed,
            Self::DeadLettered { to, reason } => To::DeadLettered {
                to,
                reason: reason.map(text),
            },
            Self::Redriven { from, by } => To::Redriven { from, by },
            Self::Expired => To::Expired,
            Self::Purged => To::Purged,
            Self::Cancelled => To::Cancelled,
            Self::EntityDeleted { path } => To::EntityDeleted { path: text(path) },
        }
    }

    /// The message that this one comes of.
    #[must_use]
    pub fn source(&self) -> Option<MessagePlace> {
        match self {
            Self::Activated { from }
            | Self::Copied { from, .. }
            | Self::Arrived { from }
            | Self::Redriven { from, .. } => Some(*from),
            _ => None,
        }
    }

    /// The entities that it names, at a place.
    pub(crate) fn entities(&self, place: MessagePlace) -> impl Iterator<Item = EntityId> + use<T> {
        let other = match self {
            Self::Forwarded { to } => Some(*to),
            other => other.source().map(|source| source.entity),
        };
        let other = other.filter(|other| *other != place.entity);
        std::iter::once(place.entity).chain(other)
    }

    /// Whether the message is here no more.
    pub(crate) fn is_last(&self) -> bool {
        matches!(
            self,
            Self::Distributed { .. }
                | Self::Forwarded { .. }
                | Self::Dropped { .. }
                | Self::Expired
                | Self::Purged
                | Self::Cancelled
                | Self::Settled {
                    how: Settlement::Completed | Settlement::ReceivedAndDeleted,
                    ..
                }
        )
    }

    /// Whether nothing can have happened to the message here before.
    pub(crate) fn is_first(&self) -> bool {
        self.source().is_some() || matches!(self, Self::Accepted { .. } | Self::Scheduled { .. })
    }
}

/// An event as the core tells of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LineageEvent {
    pub namespace: NamespaceId,
    pub at: Wall,
    pub place: MessagePlace,
    pub event: MessageEvent<Bytes>,
}

/// What a turn says of lineage.
#[derive(Debug, Default)]
pub struct LineageEffects {
    /// In the order in which they happened.
    pub events: Vec<LineageEvent>,
    /// Namespaces whose messages are recorded from now on, or no more.
    pub switched: Vec<(NamespaceId, bool)>,
}

/// Which messages a history is about: those for which all of this is so.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HistoryQuery {
    /// Accepted with this id.
    pub message_id: Option<String>,
    /// Accepted with this session.
    pub session_id: Option<String>,
    /// Only what has happened in the entity of this path.
    pub entity: Option<String>,
    /// Only the message of this number.
    pub number: Option<SequenceNumber>,
}

/// What is recorded of some messages.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct History {
    /// Nothing that happened before is recorded.
    pub since: Wall,
    /// Whether the record has the beginning of each message that it tells of.
    pub is_complete: bool,
    /// Whether there are earlier events than these.
    pub more: bool,
    /// In the order in which they happened.
    pub events: Vec<HistoryEvent>,
    /// The paths of the entities that the events are about.
    pub paths: BTreeMap<EntityId, Arc<str>>,
}

/// Something that has happened to a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HistoryEvent {
    pub at: Wall,
    pub place: MessagePlace,
    pub event: MessageEvent<String>,
}

//! Ids of connections, links and requests, and of what they hold.
//!
//! Ids of connections, receivers and requests are the caller's; the broker repeats them in outputs.
//! Lock tokens and ids of transactions are the broker's, and clients show them as proof.

#![allow(missing_docs, reason = "the fields are named for what they are")]

use std::fmt;

use store::{EntityId, Part};

/// A connection. Never reused while the process lives.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// The server itself; no client's connection is called so.
    pub const SERVER: Self = Self(0);
}

/// A receiver: one link of one connection.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ReceiverId {
    pub connection: ConnectionId,
    pub link: u32,
}

/// Names one question of a connection; comes back with the answer. Its meaning is the asker's.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId {
    pub connection: ConnectionId,
    pub token: u64,
}

/// A read that the broker waits for.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ReadId(pub u64);

/// Names one lock of one message; fresh for every delivery. The 16 bytes are in RFC 4122 order
/// wherever they are an AMQP uuid (docs/spec/amqp.md#4.3).
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LockToken(pub u128);

impl fmt::Debug for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockToken({:032x})", self.0)
    }
}

/// Names a transaction to the connection that declared it. The 16 bytes are the AMQP txn-id.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TransactionId(pub u128);

impl fmt::Debug for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransactionId({:032x})", self.0)
    }
}

/// One subqueue of one entity.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct SubqueueId {
    pub entity: EntityId,
    pub subqueue: Subqueue,
}

/// Which queue of an entity: itself or one of its dead-letter subqueues.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Subqueue {
    #[default]
    Main,
    DeadLetter,
    TransferDeadLetter,
}

impl Subqueue {
    /// Every subqueue.
    pub const ALL: [Self; 3] = [Self::Main, Self::DeadLetter, Self::TransferDeadLetter];

    /// Where its available and locked messages are stored.
    #[must_use]
    pub const fn part(self) -> Part {
        match self {
            Self::Main => Part::Active,
            Self::DeadLetter => Part::DeadLetter,
            Self::TransferDeadLetter => Part::Transfer,
        }
    }

    /// Where its deferred messages are stored.
    #[must_use]
    pub const fn deferred_part(self) -> Part {
        match self {
            Self::Main => Part::Deferred,
            Self::DeadLetter => Part::DeadLetterDeferred,
            Self::TransferDeadLetter => Part::TransferDeferred,
        }
    }
}

//! Errors: why a request was refused.
//!
//! Each variant is a fact with its values. How the dialect says it is not the broker's business.

#![allow(missing_docs, reason = "the texts say it")]

use store::SequenceNumber;

use crate::api::injected_error::InjectedError;

/// Why a send was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SendError {
    #[error("the entity does not exist")]
    NotFound,
    #[error("the entity is disabled for sending")]
    Disabled,
    #[error("only its topic writes to a subscription")]
    Subscription,
    #[error("the entity holds {size} bytes of {limit}")]
    QuotaExceeded { size: u64, limit: u64 },
    #[error("the namespace holds {size} bytes, and {limit} are allowed")]
    NamespaceFull { size: u64, limit: u64 },
    #[error("the queue holds as much as its {property} of {limit} allows")]
    LengthExceeded { property: &'static str, limit: u64 },
    #[error("a message of {size} bytes is larger than {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("messages for {limit} other entities are sent via the entity already")]
    TooManyDestinations { limit: usize },
    #[error("the disk is nearly full")]
    DiskNearlyFull,
    #[error("the store cannot be read")]
    Unreadable,
    #[error("the entity requires sessions, and the message has none")]
    SessionRequired,
    #[error(transparent)]
    Injected(InjectedError),
    #[error(transparent)]
    Transaction(#[from] TransactionError),
}

/// Why a settlement was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SettleError {
    #[error("the lock is not held")]
    LockLost,
    #[error("the session is not held")]
    SessionLockLost,
    #[error("a dead letter cannot be dead-lettered again")]
    NotAllowed,
    #[error("a message of a session or of a dead-letter queue cannot wait for its next delivery")]
    CannotWait,
    #[error("the message is part of a transaction that is not over")]
    Enlisted,
    #[error("the message is no dead letter")]
    NotDead,
    #[error("the message has no session, and its entity requires one")]
    NoSession,
    #[error(transparent)]
    Injected(InjectedError),
    #[error(transparent)]
    Transaction(#[from] TransactionError),
}

/// Why something within a transaction was refused, or the whole transaction. [AMQP 4.5.9]
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TransactionError {
    #[error("the transaction is not known on this connection")]
    Unknown,
    #[error("the transaction has taken too long and was rolled back")]
    TimedOut,
    /// At its commit, for this reason.
    #[error("the transaction was rolled back: {0}")]
    RolledBack(String),
    /// The operation is on another entity than those before it.
    #[error("local transactions cannot span multiple top-level entities such as queue or topic")]
    OtherEntity,
    /// A message has another partition key than those before it.
    #[error(
        "all messages of a transaction must have the same partition key in a partitioned entity"
    )]
    OtherPartitionKey,
    #[error("a connection can have {limit} open transactions")]
    TooManyOpen { limit: usize },
    #[error("a transaction can have {limit} operations")]
    TooManyOperations { limit: usize },
    #[error("a transaction can hold {limit} bytes")]
    TooLarge { limit: usize },
    #[error("all open transactions together can hold {limit} bytes")]
    TooLargeTogether { limit: usize },
    #[error(transparent)]
    Injected(InjectedError),
}

/// Why a receiver did not get a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SessionError {
    #[error("the session is held by another receiver")]
    CannotBeLocked,
    #[error("there was no session in time")]
    Timeout,
    #[error("the store is damaged: there are sessions that cannot be read")]
    Unreadable,
    #[error("the entity has no sessions")]
    NotAllowed,
    #[error(transparent)]
    Injected(InjectedError),
}

/// Why a request was refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RequestError {
    #[error("the entity does not exist")]
    NotFound,
    #[error("the entity is disabled for receiving")]
    Disabled,
    /// What is taken from an exclusive queue, its own connection takes.
    #[error("the queue belongs to another connection")]
    Exclusive,
    #[error("the lock is not held")]
    LockLost,
    #[error("the session is not held")]
    SessionLockLost,
    #[error("the entity has no sessions")]
    SessionsNotSupported,
    #[error("messages of a session are locked with it")]
    LockedWithSession,
    #[error("{0}")]
    Refused(SendError),
    #[error("message {0} is not there")]
    MessageNotFound(SequenceNumber),
    #[error("the messages are larger together than one answer may be")]
    AnswerTooLarge,
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    #[error(transparent)]
    Injected(InjectedError),
    #[error("too many messages are locked")]
    TooManyLocks,
    /// The store could not be read, or what it holds is damaged.
    #[error("{0}")]
    Unreadable(String),
    #[error("{0}")]
    Invalid(String),
}

/// Why the broker ends a receiver, or does not let it in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Eviction {
    #[error("the entity does not exist")]
    NotFound,
    #[error("the entity is disabled for receiving")]
    Disabled,
    #[error("messages are forwarded from here")]
    Forwarding,
    #[error("the namespace was restored from a snapshot")]
    Restored,
    #[error("the entity requires sessions")]
    SessionRequired,
    #[error("the queue belongs to another connection")]
    Exclusive,
    #[error(transparent)]
    Injected(InjectedError),
    #[error("the store is damaged: messages {first} to {last} cannot be read")]
    Unreadable {
        first: SequenceNumber,
        last: SequenceNumber,
    },
}

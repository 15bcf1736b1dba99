//! Forward error: why a message does not go on, as a fact with its values.
//!
//! A message that is dead-lettered for it carries a reason and a description. Their wording belongs
//! to the dialect, so the broker is given a [`DescribeForwardError`] when it is made.

use crate::api::error::SendError;

/// Why a message does not go on to the entity that it is forwarded to. (docs/spec/entities.md#14.4)
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub enum ForwardError {
    #[error("the destination '{destination}' does not exist")]
    NotFound { destination: String },
    #[error("only its topic writes to the subscription '{destination}'")]
    Subscription { destination: String },
    #[error("the destination '{destination}' holds {size} bytes of {limit}")]
    QuotaExceeded {
        destination: String,
        size: u64,
        limit: u64,
    },
    #[error("the destination '{destination}' holds as much as its {property} of {limit} allows")]
    LengthExceeded {
        destination: String,
        property: &'static str,
        limit: u64,
    },
    #[error("a message of {size} bytes is larger than the {limit} of '{destination}'")]
    TooLarge {
        destination: String,
        size: u64,
        limit: u64,
    },
    #[error("the message was forwarded more than {limit} times")]
    TooManyHops { limit: u32 },
    #[error("the destination requires sessions, and the message has none")]
    SessionRequired,
}

impl ForwardError {
    /// Why `destination` refuses a message for its size.
    pub(crate) fn of_size(destination: String, error: &SendError) -> Self {
        match *error {
            SendError::TooLarge { size, limit } => Self::TooLarge {
                destination,
                size,
                limit,
            },
            SendError::QuotaExceeded { size, limit } => Self::QuotaExceeded {
                destination,
                size,
                limit,
            },
            SendError::LengthExceeded { property, limit } => Self::LengthExceeded {
                destination,
                property,
                limit,
            },
            ref other => unreachable!("sizes are refused for nothing else: {other}"),
        }
    }
}

/// What a dead-lettered message says about why it is one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeadLetterReason {
    /// Its property `DeadLetterReason`; programs decide by it.
    pub reason: String,
    /// Its property `DeadLetterErrorDescription`, for people.
    pub description: String,
}

/// Words a forward error as the dialect does.
pub type DescribeForwardError = fn(&ForwardError) -> DeadLetterReason;

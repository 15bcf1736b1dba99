//! Outcome: how a lock ends, and when its message is available again.
//!
//! The outcomes of both dialects are one list. What each does to the message, its delivery count
//! and its place is in `settle`.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use bytes::Bytes;

use crate::api::time::Wall;

/// When an abandoned message is available again. (docs/spec/entities.md#10.1)
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RetryTime {
    /// As its entity's retry-backoff says; at once without one.
    #[default]
    Backoff,
    /// Milliseconds from now.
    After(u64),
    At(Wall),
}

/// How a lock ends. `changes` are application properties to add or overwrite: key and encoded AMQP
/// value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    Complete,
    /// The delivery count rises.
    Abandon {
        changes: Vec<(String, Bytes)>,
        retry: RetryTime,
    },
    Defer {
        changes: Vec<(String, Bytes)>,
    },
    /// `changes` hold `DeadLetterReason` and `DeadLetterErrorDescription` too, when given.
    DeadLetter {
        changes: Vec<(String, Bytes)>,
    },
    /// Available again at once, the delivery count unchanged.
    Release,
    /// As `outcome`, with message annotations to add or overwrite; a null hides one.
    Annotated {
        annotations: Vec<(String, Bytes)>,
        outcome: Box<Outcome>,
    },
    /// As `Release`, but available again only at this time.
    ReleaseLater(RetryTime),
    /// As `Release`, for a delivery that could not be handed to the receiver: its credit is given
    /// back.
    Undelivered,
}

impl Outcome {
    /// Abandons a message with these changes, its next delivery left to its entity.
    #[must_use]
    pub fn abandon(changes: Vec<(String, Bytes)>) -> Self {
        Self::Abandon {
            changes,
            retry: RetryTime::Backoff,
        }
    }

    /// Bytes of the changes it carries.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Abandon { changes, .. }
            | Self::Defer { changes }
            | Self::DeadLetter { changes } => size_of(changes),
            Self::Annotated {
                annotations,
                outcome,
            } => size_of(annotations) + outcome.size(),
            Self::Complete | Self::Release | Self::ReleaseLater(_) | Self::Undelivered => 0,
        }
    }
}

fn size_of(changes: &[(String, Bytes)]) -> usize {
    let sizes = changes.iter().map(|(key, value)| key.len() + value.len());
    sizes.sum()
}

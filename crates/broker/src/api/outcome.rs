//! Outcome: how a lock ends, and when its message is available again.
//!
//! The outcomes of both dialects are one list. What each does to the message, its delivery count
//! and its place is in `settle`.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use bytes::Bytes;

use crate::api::error::SettleError;
use crate::api::id::{ConnectionId, Subqueue};
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
    /// As `outcome`, and the connection is told what has become of the message, by
    /// `Output::LockEnded` before the answer to its command.
    Reported {
        to: ConnectionId,
        outcome: Box<Outcome>,
    },
    /// As `Release`, but available again only at this time.
    ReleaseLater(RetryTime),
    /// As `Release`, for a delivery that could not be handed to the receiver: its credit is given
    /// back.
    Undelivered,
}

/// That a message has become a dead letter as its lock ended, with the words that say why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeadLettering {
    pub reason: Option<String>,
    pub description: Option<String>,
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

    /// Whether a message in this place may end so. There is no dead-letter queue of a dead-letter
    /// queue. Its messages, and those that are locked with their session, do not wait.
    /// (docs/spec/entities.md#8.3, #10.1)
    ///
    /// # Errors
    /// When it may not.
    pub fn check(&self, subqueue: Subqueue, by_session: bool) -> Result<(), SettleError> {
        let main = subqueue == Subqueue::Main;
        let may_wait = main && !by_session;
        match self {
            Self::DeadLetter { .. } if !main => Err(SettleError::NotAllowed),
            Self::Abandon { retry, .. } | Self::ReleaseLater(retry)
                if *retry != RetryTime::Backoff && !may_wait =>
            {
                Err(SettleError::CannotWait)
            }
            Self::Annotated { outcome, .. } | Self::Reported { outcome, .. } => {
                outcome.check(subqueue, by_session)
            }
            _ => Ok(()),
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
            Self::Reported { outcome, .. } => outcome.size(),
            Self::Complete | Self::Release | Self::ReleaseLater(_) | Self::Undelivered => 0,
        }
    }
}

fn size_of(changes: &[(String, Bytes)]) -> usize {
    let sizes = changes.iter().map(|(key, value)| key.len() + value.len());
    sizes.sum()
}

//! Operation: what can be part of a transaction, and what its client learns of a refusal.
//! (docs/spec/amqp.md#8)

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use bytes::Bytes;
use store::{EntityId, SequenceNumber};

use crate::api::id::{LockToken, SubqueueId};
use crate::api::incoming::Incoming;
use crate::api::outcome::Outcome;

/// How the refusal of an operation is reported to its client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RefusalReport {
    /// The refusal is reported, and the client knows that the transaction goes on without the
    /// operation.
    Reported,
    /// The refusal is reported, but the client may take any answer for a success. A transaction
    /// that may not touch the entity goes on all the same. (docs/spec/amqp.md#8.3)
    Misread,
    /// Nothing is reported: the whole transaction fails.
    Unreported,
}

/// What can be part of a transaction.
#[derive(Clone, Debug)]
pub enum Operation {
    /// As `Command::Send`. Answered by `Output::Sent`; its numbers are those of scheduled messages,
    /// and mean nothing if there are none.
    Send {
        entity: EntityId,
        messages: Vec<Incoming>,
    },
    /// As `Command::SettleMany`. Answered by `Output::Settled`.
    Settle {
        subqueue: SubqueueId,
        session: Option<Bytes>,
        tokens: Vec<LockToken>,
        outcome: Outcome,
        /// How the locks end if the commit does not end them: their client has settled the
        /// deliveries, and has no more say. Without it they stay their holder's.
        on_rollback: Option<Outcome>,
    },
    /// As `Command::CancelScheduled`. Answered by `Output::Cancelled`; whether the messages are
    /// there is looked at when it is committed.
    Cancel {
        entity: EntityId,
        numbers: Vec<SequenceNumber>,
    },
    /// As `Command::SetSessionState`. Answered by `Output::SessionStateSet`.
    SetSessionState {
        entity: EntityId,
        session: Bytes,
        state: Option<Bytes>,
    },
}

impl Operation {
    pub(crate) fn entity(&self) -> EntityId {
        match self {
            Self::Send { entity, .. }
            | Self::Settle {
                subqueue: SubqueueId { entity, .. },
                ..
            }
            | Self::Cancel { entity, .. }
            | Self::SetSessionState { entity, .. } => *entity,
        }
    }

    /// The locks that it ends.
    pub(crate) fn tokens(&self) -> &[LockToken] {
        match self {
            Self::Settle { tokens, .. } => tokens,
            Self::Send { .. } | Self::Cancel { .. } | Self::SetSessionState { .. } => &[],
        }
    }

    /// How its locks end if it is not committed.
    pub(crate) fn on_rollback(&self) -> Option<&Outcome> {
        match self {
            Self::Settle { on_rollback, .. } => on_rollback.as_ref(),
            Self::Send { .. } | Self::Cancel { .. } | Self::SetSessionState { .. } => None,
        }
    }

    /// How many messages it sends or settles, or states it sets.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Send { messages, .. } => messages.len(),
            Self::Settle { tokens, .. } => tokens.len(),
            Self::Cancel { numbers, .. } => numbers.len(),
            Self::SetSessionState { .. } => 1,
        }
    }

    /// What holding it costs.
    pub(crate) fn bytes(&self) -> usize {
        /// Of each message or token, besides its bytes.
        const OVERHEAD: usize = 256;
        let bytes = match self {
            Self::Send { messages, .. } => {
                let sizes = messages.iter().map(Incoming::size);
                sizes.fold(0, usize::saturating_add)
            }
            Self::Settle {
                outcome,
                on_rollback,
                ..
            } => {
                let otherwise = on_rollback.as_ref().map_or(0, Outcome::size);
                outcome.size().saturating_add(otherwise)
            }
            Self::Cancel { .. } => 0,
            Self::SetSessionState { session, state, .. } => {
                session.len() + state.as_ref().map_or(0, Bytes::len)
            }
        };
        bytes.saturating_add(self.len().saturating_mul(OVERHEAD))
    }
}

//! Reads: for what something was asked of the store.
//!
//! Each purpose has with it all that is needed to go on when the answer comes
//! (`broker/loaded.rs`). Its entity may be gone by then: a request that waits for the answer is
//! refused.

use store::{CommitId, EntityId, SequenceNumber};

use crate::api::error::RequestError;
use crate::api::id::{ConnectionId, SubqueueId, TransactionId};
use crate::api::output::Output;
use crate::context::clients::ReceiverSlot;
use crate::receive::pending_peek::PendingPeek;
use crate::receive::pending_schedule_peek::SchedulePeek;
use crate::receive::retrieval::Retrieval;
use crate::send::cancellation::Cancellation;
use crate::sessions::read::SessionRead;

/// Why something was read.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// The window's next messages, as they are with that commit.
    Refill(SubqueueId, CommitId),
    /// Bodies of the window's first messages; with a number, that many bytes of those behind them,
    /// read ahead of their turn.
    Fetch(SubqueueId, Vec<SequenceNumber>, Option<usize>),
    /// Part of a block that is looked through for expired messages.
    Sweep(EntityId),
    /// Messages that cannot be dead-lettered without knowing their patches.
    SweepPatches(EntityId, Vec<SequenceNumber>),
    /// Message ids that may have been accepted before.
    DuplicateLookup(EntityId),
    /// The history of message ids, for the filter.
    DuplicateLoad(EntityId),
    /// The id of a message that is to be forwarded, asked of its destination.
    TransferLookup(SubqueueId, EntityId),
    /// The id of a message that a router sends to an entity, on behalf of a connection.
    Publication(EntityId, ConnectionId),
    /// Messages of sessions that are to be forwarded, as they are with that commit.
    SessionPage(SubqueueId, CommitId),
    Session(EntityId, Box<SessionRead>),
    /// Something that decides about a transaction that is to be committed.
    Transaction(EntityId, TransactionId),
    Peek(Box<PendingPeek>),
    /// What is due next, for a request.
    SchedulePeek(Box<SchedulePeek>),
    Deferred(Box<Retrieval>),
    /// Messages for receivers with selectors.
    Select(SubqueueId),
    /// Messages for a browser.
    Show(SubqueueId, ReceiverSlot),
    /// What is left of a deleted subscription.
    Tombstone(EntityId),
    /// What is scheduled next.
    Schedule(EntityId),
    Cancel(Box<Cancellation>),
    /// Messages of a queue with sessions that may be deleted.
    Delete(EntityId),
}

impl Purpose {
    pub(crate) fn entity(&self) -> EntityId {
        match self {
            Self::Refill(place, _)
            | Self::SessionPage(place, _)
            | Self::Fetch(place, ..)
            | Self::Select(place)
            | Self::Show(place, _)
            | Self::TransferLookup(place, _) => place.entity,
            Self::Sweep(entity)
            | Self::SweepPatches(entity, _)
            | Self::DuplicateLookup(entity)
            | Self::DuplicateLoad(entity)
            | Self::Transaction(entity, _)
            | Self::Publication(entity, _)
            | Self::Tombstone(entity)
            | Self::Schedule(entity)
            | Self::Delete(entity)
            | Self::Session(entity, _) => *entity,
            Self::Cancel(cancellation) => cancellation.entity,
            Self::Peek(peek) => peek.place.entity,
            Self::SchedulePeek(peek) => peek.entity,
            Self::Deferred(retrieval) => retrieval.place.entity,
        }
    }
}

impl Purpose {
    /// Its entity is gone: how a request that waits for the answer is refused.
    pub(crate) fn refusal(self) -> Option<Output> {
        let gone = RequestError::NotFound;
        match self {
            Self::Peek(peek) => Some(peek.page.refusal(gone)),
            Self::SchedulePeek(peek) => Some(peek.refusal(gone)),
            Self::Deferred(retrieval) => Some(retrieval.answer(Err(gone))),
            Self::Cancel(cancellation) => Some(cancellation.answer(Err(gone))),
            Self::Session(_, read) => read.refusal(gone),
            // No request waits for these, or it was answered when the entity went.
            Self::Refill(..)
            | Self::SessionPage(..)
            | Self::Fetch(..)
            | Self::Select(_)
            | Self::Show(..)
            | Self::Sweep(_)
            | Self::SweepPatches(..)
            | Self::DuplicateLookup(_)
            | Self::DuplicateLoad(_)
            | Self::TransferLookup(..)
            | Self::Transaction(..)
            | Self::Publication(..)
            | Self::Tombstone(_)
            | Self::Delete(_)
            | Self::Schedule(_) => None,
        }
    }
}

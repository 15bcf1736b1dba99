//! Reads: what was asked of the store, and which operation continues with the answer.

use bytes::Bytes;
use store::{CommitId, EntityId, Found, KnownMessage, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::{ReadId, SubqueueId, TransactionId};
use crate::api::output::RequestError;
use crate::context::Context;
use crate::context::clients::ReceiverSlot;
use crate::entities::directory::Directory;
use crate::forward;
use crate::message::bodies::{Body, BodyRef};
use crate::message::patch::Patch;
use crate::receive::deferred::Retrieval;
use crate::receive::peek::Peek;
use crate::send::cancel::Cancellation;
use crate::send::duplicates::Known;
use crate::sessions::read::SessionRead;
use crate::subqueue::window::Entry;
use crate::transaction;

/// What comes back from a read of messages.
pub(crate) type Rows = Result<Vec<StoredMessage>, StoreError>;

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
    Session(EntityId, Box<SessionRead>),
    /// Something that decides about a transaction that is to be committed.
    Transaction(EntityId, TransactionId),
    Peek(Box<Peek>),
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
    fn entity(&self) -> EntityId {
        match self {
            Self::Refill(place, _)
            | Self::Fetch(place, ..)
            | Self::Select(place)
            | Self::Show(place, _)
            | Self::TransferLookup(place, _) => place.entity,
            Self::Sweep(entity)
            | Self::SweepPatches(entity, _)
            | Self::DuplicateLookup(entity)
            | Self::DuplicateLoad(entity)
            | Self::Transaction(entity, _)
            | Self::Tombstone(entity)
            | Self::Schedule(entity)
            | Self::Delete(entity)
            | Self::Session(entity, _) => *entity,
            Self::Cancel(cancellation) => cancellation.entity,
            Self::Peek(peek) => peek.place.entity,
            Self::Deferred(retrieval) => retrieval.place.entity,
        }
    }
}

impl Purpose {
    /// Its entity is gone: a request that waits for the answer is refused.
    fn refuse(self, cx: &mut Context<'_>) {
        match self {
            Self::Peek(peek) => peek.refuse(RequestError::NotFound, cx),
            Self::Deferred(retrieval) => retrieval.refuse(RequestError::NotFound, cx),
            Self::Cancel(cancellation) => cancellation.refuse(RequestError::NotFound, cx),
            Self::Session(_, read) => read.refuse(cx),
            // No request waits for these, or it was answered when the entity went.
            Self::Refill(..)
            | Self::Fetch(..)
            | Self::Select(_)
            | Self::Show(..)
            | Self::Sweep(_)
            | Self::SweepPatches(..)
            | Self::DuplicateLookup(_)
            | Self::DuplicateLoad(_)
            | Self::TransferLookup(..)
            | Self::Transaction(..)
            | Self::Tombstone(_)
            | Self::Delete(_)
            | Self::Schedule(_) => {}
        }
    }
}

/// Hands the answer to the operation that asked for it.
pub(crate) fn loaded(
    directory: &mut Directory,
    read: ReadId,
    found: Result<Found, StoreError>,
    cx: &mut Context<'_>,
) {
    let purpose = cx.shared.take_read(read);
    if let Purpose::Fetch(_, _, Some(bytes)) = purpose {
        cx.shared.ahead_reads -= 1;
        cx.shared.ahead_bytes -= bytes;
    }
    if let Purpose::TransferLookup(place, destination) = purpose {
        let known = found.and_then(Found::into_entries);
        let known = known.and_then(|entries| Known::of(&entries));
        return forward::looked_up(directory, read, place, destination, known, cx);
    }
    if let Purpose::Transaction(_, id) = purpose {
        // It is about other entities too, and has to be decided even if this one is gone.
        return transaction::loaded(directory, id, read, found, cx);
    }
    if let Purpose::Tombstone(entity) = purpose {
        let rows = found.and_then(Found::into_messages);
        return directory.advance_tombstone(entity, |tombstone, cx| tombstone.loaded(rows, cx), cx);
    }
    let Some(queue) = directory.get_mut(purpose.entity()) else {
        return purpose.refuse(cx);
    };
    let rows = |found: Result<Found, StoreError>| found.and_then(Found::into_messages);
    let entries = |found: Result<Found, StoreError>| found.and_then(Found::into_entries);
    match purpose {
        Purpose::Refill(place, after) => {
            queue.refilled(place.subqueue, read, after, rows(found), cx);
        }
        Purpose::Fetch(place, numbers, _) => {
            queue.fetched(place.subqueue, read, &numbers, rows(found), cx);
        }
        Purpose::Select(place) => {
            queue.selections_loaded(place.subqueue, read, rows(found), cx);
        }
        Purpose::Show(place, slot) => {
            queue.show_loaded(place.subqueue, slot, read, rows(found), cx);
        }
        Purpose::Sweep(_) => queue.sweep_loaded(read, rows(found), cx),
        Purpose::SweepPatches(_, numbers) => {
            queue.sweep_patches_loaded(read, &numbers, rows(found), cx);
        }
        Purpose::DuplicateLookup(_) => queue.looked_up(read, entries(found), cx),
        Purpose::DuplicateLoad(_) => queue.history_loaded(read, entries(found), cx),
        Purpose::Session(_, what) => queue.session_loaded(read, *what, found, cx),
        Purpose::TransferLookup(..) | Purpose::Transaction(..) | Purpose::Tombstone(_) => {
            unreachable!("it has been dealt with above");
        }
        Purpose::Peek(peek) => queue.peek_loaded(read, *peek, rows(found), cx),
        Purpose::Deferred(retrieval) => queue.deferred_loaded(read, &retrieval, rows(found), cx),
        Purpose::Delete(_) => queue.deletion_loaded(read, found, cx),
        Purpose::Schedule(_) => queue.schedule_loaded(read, entries(found), cx),
        Purpose::Cancel(cancellation) => queue.cancel_loaded(read, &cancellation, rows(found), cx),
    }
    queue.run(cx);
}

/// A row that has been read, as the window has it, its body not in memory. It `rests_on` the commit
/// after which it was read if nothing that was read has changed since; else on what was submitted
/// when it came.
pub(crate) fn entry_of(stored: &StoredMessage, rests_on: CommitId) -> Entry {
    Entry {
        row: stored.row,
        delivery_count: stored.delivery_count,
        body: BodyRef::NONE,
        rests_on,
        body_location: stored.body_location,
    }
}

/// What a window's entry says of a message whose body is asked for.
pub(crate) fn known_of(number: SequenceNumber, entry: &Entry) -> KnownMessage {
    KnownMessage {
        number,
        row: entry.row,
        delivery_count: entry.delivery_count,
        body_location: entry.body_location,
    }
}

/// A stored message's body and patch; `None` if it was not read, or cannot be understood.
pub(crate) fn body_of(stored: &StoredMessage) -> Option<Body> {
    make_body(stored.body.clone()?, stored)
}

/// The same, taken out, for callers that read nothing but bodies: the payload keeps its one owner.
pub(crate) fn take_body(stored: &mut StoredMessage) -> Option<Body> {
    make_body(stored.body.take()?, stored)
}

fn make_body(payload: Bytes, stored: &StoredMessage) -> Option<Body> {
    let patch = match &stored.patch {
        Some(patch) => Some(Box::new(Patch::decode(patch)?)),
        None => None,
    };
    Some(Body::new(payload, patch))
}

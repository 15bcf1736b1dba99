//! Stored: what is made of a message that was read from the store.
//!
//! A window takes it as an entry, a receiver or browser as it is shown. A body or a patch that
//! cannot be understood makes the message one that cannot be read.

use bytes::Bytes;
use store::{CommitId, EntityId, KnownMessage, Part, SequenceNumber, StoreError, StoredMessage};

use crate::api::error::RequestError;
use crate::api::output::{Browsed, MessageState};
use crate::message::Message;
use crate::message::bodies::{Body, BodyRef};
use crate::message::entry::Entry;
use crate::message::patch::Patch;

/// What comes back from a read of messages.
pub(crate) type ReadRows = Result<Vec<StoredMessage>, StoreError>;

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

pub(crate) fn state_of(part: Part) -> MessageState {
    match part {
        Part::Scheduled => MessageState::Scheduled,
        Part::Deferred | Part::DeadLetterDeferred | Part::TransferDeferred => {
            MessageState::Deferred
        }
        Part::Active | Part::DeadLetter | Part::Transfer => MessageState::Active,
    }
}

pub(crate) fn shown_of(
    entity: EntityId,
    stored: &StoredMessage,
    state: MessageState,
) -> Option<Browsed> {
    let body = body_of(stored)?;
    let message = Message::stored(stored, body.patch);
    Some(message.shown(entity, state, body.payload))
}

pub(crate) fn unreadable(number: SequenceNumber) -> RequestError {
    RequestError::Unreadable(format!("message {number} cannot be read"))
}

pub(crate) fn size_of_body(stored: &StoredMessage) -> usize {
    stored.body.as_ref().map_or(0, |body| body.len()).max(1)
}

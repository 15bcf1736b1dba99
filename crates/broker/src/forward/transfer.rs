//! Transfer: a message on its way from one entity to another, still in its source.
//!
//! The destination admits it, or says why not. A failure that can pass keeps the message where it
//! is; any other sends it to a dead-letter queue.

use store::{EntityId, MessageRow, SequenceNumber};

use crate::api::forward_error::ForwardError;
use crate::api::id::Subqueue;
use crate::api::lineage::MessagePlace;
use crate::message::bodies::Body;
use crate::message::entry::Entry;
use crate::message::id::IdHash;
use crate::message::properties::Properties;
use crate::message::row;

/// More often than this a message does not go on. (docs/spec/entities.md#14.3)
const MOST_HOPS: u32 = 4;

/// A message on its way, still in its source.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    /// Where it still is.
    pub source: EntityId,
    pub number: SequenceNumber,
    pub entry: Entry,
    pub body: Body,
    pub properties: Properties,
    /// It comes out of a transfer queue, which is no hop: it was not sent to the via entity.
    pub sent_via: bool,
}

impl Transfer {
    /// Where it still is.
    pub(crate) fn place(&self) -> MessagePlace {
        MessagePlace {
            entity: self.source,
            number: self.number,
        }
    }
}

/// Why a message cannot go on.
pub(super) enum TransferFailure {
    /// It may be possible later.
    Wait,
    /// The destination is full; it is tried again for some time.
    Full(ForwardError),
    /// The destination takes nothing like it now.
    Refused(ForwardError),
    /// It will never be taken.
    Unfit(ForwardError),
}

impl TransferFailure {
    /// Why a message goes nowhere, by what it has been through.
    pub(super) fn of_row(subqueue: Subqueue, row: &MessageRow) -> Option<Self> {
        let hops = row::hops(row) >= MOST_HOPS;
        // What could not be forwarded is not forwarded on by its dead-letter queue.
        let stuck = subqueue != Subqueue::Main && row::is_stuck(row);
        (hops || stuck).then_some(Self::Unfit(ForwardError::TooManyHops { limit: MOST_HOPS }))
    }
}

/// What the destination says to a message.
pub(super) enum Admission {
    Take,
    /// It has had one with this id.
    Duplicate,
    /// The ids' history has to be asked first.
    Ask(IdHash),
    NoSession,
    Failed(TransferFailure),
}

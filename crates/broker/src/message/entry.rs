//! Entry: an available message as memory knows it, without its body.
//!
//! It tells the commit with which all of it is on the disk: a delivery rests on that, and a read of
//! the body waits for no later one.

use store::{BodyLocation, CommitId, MessageRow};

use crate::message::bodies::BodyRef;
use crate::message::row;

/// An available message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Entry {
    pub row: MessageRow,
    pub delivery_count: u32,
    pub body: BodyRef,
    /// The commit with which all this is on the disk.
    pub rests_on: CommitId,
    /// Where its body was when its row was read.
    pub body_location: BodyLocation,
}

impl Entry {
    /// A message that this commit writes, its body not in memory.
    pub(crate) fn written(row: MessageRow, delivery_count: u32, commit: CommitId) -> Self {
        Self {
            row,
            delivery_count,
            body: BodyRef::NONE,
            rests_on: commit,
            body_location: BodyLocation::UNKNOWN,
        }
    }

    /// Whether properties may have been changed: it was abandoned, or came so from elsewhere.
    pub(crate) fn may_have_patch(&self) -> bool {
        self.delivery_count > 0 || row::came_patched(&self.row)
    }
}

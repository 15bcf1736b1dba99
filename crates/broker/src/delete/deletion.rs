//! Deletion: a request to delete messages, and how far it has come.
//!
//! Everything below its cursor has been looked at. It ends at the number that was next when it
//! came, or when it has deleted as many as it may.

use store::SequenceNumber;

use crate::api::error::RequestError;
use crate::api::id::{ReadId, RequestId, Subqueue};
use crate::api::time::Wall;
use crate::queue::session_key::SessionKey;

/// A deletion on its way.
#[derive(Debug)]
pub(crate) struct Deletion {
    pub request: RequestId,
    pub subqueue: Subqueue,
    pub session: Option<SessionKey>,
    pub before: Wall,
    pub left: usize,
    pub deleted: usize,
    /// Everything below has been looked at.
    pub cursor: SequenceNumber,
    pub until: SequenceNumber,
    /// What arrived since is not its business.
    pub before_arrival: SequenceNumber,
    /// What it has asked for, in a queue with sessions.
    pub asked: Option<PendingRead>,
}

/// A read of a queue with sessions, and the number up to which it looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRead {
    pub read: ReadId,
    pub limit: usize,
    pub covered: SequenceNumber,
}

/// Where a deletion stands after a piece.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It goes on when the queue's turn has come again.
    Interrupted,
    /// It goes on when a read comes back.
    Waiting,
    Finished,
    /// There is nothing to be read.
    Failed(String),
}

impl Deletion {
    /// One message less to delete.
    pub(crate) fn count_one(&mut self) {
        self.deleted += 1;
        self.left -= 1;
    }

    /// What went before something could not be read has gone all the same.
    pub(crate) fn result(&self, progress: Progress) -> Result<usize, RequestError> {
        match progress {
            Progress::Failed(error) if self.deleted == 0 => Err(RequestError::Unreadable(error)),
            _ => Ok(self.deleted),
        }
    }
}

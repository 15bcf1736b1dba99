//! Retrieval: a request for deferred messages by number, until they have been read.
//!
//! Nothing is taken that could not be answered, so the size of the answer is checked before.

use bytes::Bytes;
use store::{SequenceNumber, StoredMessage};

use crate::api::error::RequestError;
use crate::api::id::{RequestId, SubqueueId};
use crate::api::output::{Delivery, Output};
use crate::api::receive_mode::ReceiveMode;

/// A request that waits for the messages.
#[derive(Debug)]
pub(crate) struct Retrieval {
    pub place: SubqueueId,
    pub request: RequestId,
    /// Whose messages they have to be, if one is named.
    pub session: Option<Bytes>,
    /// As asked for, each once.
    pub numbers: Vec<SequenceNumber>,
    pub mode: ReceiveMode,
    pub max_bytes: usize,
}

impl Retrieval {
    pub(crate) fn answer(&self, result: Result<Vec<Delivery>, RequestError>) -> Output {
        let request = self.request;
        Output::Deferred { request, result }
    }

    /// Nothing is taken that could not be answered: one message always can be. A read that was
    /// cut short has reached the bound.
    pub(crate) fn check_size(&self, rows: &[StoredMessage]) -> Result<(), RequestError> {
        let bodies = rows.iter().filter_map(|row| row.body.as_ref());
        let bytes: usize = bodies.map(bytes::Bytes::len).sum();
        let cut_short = bytes >= self.max_bytes && rows.len() < self.numbers.len();
        if cut_short || rows.len() > 1 && bytes > self.max_bytes {
            return Err(RequestError::AnswerTooLarge);
        }
        Ok(())
    }
}

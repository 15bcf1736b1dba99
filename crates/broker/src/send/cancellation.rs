//! Cancellation: a request to take scheduled messages back, until their rows have been read.
//!
//! All of them are cancelled or none, so it has one answer.

use store::{EntityId, SequenceNumber};

use crate::api::error::RequestError;
use crate::api::id::RequestId;
use crate::api::output::Output;

/// A request that waits for the rows.
#[derive(Debug)]
pub(crate) struct Cancellation {
    pub entity: EntityId,
    pub request: RequestId,
    /// As asked for, each once.
    pub numbers: Vec<SequenceNumber>,
}

impl Cancellation {
    pub(crate) fn answer(&self, result: Result<(), RequestError>) -> Output {
        let request = self.request;
        Output::Cancelled { request, result }
    }
}

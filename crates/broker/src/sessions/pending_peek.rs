//! Pending peek: what a peek at a session has found so far, and what is still to be read for it.
//!
//! It goes through the parts of the queue in the order in which a message moves. What cuts one part
//! off cuts off the others too, so nothing is shown behind a message that was not looked at.

use std::collections::BTreeMap;

use store::{Part, SequenceNumber, StoredMessage};

use crate::api::error::RequestError;
use crate::api::id::RequestId;
use crate::api::output::{Browsed, Output};
use crate::message::stored::size_of_body;
use crate::queue::session_key::SessionKey;

/// A peek on its way.
#[derive(Debug)]
pub(crate) struct SessionPeek {
    pub(super) request: RequestId,
    pub(super) key: SessionKey,
    pub(super) from: SequenceNumber,
    pub(super) until: SequenceNumber,
    pub(super) count: usize,
    pub(super) max_bytes: usize,
    /// Which messages are being read.
    pub(super) part: Part,
    /// From where on, of that part.
    pub(super) next: SequenceNumber,
    /// Where its numbers were cut off, if they were.
    pub(super) cut: Option<SequenceNumber>,
    pub(super) found: BTreeMap<SequenceNumber, StoredMessage>,
}

impl SessionPeek {
    pub(super) fn answer(&self, result: Result<Vec<Browsed>, RequestError>) -> Output {
        let request = self.request;
        Output::Browsed { request, result }
    }

    /// What was cut off cuts off what comes behind it in the other part too.
    pub(super) fn take(&mut self, rows: Vec<StoredMessage>) {
        let bytes: usize = rows.iter().map(size_of_body).sum();
        let cut = rows.len() >= self.count || bytes >= self.max_bytes;
        if cut && let Some(last) = rows.last() {
            self.until = self.until.min(last.number.next());
            drop(self.found.split_off(&self.until));
        }
        for row in rows {
            self.found.entry(row.number).or_insert(row);
        }
    }
}

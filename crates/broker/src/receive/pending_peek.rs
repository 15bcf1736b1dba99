//! Pending peek: what a peek has found so far, and what is still to be read for it.
//!
//! It goes through the parts of the queue in the order in which a message moves. What cuts one part
//! off cuts off the others too, so nothing is shown behind a message that was not looked at.

use std::collections::{BTreeMap, BTreeSet};

use store::{SequenceNumber, StoredMessage};

use crate::api::error::RequestError;
use crate::api::id::{RequestId, SubqueueId};
use crate::api::output::{Browsed, MessageState, Output};
use crate::message::stored::size_of_body;

/// What is being read next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// Messages that wait for their time.
    Scheduled,
    /// Messages that the window or a lock knows.
    Known,
    /// Messages that are on disk only.
    Disk,
    Deferred,
}

/// A peek on its way.
#[derive(Debug)]
pub(crate) struct PendingPeek {
    pub place: SubqueueId,
    pub(super) request: RequestId,
    pub(super) state: Option<MessageState>,
    pub(super) from: SequenceNumber,
    pub(super) count: usize,
    pub(super) max_bytes: usize,
    pub(super) stage: Stage,
    /// Where the next read of the stage begins.
    pub(super) cursor: SequenceNumber,
    /// Messages from here on are not shown: others before them may not have been read.
    pub(super) until: SequenceNumber,
    pub(super) bytes: usize,
    pub(super) found: BTreeMap<SequenceNumber, StoredMessage>,
    pub(super) scheduled: Vec<StoredMessage>,
}

impl PendingPeek {
    pub(crate) fn answer(&self, result: Result<Vec<Browsed>, RequestError>) -> Output {
        let request = self.request;
        Output::Browsed { request, result }
    }

    pub(super) fn wants(&self, state: MessageState) -> bool {
        self.state.is_none_or(|only| only == state)
    }

    pub(super) fn has_room(&self) -> bool {
        self.found.len() < self.count && (self.bytes < self.max_bytes || self.found.is_empty())
    }

    pub(super) fn take(&mut self, rows: Vec<StoredMessage>) {
        for row in rows {
            self.bytes = self.bytes.saturating_add(size_of_body(&row));
            self.found.insert(row.number, row);
        }
        if !self.has_room()
            && let Some(last) = self.found.last_key_value()
        {
            self.until = last.0.next();
        }
    }

    /// Those that are still there; where they were cut off all others are too. Returns whether they
    /// were.
    pub(super) fn take_scheduled(
        &mut self,
        rows: Vec<StoredMessage>,
        touched: &BTreeSet<SequenceNumber>,
    ) -> bool {
        let bytes: usize = rows.iter().map(size_of_body).sum();
        let cut = rows.len() >= self.count || bytes >= self.max_bytes;
        if cut && let Some(last) = rows.last() {
            self.until = last.number.next();
        }
        self.scheduled = rows;
        self.scheduled
            .retain(|stored| !touched.contains(&stored.number));
        self.stage = Stage::Known;
        self.cursor = self.from;
        cut
    }

    /// Merges the deferred ones; what they were cut off at cuts off the others too.
    pub(super) fn take_deferred(&mut self, rows: Vec<StoredMessage>) {
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

    /// All that was found, in order of number.
    pub(super) fn take_found(&mut self) -> BTreeMap<SequenceNumber, StoredMessage> {
        for stored in std::mem::take(&mut self.scheduled) {
            if stored.number < self.until {
                self.found.insert(stored.number, stored);
            }
        }
        std::mem::take(&mut self.found)
    }
}

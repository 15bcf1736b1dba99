//! Pending peek: what a peek has found so far, and what is still to be read for it.
//!
//! It goes through the parts of the queue in the order in which a message moves.

use std::collections::BTreeSet;

use store::{SequenceNumber, StoredMessage};

use crate::api::id::SubqueueId;
use crate::api::output::MessageState;
use crate::message::stored::size_of_body;
use crate::receive::page::Page;

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
    pub(super) state: Option<MessageState>,
    pub(super) from: SequenceNumber,
    pub(super) stage: Stage,
    /// Where the next read of the stage begins.
    pub(super) cursor: SequenceNumber,
    pub page: Page,
    /// Bytes of the bodies that were found, scheduled ones aside.
    pub(super) bytes: usize,
    pub(super) scheduled: Vec<StoredMessage>,
}

impl PendingPeek {
    pub(super) fn wants(&self, state: MessageState) -> bool {
        self.state.is_none_or(|only| only == state)
    }

    pub(super) fn has_room(&self) -> bool {
        let page = &self.page;
        page.found.len() < page.count && (self.bytes < page.max_bytes || page.found.is_empty())
    }

    pub(super) fn take(&mut self, rows: Vec<StoredMessage>) {
        for row in rows {
            self.bytes = self.bytes.saturating_add(size_of_body(&row));
            self.page.found.insert(row.number, row);
        }
        if !self.has_room()
            && let Some(last) = self.page.found.last_key_value()
        {
            self.page.until = last.0.next();
        }
    }

    /// Those that are still there; where they were cut off all others are too. Returns whether they
    /// were.
    pub(super) fn take_scheduled(
        &mut self,
        rows: Vec<StoredMessage>,
        touched: &BTreeSet<SequenceNumber>,
    ) -> bool {
        let cut = self.page.cut(&rows);
        self.page.until = cut.unwrap_or(self.page.until);
        self.scheduled = rows;
        self.scheduled
            .retain(|stored| !touched.contains(&stored.number));
        self.stage = Stage::Known;
        self.cursor = self.from;
        cut.is_some()
    }

    /// All that was found.
    pub(super) fn into_page(mut self) -> Page {
        for stored in self.scheduled {
            if stored.number < self.page.until {
                self.page.found.insert(stored.number, stored);
            }
        }
        self.page
    }
}

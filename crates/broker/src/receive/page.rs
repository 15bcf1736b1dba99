//! Page: the answer of one peek, as far as it is found.
//!
//! Several reads fill it. A read that was cut off, by number or bytes, cuts off the others too:
//! nothing is shown behind a message that was not looked at.

use std::collections::BTreeMap;

use store::{SequenceNumber, StoredMessage};

use crate::api::error::RequestError;
use crate::api::id::RequestId;
use crate::api::output::{Browsed, Output};
use crate::message::stored::{size_of_body, unreadable};

/// What has been found for a peek.
#[derive(Debug)]
pub(crate) struct Page {
    request: RequestId,
    /// Most messages of the answer.
    pub count: usize,
    /// Most bytes of bodies, but for the first message.
    pub max_bytes: usize,
    /// Messages from here on are not shown: others before them may not have been read.
    pub until: SequenceNumber,
    pub found: BTreeMap<SequenceNumber, StoredMessage>,
}

impl Page {
    pub(crate) fn new(
        request: RequestId,
        count: usize,
        max_bytes: usize,
        until: SequenceNumber,
    ) -> Self {
        Self {
            request,
            count,
            max_bytes,
            until,
            found: BTreeMap::new(),
        }
    }

    /// Where a read that returned `rows` was cut off, if it was: behind its last message.
    pub(crate) fn cut(&self, rows: &[StoredMessage]) -> Option<SequenceNumber> {
        let bytes: usize = rows.iter().map(size_of_body).sum();
        let cut = rows.len() >= self.count || bytes >= self.max_bytes;
        let last = rows.last().filter(|_| cut)?;
        Some(last.number.next())
    }

    /// Whether no message from a number on can be in the answer, whatever is found there.
    pub(crate) fn is_full_below(&self, number: SequenceNumber) -> bool {
        self.found.range(..number).count() >= self.count
    }

    /// Adds what was read of another part. A message that was found before has moved there since.
    pub(crate) fn merge(&mut self, rows: Vec<StoredMessage>) {
        if let Some(cut) = self.cut(&rows) {
            self.until = self.until.min(cut);
            drop(self.found.split_off(&self.until));
        }
        for row in rows {
            self.found.entry(row.number).or_insert(row);
        }
    }

    /// The answer, in order of number. `browse` shows one message, or says that its row is damaged.
    pub(crate) fn answer(self, browse: impl Fn(&StoredMessage) -> Option<Browsed>) -> Output {
        let mut bytes = 0_usize;
        let mut shown = Vec::new();
        for stored in self.found.values().take(self.count) {
            if bytes >= self.max_bytes && !shown.is_empty() {
                break;
            }
            bytes = bytes.saturating_add(size_of_body(stored));
            match browse(stored) {
                Some(browsed) => shown.push(browsed),
                None => return self.refusal(unreadable(stored.number)),
            }
        }
        let (request, result) = (self.request, Ok(shown));
        Output::Browsed { request, result }
    }

    /// The answer of a peek that fails.
    pub(crate) fn refusal(&self, error: RequestError) -> Output {
        let (request, result) = (self.request, Err(error));
        Output::Browsed { request, result }
    }
}

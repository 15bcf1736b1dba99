//! Missing bodies: messages whose bodies are to be asked for.
//!
//! They are bounded by their bytes, one at least. The store is told what is known of each, and the
//! read waits for no later commit than they rest on.

use store::{CommitId, KnownMessage, SequenceNumber};

use crate::message::entry::Entry;
use crate::message::stored::known_of;

/// Messages whose bodies are to be asked for.
#[derive(Debug, Default)]
pub(crate) struct MissingBodies {
    /// Ascending.
    pub numbers: Vec<SequenceNumber>,
    /// What is known of each.
    pub known: Vec<KnownMessage>,
    /// Of all their bodies.
    pub bytes: usize,
    /// The newest commit that one of them rests on.
    pub rest_on: CommitId,
}

impl MissingBodies {
    /// As many of `entries` as fit the limit in bytes, but one at least.
    pub(crate) fn of<'a>(
        entries: impl Iterator<Item = (SequenceNumber, &'a Entry)>,
        most_bytes: usize,
    ) -> Self {
        let mut missing = Self::default();
        for (number, entry) in entries {
            let bytes = missing.bytes.saturating_add(entry.row.size as usize);
            if bytes > most_bytes && !missing.numbers.is_empty() {
                break;
            }
            missing.bytes = bytes;
            missing.numbers.push(number);
            missing.known.push(known_of(number, entry));
            missing.rest_on = missing.rest_on.max(entry.rests_on);
        }
        missing
    }
}

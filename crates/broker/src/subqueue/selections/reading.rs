//! Reading: a read for selections that is under way, and what has become meanwhile of the messages
//! that it is about.

use std::collections::BTreeMap;

use store::{SequenceNumber, StoredMessage};

use crate::api::id::ReadId;
use crate::message::entry::Entry;

/// Most bytes of bodies of a page.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// What a selection would like to read.
#[derive(Debug)]
pub(super) enum Ask {
    /// The messages from a number on.
    From(SequenceNumber),
    /// These, in order of number.
    Points(Vec<SequenceNumber>),
}

/// A read that is under way.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) read: ReadId,
    pub(super) ask: Ask,
    /// Above every number in use when it was asked for.
    pub(super) until: SequenceNumber,
    /// The most rows that were asked for.
    pub(super) limit: usize,
    /// Whether bodies were asked for.
    pub(super) bodies: bool,
    /// What became of messages that it is about: available as given, or not at all.
    pub(super) changed: BTreeMap<SequenceNumber, Option<Entry>>,
}

impl Reading {
    pub(super) fn note(&mut self, number: SequenceNumber, entry: Option<Entry>) {
        let concerned = match &self.ask {
            Ask::From(from) => *from <= number && number < self.until,
            Ask::Points(numbers) => numbers.binary_search(&number).is_ok(),
        };
        if concerned {
            self.changed.insert(number, entry);
        }
    }

    /// Below which number everything was read.
    pub(super) fn covered(&self, rows: &[StoredMessage]) -> SequenceNumber {
        let bytes = rows.iter().filter_map(|row| row.body.as_ref());
        let bytes: usize = bytes.map(bytes::Bytes::len).sum();
        match rows.last() {
            Some(last) if rows.len() >= self.limit || bytes >= PAGE_BYTES => last.number.next(),
            _ => self.until,
        }
    }
}

//! Schedule: the entries beside the rows of scheduled messages, and that the two agree. (I10)
//!
//! The broker activates by the entries alone, from where the head says that they begin; so every
//! scheduled row has one entry, under its due time and number, and none is left over.

use std::ops::Range;

use bytes::Bytes;
use store::image::FullEntryKey;
use store::{EntityId, EntryKey, Head, Index, Part, SequenceNumber};

use super::{Books, Page};
use crate::violation::Violation;

/// When a scheduled message is due, and its number: what is due at once goes by number.
pub type Due = (u64, SequenceNumber);

impl Books {
    pub(super) fn put_entry(&mut self, place: FullEntryKey, value: Bytes, page: &mut Page) {
        note(&place, page);
        self.note_history(&place, &value, page);
        self.note_session(&place, Some(&value), page);
        self.entries.insert(place, value);
    }

    pub(super) fn remove_entry(&mut self, place: &FullEntryKey, page: &mut Page) {
        note(place, page);
        self.note_forgotten(place, page);
        self.note_session(place, None, page);
        self.entries.remove(place);
    }

    pub(super) fn remove_entries(
        &mut self,
        entity: EntityId,
        index: Index,
        keys: &Range<EntryKey>,
        page: &mut Page,
    ) {
        let places = self.entries.keys();
        let within = places
            .filter(|(of, which, key)| (*of, *which) == (entity, index) && keys.contains(key));
        for place in within.cloned().collect::<Vec<_>>() {
            self.remove_entry(&place, page);
        }
    }

    /// Notes that all entries are to be looked at.
    pub(super) fn note_entries(&mut self, page: &mut Page) {
        let entries = self.entries.clone();
        for (place, value) in &entries {
            note(place, page);
            self.note_history(place, value, page);
            self.note_session_place(place, None, page);
        }
    }

    /// The next scheduled message of an entity.
    #[must_use]
    pub fn first_due(&self, entity: EntityId) -> Option<Due> {
        let first = (
            entity,
            Index::Schedule,
            EntryKey::by_u64(0, SequenceNumber(0)),
        );
        let mut entries = self.entries.range(first..);
        let ((of, index, key), _) = entries.next()?;
        let here = (*of, *index) == (entity, Index::Schedule);
        let at = key.group_u64().filter(|_| here)?;
        Some((at, key.number))
    }

    /// The time at which the last scheduled message of an entity is due.
    #[must_use]
    pub fn last_due_ms(&self, entity: EntityId) -> Option<u64> {
        let rows = self.rows(entity, Part::Scheduled);
        rows.map(|(_, row)| row.enqueued_ms).max()
    }

    /// A row has its entry, and an entry its row.
    pub(super) fn check_due(&self, entity: EntityId, due: Due) -> Result<(), Violation> {
        let (at, number) = due;
        let row = self.rows.get(&(entity, Part::Scheduled, number));
        let has_row = row.is_some_and(|(_, row)| row.enqueued_ms == at);
        let key = EntryKey::by_u64(at, number);
        let has_entry = self.entries.contains_key(&(entity, Index::Schedule, key));
        if has_row == has_entry {
            return Ok(());
        }
        let what = format!(
            "{number} of {entity:?}, due at {at}: row {has_row}, entry in the schedule {has_entry}"
        );
        Err(Violation::new("I10", what))
    }

    /// A restart finds the next scheduled message.
    pub(super) fn check_start(&self, entity: EntityId, head: &Head) -> Result<(), Violation> {
        match self.first_due(entity) {
            Some(due) if due < head.schedule_from => Err(Violation::new(
                "I10",
                format!(
                    "a restart would look from {:?} on and not find {due:?} of {entity:?}",
                    head.schedule_from
                ),
            )),
            _ => Ok(()),
        }
    }
}

fn note((entity, index, key): &FullEntryKey, page: &mut Page) {
    if let (Index::Schedule, Some(at)) = (index, key.group_u64()) {
        page.due.insert((*entity, (at, key.number)));
    }
}

//! History: the entries by which duplicates are found, and that they agree. (I11)
//!
//! Each accepted id has two: one by id, which says when and under which number, and one by that
//! time and number, which says the id. Every one of them has its other.

use store::image::EntryPlace;
use store::{EntityId, EntryKey, Head, Index, SequenceNumber};

use super::{Books, Page};
use crate::violation::Violation;

/// An entry by time that was removed.
pub type Forgotten = (EntityId, u64, SequenceNumber);

impl Books {
    /// When the message of that number was accepted, as far as its id is remembered.
    #[must_use]
    pub fn accepted_ms(&self, entity: EntityId, number: SequenceNumber) -> Option<u64> {
        self.accepted.get(&(entity, number)).copied()
    }

    /// Notes an entry of a history that is put.
    pub(super) fn note_history(&mut self, place: &EntryPlace, page: &mut Page) {
        // What an entry before it led to must be gone, or led to anew.
        page.history.extend(self.other_of(place));
        match place {
            (entity, Index::DuplicateTime, key) => {
                if let Some(at) = key.group_u64() {
                    self.accepted.insert((*entity, key.number), at);
                }
                page.history.insert(place.clone());
            }
            (_, Index::DuplicateId, _) => drop(page.history.insert(place.clone())),
            _ => {}
        }
    }

    /// Notes an entry of a history that is removed, if it was there.
    pub(super) fn note_forgotten(&mut self, place: &EntryPlace, page: &mut Page) {
        let other = self.other_of(place);
        page.history.extend(other);
        if let (entity, Index::DuplicateTime, key) = place
            && let Some(at) = key.group_u64()
            && self.accepted.remove(&(*entity, key.number)).is_some()
        {
            page.changes.forgotten.push((*entity, at, key.number));
        }
    }

    /// Where the other entry of a pair is.
    fn other_of(&self, place: &EntryPlace) -> Option<EntryPlace> {
        let (entity, index, _) = place;
        let value = self.entries.get(place)?;
        match index {
            Index::DuplicateId => {
                let (at, number) = value.split_first_chunk()?;
                let number = SequenceNumber(u64::from_be_bytes(number.try_into().ok()?));
                let key = EntryKey::by_u64(u64::from_be_bytes(*at), number);
                Some((*entity, Index::DuplicateTime, key))
            }
            Index::DuplicateTime => {
                let key = EntryKey::new(value.clone(), SequenceNumber(0));
                Some((*entity, Index::DuplicateId, key))
            }
            _ => None,
        }
    }

    /// An entry that is there has its other, which leads back to it.
    pub(super) fn check_pair(&self, place: &EntryPlace) -> Result<(), Violation> {
        if !self.entries.contains_key(place) {
            return Ok(());
        }
        let other = self.other_of(place);
        if other.and_then(|other| self.other_of(&other)).as_ref() == Some(place) {
            return Ok(());
        }
        let what = format!("{place:?} has no other that leads back to it");
        Err(Violation::new("I11", what))
    }

    /// The first entry by time of an entity's history.
    #[must_use]
    pub fn oldest_id_ms(&self, entity: EntityId) -> Option<u64> {
        let first = EntryKey::by_u64(0, SequenceNumber(0));
        let mut entries = self.entries.range((entity, Index::DuplicateTime, first)..);
        let ((of, index, key), _) = entries.next()?;
        let here = (*of, *index) == (entity, Index::DuplicateTime);
        key.group_u64().filter(|_| here)
    }

    /// A restart finds every id that is remembered.
    pub(super) fn check_oldest(&self, entity: EntityId, head: &Head) -> Result<(), Violation> {
        match self.oldest_id_ms(entity) {
            Some(at) if at < head.duplicates_from_ms => Err(Violation::new(
                "I11",
                format!("a restart would not find the id that {entity:?} accepted at {at}"),
            )),
            _ => Ok(()),
        }
    }
}

//! History: the entries by which duplicates are found, and the periods in which they stand. (I11)
//!
//! Each accepted id has one in the period in which that was, which says when and under which
//! number. A head names just the periods that have some: the broker does not look in any other.

use std::collections::BTreeSet;

use bytes::Bytes;
use store::image::FullEntryKey;
use store::{EntityId, EntryKey, Head, Index, SequenceNumber};

use super::{Books, Page};
use crate::violation::Violation;

/// Bytes of what an id is known by, which its key ends with.
const HASH: usize = 16;

/// Whose id was removed, when it was accepted, and under which number.
pub type Forgotten = (EntityId, u64, SequenceNumber);

impl Books {
    /// When the message of that number was accepted, as far as its id is remembered.
    #[must_use]
    pub fn accepted_ms(&self, entity: EntityId, number: SequenceNumber) -> Option<u64> {
        self.accepted.get(&(entity, number)).copied()
    }

    /// Notes an entry of a history that is put, with its value.
    pub(super) fn note_history(&mut self, place: &FullEntryKey, value: &[u8], page: &mut Page) {
        self.note_forgotten(place, page);
        let (entity, index, _) = place;
        if *index != Index::DuplicateId {
            return;
        }
        if let Some((at, number)) = acceptance(value) {
            self.accepted.insert((*entity, number), at);
        }
        page.history.insert(place.clone());
    }

    /// Notes an entry of a history that is removed or replaced, if it was there.
    pub(super) fn note_forgotten(&mut self, place: &FullEntryKey, page: &mut Page) {
        let (entity, index, _) = place;
        if *index != Index::DuplicateId {
            return;
        }
        page.history.insert(place.clone());
        let known = self.entries.get(place).and_then(|value| acceptance(value));
        if let Some((at, number)) = known
            && self.accepted.remove(&(*entity, number)).is_some()
        {
            page.changes.forgotten.push((*entity, at, number));
        }
    }

    /// An entry that is there says when, and that was not before its period.
    pub(super) fn check_remembered(&self, place: &FullEntryKey) -> Result<(), Violation> {
        let (entity, _, key) = place;
        if let Some(value) = self.entries.get(place) {
            let at = acceptance(value).map(|(at, _)| at);
            if period_of(key).is_none_or(|period| at.is_none_or(|at| at < period)) {
                let what = format!("{place:?} says that its id was accepted at {at:?}");
                return Err(Violation::new("I11", what));
            }
        }
        let none = Head::empty();
        self.check_period(*entity, self.heads.get(entity).unwrap_or(&none))
    }

    /// When the first id that an entity remembers was accepted.
    #[must_use]
    pub fn oldest_id_ms(&self, entity: EntityId) -> Option<u64> {
        let values = self.history(entity).map(|(_, value)| value);
        values.filter_map(|value| Some(acceptance(value)?.0)).min()
    }

    /// All ids that are remembered stand in periods that the head names, and each of these has
    /// some.
    pub(super) fn check_period(&self, entity: EntityId, head: &Head) -> Result<(), Violation> {
        let periods = self.history(entity).filter_map(|(key, _)| period_of(key));
        let periods: BTreeSet<_> = periods.collect();
        if periods.iter().eq(&head.periods) {
            return Ok(());
        }
        let named = &head.periods;
        let what = format!(
            "{entity:?} remembers ids of the periods {periods:?}, its head names {named:?}"
        );
        Err(Violation::new("I11", what))
    }

    fn history(&self, entity: EntityId) -> impl Iterator<Item = (&EntryKey, &Bytes)> {
        let first = EntryKey::new(Bytes::new(), SequenceNumber(0));
        let entries = self.entries.range((entity, Index::DuplicateId, first)..);
        let here = move |((of, index, _), _): &(&FullEntryKey, &Bytes)| {
            (*of, *index) == (entity, Index::DuplicateId)
        };
        let here = entries.take_while(here);
        here.map(|((_, _, key), value)| (key, value))
    }
}

/// The beginning of the period in which an id stands; those without one are of a period that began
/// at 0.
fn period_of(key: &EntryKey) -> Option<u64> {
    let (period, _) = key.group.split_last_chunk::<HASH>()?;
    match period {
        [] => Some(0),
        period => Some(u64::from_be_bytes(period.try_into().ok()?)),
    }
}

/// When an id was accepted, and under which number.
fn acceptance(value: &[u8]) -> Option<(u64, SequenceNumber)> {
    let (at, number) = value.split_first_chunk()?;
    let number = u64::from_be_bytes(number.try_into().ok()?);
    Some((u64::from_be_bytes(*at), SequenceNumber(number)))
}

//! Entries of a group, one index of an entity after the other.
//!
//! Remembered ids come in random order: each would be a search from the top of a memtable, through
//! memory that no cache holds. So keys without an order are sorted, and the next place is near the
//! last one; of several changes of one entry the last counts then. Most indexes come in order, or
//! in a few runs of it, as numbers and times do, and stay as they come: each place is right behind
//! the one before. The removal of a range of keys comes before all else of its index, without the
//! entries that the group had put there until then.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use journal::key;
use store::{EntityId, EntryKey, Index};

use super::Merge;
use crate::tables::{Batch, Family, Tables};

/// Keys are in no order if more than one in this many is less than the one before.
const IN_A_RUN: usize = 4;

/// The entries that a group puts and removes.
#[derive(Default)]
pub(super) struct Entries<'a>(BTreeMap<(EntityId, Index), Changes<'a>>);

/// What becomes of entries of one index.
#[derive(Default)]
struct Changes<'a> {
    /// All keys, one behind the other.
    keys: Vec<u8>,
    changes: Vec<Change<'a>>,
    /// What was removed as a whole, from a key until another, before what is left of the changes.
    removed: Vec<Range<Vec<u8>>>,
}

/// What becomes of one entry.
#[derive(Clone, Copy)]
struct Change<'a> {
    /// Where its key begins, and where it ends.
    key: (usize, usize),
    /// Nothing if it is removed.
    value: Option<&'a Bytes>,
}

impl<'a> Entries<'a> {
    /// Adds what is done to an entry next.
    pub fn add(
        &mut self,
        entity: EntityId,
        index: Index,
        entry_key: &EntryKey,
        value: Option<&'a Bytes>,
    ) {
        let Changes { keys, changes, .. } = self.0.entry((entity, index)).or_default();
        let start = keys.len();
        key::append_entry(entity, index, entry_key, keys);
        let key = (start, keys.len());
        changes.push(Change { key, value });
    }

    /// Removes what is within these keys.
    pub fn remove(&mut self, entity: EntityId, index: Index, keys: &Range<EntryKey>) {
        let key = |entry_key| key::entry(entity, index, entry_key);
        let range = key(&keys.start)..key(&keys.end);
        if !range.is_empty() {
            self.0.entry((entity, index)).or_default().remove(range);
        }
    }
}

impl<'a> Changes<'a> {
    fn key(&self, change: &Change<'a>) -> &[u8] {
        &self.keys[change.key.0..change.key.1]
    }

    fn remove(&mut self, range: Range<Vec<u8>>) {
        let Self { keys, changes, .. } = self;
        let (start, end) = (range.start.as_slice(), range.end.as_slice());
        let is_within = |key: &[u8]| start <= key && key < end;
        changes.retain(|change| !is_within(&keys[change.key.0..change.key.1]));
        self.removed.push(range);
    }

    /// What is to be written, one after the other.
    fn outcomes(&mut self) -> impl Iterator<Item = (&[u8], Option<&'a Bytes>)> {
        if self.is_in_no_order() {
            self.sort();
        }
        self.changes
            .iter()
            .map(|change| (self.key(change), change.value))
    }

    fn is_in_no_order(&self) -> bool {
        let neighbours = self.changes.windows(2);
        let descents = neighbours.filter(|two| self.key(&two[1]) < self.key(&two[0]));
        descents.count() * IN_A_RUN > self.changes.len()
    }

    /// In order, and of what is done to one entry only the last.
    fn sort(&mut self) {
        let Self { keys, changes, .. } = self;
        let key = |change: &Change<'a>| &keys[change.key.0..change.key.1];
        // The last first, since the first of several stays.
        changes.reverse();
        changes.sort_by(|one, other| key(one).cmp(key(other)));
        changes.dedup_by(|next, first| key(next) == key(first));
    }
}

impl<T: Tables> Merge<'_, '_, T> {
    pub fn write_entries(&mut self) {
        let state = Family::State;
        for mut changes in std::mem::take(&mut self.entries.0).into_values() {
            for range in &changes.removed {
                self.batch
                    .delete_range(state, range.start.as_slice(), range.end.as_slice());
            }
            for (key, value) in changes.outcomes() {
                match value {
                    Some(value) => self.batch.put(state, key, value),
                    None => self.batch.delete(state, key),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::SequenceNumber;

    use super::*;

    type Done<'a> = (&'static str, Option<&'a Bytes>);

    fn entry_key(group: &'static str) -> EntryKey {
        EntryKey::new(Bytes::from(group), SequenceNumber(0))
    }

    /// What comes of it in one index.
    fn outcomes<'a>(done: &[Done<'a>]) -> Vec<(EntryKey, Option<&'a Bytes>)> {
        let mut entries = Entries::default();
        for (group, value) in done {
            entries.add(EntityId(1), Index::Session, &entry_key(group), *value);
        }
        let mut changes = entries.0.into_values().next().expect("there is an entry");
        let outcomes = changes.outcomes();
        let parsed = |key| key::parse_entry(key).expect("it is an entry's").2;
        outcomes.map(|(key, value)| (parsed(key), value)).collect()
    }

    fn entry_keys<'a>(expected: &[Done<'a>]) -> Vec<(EntryKey, Option<&'a Bytes>)> {
        let expected = expected.iter();
        expected
            .map(|(group, value)| (entry_key(group), *value))
            .collect()
    }

    #[test]
    fn what_is_in_no_order_is_sorted_and_the_last_that_is_done_to_an_entry_counts() {
        let (one, two) = (Bytes::from("one"), Bytes::from("two"));
        let done = [
            ("d", Some(&one)),
            ("b", Some(&one)),
            ("a", Some(&one)),
            ("b", None),
            ("a", Some(&two)),
            ("c", None),
            ("b", None),
            ("a", None),
            ("c", Some(&two)),
        ];
        let expected = [
            ("a", None),
            ("b", None),
            ("c", Some(&two)),
            ("d", Some(&one)),
        ];
        assert_eq!(outcomes(&done), entry_keys(&expected));
    }

    #[test]
    fn what_comes_in_runs_stays_as_it_comes() {
        let one = Bytes::from("one");
        let puts = ["c", "d", "e", "f", "g"].map(|group| (group, Some(&one)));
        let removals = ["a", "b", "c", "d"].map(|group| (group, None));
        let done = [&puts[..], &removals[..]].concat();
        assert_eq!(outcomes(&done), entry_keys(&done));
    }

    #[test]
    fn each_index_is_by_itself() {
        let one = Bytes::from("one");
        let mut entries = Entries::default();
        for (index, group) in [
            (Index::Session, "b"),
            (Index::Schedule, "z"),
            (Index::Session, "c"),
        ] {
            entries.add(EntityId(1), index, &entry_key(group), Some(&one));
        }
        let counts: Vec<_> = entries
            .0
            .iter()
            .map(|(which, changes)| (which.1, changes.changes.len()))
            .collect();
        assert_eq!(counts, [(Index::Schedule, 1), (Index::Session, 2)]);
    }
}

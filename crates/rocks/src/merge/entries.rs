//! What a group makes of entries, in the order of their keys.
//!
//! Ids that are remembered come in random order, between entries of other indexes: each would be a search of
//! its own from the top of a memtable, through memory that no cache holds. In order the next place is near the
//! last one, and where a time is what is counted it is right behind it. What a group does to one entry comes to
//! what it does last.

use bytes::Bytes;
use store::{EntityId, EntryKey, Index};

use super::Merge;
use crate::key;

/// The entries that a group puts and removes.
#[derive(Default)]
pub(super) struct Entries<'a> {
    /// All keys, one behind the other.
    keys: Vec<u8>,
    changes: Vec<Change<'a>>,
}

/// What becomes of one entry.
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
        place: &EntryKey,
        value: Option<&'a Bytes>,
    ) {
        let start = self.keys.len();
        key::append_entry(entity, index, place, &mut self.keys);
        let key = (start, self.keys.len());
        self.changes.push(Change { key, value });
    }

    fn sort(&mut self) {
        let Self { keys, changes } = self;
        let key = |change: &Change<'_>| &keys[change.key.0..change.key.1];
        // Stable, so that what is done to one entry stays in order.
        changes.sort_by(|one, other| key(one).cmp(key(other)));
    }

    /// Each entry with what is done to it last. Only after [`sort`](Self::sort).
    fn outcomes(&self) -> impl Iterator<Item = (&[u8], Option<&'a Bytes>)> {
        let key = |change: &Change<'_>| &self.keys[change.key.0..change.key.1];
        let runs = self
            .changes
            .chunk_by(move |one, other| key(one) == key(other));
        runs.filter_map(move |run| run.last().map(|last| (key(last), last.value)))
    }
}

impl Merge<'_> {
    pub fn write_entries(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort();
        let state = self.families.state;
        for (key, value) in entries.outcomes() {
            match value {
                Some(value) => self.batch.put_cf(state, key, value),
                None => self.batch.delete_cf(state, key),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::SequenceNumber;

    use super::*;

    #[test]
    fn entries_come_in_order_and_each_with_what_was_done_to_it_last() {
        let place = |group: &'static str| EntryKey::new(Bytes::from(group), SequenceNumber(0));
        let (one, two) = (Bytes::from("one"), Bytes::from("two"));
        let done = [
            ("d", Some(&one)),
            ("b", Some(&one)),
            ("a", Some(&one)),
            ("b", None),
            ("c", None),
            ("a", Some(&two)),
            ("c", Some(&two)),
        ];
        let mut entries = Entries::default();
        for (group, value) in done {
            entries.add(EntityId(1), Index::Session, &place(group), value);
        }
        entries.add(EntityId(1), Index::Schedule, &place("z"), None);
        entries.sort();
        let outcomes: Vec<_> = entries
            .outcomes()
            .map(|(key, value)| (key::parse_entry(key), value))
            .collect();
        let outcome = |index, group, value| (Some((EntityId(1), index, place(group))), value);
        let expected = [
            outcome(Index::Schedule, "z", None),
            outcome(Index::Session, "a", Some(&two)),
            outcome(Index::Session, "b", None),
            outcome(Index::Session, "c", Some(&two)),
            outcome(Index::Session, "d", Some(&one)),
        ];
        assert_eq!(outcomes, expected);
    }
}

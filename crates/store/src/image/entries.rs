//! Entries of an image: the answers to queries about them.

use std::ops::{Bound, Range};

use bytes::Bytes;

use super::{FullEntryKey, Image};
use crate::entry::{Entry, EntryKey, Index};
use crate::id::{EntityId, SequenceNumber};
use crate::query::Query;

impl Image {
    /// The rules of all entities.
    pub(super) fn rules(&self) -> Vec<(EntityId, Entry)> {
        let rules = self.entries.iter();
        let rules = rules.filter(|((_, index, _), _)| *index == Index::Rule);
        let entry = |(place, value): (&FullEntryKey, &Bytes)| Entry {
            key: place.2.clone(),
            value: value.clone(),
        };
        rules.map(|rule| (rule.0.0, entry(rule))).collect()
    }

    /// Removes every entry of an entity.
    pub(super) fn remove_entries_of(&mut self, entity: EntityId) {
        let keys: Vec<_> = self
            .entries_of(entity)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.entries.remove(&key);
        }
    }

    /// Every entry of an entity.
    pub(super) fn entries_of(
        &self,
        entity: EntityId,
    ) -> impl Iterator<Item = (&FullEntryKey, &Bytes)> {
        let least = EntryKey::new(Bytes::new(), SequenceNumber(0));
        let entries = self.entries.range((entity, Index::ALL[0], least)..);
        entries.take_while(move |((owner, _, _), _)| *owner == entity)
    }

    /// Answers a query about entries; any other finds none.
    pub(super) fn read_entries(&self, query: &Query) -> Vec<Entry> {
        match query {
            Query::Entries {
                entity,
                index,
                from,
                until,
                limit,
                max_bytes,
            } => {
                let found = self.entries_within(*entity, *index, from, until);
                first_entries(found, *limit, *max_bytes)
            }
            Query::EntryPoints {
                entity,
                index,
                keys,
            } => self.named_entries(*entity, *index, keys),
            Query::Groups {
                entity,
                index,
                after,
                limit,
            } => self.first_of_groups(*entity, *index, after.clone(), *limit),
            Query::Range { .. } | Query::Points { .. } | Query::Bodies { .. } => Vec::new(),
        }
    }

    /// Entries of one index with `from <= key < until`, in order.
    pub fn entries_within(
        &self,
        entity: EntityId,
        index: Index,
        from: &EntryKey,
        until: &EntryKey,
    ) -> impl Iterator<Item = Entry> {
        // A range that ends before it starts is empty here and a panic in a B-tree.
        let until = until.max(from).clone();
        let range = (entity, index, from.clone())..(entity, index, until);
        let entries = self.entries.range(range);
        entries.map(|((_, _, key), value)| Entry {
            key: key.clone(),
            value: value.clone(),
        })
    }

    /// Removes the entries of one index within a range of keys.
    pub(super) fn remove_entries(
        &mut self,
        entity: EntityId,
        index: Index,
        keys: &Range<EntryKey>,
    ) {
        let found = self.entries_within(entity, index, &keys.start, &keys.end);
        let found: Vec<_> = found.map(|entry| (entity, index, entry.key)).collect();
        for place in found {
            self.entries.remove(&place);
        }
    }

    fn named_entries(&self, entity: EntityId, index: Index, keys: &[EntryKey]) -> Vec<Entry> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        let mut found = Vec::new();
        for key in keys {
            let value = self.entries.get(&(entity, index, key.clone())).cloned();
            found.extend(value.map(|value| Entry { key, value }));
        }
        found
    }

    fn first_of_groups(
        &self,
        entity: EntityId,
        index: Index,
        mut after: Option<Bytes>,
        limit: usize,
    ) -> Vec<Entry> {
        let mut found = Vec::new();
        while found.len() < limit {
            let from = match after {
                Some(group) => Bound::Excluded(EntryKey::new(group, SequenceNumber::MAX)),
                None => Bound::Included(EntryKey::new(Bytes::new(), SequenceNumber(0))),
            };
            let from = from.map(|key| (entity, index, key));
            let next = self.entries.range((from, Bound::Unbounded)).next();
            match next {
                Some(((owner, of, key), value)) if (*owner, *of) == (entity, index) => {
                    after = Some(key.group.clone());
                    let (key, value) = (key.clone(), value.clone());
                    found.push(Entry { key, value });
                }
                _ => break,
            }
        }
        found
    }
}

/// The first of `entries`, within both bounds, and one at least.
fn first_entries(
    entries: impl Iterator<Item = Entry>,
    limit: usize,
    max_bytes: usize,
) -> Vec<Entry> {
    let mut collected = 0_usize;
    let mut found = Vec::new();
    for entry in entries.take(limit) {
        collected = collected.saturating_add(entry.size());
        found.push(entry);
        if collected >= max_bytes {
            break;
        }
    }
    found
}

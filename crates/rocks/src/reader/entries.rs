//! Entries of a snapshot: bounded scans, names, and one seek per group.
//!
//! An entry is a row of one of an entity's secondary tables: a session, a schedule, an id that
//! duplicate detection remembers. What is read here is that of one moment. A range whose groups
//! are numbers, such as a schedule's, tells where it can be read again behind a damaged block.

use bytes::Bytes;
use index::key_search::readable_from;
use index::recovery::{entry_of, parse_entry};
use journal::key;
use rocksdb::{DB, ReadOptions, Snapshot};
use store::{EntityId, Entry, EntryKey, Index, Query, SequenceNumber, StoreError};

use crate::index::database::{Families, unreadable};
use crate::reader::scan::Scan;

/// Bytes of the key of an entry whose group is a number.
const NUMBERED: usize = 28;

/// The entries of all entities at one moment.
pub(crate) struct Entries<'a> {
    pub db: &'a DB,
    pub families: Families<'a>,
    pub snapshot: &'a Snapshot<'a>,
}

impl Entries<'_> {
    /// Answers a query about entries; any other finds none.
    pub fn read(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        match query {
            Query::Entries {
                entity,
                index,
                from,
                until,
                limit,
                max_bytes,
            } => {
                let first = key::entry(*entity, *index, from);
                let end = key::entry(*entity, *index, until);
                let mut found = Vec::new();
                let bounds = (first.clone(), end.clone());
                let Err(error) = self.range(bounds, *limit, *max_bytes, &mut found) else {
                    return Ok(found);
                };
                let next = found
                    .last()
                    .map_or(first, |last| behind_entry(*entity, *index, last));
                if next >= end && error.is_damage() {
                    // A scan looks at the block behind the last entry, too.
                    return Ok(found);
                }
                Err(self.unreadable(found.len(), next, &end, error)?)
            }
            Query::EntryPoints {
                entity,
                index,
                keys,
            } => self.points(*entity, *index, keys),
            Query::Groups {
                entity,
                index,
                after,
                limit,
            } => self.groups(*entity, *index, after.clone(), *limit),
            Query::Range { .. } | Query::Points { .. } | Query::Bodies { .. } => Ok(Vec::new()),
        }
    }

    fn range(
        &self,
        (from, until): (Vec<u8>, Vec<u8>),
        limit: usize,
        max_bytes: usize,
        found: &mut Vec<Entry>,
    ) -> Result<(), StoreError> {
        let mut scan = self.scan(from, until);
        let mut collected = 0_usize;
        while found.len() < limit
            && (collected < max_bytes || found.is_empty())
            && let Some((key, value)) = scan.next()?
        {
            let entry = entry_of(key, value)?;
            collected = collected.saturating_add(entry.size());
            found.push(entry);
        }
        Ok(())
    }

    /// Tells which entries cannot be read, if `error` is damage from `from` on and their groups are
    /// numbers: up to the next one that can be read.
    ///
    /// # Errors
    /// When that cannot be found out now.
    fn unreadable(
        &self,
        intact: usize,
        from: Vec<u8>,
        until: &[u8],
        error: StoreError,
    ) -> Result<StoreError, StoreError> {
        let first = <[u8; NUMBERED]>::try_from(from);
        let end = <[u8; NUMBERED]>::try_from(until);
        let (Ok(first), Ok(end)) = (first, end) else {
            return Ok(error);
        };
        let StoreError::Corrupt { detail, .. } = error else {
            return Ok(error);
        };
        let readable = readable_from(first, end, |key| {
            let bounds = (key.to_vec(), until.to_vec());
            self.range(bounds, 1, usize::MAX, &mut Vec::new())
        })?;
        let (entity, index, until) = parse_entry(&readable)?;
        Ok(StoreError::UnreadableEntries {
            entity,
            index,
            intact,
            until,
            detail,
        })
    }

    fn points(
        &self,
        entity: EntityId,
        index: Index,
        keys: &[EntryKey],
    ) -> Result<Vec<Entry>, StoreError> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        let encoded = keys
            .iter()
            .map(|entry_key| key::entry(entity, index, entry_key));
        let encoded: Vec<_> = encoded.collect();
        let state = self.families.state;
        let values = self
            .db
            .batched_multi_get_cf_opt(state, &encoded, true, &self.options());
        let mut found = Vec::new();
        for (key, value) in keys.into_iter().zip(values) {
            if let Some(value) = value.map_err(unreadable)? {
                let value = Bytes::copy_from_slice(&value);
                found.push(Entry { key, value });
            }
        }
        Ok(found)
    }

    fn groups(
        &self,
        entity: EntityId,
        index: Index,
        after: Option<Bytes>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let from = match after {
            Some(group) => behind(entity, index, group),
            None => key::index_of(entity, index).to_vec(),
        };
        let mut scan = self.scan(from, key::after_index(entity, index).to_vec());
        let mut found: Vec<Entry> = Vec::new();
        while found.len() < limit
            && let Some((key, value)) = scan.next()?
        {
            let entry = entry_of(key, value)?;
            scan.skip_to(&behind(entity, index, entry.key.group.clone()));
            found.push(entry);
        }
        Ok(found)
    }

    fn scan(&self, from: Vec<u8>, until: Vec<u8>) -> Scan<'_> {
        Scan::with(self.db, self.families.state, from, until, self.options())
    }

    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(self.snapshot);
        options
    }
}

/// The least key above an entry's whose group has the same length.
fn behind_entry(entity: EntityId, index: Index, entry: &Entry) -> Vec<u8> {
    let number = key::after_number(entry.key.number);
    key::entry(
        entity,
        index,
        &EntryKey::new(entry.key.group.clone(), number),
    )
}

/// The least key above all of a group's.
fn behind(entity: EntityId, index: Index, group: Bytes) -> Vec<u8> {
    let last = EntryKey::new(group, SequenceNumber::MAX);
    let mut key = key::entry(entity, index, &last);
    key.push(0);
    key
}

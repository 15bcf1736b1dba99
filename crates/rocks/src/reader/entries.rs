//! Entries of a snapshot: bounded scans, names, and one seek per group.
//!
//! An entry is a row of one of an entity's secondary tables: a session, a schedule, an id that
//! duplicate detection remembers. What is read here is that of one moment.

use bytes::Bytes;
use journal::key;
use journal::value::damaged;
use rocksdb::{DB, ReadOptions, Snapshot};
use store::{EntityId, Entry, EntryKey, Index, Query, SequenceNumber, StoreError};

use crate::index::database::{Families, unreadable};
use crate::reader::scan::Scan;

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
                let from = key::entry(*entity, *index, from);
                let until = key::entry(*entity, *index, until);
                self.range(from, until, *limit, *max_bytes)
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
        from: Vec<u8>,
        until: Vec<u8>,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut scan = self.scan(from, until);
        let mut found = Vec::new();
        let mut collected = 0_usize;
        while found.len() < limit
            && (collected < max_bytes || found.is_empty())
            && let Some((key, value)) = scan.next()?
        {
            let entry = entry_of(key, value)?;
            collected = collected.saturating_add(entry.size());
            found.push(entry);
        }
        Ok(found)
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

/// The least key above all of a group's.
fn behind(entity: EntityId, index: Index, group: Bytes) -> Vec<u8> {
    let last = EntryKey::new(group, SequenceNumber::MAX);
    let mut key = key::entry(entity, index, &last);
    key.push(0);
    key
}

pub(crate) fn entry_of(key: &[u8], value: &[u8]) -> Result<Entry, StoreError> {
    let parsed = key::parse_entry(key);
    let (_, _, key) = parsed.ok_or_else(|| damaged("an entry's key", format!("{key:02x?}")))?;
    let value = Bytes::copy_from_slice(value);
    Ok(Entry { key, value })
}

//! Reader: answers queries from a snapshot of the database.
//!
//! A read waits until the commit it names is applied, takes a snapshot and walks over it with
//! bounded scans and sorted point reads. A body that is missing under a row is damage, unless the
//! row itself was removed meanwhile: files given back are gone from older snapshots too.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use rocksdb::{ColumnFamily, DB, ReadOptions, Snapshot};
use store::{
    BodyPointer, CommitId, EntityId, Found, MessageRow, Part, Query, Reader, SequenceNumber,
    StoreError, StoredMessage,
};

use crate::chunk::{self, CHUNK, Chunk};
use crate::database::{Families, refused};
use crate::entries::Entries;
use crate::key::{self, Kind};
use crate::opened::Opened;
use crate::progress::Progress;
use crate::scan::Scan;
use crate::value;

/// Rows that are completed with one round of reads.
const ROWS_PER_ROUND: usize = 1_024;
/// The same when bodies are read too.
const BODIES_PER_ROUND: usize = 64;

/// Reads from a store, from any thread.
pub(crate) struct RocksReader {
    pub opened: Arc<Opened>,
    pub progress: Arc<Progress>,
}

impl Reader for RocksReader {
    fn read(&self, after: CommitId, query: &Query) -> Result<Found, StoreError> {
        self.progress.wait_for(after)?;
        let database = &self.opened.database;
        let _files = database
            .files
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let db = &database.db;
        let families = database.families();
        let snapshot = &db.snapshot();
        let view = |entity: &EntityId, part: &Part, bodies: &bool| View {
            db,
            families,
            snapshot,
            entity: *entity,
            part: *part,
            bodies: *bodies,
        };
        let messages = match query {
            Query::Range {
                entity,
                part,
                from,
                until,
                limit,
                bodies,
                max_bytes,
            } => view(entity, part, bodies).range(*from, *until, *limit, *max_bytes),
            Query::Points {
                entity,
                part,
                numbers,
                bodies,
                max_bytes,
            } => view(entity, part, bodies).points(numbers, *max_bytes),
            Query::Entries { .. } | Query::EntryPoints { .. } | Query::Groups { .. } => {
                let entries = Entries {
                    db,
                    families,
                    snapshot,
                };
                return entries.read(query).map(Found::Entries);
            }
        };
        messages.map(Found::Messages)
    }
}

/// One part of one entity at one moment.
struct View<'a> {
    db: &'a DB,
    families: Families<'a>,
    snapshot: &'a Snapshot<'a>,
    entity: EntityId,
    part: Part,
    bodies: bool,
}

type Row = (SequenceNumber, MessageRow);

impl View<'_> {
    fn range(
        &self,
        from: SequenceNumber,
        until: SequenceNumber,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let (from, until) = (self.key(from), self.key(until));
        let mut scan = Scan::with(self.db, self.families.message, from, until, self.options());
        let mut found = Vec::new();
        let mut collected = 0_usize;
        loop {
            let rows = self.next_rows(&mut scan, limit - found.len(), max_bytes - collected)?;
            if rows.is_empty() {
                return Ok(found);
            }
            for message in self.complete(rows)? {
                collected = collected.saturating_add(message.body.as_ref().map_or(0, Bytes::len));
                found.push(message);
                if self.bodies && collected >= max_bytes {
                    return Ok(found);
                }
            }
        }
    }

    /// As many rows as the next round takes; by their sizes, when there are bodies to be read.
    fn next_rows(
        &self,
        scan: &mut Scan<'_>,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let limit = limit.min(if self.bodies {
            BODIES_PER_ROUND
        } else {
            ROWS_PER_ROUND
        });
        let mut rows = Vec::new();
        let mut bytes = 0_usize;
        while rows.len() < limit
            && (bytes < max_bytes || rows.is_empty() || !self.bodies)
            && let Some((key, row)) = scan.next()?
        {
            let (.., number) = key::parse_message(key)
                .ok_or_else(|| value::damaged("a message's key", format!("{key:02x?}")))?;
            let row = value::decode_row(self.entity, number, row)?;
            bytes = bytes.saturating_add(row.size as usize);
            rows.push((number, row));
        }
        Ok(rows)
    }

    fn points(
        &self,
        numbers: &[SequenceNumber],
        max_bytes: usize,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let mut rows = self.named_rows(numbers)?.into_iter().peekable();
        let mut found = Vec::new();
        let mut collected = 0_usize;
        while rows.peek().is_some() {
            let round = self.next_round(&mut rows, max_bytes - collected);
            for message in self.complete(round)? {
                collected = collected.saturating_add(message.body.as_ref().map_or(0, Bytes::len));
                found.push(message);
                if self.bodies && collected >= max_bytes {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// The rows of those numbers that are there, ascending.
    fn named_rows(&self, numbers: &[SequenceNumber]) -> Result<Vec<Row>, StoreError> {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let mut rows = Vec::new();
        for numbers in numbers.chunks(ROWS_PER_ROUND) {
            let keys: Vec<_> = numbers.iter().map(|number| self.key(*number)).collect();
            let values = self.get_sorted(self.families.message, &keys);
            for (number, value) in numbers.iter().zip(values) {
                if let Some(value) = value? {
                    rows.push((*number, value::decode_row(self.entity, *number, &value)?));
                }
            }
        }
        Ok(rows)
    }

    /// As many of the known rows as are completed at once.
    fn next_round(&self, rows: &mut impl Iterator<Item = Row>, max_bytes: usize) -> Vec<Row> {
        let mut round = Vec::new();
        let mut bytes = 0_usize;
        for row in rows {
            bytes = bytes.saturating_add(row.1.size as usize);
            round.push(row);
            let full = round.len() >= BODIES_PER_ROUND || bytes >= max_bytes;
            if round.len() >= ROWS_PER_ROUND || self.bodies && full {
                break;
            }
        }
        round
    }

    /// Adds to rows in ascending order what is kept elsewhere.
    fn complete(&self, rows: Vec<Row>) -> Result<Vec<StoredMessage>, StoreError> {
        let numbers: Vec<_> = rows.iter().map(|(number, _)| *number).collect();
        let counts = self.attached(Kind::DeliveryCount, &numbers)?;
        let mut patches = BTreeMap::new();
        let mut bodies = Vec::new();
        if self.bodies {
            patches = self.attached(Kind::Patch, &numbers)?;
            bodies = self.load_bodies(&rows)?;
        }
        let mut bodies = bodies.into_iter();
        let mut messages = Vec::with_capacity(rows.len());
        for (number, row) in rows {
            let body = if self.bodies {
                bodies.next().flatten()
            } else {
                None
            };
            if self.bodies && body.is_none() {
                self.expect_gone(number, row.body)?;
                continue;
            }
            let count = counts
                .get(&number)
                .map(|value| value::decode_u32("a delivery count", value));
            messages.push(StoredMessage {
                part: self.part,
                number,
                row,
                delivery_count: count.transpose()?.unwrap_or(0),
                patch: patches
                    .get(&number)
                    .map(|patch| Bytes::copy_from_slice(patch)),
                body,
            });
        }
        Ok(messages)
    }

    /// What there is of a kind for some of `numbers`, which are ascending.
    fn attached(
        &self,
        kind: Kind,
        numbers: &[SequenceNumber],
    ) -> Result<BTreeMap<SequenceNumber, Vec<u8>>, StoreError> {
        let mut attached = BTreeMap::new();
        let state = self.families.state;
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
            return Ok(attached);
        };
        let dense = (last.0 - first.0) / 4 <= numbers.len() as u64;
        if !dense {
            let keys: Vec<_> = numbers
                .iter()
                .map(|number| key::of_number(kind, self.entity, *number))
                .collect();
            for (number, value) in numbers.iter().zip(self.get_sorted(state, &keys)) {
                value?.map(|value| attached.insert(*number, value));
            }
            return Ok(attached);
        }
        let from = key::of_number(kind, self.entity, *first);
        let until = key::of_number(kind, self.entity, key::after_number(*last));
        let mut scan = Scan::with(self.db, state, from, until, self.options());
        while let Some((key, value)) = scan.next()? {
            let (_, number) = key::parse_of_number(kind, key)
                .ok_or_else(|| value::damaged("a number's key", format!("{key:02x?}")))?;
            attached.insert(number, value.to_vec());
        }
        Ok(attached)
    }

    /// The bodies of `rows`, without those that are not there. Neighbours are walked over, which
    /// costs a fraction of looking for each.
    fn load_bodies(&self, rows: &[Row]) -> Result<Vec<Option<Bytes>>, StoreError> {
        if are_neighbours(rows) {
            self.scan_bodies(rows)
        } else {
            self.find_bodies(rows)
        }
    }

    fn scan_bodies(&self, rows: &[Row]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let mut bodies = vec![None; rows.len()];
        let (Some((_, first)), Some((_, last))) = (rows.first(), rows.last()) else {
            return Ok(bodies);
        };
        let (from, until) = (key::body(first.body, 0), key::body(last.body, 1));
        let mut scan = Scan::with(self.db, self.families.body, from, until, self.options());
        let mut wanted = rows.iter().zip(&mut bodies).peekable();
        while let Some((key, value)) = scan.next()? {
            let (pointer, _) = key::parse_body(key)
                .ok_or_else(|| value::damaged("a body's key", format!("{key:02x?}")))?;
            while wanted.next_if(|((_, row), _)| row.body < pointer).is_some() {}
            if let Some((_, body)) = wanted.next_if(|((_, row), _)| row.body == pointer) {
                *body = self.join_chunks(pointer, value)?;
            }
        }
        Ok(bodies)
    }

    fn find_bodies(&self, rows: &[Row]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let keys: Vec<_> = rows.iter().map(|(_, row)| key::body(row.body, 0)).collect();
        let options = self.options();
        let values =
            self.db
                .batched_multi_get_cf_opt(self.families.body, &keys, keys.is_sorted(), &options);
        let load = |((_, row), value): (&Row, Result<Option<rocksdb::DBPinnableSlice<'_>>, _>)| {
            match value.map_err(refused)? {
                Some(value) => self.join_chunks(row.body, &value),
                None => Ok(None),
            }
        };
        rows.iter().zip(values).map(load).collect()
    }

    fn join_chunks(&self, pointer: BodyPointer, first: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let (chunks, total, bytes) = match chunk::decode(pointer, 0, first)? {
            Chunk::Whole(body) => return Ok(Some(Bytes::copy_from_slice(body))),
            Chunk::First {
                chunks,
                total,
                bytes,
            } => (chunks, total, bytes),
            Chunk::Further(_) => unreachable!("the first chunk is never a further one"),
        };
        let mut body = Vec::with_capacity(capacity(chunks, total));
        body.extend_from_slice(bytes);
        for index in 1..chunks {
            let key = key::body(pointer, index);
            let value = self
                .db
                .get_pinned_cf_opt(self.families.body, key, &self.options());
            let Some(value) = value.map_err(refused)? else {
                return Ok(None);
            };
            if let Chunk::Further(bytes) = chunk::decode(pointer, index, &value)? {
                body.extend_from_slice(bytes);
            }
        }
        if body.len() as u64 != total {
            return Err(value::damaged(
                "a body",
                format!("{pointer:?} has a wrong length"),
            ));
        }
        Ok(Some(Bytes::from(body)))
    }

    /// A row whose body is missing must have been removed since the snapshot.
    fn expect_gone(&self, number: SequenceNumber, body: BodyPointer) -> Result<(), StoreError> {
        let row = self
            .db
            .get_pinned_cf(self.families.message, self.key(number))
            .map_err(refused)?;
        match row {
            Some(_) => Err(value::damaged("a body", format!("{body:?} is missing"))),
            None => Ok(()),
        }
    }

    fn get_sorted<const N: usize>(
        &self,
        family: &ColumnFamily,
        keys: &[[u8; N]],
    ) -> Vec<Result<Option<Vec<u8>>, StoreError>> {
        let values = self
            .db
            .batched_multi_get_cf_opt(family, keys, true, &self.options());
        let own = |value: Option<rocksdb::DBPinnableSlice<'_>>| value.map(|value| value.to_vec());
        values
            .into_iter()
            .map(|value| value.map(own).map_err(refused))
            .collect()
    }

    fn key(&self, number: SequenceNumber) -> [u8; 17] {
        key::message(self.entity, self.part, number)
    }

    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(self.snapshot);
        options
    }
}

/// Whether the bodies of `rows` lie next to each other, in one chunk each and in this order.
fn are_neighbours(rows: &[Row]) -> bool {
    let (Some((_, first)), Some((_, last))) = (rows.first(), rows.last()) else {
        return false;
    };
    let span = last.body.number.0.saturating_sub(first.body.number.0);
    first.body.home == last.body.home
        && span / 4 <= rows.len() as u64
        && rows.is_sorted_by(|(_, one), (_, other)| one.body < other.body)
        && rows.iter().all(|(_, row)| row.size as usize <= CHUNK)
}

/// What to allocate for a large body: never more than its chunks can hold.
fn capacity(chunks: u32, total: u64) -> usize {
    let most = (chunks as usize).saturating_mul(CHUNK);
    usize::try_from(total).unwrap_or(usize::MAX).min(most)
}

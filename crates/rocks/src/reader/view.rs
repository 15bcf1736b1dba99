//! View: rows of one part of one entity, and their bodies and counts.
//!
//! Numbers that lie close together are scanned, others looked up one by one: a step of a scan
//! costs a tenth of a look-up.

use std::collections::BTreeMap;

use bytes::Bytes;
use index::key_search::{readable_from, unless_damaged};
use journal::chunk;
use journal::key::{self, KeyKind};
use journal::value;
use journal::{Files, JournalLocation};
use rocksdb::{ColumnFamily, DB, ReadOptions, Snapshot};
use store::{
    BodyLocation, EntityId, KnownMessage, MessageRow, Part, SequenceNumber, StoreError,
    StoredMessage,
};

use crate::index::database::{Families, unreadable};
use crate::reader::scan::Scan;

/// Rows that are completed with one round of reads.
const ROWS_PER_ROUND: usize = 1_024;
/// The same when bodies are read too, and patches, whose sizes no row tells.
const BODIES_PER_ROUND: usize = 512;

/// One part of one entity at one moment.
pub(super) struct View<'a> {
    pub db: &'a DB,
    pub files: &'a Files,
    pub families: Families<'a>,
    pub snapshot: &'a Snapshot<'a>,
    pub entity: EntityId,
    pub part: Part,
    pub bodies: bool,
}

/// A message's row, and where its body may well be.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub number: SequenceNumber,
    pub row: MessageRow,
    pub location: Option<JournalLocation>,
}

impl View<'_> {
    pub fn range(
        &self,
        from: SequenceNumber,
        until: SequenceNumber,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let (first, end) = (self.key(from), self.key(until));
        let mut scan = Scan::with(self.db, self.families.message, first, end, self.options());
        let mut found = Vec::new();
        let mut collected = 0_usize;
        // Behind the rows that were read.
        let mut next = from;
        loop {
            let mut rows = Vec::new();
            let (most, room) = (limit - found.len(), max_bytes - collected);
            let read = self.next_rows(&mut scan, most, room, &mut rows);
            next = rows.last().map_or(next, |row| row.number.next());
            if let Err(error) = read
                // A scan looks at the block behind the last row, too.
                && (next < until || !error.is_damage())
            {
                let intact = found.len() + rows.len();
                return Err(self.unreadable(intact, next, until, error)?);
            }
            if rows.is_empty() {
                return Ok(found);
            }
            let before = found.len();
            let counts = match self.counts(&rows) {
                Err(error) => return Err(self.uncounted(before, &rows, error)?),
                Ok(counts) => counts,
            };
            self.complete(rows, &counts, &mut found)?;
            if self.is_enough(before, &mut found, &mut collected, max_bytes) {
                return Ok(found);
            }
        }
    }

    /// As many rows as the next round takes; by their sizes, when there are bodies to be read.
    fn next_rows(
        &self,
        scan: &mut Scan<'_>,
        limit: usize,
        max_bytes: usize,
        rows: &mut Vec<Row>,
    ) -> Result<(), StoreError> {
        let limit = limit.min(self.rows_per_round());
        let mut bytes = 0_usize;
        while rows.len() < limit
            && (bytes < max_bytes || rows.is_empty() || !self.bodies)
            && let Some((key, row)) = scan.next()?
        {
            let row = self.decode(number_of(key)?, row)?;
            bytes = bytes.saturating_add(row.row.size as usize);
            rows.push(row);
        }
        Ok(())
    }

    /// Tells which rows cannot be read, if `error` is damage from `from` on: up to `until`, or up
    /// to the next one that can be read.
    ///
    /// # Errors
    /// When that cannot be found out now.
    fn unreadable(
        &self,
        intact: usize,
        from: SequenceNumber,
        until: SequenceNumber,
        error: StoreError,
    ) -> Result<StoreError, StoreError> {
        let StoreError::Corrupt { detail, .. } = error else {
            return Ok(error);
        };
        Ok(StoreError::UnreadableRows {
            intact,
            from,
            until: self.readable_from(from, until)?,
            detail,
        })
    }

    /// The same if `error` is damage of the delivery counts of some of `rows`, which follow
    /// `intact` others.
    ///
    /// # Errors
    /// When it cannot be found out now whose counts are damaged.
    fn uncounted(
        &self,
        intact: usize,
        rows: &[Row],
        error: StoreError,
    ) -> Result<StoreError, StoreError> {
        let StoreError::Corrupt { detail, .. } = error else {
            return Ok(error);
        };
        let mut unreadable = None;
        for (at, row) in rows.iter().enumerate() {
            let is_damaged = unless_damaged(self.counts(&rows[at..=at]))?.is_none();
            match (unreadable, is_damaged) {
                (None, true) => unreadable = Some((at, row.number, row.number.next())),
                (Some((first, from, _)), true) => {
                    unreadable = Some((first, from, row.number.next()));
                }
                (Some(_), false) => break,
                (None, false) => {}
            }
        }
        let (at, from, until) = unreadable.ok_or_else(|| StoreError::Io(detail.clone()))?;
        Ok(StoreError::UnreadableRows {
            intact: intact + at,
            from,
            until,
            detail,
        })
    }

    /// Where rows can be read again that cannot be read at `from`.
    fn readable_from(
        &self,
        from: SequenceNumber,
        until: SequenceNumber,
    ) -> Result<SequenceNumber, StoreError> {
        let (from, until) = (self.key(from), self.key(until));
        let found = readable_from(from, until, |key| self.read_first(number_of(key)?, until))?;
        number_of(&found)
    }

    /// Reads the first row from a number on, if there is one.
    fn read_first(&self, from: SequenceNumber, until: [u8; 17]) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        let (family, options) = (self.families.message, self.options());
        let mut scan = Scan::with(self.db, family, self.key(from), until, options);
        self.next_rows(&mut scan, 1, usize::MAX, &mut rows)
    }

    pub fn points(
        &self,
        numbers: &[SequenceNumber],
        max_bytes: usize,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let mut rows = self.named_rows(numbers)?.into_iter().peekable();
        let mut found = Vec::new();
        let mut collected = 0_usize;
        while rows.peek().is_some() {
            let round = self.next_round(&mut rows, max_bytes - collected);
            let before = found.len();
            let counts = self.counts(&round)?;
            self.complete(round, &counts, &mut found)?;
            if self.is_enough(before, &mut found, &mut collected, max_bytes) {
                break;
            }
        }
        Ok(found)
    }

    /// Adds up the bodies of the rows behind the first `before`. Once they reach the limit of
    /// bytes, the rows behind are left out.
    fn is_enough(
        &self,
        before: usize,
        found: &mut Vec<StoredMessage>,
        collected: &mut usize,
        max_bytes: usize,
    ) -> bool {
        if !self.bodies {
            return false;
        }
        let last = found[before..].iter().position(|message| {
            let bytes = message.body.as_ref().map_or(0, Bytes::len);
            *collected = collected.saturating_add(bytes);
            *collected >= max_bytes
        });
        if let Some(last) = last {
            found.truncate(before + last + 1);
        }
        last.is_some()
    }

    /// The rows of those numbers that are there, ascending.
    fn named_rows(&self, numbers: &[SequenceNumber]) -> Result<Vec<Row>, StoreError> {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let mut rows = Vec::new();
        for numbers in numbers.chunks(ROWS_PER_ROUND) {
            let is_dense = are_dense(numbers);
            // The damage may be behind what is looked for: then each is looked for by itself.
            if is_dense && unless_damaged(self.scan_rows(numbers, &mut rows))?.is_some() {
                continue;
            }
            let known = rows.last().map(|row: &Row| row.number);
            let begin = numbers.partition_point(|number| Some(*number) <= known);
            self.find_rows(&numbers[begin..], &mut rows)?;
        }
        Ok(rows)
    }

    fn scan_rows(&self, numbers: &[SequenceNumber], rows: &mut Vec<Row>) -> Result<(), StoreError> {
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
            return Ok(());
        };
        let (from, until) = (self.key(*first), self.key(key::after_number(*last)));
        let mut scan = Scan::with(self.db, self.families.message, from, until, self.options());
        let mut wanted = numbers.iter().copied().peekable();
        while let Some((key, row)) = scan.next()? {
            let number = number_of(key)?;
            while wanted.next_if(|wanted| *wanted < number).is_some() {}
            if wanted.next_if_eq(&number).is_some() {
                rows.push(self.decode(number, row)?);
            }
        }
        Ok(())
    }

    fn decode(&self, number: SequenceNumber, value: &[u8]) -> Result<Row, StoreError> {
        let row = value::decode_row(self.entity, number, value)?;
        let location = chunk::unchecked_location_in_row(value);
        Ok(Row {
            number,
            row,
            location,
        })
    }

    fn find_rows(&self, numbers: &[SequenceNumber], rows: &mut Vec<Row>) -> Result<(), StoreError> {
        let keys: Vec<_> = numbers.iter().map(|number| self.key(*number)).collect();
        let values = self.get_sorted(self.families.message, &keys);
        for (number, value) in numbers.iter().zip(values) {
            if let Some(value) = value? {
                rows.push(self.decode(*number, &value)?);
            }
        }
        Ok(())
    }

    fn rows_per_round(&self) -> usize {
        if self.bodies {
            BODIES_PER_ROUND
        } else {
            ROWS_PER_ROUND
        }
    }

    /// As many of the known rows as are completed at once.
    fn next_round(&self, rows: &mut impl Iterator<Item = Row>, max_bytes: usize) -> Vec<Row> {
        let mut round = Vec::new();
        let mut bytes = 0_usize;
        for row in rows {
            bytes = bytes.saturating_add(row.row.size as usize);
            round.push(row);
            if round.len() >= self.rows_per_round() || self.bodies && bytes >= max_bytes {
                break;
            }
        }
        round
    }

    /// The rest of those that are `known`, which ascend.
    pub fn known(&self, known: &[KnownMessage]) -> Result<Vec<StoredMessage>, StoreError> {
        let mut found = Vec::with_capacity(known.len());
        for known in known.chunks(BODIES_PER_ROUND) {
            let rows = known.iter().map(|it| Row {
                number: it.number,
                row: it.row,
                location: JournalLocation::from_body_location(it.body_location),
            });
            let rows = rows.collect();
            let counts = known.iter().map(|it| (it.number, it.delivery_count));
            let counts = counts.filter(|(_, count)| *count > 0).collect();
            self.complete(rows, &counts, &mut found)?;
        }
        Ok(found)
    }

    /// The delivery counts of rows in ascending order, where there are any.
    fn counts(&self, rows: &[Row]) -> Result<BTreeMap<SequenceNumber, u32>, StoreError> {
        let numbers: Vec<_> = rows.iter().map(|row| row.number).collect();
        let counts = self.attached(KeyKind::DeliveryCount, &numbers)?.into_iter();
        let decoded = counts.map(|(number, count)| {
            let count = value::decode_u32("a delivery count", &count)?;
            Ok((number, count))
        });
        decoded.collect()
    }

    /// Adds to rows in ascending order what is kept elsewhere.
    fn complete(
        &self,
        rows: Vec<Row>,
        counts: &BTreeMap<SequenceNumber, u32>,
        found: &mut Vec<StoredMessage>,
    ) -> Result<(), StoreError> {
        let mut patches = BTreeMap::new();
        let mut bodies = Vec::new();
        if self.bodies {
            let numbers: Vec<_> = rows.iter().map(|row| row.number).collect();
            patches = self.attached(KeyKind::Patch, &numbers)?;
            bodies = self.load_bodies(&rows)?;
        }
        let mut bodies = bodies.into_iter();
        found.reserve(rows.len());
        for Row {
            number,
            row,
            location,
        } in rows
        {
            let body = if self.bodies {
                bodies.next().flatten()
            } else {
                None
            };
            if self.bodies && body.is_none() {
                self.expect_gone(number, row.body)?;
                continue;
            }
            found.push(StoredMessage {
                part: self.part,
                number,
                row,
                delivery_count: counts.get(&number).copied().unwrap_or(0),
                patch: patches
                    .get(&number)
                    .map(|patch| Bytes::copy_from_slice(patch)),
                body,
                body_location: match location {
                    Some(location) if !self.bodies => location.to_body_location(),
                    Some(_) | None => BodyLocation::UNKNOWN,
                },
            });
        }
        Ok(())
    }

    /// What there is of a kind for some of `numbers`, which are ascending.
    fn attached(
        &self,
        kind: KeyKind,
        numbers: &[SequenceNumber],
    ) -> Result<BTreeMap<SequenceNumber, Vec<u8>>, StoreError> {
        let mut attached = BTreeMap::new();
        let state = self.families.state;
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
            return Ok(attached);
        };
        let scanned = are_dense(numbers).then(|| self.scan_attached(kind, *first, *last));
        if let Some(found) = scanned.map(unless_damaged).transpose()?.flatten() {
            return Ok(found);
        }
        let keys: Vec<_> = numbers
            .iter()
            .map(|number| key::of_number(kind, self.entity, *number))
            .collect();
        for (number, value) in numbers.iter().zip(self.get_sorted(state, &keys)) {
            value?.map(|value| attached.insert(*number, value));
        }
        Ok(attached)
    }

    /// What there is of a kind for all numbers from the first to the last.
    fn scan_attached(
        &self,
        kind: KeyKind,
        first: SequenceNumber,
        last: SequenceNumber,
    ) -> Result<BTreeMap<SequenceNumber, Vec<u8>>, StoreError> {
        let mut attached = BTreeMap::new();
        let from = key::of_number(kind, self.entity, first);
        let until = key::of_number(kind, self.entity, key::after_number(last));
        let mut scan = Scan::with(self.db, self.families.state, from, until, self.options());
        while let Some((key, value)) = scan.next()? {
            let (_, number) = key::parse_of_number(kind, key)
                .ok_or_else(|| value::damaged("a number's key", format!("{key:02x?}")))?;
            attached.insert(number, value.to_vec());
        }
        Ok(attached)
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
            .map(|value| value.map(own).map_err(unreadable))
            .collect()
    }

    pub fn key(&self, number: SequenceNumber) -> [u8; 17] {
        key::message(self.entity, self.part, number)
    }

    pub fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        options.set_snapshot(self.snapshot);
        options
    }
}

fn number_of(key: &[u8]) -> Result<SequenceNumber, StoreError> {
    let parsed = key::parse_message(key);
    let (.., number) =
        parsed.ok_or_else(|| value::damaged("a message's key", format!("{key:02x?}")))?;
    Ok(number)
}

/// Whether walking over all from the first to the last costs less than looking for each of them.
fn are_dense(numbers: &[SequenceNumber]) -> bool {
    match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) => last.0.saturating_sub(first.0) / 4 <= numbers.len() as u64,
        _ => true,
    }
}

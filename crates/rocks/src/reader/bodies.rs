//! Bodies of rows that a query found.
//!
//! The index has their locations; neighbouring bodies are read at once. A missing body of a row is
//! damage, unless the row itself was removed meanwhile: released files are gone from older
//! snapshots too.

use bytes::Bytes;
use index::key_search::unless_damaged;
use journal::JournalLocation;
use journal::chunk::{self, CHUNK, Chunk};
use journal::key;
use journal::value;
use rocksdb::ColumnFamily;
use store::{BodyPointer, Part, SequenceNumber, StoreError};

use super::view::{Row, View};
use crate::index::database::unreadable;
use crate::reader::scan::Scan;

/// What the index has for a body.
enum FoundBody {
    /// The body itself, as in format 1; nothing if a part of it is gone.
    Here(Option<Bytes>),
    Elsewhere(JournalLocation),
}

impl View<'_> {
    /// The bodies of `rows`, without those that are not there. Whatever is wrong with the place
    /// that a row comes with, which may be of an earlier moment, the body is looked for then.
    pub fn load_bodies(&self, rows: &[Row]) -> Result<Vec<Option<Bytes>>, StoreError> {
        // Only a damaged location has another length, perhaps one that no memory is large enough
        // for.
        let noted = |row: &Row| row.location.filter(|location| location.len == row.row.size);
        let noted: Vec<_> = rows
            .iter()
            .map(|row| Some((row.row.body, noted(row)?)))
            .collect();
        let read = self.files.read(&noted);
        let mut bodies = read.unwrap_or_else(|_| vec![None; rows.len()]);
        if bodies.iter().all(Option::is_some) {
            return Ok(bodies);
        }
        let missing = rows.iter().zip(&bodies);
        let missing = missing.filter(|(_, body)| body.is_none());
        let missing: Vec<_> = missing.map(|(row, _)| *row).collect();
        let found = self.find_bodies(&missing)?;
        let missing = bodies.iter_mut().filter(|body| body.is_none());
        missing.zip(found).for_each(|(body, found)| *body = found);
        Ok(bodies)
    }

    /// The same by what the index knows of where they are. That may stand in the row that they
    /// came with or in a row of their own: first the likelier of both is looked for.
    fn find_bodies(&self, rows: &[Row]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let mut found: Vec<_> = rows.iter().map(|_| None).collect();
        let is_own = |row: &Row| {
            let (home, number) = (self.entity, row.number);
            self.part == Part::Active && row.row.body == BodyPointer { home, number }
        };
        self.find_in_rows(rows, &mut found, is_own)?;
        self.find_in_family(rows, &mut found)?;
        self.find_in_rows(rows, &mut found, |row| !is_own(row))?;
        let location = |(row, found): (&Row, &Option<FoundBody>)| match found {
            Some(FoundBody::Elsewhere(location)) => Some((row.row.body, *location)),
            Some(FoundBody::Here(_)) | None => None,
        };
        let locations: Vec<_> = rows.iter().zip(&found).map(location).collect();
        let read = self.files.read(&locations)?.into_iter();
        Ok(read
            .zip(found)
            .map(|(read, found)| match found {
                Some(FoundBody::Here(body)) => body,
                Some(FoundBody::Elsewhere(_)) | None => read,
            })
            .collect())
    }

    /// Looks in the rows that missing bodies came with, for those of the `wanted` rows.
    fn find_in_rows(
        &self,
        rows: &[Row],
        found: &mut [Option<FoundBody>],
        wanted: impl Fn(&Row) -> bool,
    ) -> Result<(), StoreError> {
        let missing = missing(rows, found, wanted);
        let keys: Vec<_> = missing
            .iter()
            .map(|at| key::own_row(rows[*at].row.body))
            .collect();
        self.look_up(
            self.families.message,
            &keys,
            are_neighbours(rows, &missing),
            |at, value| {
                let at = missing[at];
                let location = chunk::location_in_row(rows[at].row.body, value)?;
                found[at] = location.map(FoundBody::Elsewhere);
                Ok(())
            },
        )
    }

    /// Looks for missing bodies by themselves.
    fn find_in_family(
        &self,
        rows: &[Row],
        found: &mut [Option<FoundBody>],
    ) -> Result<(), StoreError> {
        let missing = missing(rows, found, |_| true);
        let keys: Vec<_> = missing
            .iter()
            .map(|at| key::body(rows[*at].row.body, 0))
            .collect();
        let neighbours = are_neighbours(rows, &missing)
            && (missing.iter()).all(|at| rows[*at].row.size as usize <= CHUNK);
        self.look_up(self.families.body, &keys, neighbours, |at, value| {
            let at = missing[at];
            found[at] = Some(self.parse_value(rows[at].row.body, value)?);
            Ok(())
        })
    }

    /// Hands over what a family has for `keys`, by their index. Neighbours are walked over, which
    /// costs a fraction of looking for each.
    fn look_up<const N: usize>(
        &self,
        family: &ColumnFamily,
        keys: &[[u8; N]],
        neighbours: bool,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
            return Ok(());
        };
        if neighbours
            && unless_damaged(self.scan_for(family, keys, first, last, &mut take))?.is_some()
        {
            return Ok(());
        }
        let (sorted, options) = (keys.is_sorted(), self.options());
        let values = self
            .db
            .batched_multi_get_cf_opt(family, keys, sorted, &options);
        for (at, value) in values.into_iter().enumerate() {
            if let Some(value) = value.map_err(unreadable)? {
                take(at, &value)?;
            }
        }
        Ok(())
    }

    /// Walks over all from the first to the last key.
    fn scan_for<const N: usize>(
        &self,
        family: &ColumnFamily,
        keys: &[[u8; N]],
        first: &[u8; N],
        last: &[u8; N],
        mut take: impl FnMut(usize, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        // The least key behind the last one.
        let until = [last.as_slice(), &[0]].concat();
        let mut scan = Scan::with(self.db, family, *first, until, self.options());
        let mut wanted = keys.iter().enumerate().peekable();
        while let Some((key, value)) = scan.next()? {
            while wanted
                .next_if(|(_, wanted)| wanted.as_slice() < key)
                .is_some()
            {}
            if let Some((at, _)) = wanted.next_if(|(_, wanted)| wanted.as_slice() == key) {
                take(at, value)?;
            }
        }
        Ok(())
    }

    fn parse_value(&self, pointer: BodyPointer, value: &[u8]) -> Result<FoundBody, StoreError> {
        match chunk::decode(pointer, 0, value)? {
            Chunk::Elsewhere(location) => Ok(FoundBody::Elsewhere(location)),
            first => self.join_chunks(pointer, &first).map(FoundBody::Here),
        }
    }

    /// A body of format 1.
    fn join_chunks(
        &self,
        pointer: BodyPointer,
        first: &Chunk<'_>,
    ) -> Result<Option<Bytes>, StoreError> {
        let (chunks, total, bytes) = match *first {
            Chunk::Whole(body) => return Ok(Some(Bytes::copy_from_slice(body))),
            Chunk::First {
                chunks,
                total,
                bytes,
            } => (chunks, total, bytes),
            Chunk::Further(_) | Chunk::Elsewhere(_) => {
                let detail = format!("{pointer:?} begins with a further chunk");
                return Err(value::damaged("a body", detail));
            }
        };
        let mut body = Vec::with_capacity(capacity(chunks, total));
        body.extend_from_slice(bytes);
        for index in 1..chunks {
            let key = key::body(pointer, index);
            let value = self
                .db
                .get_pinned_cf_opt(self.families.body, key, &self.options());
            let Some(value) = value.map_err(unreadable)? else {
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
    pub fn expect_gone(&self, number: SequenceNumber, body: BodyPointer) -> Result<(), StoreError> {
        let row = self
            .db
            .get_pinned_cf(self.families.message, self.key(number))
            .map_err(unreadable)?;
        match row {
            Some(_) => Err(value::damaged("a body", format!("{body:?} is missing"))),
            None => Ok(()),
        }
    }
}

/// The `wanted` rows whose bodies are not found yet.
fn missing(rows: &[Row], found: &[Option<FoundBody>], wanted: impl Fn(&Row) -> bool) -> Vec<usize> {
    let missing = (0..rows.len()).filter(|at| found[*at].is_none() && wanted(&rows[*at]));
    missing.collect()
}

/// Whether the bodies of some of `rows` are of one home, ascend, and leave few others out between
/// them.
fn are_neighbours(rows: &[Row], some: &[usize]) -> bool {
    let body = |at: &usize| rows[*at].row.body;
    let (Some(first), Some(last)) = (some.first().map(body), some.last().map(body)) else {
        return false;
    };
    let span = last.number.0.saturating_sub(first.number.0);
    first.home == last.home
        && span / 4 <= some.len() as u64
        && some.is_sorted_by(|one, other| body(one) < body(other))
}

/// What to allocate for a large body: never more than its chunks can hold.
fn capacity(chunks: u32, total: u64) -> usize {
    let most = (chunks as usize).saturating_mul(CHUNK);
    usize::try_from(total).unwrap_or(usize::MAX).min(most)
}

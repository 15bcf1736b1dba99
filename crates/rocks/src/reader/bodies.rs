//! Bodies: read for rows that were found.
//!
//! The index tells where they lie; those that lie near each other are read at once. A body that is missing under a row is damage, unless the row itself was removed meanwhile: files
//! given back are gone from older snapshots too.

use bytes::Bytes;
use store::{BodyPointer, SequenceNumber, StoreError};

use super::view::{Row, View};
use crate::chunk::{self, CHUNK, Chunk};
use crate::database::refused;
use crate::journal::Place;
use crate::key;
use crate::scan::Scan;
use crate::value;

/// What the index has for a body.
enum Found {
    /// The body itself, as in format 1; nothing if a part of it is gone.
    Here(Option<Bytes>),
    Elsewhere(Place),
}

impl View<'_> {
    /// The bodies of `rows`, without those that are not there. Neighbours are walked over, which
    /// costs a fraction of looking for each.
    pub fn load_bodies(&self, rows: &[Row]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let mut places = vec![None; rows.len()];
        let mut bodies = if are_neighbours(rows) {
            self.scan_bodies(rows, &mut places)
        } else {
            self.find_bodies(rows, &mut places)
        }?;
        for (body, read) in bodies.iter_mut().zip(self.files.read(&places)?) {
            *body = body.take().or(read);
        }
        Ok(bodies)
    }

    fn scan_bodies(
        &self,
        rows: &[Row],
        places: &mut [Option<(BodyPointer, Place)>],
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        let mut bodies = vec![None; rows.len()];
        let (Some((_, first)), Some((_, last))) = (rows.first(), rows.last()) else {
            return Ok(bodies);
        };
        let (from, until) = (key::body(first.body, 0), key::body(last.body, 1));
        let mut scan = Scan::with(self.db, self.families.body, from, until, self.options());
        let mut wanted = rows.iter().zip(bodies.iter_mut().zip(places)).peekable();
        while let Some((key, value)) = scan.next()? {
            let (pointer, _) = key::parse_body(key)
                .ok_or_else(|| value::damaged("a body's key", format!("{key:02x?}")))?;
            while wanted.next_if(|((_, row), _)| row.body < pointer).is_some() {}
            if let Some((_, (body, place))) = wanted.next_if(|((_, row), _)| row.body == pointer) {
                match self.understand(pointer, value)? {
                    Found::Here(found) => *body = found,
                    Found::Elsewhere(found) => *place = Some((pointer, found)),
                }
            }
        }
        Ok(bodies)
    }

    fn find_bodies(
        &self,
        rows: &[Row],
        places: &mut [Option<(BodyPointer, Place)>],
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        let keys: Vec<_> = rows.iter().map(|(_, row)| key::body(row.body, 0)).collect();
        let options = self.options();
        let values =
            self.db
                .batched_multi_get_cf_opt(self.families.body, &keys, keys.is_sorted(), &options);
        let mut bodies = vec![None; rows.len()];
        let wanted = bodies.iter_mut().zip(places);
        for (((_, row), value), (body, place)) in rows.iter().zip(values).zip(wanted) {
            let Some(value) = value.map_err(refused)? else {
                continue;
            };
            match self.understand(row.body, &value)? {
                Found::Here(found) => *body = found,
                Found::Elsewhere(found) => *place = Some((row.body, found)),
            }
        }
        Ok(bodies)
    }

    fn understand(&self, pointer: BodyPointer, value: &[u8]) -> Result<Found, StoreError> {
        match chunk::decode(pointer, 0, value)? {
            Chunk::Elsewhere(place) => Ok(Found::Elsewhere(place)),
            first => self.join_chunks(pointer, &first).map(Found::Here),
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
    pub fn expect_gone(&self, number: SequenceNumber, body: BodyPointer) -> Result<(), StoreError> {
        let row = self
            .db
            .get_pinned_cf(self.families.message, self.key(number))
            .map_err(refused)?;
        match row {
            Some(_) => Err(value::damaged("a body", format!("{body:?} is missing"))),
            None => Ok(()),
        }
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

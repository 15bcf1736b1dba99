//! Opening: what a start has to know of the tables before it adds to them.

use std::collections::BTreeMap;

use journal::SealedSegment;
use journal::key::{self, KeyKind, single};
use journal::value;
use store::{BodyPointer, StoreError};

use crate::merge::Found;
use crate::recovery;
use crate::tables::{Batch, Cursor, Family, Tables};

/// The most bodies with rows of their own, and the most deletions before the next of them, that an
/// opening checks.
const MAX_ROWS_CHECKED: usize = 4_096;
const MAX_SKIPPED: u64 = 100_000;

/// What a merger has to know.
pub fn find(tables: &impl Tables) -> Result<Found, StoreError> {
    Ok(Found {
        last_entity: recovery::last_entity(tables)?,
        large_bodies: has_large_bodies(tables)?,
        inline_only: is_inline_only(tables)?,
    })
}

/// The position up to which everything is here; 0 if nothing is.
pub fn position(tables: &impl Tables) -> Result<u64, StoreError> {
    let found = tables.get(Family::State, single::POSITION)?;
    found.map_or(Ok(0), |value| {
        value::decode_u64("the position in the log", &value)
    })
}

/// The segments that had ended, as the index knows them.
pub fn known_segments(tables: &impl Tables) -> Result<BTreeMap<u64, SealedSegment>, StoreError> {
    let (from, until) = KeyKind::Segment.bounds();
    let mut rows = tables.scan(Family::State, from, until);
    let mut known = BTreeMap::new();
    while let Some((key, value)) = rows.next()? {
        let sealed = key::parse_segment(key).and_then(|id| SealedSegment::decode(id, value));
        let damaged = || value::damaged("what is known of a segment", format!("{key:02x?}"));
        let sealed = sealed.ok_or_else(damaged)?;
        known.insert(sealed.id, sealed);
    }
    Ok(known)
}

/// Removes chunks whose message never came: in format 1 a crash could fall between them and
/// their set. Returns whether there were any.
pub fn remove_pending_bodies(tables: &impl Tables) -> Result<bool, StoreError> {
    let (from, until) = KeyKind::PendingBody.bounds();
    let mut rows = tables.scan(Family::State, from, until);
    let mut batch = tables.batch(0);
    while let Some((found, _)) = rows.next()? {
        let (home, number) = key::parse_of_number(KeyKind::PendingBody, found)
            .ok_or_else(|| value::damaged("a pending body's key", format!("{found:02x?}")))?;
        let pointer = BodyPointer { home, number };
        let next = BodyPointer {
            number: key::after_number(pointer.number),
            ..pointer
        };
        batch.delete_range(Family::Body, key::body(pointer, 0), key::body(next, 0));
        batch.delete(Family::State, found);
    }
    let had_some = !batch.is_empty();
    tables.write(batch)?;
    Ok(had_some)
}

/// Whether no body whose row still exists has a row of its own, see [`single::INLINE_ONLY`]. In a
/// store of an earlier format that is true once the messages of that time are gone.
fn is_inline_only(tables: &impl Tables) -> Result<bool, StoreError> {
    if tables.get(Family::State, single::INLINE_ONLY)?.is_some() {
        return Ok(true);
    }
    let is_so = has_no_paired_rows(tables);
    if is_so {
        let mut batch = tables.batch(0);
        batch.put(Family::State, single::INLINE_ONLY, []);
        tables.write(batch)?;
    }
    Ok(is_so)
}

/// Whether no body with a row of its own still has the row that it came with. Returns false if that
/// takes long to find out, or cannot be found out.
fn has_no_paired_rows(tables: &impl Tables) -> bool {
    let mut rows = tables.scan_briefly(Family::Body, [0], [u8::MAX; 21], MAX_SKIPPED);
    for _row in 0..MAX_ROWS_CHECKED {
        let Ok(found) = rows.next() else { return false };
        let Some((key, _)) = found else { return true };
        let Some((pointer, _)) = key::parse_body(key) else {
            return false;
        };
        let row = tables.get(Family::Message, key::own_row(pointer));
        if !matches!(row, Ok(None)) {
            return false;
        }
    }
    false
}

fn has_large_bodies(tables: &impl Tables) -> Result<bool, StoreError> {
    let (from, until) = KeyKind::LargeBody.bounds();
    let mut rows = tables.scan(Family::State, from, until);
    Ok(rows.next()?.is_some())
}

//! Liveness: whether the index has a body in a segment, and which ones.
//!
//! A segment knows the entities and the numbers of its bodies. If all numbers between the first
//! and the last are known to be settled there is nothing to look for, which saves a search for
//! each of many entities.

use journal::chunk::{self, Chunk};
use journal::key;
use journal::value::damaged;
use journal::{JournalLocation, SealedSegment};
use store::{BodyPointer, EntityId, StoreError};

use crate::settled::SettledRanges;
use crate::tables::{Cursor, Family, Tables};

/// The most bodies that are moved out of a segment, and the largest part of it.
const FEW_ROWS: usize = 4_096;
const FEW_BYTES: u64 = 4;

/// The first and the last body that one entity has in a segment.
type BodyRange = (BodyPointer, BodyPointer);

/// No body of a segment is before these keys of the index: in rows, and on its own.
#[derive(Default)]
pub struct ScanStart {
    row: [u8; 17],
    own: [u8; 20],
}

/// The index, and what is known without it.
pub struct LivenessCheck<'a, T> {
    pub tables: &'a T,
    /// Bodies that were removed.
    pub settled: &'a SettledRanges<EntityId>,
}

impl<T: Tables> LivenessCheck<'_, T> {
    /// Whether the index knows a body in the segment. More rows than are looked at count as one.
    pub fn is_alive(
        &self,
        sealed: &SealedSegment,
        from: &mut ScanStart,
        most_rows: usize,
    ) -> Result<bool, StoreError> {
        let row = |(first, last)| (key::own_row(first), key::own_row(after(last)));
        let own = |(first, last)| (key::body(first, 0), key::body(last, u32::MAX));
        Ok(
            self.is_alive_in(Family::Message, sealed, row, &mut from.row, most_rows)?
                || self.is_alive_in(Family::Body, sealed, own, &mut from.own, most_rows)?,
        )
    }

    /// The same of one family: of the keys that `keys` makes of a span, from `from` on, which goes
    /// on to the first one that is.
    fn is_alive_in<const N: usize>(
        &self,
        family: Family,
        sealed: &SealedSegment,
        keys: impl Fn(BodyRange) -> ([u8; N], [u8; N]),
        from: &mut [u8; N],
        most_rows: usize,
    ) -> Result<bool, StoreError> {
        let mut rows = 0;
        for span in sealed.body_ranges.spans() {
            let (first, until) = keys(span);
            if *from > until {
                continue;
            }
            if self.is_settled(span) {
                *from = until;
                continue;
            }
            let begin = first.max(*from);
            let mut scan = self.tables.scan(family, begin, until);
            while let Some((key, value)) = scan.next()? {
                if rows >= most_rows || location_in(sealed.id, key, value)?.is_some() {
                    *from = key.try_into().unwrap_or(begin);
                    return Ok(true);
                }
                rows += 1;
            }
            *from = until;
        }
        Ok(false)
    }

    fn is_settled(&self, (first, last): BodyRange) -> bool {
        self.settled
            .covers(first.home, first.number.0, last.number.0)
    }

    /// The bodies that are left in a segment; none if they are too many to be moved.
    pub fn left_in(
        &self,
        sealed: &SealedSegment,
    ) -> Result<Vec<(BodyPointer, JournalLocation)>, StoreError> {
        let (mut left, mut rows, mut bytes) = (Vec::new(), 0, 0);
        let spans = sealed.body_ranges.spans();
        for (first, last) in spans.filter(|span| !self.is_settled(*span)) {
            let (from, until) = (key::own_row(first), key::own_row(after(last)));
            let in_rows = self.tables.scan(Family::Message, from, until);
            let (from, until) = (key::body(first, 0), key::body(last, u32::MAX));
            let own = self.tables.scan(Family::Body, from, until);
            for mut scan in [in_rows, own] {
                while let Some((key, value)) = scan.next()? {
                    rows += 1;
                    if let Some((pointer, location)) = location_in(sealed.id, key, value)? {
                        bytes += u64::from(location.len);
                        left.push((pointer, location));
                    }
                    if rows > FEW_ROWS || bytes > sealed.bytes / FEW_BYTES {
                        return Ok(Vec::new());
                    }
                }
            }
        }
        Ok(left)
    }
}

/// Whether the index knows a body in a segment.
pub fn is_needed(sealed: &SealedSegment, tables: &impl Tables) -> Result<bool, StoreError> {
    let settled = &SettledRanges::default();
    let check = LivenessCheck { tables, settled };
    check.is_alive(sealed, &mut ScanStart::default(), usize::MAX)
}

/// Calls `visit` with every body of the index that is in the journal, and its location there.
pub fn each_location(
    tables: &impl Tables,
    mut visit: impl FnMut(BodyPointer, JournalLocation) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    for family in [Family::Message, Family::Body] {
        let mut rows = tables.scan(family, [0], [u8::MAX; 21]);
        while let Some((key, value)) = rows.next()? {
            if let Some((pointer, location)) = location_of(key, value)? {
                visit(pointer, location)?;
            }
        }
    }
    Ok(())
}

/// The next body of the same home.
fn after(pointer: BodyPointer) -> BodyPointer {
    BodyPointer {
        number: key::after_number(pointer.number),
        ..pointer
    }
}

/// The body of a row of the index and its location, if that is in the segment.
fn location_in(
    segment: u64,
    key: &[u8],
    value: &[u8],
) -> Result<Option<(BodyPointer, JournalLocation)>, StoreError> {
    let found = location_of(key, value)?;
    Ok(found.filter(|(_, location)| location.segment == segment))
}

/// The body of a row of the index, be it a message's row or the body's own, and its location in the
/// journal.
pub fn location_of(
    key: &[u8],
    value: &[u8],
) -> Result<Option<(BodyPointer, JournalLocation)>, StoreError> {
    if let Some((home, _, number)) = key::parse_message(key) {
        let pointer = BodyPointer { home, number };
        let location = chunk::location_in_row(pointer, value)?;
        return Ok(location.map(|location| (pointer, location)));
    }
    let Some((pointer, index)) = key::parse_body(key) else {
        return Err(damaged("a body's key", format!("{key:02x?}")));
    };
    match chunk::decode(pointer, index, value)? {
        Chunk::Elsewhere(location) => Ok(Some((pointer, location))),
        _ => Ok(None),
    }
}

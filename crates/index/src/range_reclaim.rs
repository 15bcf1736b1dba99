//! Range reclaim: drops the tables of settled ranges, so that no row of them ever appears again.
//!
//! A range is deleted as a whole. Once that deletion is permanent, the tables inside the range are
//! dropped at once instead of being compacted. A compaction may have cut the deletion into pieces
//! by then. A piece inside the range goes with its table, while a table of a lower level that
//! reaches over the range's end still has rows that the piece hid. So the range is deleted once
//! more as soon as the tables are gone, while nothing reads. Until that second deletion is
//! permanent, the index has a marker of the range, which was written with the first one; an
//! opening deletes marked ranges again.

use journal::key::KeyKind;
use journal::value::damaged;
use store::StoreError;

use crate::tables::{Batch, Cursor, Family, Tables};

/// A range of keys that were all removed and never come again, both ends included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RangeReclaim {
    Rows([u8; 17], [u8; 17]),
    Bodies([u8; 20], [u8; 20]),
}

impl RangeReclaim {
    /// Deletes the range, and writes the marker that its tables are to be dropped.
    pub fn begin(&self, batch: &mut impl Batch) {
        self.delete(batch);
        batch.put(Family::State, self.marker(), []);
    }

    /// Drops the range's tables. Nothing may read until `batch` is written.
    pub fn drop_tables(
        &self,
        tables: &impl Tables,
        batch: &mut impl Batch,
    ) -> Result<(), StoreError> {
        let (family, from, to) = self.range();
        tables.drop_files(family, from, to)?;
        self.delete(batch);
        batch.delete(Family::State, self.marker());
        Ok(())
    }

    fn delete(&self, batch: &mut impl Batch) {
        let (family, from, to) = self.range();
        // The least key behind the last one.
        let until = [to, &[0]].concat();
        batch.delete_range(family, from, until.as_slice());
    }

    fn range(&self) -> (Family, &[u8], &[u8]) {
        match self {
            Self::Rows(from, to) => (Family::Message, from, to),
            Self::Bodies(from, to) => (Family::Body, from, to),
        }
    }

    /// The key of its note.
    fn marker(&self) -> Vec<u8> {
        let (table, from, to): (_, &[u8], &[u8]) = match self {
            Self::Rows(from, to) => (ROWS, from, to),
            Self::Bodies(from, to) => (BODIES, from, to),
        };
        [&[KeyKind::RangeReclaim as u8, table], from, to].concat()
    }

    fn parse(note: &[u8]) -> Option<Self> {
        let (table, ends) = note
            .strip_prefix(&[KeyKind::RangeReclaim as u8])?
            .split_first()?;
        let (from, to) = ends.split_at_checked(ends.len() / 2)?;
        match *table {
            ROWS => Some(Self::Rows(from.try_into().ok()?, to.try_into().ok()?)),
            BODIES => Some(Self::Bodies(from.try_into().ok()?, to.try_into().ok()?)),
            _ => None,
        }
    }
}

/// Ranges whose deletion is written, and has to be permanent before their tables are dropped: a
/// start after a crash would not make it again.
#[derive(Debug, Default)]
pub struct PendingReclaims(Vec<(u64, RangeReclaim)>);

impl PendingReclaims {
    /// Adds ranges that were deleted at a position.
    pub fn add(&mut self, position: u64, reclaims: Vec<RangeReclaim>) {
        let reclaims = reclaims.into_iter().map(|range| (position, range));
        self.0.extend(reclaims);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one is due when everything up to `permanent` is permanent.
    pub fn has_due(&self, permanent: u64) -> bool {
        self.0.iter().any(|(position, _)| *position <= permanent)
    }

    /// Drops the tables of those that are due. Nothing may read meanwhile.
    pub fn drop_due(&mut self, permanent: u64, tables: &impl Tables) -> Result<(), StoreError> {
        let mut batch = tables.batch(0);
        let due = |(position, _): &mut (u64, RangeReclaim)| *position <= permanent;
        for (_, reclaim) in self.0.extract_if(.., due) {
            reclaim.drop_tables(tables, &mut batch)?;
        }
        tables.write(batch)
    }
}

/// Which table a note is about.
const ROWS: u8 = b'm';
const BODIES: u8 = b'b';

/// Deletes again what a crash has left noted. Returns whether there was any.
pub fn recover(tables: &impl Tables) -> Result<bool, StoreError> {
    let (from, until) = KeyKind::RangeReclaim.bounds();
    let mut scan = tables.scan(Family::State, from, until);
    let mut batch = tables.batch(0);
    while let Some((note, _)) = scan.next()? {
        let reclaim = RangeReclaim::parse(note)
            .ok_or_else(|| damaged("a note on a settled stretch", format!("{note:02x?}")))?;
        reclaim.delete(&mut batch);
        batch.delete(Family::State, note);
    }
    let had_some = !batch.is_empty();
    tables.write(batch)?;
    Ok(had_some)
}

#[cfg(test)]
mod tests {
    use store::{BodyPointer, EntityId, Part, SequenceNumber};

    use super::*;
    use journal::key;

    const QUEUE: EntityId = EntityId(1);

    fn row(number: u64) -> [u8; 17] {
        key::message(QUEUE, Part::Active, SequenceNumber(number))
    }

    fn body(number: u64) -> [u8; 20] {
        let (home, number) = (QUEUE, SequenceNumber(number));
        key::body(BodyPointer { home, number }, 0)
    }

    fn reclaims() -> [RangeReclaim; 2] {
        [
            RangeReclaim::Rows(row(3), row(7)),
            RangeReclaim::Bodies(body(3), body(8)),
        ]
    }

    #[test]
    fn a_note_is_understood_again() {
        for reclaim in reclaims() {
            assert_eq!(RangeReclaim::parse(&reclaim.marker()), Some(reclaim));
        }
        assert_eq!(RangeReclaim::parse(&[KeyKind::RangeReclaim as u8]), None);
        assert_eq!(
            RangeReclaim::parse(&[KeyKind::RangeReclaim as u8, ROWS, 1, 2]),
            None
        );
    }
}

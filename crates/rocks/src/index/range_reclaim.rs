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
use rocksdb::{ColumnFamily, WriteBatch};
use store::StoreError;

use crate::index::database::{Database, Families, refused};
use crate::reader::scan::Scan;

/// A range of keys that were all removed and never come again, both ends included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RangeReclaim {
    Rows([u8; 17], [u8; 17]),
    Bodies([u8; 20], [u8; 20]),
}

impl RangeReclaim {
    /// Deletes the range, and writes the marker that its tables are to be dropped.
    pub fn begin(&self, families: Families<'_>, batch: &mut WriteBatch) {
        self.delete(families, batch);
        batch.put_cf(families.state, self.marker(), []);
    }

    /// Drops the range's tables. Nothing may read until `batch` is written.
    pub fn drop_tables(
        &self,
        database: &Database,
        batch: &mut WriteBatch,
    ) -> Result<(), StoreError> {
        let families = database.families();
        let (family, from, to) = self.range(families);
        let dropped = database.db.delete_file_in_range_cf(family, from, to);
        dropped.map_err(refused)?;
        self.delete(families, batch);
        batch.delete_cf(families.state, self.marker());
        Ok(())
    }

    fn delete(&self, families: Families<'_>, batch: &mut WriteBatch) {
        let (family, from, to) = self.range(families);
        // The least key behind the last one.
        let until = [to, &[0]].concat();
        batch.delete_range_cf(family, from, until.as_slice());
    }

    fn range<'a>(&'a self, families: Families<'a>) -> (&'a ColumnFamily, &'a [u8], &'a [u8]) {
        match self {
            Self::Rows(from, to) => (families.message, from, to),
            Self::Bodies(from, to) => (families.body, from, to),
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

/// Which table a note is about.
const ROWS: u8 = b'm';
const BODIES: u8 = b'b';

/// Deletes again what a crash has left noted. Returns whether there was any.
pub(crate) fn recover(database: &Database) -> Result<bool, StoreError> {
    let families = database.families();
    let (from, until) = KeyKind::RangeReclaim.bounds();
    let mut scan = Scan::new(&database.db, families.state, from, until);
    let mut batch = WriteBatch::default();
    while let Some((note, _)) = scan.next()? {
        let reclaim = RangeReclaim::parse(note)
            .ok_or_else(|| damaged("a note on a settled stretch", format!("{note:02x?}")))?;
        reclaim.delete(families, &mut batch);
        batch.delete_cf(families.state, note);
    }
    let had_some = !batch.is_empty();
    database.write(batch)?;
    Ok(had_some)
}

#[cfg(test)]
mod tests {
    use store::{BodyPointer, EntityId, Part, SequenceNumber};

    use super::*;
    use crate::options::Options;
    use journal::key;

    const QUEUE: EntityId = EntityId(1);

    fn row(number: u64) -> [u8; 17] {
        key::message(QUEUE, Part::Active, SequenceNumber(number))
    }

    fn body(number: u64) -> [u8; 20] {
        let (home, number) = (QUEUE, SequenceNumber(number));
        key::body(BodyPointer { home, number }, 0)
    }

    fn open(path: &std::path::Path) -> Database {
        Database::open(path, &Options::default()).expect("opened")
    }

    /// Rows and bodies of the numbers from 1 to 9, in tables.
    fn filled(path: &std::path::Path) -> Database {
        let database = open(path);
        let families = database.families();
        let mut batch = WriteBatch::default();
        for number in 1..10 {
            batch.put_cf(families.message, row(number), [1]);
            batch.put_cf(families.body, body(number), [1]);
        }
        database.write(batch).expect("written");
        database.flush().expect("flushed");
        database
    }

    fn count(database: &Database) -> (usize, usize) {
        let families = database.families();
        let count = |family, from: Vec<u8>, until: Vec<u8>| {
            let mut scan = Scan::new(&database.db, family, from, until);
            std::iter::from_fn(|| scan.next().expect("read").map(drop)).count()
        };
        (
            count(families.message, row(0).into(), row(99).into()),
            count(families.body, body(0).into(), body(99).into()),
        )
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

    #[test]
    fn rows_stay_hidden_even_if_the_first_deletion_went_with_a_table() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = filled(directory.path());
        let mut batch = WriteBatch::default();
        // As if it had, there is none.
        for reclaim in reclaims() {
            let dropped = reclaim.drop_tables(&database, &mut batch);
            dropped.expect("dropped");
        }
        database.write(batch).expect("written");
        assert_eq!(count(&database), (9 - 5, 9 - 6));
        assert_eq!(recover(&database), Ok(false), "it is done with");
    }

    #[test]
    fn rows_stay_hidden_after_a_crash_that_came_before_the_second_deletion_was_permanent() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = filled(directory.path());
        let mut batch = WriteBatch::default();
        for reclaim in reclaims() {
            reclaim.begin(database.families(), &mut batch);
        }
        database.write(batch).expect("written");
        assert_eq!(count(&database), (9 - 5, 9 - 6));
        // As if the tables had gone, and the deletion with them.
        let mut undone = WriteBatch::default();
        for number in 1..10 {
            undone.put_cf(database.families().message, row(number), [1]);
            undone.put_cf(database.families().body, body(number), [1]);
        }
        database.write(undone).expect("written");
        database.flush().expect("flushed");
        drop(database);
        let database = open(directory.path());
        assert_eq!(count(&database), (9, 9));
        assert_eq!(recover(&database), Ok(true));
        assert_eq!(count(&database), (9 - 5, 9 - 6));
        assert_eq!(recover(&database), Ok(false));
    }
}

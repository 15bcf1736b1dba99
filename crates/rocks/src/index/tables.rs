//! RocksDB as the tables of the index.
//!
//! A batch has the handles of its families with it, looked up once. Values are pinned where RocksDB
//! has them. A batch is permanent once the memtables are flushed.

use index::{Batch, Cursor, Family, Row, Tables};
use rocksdb::{DBPinnableSlice, ReadOptions, WriteBatch, WriteOptions};
use store::StoreError;

use crate::index::database::{Database, Families, refused, unreadable};
use crate::reader::scan::Scan;

/// A batch for one database.
pub(crate) struct RocksBatch<'a> {
    families: Families<'a>,
    batch: WriteBatch,
}

impl Tables for Database {
    type Batch<'a> = RocksBatch<'a>;
    type Value<'a> = DBPinnableSlice<'a>;
    type Cursor<'a> = Scan<'a>;

    fn batch(&self, bytes: usize) -> RocksBatch<'_> {
        RocksBatch {
            families: self.families(),
            batch: WriteBatch::with_capacity_bytes(bytes),
        }
    }

    fn write(&self, batch: RocksBatch<'_>) -> Result<(), StoreError> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.db.write_opt(batch.batch, &options).map_err(refused)
    }

    fn get(
        &self,
        family: Family,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<DBPinnableSlice<'_>>, StoreError> {
        let found = self.db.get_pinned_cf(self.family(family), key);
        found.map_err(unreadable)
    }

    fn get_each<const N: usize>(
        &self,
        family: Family,
        keys: &[[u8; N]],
    ) -> Vec<Result<Option<DBPinnableSlice<'_>>, StoreError>> {
        let (family, options) = (self.family(family), ReadOptions::default());
        let found = self
            .db
            .batched_multi_get_cf_opt(family, keys, true, &options);
        let found = found.into_iter();
        found.map(|value| value.map_err(unreadable)).collect()
    }

    fn scan(
        &self,
        family: Family,
        from: impl Into<Vec<u8>>,
        until: impl Into<Vec<u8>>,
    ) -> Scan<'_> {
        Scan::new(&self.db, self.family(family), from, until)
    }

    fn scan_briefly(
        &self,
        family: Family,
        from: impl Into<Vec<u8>>,
        until: impl Into<Vec<u8>>,
        most_deleted: u64,
    ) -> Scan<'_> {
        let mut options = ReadOptions::default();
        options.set_max_skippable_internal_keys(most_deleted);
        Scan::with(&self.db, self.family(family), from, until, options)
    }

    fn drop_files(&self, family: Family, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        let family = self.family(family);
        let dropped = self.db.delete_file_in_range_cf(family, from, to);
        dropped.map_err(refused)
    }
}

impl Batch for RocksBatch<'_> {
    fn put(&mut self, family: Family, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.batch.put_cf(self.families.of(family), key, value);
    }

    fn delete(&mut self, family: Family, key: impl AsRef<[u8]>) {
        self.batch.delete_cf(self.families.of(family), key);
    }

    fn delete_range(&mut self, family: Family, from: impl AsRef<[u8]>, until: impl AsRef<[u8]>) {
        let family = self.families.of(family);
        self.batch
            .delete_range_cf(family, from.as_ref(), until.as_ref());
    }

    fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    fn size_in_bytes(&self) -> usize {
        self.batch.size_in_bytes()
    }
}

impl Cursor for Scan<'_> {
    fn next(&mut self) -> Result<Option<Row<'_>>, StoreError> {
        Scan::next(self)
    }
}

#[cfg(test)]
mod tests {
    use index::range_reclaim::{RangeReclaim, recover};
    use journal::key;
    use store::{BodyPointer, EntityId, Part, SequenceNumber};

    use super::*;
    use crate::options::Options;

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
        let mut batch = database.batch(0);
        for number in 1..10 {
            batch.put(Family::Message, row(number), [1]);
            batch.put(Family::Body, body(number), [1]);
        }
        database.write(batch).expect("written");
        database.flush().expect("flushed");
        database
    }

    fn count(database: &Database) -> (usize, usize) {
        let count = |family, from: Vec<u8>, until: Vec<u8>| {
            let mut scan = database.scan(family, from, until);
            std::iter::from_fn(|| scan.next().expect("read").map(drop)).count()
        };
        (
            count(Family::Message, row(0).into(), row(99).into()),
            count(Family::Body, body(0).into(), body(99).into()),
        )
    }

    fn reclaims() -> [RangeReclaim; 2] {
        [
            RangeReclaim::Rows(row(3), row(7)),
            RangeReclaim::Bodies(body(3), body(8)),
        ]
    }

    #[test]
    fn rows_stay_hidden_even_if_the_first_deletion_went_with_a_table() {
        let directory = tempfile::tempdir().expect("a directory");
        let database = filled(directory.path());
        let mut batch = database.batch(0);
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
        let mut batch = database.batch(0);
        for reclaim in reclaims() {
            reclaim.begin(&mut batch);
        }
        database.write(batch).expect("written");
        assert_eq!(count(&database), (9 - 5, 9 - 6));
        // As if the tables had gone, and the deletion with them.
        let mut undone = database.batch(0);
        for number in 1..10 {
            undone.put(Family::Message, row(number), [1]);
            undone.put(Family::Body, body(number), [1]);
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

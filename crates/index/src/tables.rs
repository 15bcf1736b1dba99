//! Tables: what the index asks of the place where its rows are.
//!
//! Rows are ordered by their keys, in three families. A batch is applied as a whole, and seen by
//! every read after it. What was applied is permanent once it is flushed; a crash keeps some of the
//! batches that were not, the first ones. Reads fail with damage where a place cannot be read.

use std::ops::Deref;

use store::StoreError;

/// Where a row is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Family {
    /// Everything by [`KeyKind`](journal::key::KeyKind), and what there is one of.
    State,
    /// Messages' rows.
    Message,
    /// Places of bodies, and chunks of earlier formats.
    Body,
}

impl Family {
    pub const ALL: [Self; 3] = [Self::State, Self::Message, Self::Body];
}

/// A key and its value, valid until the next one is asked for.
pub type Row<'a> = (&'a [u8], &'a [u8]);

/// Ordered rows in three families.
pub trait Tables {
    type Batch<'a>: Batch
    where
        Self: 'a;
    type Value<'a>: Deref<Target = [u8]>
    where
        Self: 'a;
    type Cursor<'a>: Cursor
    where
        Self: 'a;

    /// An empty batch with room for about this many bytes.
    fn batch(&self, bytes: usize) -> Self::Batch<'_>;

    /// Applies a batch.
    fn write(&self, batch: Self::Batch<'_>) -> Result<(), StoreError>;

    fn get(
        &self,
        family: Family,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Self::Value<'_>>, StoreError>;

    /// The same of several keys, which are ascending.
    fn get_each<const N: usize>(
        &self,
        family: Family,
        keys: &[[u8; N]],
    ) -> Vec<Result<Option<Self::Value<'_>>, StoreError>>;

    /// The rows with `from <= key < until`, as they are now.
    fn scan(
        &self,
        family: Family,
        from: impl Into<Vec<u8>>,
        until: impl Into<Vec<u8>>,
    ) -> Self::Cursor<'_>;

    /// The same, but it may fail rather than pass over more than `most_deleted` rows that are
    /// deleted.
    fn scan_briefly(
        &self,
        family: Family,
        from: impl Into<Vec<u8>>,
        until: impl Into<Vec<u8>>,
        most_deleted: u64,
    ) -> Self::Cursor<'_>;

    /// Drops files whose rows are all within both ends, whatever was deleted of them. A row there
    /// of which an older version is in another file may be seen again: nothing may read until what
    /// hides it is written once more.
    fn drop_files(&self, family: Family, from: &[u8], to: &[u8]) -> Result<(), StoreError>;
}

/// Changes that are applied together, one after the other.
pub trait Batch {
    fn put(&mut self, family: Family, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>);

    fn delete(&mut self, family: Family, key: impl AsRef<[u8]>);

    /// Deletes all rows with `from <= key < until`.
    fn delete_range(&mut self, family: Family, from: impl AsRef<[u8]>, until: impl AsRef<[u8]>);

    fn is_empty(&self) -> bool;

    fn size_in_bytes(&self) -> usize;
}

/// Walks over rows, ascending.
pub trait Cursor {
    /// The next row, or nothing at the end.
    fn next(&mut self) -> Result<Option<Row<'_>>, StoreError>;
}

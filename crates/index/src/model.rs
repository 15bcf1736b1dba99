//! Model tables: what RocksDB promises the index, and no more, in memory.
//!
//! Batches are applied one after the other. A flush makes all of them permanent; a crash keeps any
//! number of the others, the first ones, since RocksDB may flush by itself at any time. What a
//! permanent row was before it was deleted or put again is buried in another file for a while.
//! When the files of a range are dropped, any of its permanent rows go, and any that are buried
//! there come up again. Which ones, the seed says.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use journal::key::single;
use journal::value;
use store::StoreError;

use crate::tables::{Batch, Cursor, Family, Row, Tables};

/// Rows by their families and keys.
type Rows = BTreeMap<(Family, Vec<u8>), Bytes>;

/// Rows in memory.
#[derive(Debug)]
pub struct ModelTables(Mutex<State>);

#[derive(Clone, Debug, Default)]
struct State {
    /// With every batch.
    rows: Rows,
    /// As a crash leaves them at least.
    permanent: Rows,
    /// What permanent rows were before.
    buried: Rows,
    /// Since the last flush.
    unflushed: Vec<Vec<Change>>,
    seed: u64,
}

#[derive(Clone, Debug)]
enum Change {
    Put(Family, Vec<u8>, Bytes),
    Delete(Family, Vec<u8>),
    DeleteRange(Family, Vec<u8>, Vec<u8>),
}

impl ModelTables {
    /// Empty tables, whose choices come from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            seed,
            ..State::default()
        };
        Self(Mutex::new(state))
    }

    /// A copy that goes on by itself.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }

    /// Makes all batches permanent.
    pub fn flush(&self) {
        let state = &mut *self.lock();
        for batch in mem::take(&mut state.unflushed) {
            state.make_permanent(&batch);
        }
        // A compaction in between has met what was buried.
        if state.chance(4) {
            state.buried.clear();
        }
    }

    /// How many batches a crash may lose.
    #[must_use]
    pub fn unflushed(&self) -> usize {
        self.lock().unflushed.len()
    }

    /// The process or the machine dies; `kept` batches were permanent by chance.
    pub fn crash(&self, kept: usize) {
        let state = &mut *self.lock();
        for batch in mem::take(&mut state.unflushed).iter().take(kept) {
            state.make_permanent(batch);
        }
        state.rows = state.permanent.clone();
    }

    /// The position up to which everything is permanent; 0 if nothing is.
    pub fn permanent_position(&self) -> Result<u64, StoreError> {
        let state = self.lock();
        let found = state
            .permanent
            .get(&(Family::State, single::POSITION.to_vec()));
        found.map_or(Ok(0), |found| {
            value::decode_u64("the position in the log", found)
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn make_permanent(&mut self, batch: &[Change]) {
        for change in batch {
            let before = change.apply(&mut self.permanent);
            self.buried.extend(before);
        }
    }

    /// One row as the unflushed batches leave it.
    fn settle(&mut self, place: &(Family, Vec<u8>)) {
        let mut row = self.permanent.get(place);
        for change in self.unflushed.iter().flatten() {
            match change {
                Change::Put(family, key, value) if (family, key) == (&place.0, &place.1) => {
                    row = Some(value);
                }
                Change::Delete(family, key) if (family, key) == (&place.0, &place.1) => row = None,
                Change::DeleteRange(family, from, until)
                    if *family == place.0 && (from..until).contains(&&place.1) =>
                {
                    row = None;
                }
                _ => {}
            }
        }
        match row.cloned() {
            Some(value) => drop(self.rows.insert(place.clone(), value)),
            None => drop(self.rows.remove(place)),
        }
    }

    /// Whether it happens, which it does one time in `times`.
    fn chance(&mut self, times: u64) -> bool {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.seed;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).is_multiple_of(times)
    }
}

/// The places from one key up to another, which does not belong to them.
fn within(family: Family, from: &[u8], until: Bound<&[u8]>) -> [Bound<(Family, Vec<u8>)>; 2] {
    let from = Bound::Included((family, from.to_vec()));
    [from, until.map(|key| (family, key.to_vec()))]
}

/// The places of rows in a range.
fn places(rows: &Rows, [from, until]: &[Bound<(Family, Vec<u8>)>; 2]) -> Vec<(Family, Vec<u8>)> {
    let found = rows.range((from.as_ref(), until.as_ref()));
    found.map(|(place, _)| place.clone()).collect()
}

impl Change {
    /// Applies it, and returns the rows that were there.
    fn apply(&self, rows: &mut Rows) -> Rows {
        let mut before = Rows::new();
        match self {
            Self::Put(family, key, value) => {
                let place = (*family, key.clone());
                let old = rows.insert(place.clone(), value.clone());
                before.extend(old.map(|old| (place, old)));
            }
            Self::Delete(family, key) => {
                before.extend(rows.remove_entry(&(*family, key.clone())));
            }
            Self::DeleteRange(family, from, until) if from < until => {
                let range = within(*family, from, Bound::Excluded(until));
                for place in places(rows, &range) {
                    before.extend(rows.remove_entry(&place));
                }
            }
            Self::DeleteRange(..) => {}
        }
        before
    }
}

impl Tables for ModelTables {
    type Batch<'a> = ModelBatch;
    type Value<'a> = Bytes;
    type Cursor<'a> = ModelCursor;

    fn batch(&self, _bytes: usize) -> ModelBatch {
        ModelBatch::default()
    }

    fn write(&self, batch: ModelBatch) -> Result<(), StoreError> {
        let state = &mut *self.lock();
        for change in &batch.0 {
            change.apply(&mut state.rows);
        }
        state.unflushed.push(batch.0);
        Ok(())
    }

    fn get(&self, family: Family, key: impl AsRef<[u8]>) -> Result<Option<Bytes>, StoreError> {
        let place = (family, key.as_ref().to_vec());
        Ok(self.lock().rows.get(&place).cloned())
    }

    fn get_each<const N: usize>(
        &self,
        family: Family,
        keys: &[[u8; N]],
    ) -> Vec<Result<Option<Bytes>, StoreError>> {
        keys.iter().map(|key| self.get(family, key)).collect()
    }

    fn scan(
        &self,
        family: Family,
        from: impl Into<Vec<u8>>,
        until: impl Into<Vec<u8>>,
    ) -> ModelCursor {
        let (from, until) = (from.into(), until.into());
        if from >= until {
            return ModelCursor::default();
        }
        let [from, until] = within(family, &from, Bound::Excluded(&until));
        let state = self.lock();
        let rows = state.rows.range((from, until));
        let rows = rows.map(|((_, key), value)| (key.clone(), value.clone()));
        ModelCursor {
            rows: rows.collect::<Vec<_>>().into_iter(),
            last: None,
        }
    }

    fn scan_briefly(
        &self,
        family: Family,
        from: impl Into<Vec<u8>>,
        until: impl Into<Vec<u8>>,
        _most_deleted: u64,
    ) -> ModelCursor {
        self.scan(family, from, until)
    }

    fn drop_files(&self, family: Family, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        let state = &mut *self.lock();
        let range = within(family, from, Bound::Included(to));
        for place in places(&state.permanent, &range) {
            if state.chance(2) {
                state.permanent.remove(&place);
                state.settle(&place);
            }
        }
        for place in places(&state.buried, &range) {
            if let Some(value) = state.buried.remove(&place)
                && !state.permanent.contains_key(&place)
                && state.chance(2)
            {
                state.permanent.insert(place.clone(), value);
                state.settle(&place);
            }
        }
        Ok(())
    }
}

/// Changes that are applied together.
#[derive(Debug, Default)]
pub struct ModelBatch(Vec<Change>);

impl Batch for ModelBatch {
    fn put(&mut self, family: Family, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let value = Bytes::copy_from_slice(value.as_ref());
        self.0
            .push(Change::Put(family, key.as_ref().to_vec(), value));
    }

    fn delete(&mut self, family: Family, key: impl AsRef<[u8]>) {
        self.0.push(Change::Delete(family, key.as_ref().to_vec()));
    }

    fn delete_range(&mut self, family: Family, from: impl AsRef<[u8]>, until: impl AsRef<[u8]>) {
        let (from, until) = (from.as_ref().to_vec(), until.as_ref().to_vec());
        self.0.push(Change::DeleteRange(family, from, until));
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn size_in_bytes(&self) -> usize {
        let bytes = |change: &Change| match change {
            Change::Put(_, key, value) => key.len() + value.len(),
            Change::Delete(_, key) => key.len(),
            Change::DeleteRange(_, from, until) => from.len() + until.len(),
        };
        self.0.iter().map(bytes).sum()
    }
}

/// Rows as they were when it was made.
#[derive(Debug, Default)]
pub struct ModelCursor {
    rows: std::vec::IntoIter<(Vec<u8>, Bytes)>,
    last: Option<(Vec<u8>, Bytes)>,
}

impl Cursor for ModelCursor {
    fn next(&mut self) -> Result<Option<Row<'_>>, StoreError> {
        self.last = self.rows.next();
        let last = self.last.as_ref();
        Ok(last.map(|(key, value)| (key.as_slice(), value.as_ref())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(tables: &ModelTables, fill: impl FnOnce(&mut ModelBatch)) {
        let mut batch = tables.batch(0);
        fill(&mut batch);
        tables.write(batch).expect("written");
    }

    fn keys(tables: &ModelTables) -> Vec<u8> {
        let mut rows = tables.scan(Family::Message, [0], [9]);
        let next = || rows.next().expect("read").map(|(key, _)| key[0]);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_crash_keeps_what_was_flushed_and_the_first_batches_behind_it() {
        let tables = ModelTables::new(1);
        write(&tables, |batch| batch.put(Family::Message, [1], [1]));
        tables.flush();
        for key in 2..5 {
            write(&tables, |batch| batch.put(Family::Message, [key], [1]));
        }
        assert_eq!((keys(&tables), tables.unflushed()), (vec![1, 2, 3, 4], 3));
        tables.crash(2);
        assert_eq!((keys(&tables), tables.unflushed()), (vec![1, 2, 3], 0));
        write(&tables, |batch| {
            batch.delete_range(Family::Message, [0], [3]);
        });
        assert_eq!(keys(&tables), [3]);
        tables.crash(0);
        assert_eq!(keys(&tables), [1, 2, 3]);
    }

    #[test]
    fn rows_within_dropped_files_go_and_deleted_ones_come_up_as_the_seed_says() {
        let (mut gone, mut risen) = (0, 0);
        for seed in 0..20 {
            let tables = ModelTables::new(seed);
            write(&tables, |batch| {
                (1..9).for_each(|key| batch.put(Family::Message, [key], [1]));
            });
            tables.flush();
            write(&tables, |batch| {
                batch.delete_range(Family::Message, [2], [5]);
            });
            tables.flush();
            write(&tables, |batch| batch.put(Family::Message, [4], [2]));
            tables
                .drop_files(Family::Message, &[2], &[6])
                .expect("dropped");
            let left = keys(&tables);
            assert!(
                [1, 4, 7, 8].iter().all(|key| left.contains(key)),
                "{left:?}"
            );
            gone += 2 - left.iter().filter(|key| [5, 6].contains(*key)).count();
            risen += left.iter().filter(|key| [2, 3].contains(*key)).count();
        }
        assert!(
            (5..36).contains(&gone) && (5..36).contains(&risen),
            "{gone} {risen}"
        );
    }
}

//! RocksDB and the model of it side by side: of the same write sets both have the same rows.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use index::liveness::each_location;
use index::model::ModelTables;
use index::range_reclaim::{self, PendingReclaims};
use index::{Cursor, Family, Index, Limits, Tables, opening};
use journal::{JournalLocation, Moves, chunk};
use store::{MemoryDisk, MemoryStore};

use super::*;
use crate::index::database::Database;

/// Small, so that a log has ranges that are dropped, copies in several batches and counts that are
/// read again.
const LIMITS: Limits = Limits {
    reclaimed_numbers: 6,
    reclaimed_bytes: 1 << 20,
    copy_bytes: 512,
    pages: 8,
};
/// Bodies that are moved at once.
const MOVED: usize = 3;

type Waiting = Arc<Mutex<Vec<(CommitId, WriteSet)>>>;

/// A memory store whose write sets are kept for both indexes.
struct Recording {
    store: MemoryStore,
    waiting: Waiting,
}

impl Store for Recording {
    fn submit(&mut self, writes: WriteSet) -> CommitId {
        let commit = self.store.submit(writes.clone());
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push((commit, writes));
        commit
    }

    fn durable(&self) -> CommitId {
        self.store.durable()
    }

    fn failure(&self) -> Option<StoreError> {
        self.store.failure()
    }

    fn is_nearly_full(&self) -> bool {
        self.store.is_nearly_full()
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.store.reader()
    }

    fn recover(&mut self) -> Result<Recovery, StoreError> {
        self.store.recover()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Box::new(self.store).close()
    }
}

/// An index, and the ranges whose files it may drop.
struct Side<T> {
    index: Index<T>,
    reclaims: PendingReclaims,
}

impl<T: Tables> Side<T> {
    fn new(tables: T) -> Self {
        let index = Index::open(Arc::new(tables), LIMITS).expect("readable");
        range_reclaim::recover(&*index.tables).expect("recovered");
        Self {
            index,
            reclaims: PendingReclaims::default(),
        }
    }

    fn apply(&mut self, sets: &[WriteSet], moves: &Moves, position: u64) {
        let reclaims = self.index.apply(sets, moves, position, &[]);
        self.reclaims.add(position, reclaims.expect("applied"));
    }

    fn reclaim(&mut self, permanent: u64) {
        let dropped = self.reclaims.drop_due(permanent, &*self.index.tables);
        dropped.expect("dropped");
    }

    fn rows(&self, family: Family) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = self.index.tables.scan(family, [0], [u8::MAX; 21]);
        let mut found = Vec::new();
        while let Some((key, value)) = rows.next().expect("readable") {
            found.push((key.to_vec(), value.to_vec()));
        }
        found
    }
}

struct Both {
    directory: TempDir,
    disk: MemoryDisk,
    waiting: Waiting,
    /// None only while it is opened again.
    rocks: Option<Side<Database>>,
    model: Side<ModelTables>,
    position: u64,
}

impl Both {
    fn new() -> Self {
        let directory = new_directory();
        Self {
            rocks: Some(opened(directory.path())),
            directory,
            disk: MemoryDisk::new(),
            waiting: Waiting::default(),
            model: Side::new(ModelTables::new(1)),
            position: 0,
        }
    }

    fn rocks(&mut self) -> &mut Side<Database> {
        self.rocks.as_mut().expect("it is open between steps")
    }

    fn store(&self, store: MemoryStore) -> Recording {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        Recording {
            store,
            waiting: self.waiting.clone(),
        }
    }

    /// Applies what waits, up to and including a commit, as far as none copies an entity together.
    fn apply(&mut self, id: CommitId) {
        let mut sets = Vec::new();
        let waiting = self.waiting.clone();
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, mut set) in waiting.extract_if(.., |(commit, _)| *commit <= id) {
            for (pointer, body) in set.bodies_mut() {
                *body = self.place(pointer, body.len());
            }
            if set.has_copy() {
                self.apply_together(&std::mem::take(&mut sets));
                self.apply_together(&[set]);
            } else {
                sets.push(set);
            }
        }
        self.apply_together(&sets);
    }

    fn apply_together(&mut self, sets: &[WriteSet]) {
        self.position += 1;
        let position = self.position;
        let mut moves = Moves::new();
        if position.is_multiple_of(5) && !sets.iter().any(WriteSet::has_copy) {
            let mut bodies = Vec::new();
            each_location(&*self.model.index.tables, |pointer, location| {
                bodies.push((pointer, location.len));
                Ok(())
            })
            .expect("readable");
            for (pointer, len) in bodies.into_iter().take(MOVED) {
                let len = usize::try_from(len).expect("a length");
                moves.push((pointer, self.place(pointer, len)));
            }
        }
        self.model.apply(sets, &moves, position);
        self.rocks().apply(sets, &moves, position);
        if position.is_multiple_of(3) {
            self.flush();
        }
    }

    /// A place for a body in a journal that is not there.
    fn place(&self, pointer: BodyPointer, len: usize) -> Bytes {
        let location = JournalLocation {
            segment: self.position,
            offset: pointer.number.0,
            len: u32::try_from(len).expect("a body is shorter"),
            checksum: 0,
        };
        Bytes::copy_from_slice(&chunk::encode_location(pointer, location))
    }

    fn flush(&mut self) {
        let position = self.position;
        self.model.index.tables.flush();
        self.rocks().index.tables.flush().expect("flushed");
        self.compare();
        self.model.reclaim(position);
        self.rocks().reclaim(position);
        self.compare();
    }

    fn compare(&mut self) {
        for family in Family::ALL {
            let expected = self.model.rows(family);
            let found = self.rocks().rows(family);
            assert_eq!(found, expected, "{family:?} at {}", self.position);
        }
    }

    /// Both go on with what their tables have.
    fn restart(&mut self) {
        self.flush();
        drop(self.rocks.take());
        self.rocks = Some(opened(self.directory.path()));
        self.model.index.tables.flush();
        self.model = Side::new(self.model.index.tables.fork());
        let position = opening::position(&*self.rocks().index.tables);
        assert_eq!(position, Ok(self.position));
        self.compare();
    }
}

fn opened(path: &Path) -> Side<Database> {
    let database = Database::open(&path.join("index"), &Options::default());
    Side::new(database.expect("opened"))
}

impl Harness for Both {
    type Store = Recording;

    fn create(&mut self) -> Recording {
        *self = Self::new();
        let store = self.disk.open();
        self.store(store)
    }

    fn make_durable(&mut self, _store: &mut Recording, id: CommitId) {
        self.disk.sync_to(id);
        self.apply(id);
    }

    fn reopen(&mut self, store: Recording) -> Recording {
        self.disk.sync_all();
        self.crash(store)
    }

    fn crash(&mut self, _store: Recording) -> Recording {
        self.apply(self.disk.durable());
        self.restart();
        let store = self.disk.crash();
        self.store(store)
    }

    fn image(&mut self, _store: &mut Recording) -> Image {
        self.disk.with_current(Image::clone)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_model_of_rocksdb_has_the_same_rows_after_every_flush(words in prop::collection::vec(any::<u64>(), 1..250)) {
        conformance::random_log(&mut Both::new(), &words);
    }
}

//! Recording store: a memory store that also keeps the write sets it was given, for the checks.
//!
//! The broker under test sees an ordinary store. The recording has the write sets in the order in
//! which they were submitted, until they are taken.

use std::sync::{Arc, Mutex, PoisonError};

use store::{CommitId, MemoryStore, Reader, Recovery, Store, StoreError, WriteSet};

/// Write sets that were not taken yet.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    sets: Arc<Mutex<Vec<(CommitId, WriteSet)>>>,
}

impl Recording {
    /// Everything submitted since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<(CommitId, WriteSet)> {
        // A panic elsewhere leaves whole sets behind.
        std::mem::take(&mut self.sets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, commit: CommitId, writes: WriteSet) {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        sets.push((commit, writes));
    }
}

/// A store that records its write sets.
#[derive(Debug)]
pub struct RecordingStore {
    store: MemoryStore,
    recording: Recording,
}

impl RecordingStore {
    /// Adds to `recording` what `store` is given from now on.
    #[must_use]
    pub fn new(store: MemoryStore, recording: Recording) -> Self {
        Self { store, recording }
    }
}

impl Store for RecordingStore {
    fn submit(&mut self, writes: WriteSet) -> CommitId {
        let commit = self.store.submit(writes.clone());
        self.recording.note(commit, writes);
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

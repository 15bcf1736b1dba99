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

    /// Copies of those up to and including `id`.
    #[must_use]
    pub fn up_to(&self, id: CommitId) -> Vec<WriteSet> {
        let sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = sets.iter().filter(|(commit, _)| *commit <= id);
        wanted.map(|(_, set)| set.clone()).collect()
    }

    /// Removes those up to and including `id`.
    pub fn forget(&self, id: CommitId) {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        sets.retain(|(commit, _)| *commit > id);
    }

    /// Removes all.
    pub fn clear(&self) {
        drop(self.take());
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
    /// For the journal, if there is one.
    waiting: Option<Recording>,
}

impl RecordingStore {
    /// Adds to `recording`, and to `waiting`, what `store` is given from now on.
    #[must_use]
    pub fn new(store: MemoryStore, recording: Recording, waiting: Option<Recording>) -> Self {
        Self {
            store,
            recording,
            waiting,
        }
    }
}

impl Store for RecordingStore {
    fn submit(&mut self, writes: WriteSet) -> CommitId {
        let commit = self.store.submit(writes.clone());
        if let Some(waiting) = &self.waiting {
            waiting.note(commit, writes.clone());
        }
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

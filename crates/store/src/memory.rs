//! Memory store: for simulation and for tests of everything above the store.
//!
//! Submitting applies a write set to the *current* image at once; it becomes durable only when
//! the holder of the [`MemoryDisk`] says so. A crash throws away everything after the newest
//! durable set, as pulling the plug would. Nothing here depends on time, chance or threads.
//! Invariant: current = durable + pending, in the order of the ids.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::StoreError;
use crate::id::CommitId;
use crate::image::{ContractViolation, Image};
use crate::query::{Found, Query};
use crate::record::Recovery;
use crate::write::WriteSet;
use crate::{Reader, Store};

/// The most violations of the contract that are recorded.
const MAX_VIOLATIONS: usize = 16;

/// A store in memory. Its disk is shared with the code that injects faults.
#[derive(Debug)]
pub struct MemoryStore {
    disk: MemoryDisk,
    /// Which opening of the disk this store belongs to. A crash starts a new one.
    opening: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// A store on an empty disk where every write set is durable at once.
    #[must_use]
    pub fn new() -> Self {
        let disk = MemoryDisk::new();
        disk.set_automatic(true);
        disk.open()
    }

    /// The disk under this store.
    #[must_use]
    pub fn disk(&self) -> MemoryDisk {
        self.disk.clone()
    }
}

impl Store for MemoryStore {
    fn submit(&mut self, writes: WriteSet) -> CommitId {
        self.disk.lock().submit(self.opening, writes)
    }

    fn durable(&self) -> CommitId {
        self.disk.lock().durable_of(self.opening)
    }

    fn failure(&self) -> Option<StoreError> {
        self.disk.lock().failure_of(self.opening)
    }

    fn is_nearly_full(&self) -> bool {
        self.disk.lock().nearly_full
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(MemoryReader {
            disk: self.disk.clone(),
            opening: self.opening,
        })
    }

    fn recover(&mut self) -> Result<Recovery, StoreError> {
        let state = self.disk.lock();
        match state.failure_of(self.opening) {
            Some(failure) => Err(failure),
            None => Ok(state.current.recovery()),
        }
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.disk.sync_all();
        Ok(())
    }
}

/// Reads the oldest image that is allowed, the durable one if possible, else the current one. A
/// store that learns of commits long after they are durable does the same.
struct MemoryReader {
    disk: MemoryDisk,
    opening: u64,
}

impl Reader for MemoryReader {
    fn read(&self, after: CommitId, query: &Query) -> Result<Found, StoreError> {
        let state = self.disk.lock();
        if let Some(failure) = state.failure_of(self.opening) {
            return Err(StoreError::Poisoned(failure.to_string()));
        }
        assert!(
            after <= state.submitted,
            "a read names a commit that was submitted"
        );
        if after <= state.durable_id {
            return state.durable.read(query);
        }
        state.current.read(query)
    }
}

/// The disk under a [`MemoryStore`]: decides what becomes durable, and when it breaks.
///
/// It starts in manual mode: nothing is durable until [`sync_to`](Self::sync_to).
#[derive(Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryDisk")
            .field("submitted", &state.submitted)
            .field("durable", &state.durable_id)
            .finish_non_exhaustive()
    }
}

impl MemoryDisk {
    /// An empty disk in manual mode.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a store on what is durable. A store opened before is cut off, as by
    /// [`crash`](Self::crash).
    #[must_use]
    pub fn open(&self) -> MemoryStore {
        self.crash()
    }

    /// Loses every set that is not durable and opens a store on the rest. Failures are over, ids
    /// start again from 1, and a store opened before never acknowledges anything again.
    #[must_use]
    pub fn crash(&self) -> MemoryStore {
        let mut state = self.lock();
        state.crash();
        MemoryStore {
            disk: self.clone(),
            opening: state.opening,
        }
    }

    /// A crash after the disk had written up to `id` without reporting it.
    #[must_use]
    pub fn crash_after(&self, id: CommitId) -> MemoryStore {
        self.sync_to(id);
        self.crash()
    }

    /// The newest set submitted to the open store.
    #[must_use]
    pub fn submitted(&self) -> CommitId {
        self.lock().submitted
    }

    /// The newest durable set of the open store.
    #[must_use]
    pub fn durable(&self) -> CommitId {
        self.lock().durable_id
    }

    /// Makes every set up to and including `id` durable. Does nothing once the disk has failed.
    pub fn sync_to(&self, id: CommitId) {
        self.lock().sync_to(id);
    }

    /// Makes everything submitted durable.
    pub fn sync_all(&self) {
        let mut state = self.lock();
        let submitted = state.submitted;
        state.sync_to(submitted);
    }

    /// Whether each set is durable as soon as it is submitted. Turning it on syncs what waits.
    pub fn set_automatic(&self, automatic: bool) {
        let mut state = self.lock();
        state.automatic = automatic;
        if automatic {
            let submitted = state.submitted;
            state.sync_to(submitted);
        }
    }

    /// From now on nothing becomes durable: the store is poisoned until the next crash.
    pub fn fail(&self, reason: &str) {
        self.lock().failure = Some(StoreError::Io(reason.into()));
    }

    /// Sets the answer of [`Store::is_nearly_full`].
    pub fn set_nearly_full(&self, nearly_full: bool) {
        self.lock().nearly_full = nearly_full;
    }

    /// Looks at everything that was submitted.
    pub fn with_current<R>(&self, look: impl FnOnce(&Image) -> R) -> R {
        look(&self.lock().current)
    }

    /// Looks at what a crash would leave.
    pub fn with_durable<R>(&self, look: impl FnOnce(&Image) -> R) -> R {
        look(&self.lock().durable)
    }

    /// Writes that broke the storage contract, the first few of them.
    #[must_use]
    pub fn violations(&self) -> Vec<ContractViolation> {
        self.lock().violations.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another test thread leaves the tables as they were between two writes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct State {
    current: Image,
    durable: Image,
    /// Submitted, not durable; ascending without gaps, the last one is `submitted`.
    pending: VecDeque<(CommitId, WriteSet)>,
    submitted: CommitId,
    durable_id: CommitId,
    opening: u64,
    automatic: bool,
    nearly_full: bool,
    failure: Option<StoreError>,
    violations: Vec<ContractViolation>,
}

impl State {
    fn submit(&mut self, opening: u64, writes: WriteSet) -> CommitId {
        if opening != self.opening {
            return self.submitted.next();
        }
        self.submitted = self.submitted.next();
        for write in writes.as_slice() {
            if let Err(violation) = self.current.apply(write)
                && self.violations.len() < MAX_VIOLATIONS
            {
                self.violations.push(violation);
            }
        }
        self.pending.push_back((self.submitted, writes));
        if self.automatic {
            self.sync_to(self.submitted);
        }
        self.submitted
    }

    fn sync_to(&mut self, id: CommitId) {
        if self.failure.is_some() {
            return;
        }
        while let Some((commit, writes)) = self.pending.pop_front_if(|(commit, _)| *commit <= id) {
            for write in writes.as_slice() {
                // A violation was reported when the set was submitted.
                let _reported = self.durable.apply(write);
            }
            self.durable_id = commit;
        }
    }

    fn crash(&mut self) {
        if !self.pending.is_empty() {
            self.current = self.durable.clone();
            self.pending.clear();
        }
        self.submitted = CommitId::default();
        self.durable_id = CommitId::default();
        self.failure = None;
        self.opening += 1;
    }

    fn durable_of(&self, opening: u64) -> CommitId {
        if opening == self.opening {
            self.durable_id
        } else {
            CommitId::default()
        }
    }

    fn failure_of(&self, opening: u64) -> Option<StoreError> {
        if opening == self.opening {
            self.failure.clone()
        } else {
            Some(StoreError::Poisoned("the disk was opened again".into()))
        }
    }
}

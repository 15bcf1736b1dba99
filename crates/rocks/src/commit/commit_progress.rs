//! Commit progress: the watermarks of the committing and indexing threads, for all other threads.
//!
//! A commit is durable, then applied to the index. Both watermarks only rise; a failure is set
//! once and never taken back. Readers wait here for the commit that they name.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use store::{CommitId, StoreError};

use crate::disk_space::DiskSpace;

/// Shared between the committer, the store and its readers.
#[derive(Default)]
pub(crate) struct CommitProgress {
    durable: AtomicU64,
    applied: AtomicU64,
    nearly_full: AtomicBool,
    /// Bytes that may still be written.
    free: AtomicU64,
    /// Set together with `failure`, so that looking at it costs nothing.
    failed: AtomicBool,
    failure: Mutex<Option<StoreError>>,
    moved: Condvar,
}

impl CommitProgress {
    /// The newest acknowledged commit.
    pub fn durable(&self) -> CommitId {
        CommitId(self.durable.load(Ordering::Acquire))
    }

    /// Acknowledges everything up to `id`. No thread waits for that here, so none is woken.
    pub fn advance(&self, id: CommitId) {
        self.durable.store(id.0, Ordering::Release);
    }

    /// The newest commit that the index has.
    pub fn applied(&self) -> CommitId {
        CommitId(self.applied.load(Ordering::Acquire))
    }

    /// The index has everything up to `id`.
    pub fn advance_applied(&self, id: CommitId) {
        let held = self.lock();
        self.applied.store(id.0, Ordering::Release);
        drop(held);
        self.moved.notify_all();
    }

    /// Ends it all; only the first failure counts.
    pub fn fail(&self, failure: StoreError) {
        let mut held = self.lock();
        held.get_or_insert(failure);
        self.failed.store(true, Ordering::Release);
        drop(held);
        self.moved.notify_all();
    }

    pub fn failure(&self) -> Option<StoreError> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.lock().clone()
    }

    pub fn is_nearly_full(&self) -> bool {
        self.nearly_full.load(Ordering::Relaxed)
    }

    /// Bytes that may still be written, as of the last look.
    pub fn free(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    /// Takes over what is known of the disk. Returns whether it being nearly full is news.
    pub fn set_space(&self, space: &DiskSpace) -> bool {
        self.free.store(space.free(), Ordering::Relaxed);
        let nearly_full = space.is_nearly_full();
        self.nearly_full.swap(nearly_full, Ordering::Relaxed) != nearly_full
    }

    /// Returns when `id` is durable, or with the reason why it never will be.
    #[cfg(test)]
    pub fn wait_for(&self, id: CommitId) -> Result<(), StoreError> {
        while self.durable() < id {
            if let Some(failure) = self.failure() {
                return Err(StoreError::Poisoned(failure.to_string()));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Returns when the index has `id`, or with the reason why it never will.
    pub fn wait_until_applied(&self, id: CommitId) -> Result<(), StoreError> {
        let poisoned = |failure: &StoreError| Err(StoreError::Poisoned(failure.to_string()));
        if let Some(failure) = self.failure() {
            return poisoned(&failure);
        }
        let is_below = || self.applied() < id;
        if !is_below() {
            return Ok(());
        }
        let waiting = |failure: &mut Option<StoreError>| failure.is_none() && is_below();
        let held = self.moved.wait_while(self.lock(), waiting);
        let held = held.unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map_or(Ok(()), poisoned)
    }

    fn lock(&self) -> MutexGuard<'_, Option<StoreError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Submitter: sends write sets to the committer, or commits one itself while no other thread
//! commits.
//!
//! Waking a thread and being woken by it costs as much as a quarter of a sync, or all of the time
//! if nothing is synced. With one message sent after the other that brings nothing, so the shard
//! may commit on its own thread: if no set is on its way to the committer, no commit is under way,
//! and the last sync was fast. One mutex admits one committing thread at a time, and sets become
//! durable in the order of their ids either way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use store::{CallerLoad, CommitId, StoreError, WriteSet};

use crate::commit::commit_progress::CommitProgress;
use crate::commit::commits::Commits;
use crate::commit::committer::Submission;
use crate::commit::group::Group;
use crate::options::Durability;

/// The lock that lets one thread at a time commit.
pub(crate) struct CommitLock {
    commits: Mutex<Commits>,
    /// Sets that were sent to the committer and are not durable.
    in_flight: AtomicUsize,
}

impl CommitLock {
    pub fn new(commits: Commits) -> Self {
        Self {
            commits: Mutex::new(commits),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// Waits until no other thread commits.
    ///
    /// # Errors
    /// When a thread panicked while committing: the content of the journal is unknown then.
    pub fn lock(&self) -> Result<MutexGuard<'_, Commits>, StoreError> {
        self.commits.lock().map_err(|_| panicked())
    }

    /// Notes that `sets` of the sent sets are durable. Called while the lock is held.
    pub fn committed(&self, sets: usize) {
        self.in_flight.fetch_sub(sets, Ordering::Relaxed);
    }

    /// Takes the lock if it is free and no set is on its way to the committer.
    fn try_lock_idle(&self) -> Option<MutexGuard<'_, Commits>> {
        let commits = self.commits.try_lock().ok()?;
        let is_alone = self.in_flight.load(Ordering::Relaxed) == 0;
        is_alone.then_some(commits)
    }
}

/// Makes the write sets of a shard durable.
pub(crate) struct Submitter {
    pub commit_lock: Arc<CommitLock>,
    pub submissions: Arc<Sender<Submission>>,
    pub progress: Arc<CommitProgress>,
    pub durability: Durability,
    /// The newest set's.
    pub last: CommitId,
}

impl Submitter {
    /// Has `writes` made durable by the committer.
    pub fn submit(&mut self, writes: WriteSet) -> CommitId {
        self.last = self.last.next();
        self.commit_lock.in_flight.fetch_add(1, Ordering::Relaxed);
        self.send(Submission::Writes(self.last, writes));
        self.last
    }

    /// Makes `writes` durable before it returns, if that pays for such a `caller`.
    pub fn commit(&mut self, writes: WriteSet, caller: CallerLoad) -> CommitId {
        if caller == CallerLoad::Busy && self.durability == Durability::Synced {
            return self.submit(writes);
        }
        let Some(mut commits) = self.commit_lock.try_lock_idle() else {
            return self.submit(writes);
        };
        let mut group = Group::default();
        group.add(self.last.next(), writes);
        if !commits.is_quick(&group) {
            drop(commits);
            return self.submit(group.sets.pop().unwrap_or_default());
        }
        self.last = group.last;
        let was_idle = commits.is_idle();
        let had_failed = self.progress.failure().is_some();
        if let Err(failure) = commits.commit_own(group)
            && !had_failed
        {
            tracing::error!(%failure, "the store stops: nothing more will be acknowledged");
            self.progress.fail(failure);
        }
        drop(commits);
        if was_idle {
            self.send(Submission::WakeUp);
        }
        self.last
    }

    fn send(&self, submission: Submission) {
        // Fails only when the committer panicked, which is reported as a failure.
        drop(self.submissions.send(submission));
    }
}

fn panicked() -> StoreError {
    StoreError::Poisoned("a thread panicked while committing".into())
}

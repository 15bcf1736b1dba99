//! Submitter: hands write sets to the committer, or commits one itself when nobody else does.
//!
//! To wake a thread and to be woken by it costs as much as a quarter of a sync, and as much as all of it
//! where nothing is synced. Where one message is sent after the other that is all in vain, so the shard may
//! commit on its own thread: if nothing is on its way to the committer, nobody commits, and the disk was
//! quick the last time. One mutex decides whose turn it is, and sets become durable in the order of their
//! ids either way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use store::{Caller, CommitId, StoreError, WriteSet};

use crate::commits::Commits;
use crate::committer::Submission;
use crate::group::Group;
use crate::options::Durability;
use crate::progress::Progress;

/// Where one at a time commits.
pub(crate) struct Turnstile {
    commits: Mutex<Commits>,
    /// Sets that were sent to the committer and are not durable.
    on_their_way: AtomicUsize,
}

impl Turnstile {
    pub fn new(commits: Commits) -> Self {
        Self {
            commits: Mutex::new(commits),
            on_their_way: AtomicUsize::new(0),
        }
    }

    /// Waits until it is one's turn.
    ///
    /// # Errors
    /// When somebody panicked meanwhile: nobody knows what is in the journal then.
    pub fn enter(&self) -> Result<MutexGuard<'_, Commits>, StoreError> {
        self.commits.lock().map_err(|_| panicked())
    }

    /// So many sets of those that were sent are durable. Said before the turn is over.
    pub fn has_committed(&self, sets: usize) {
        self.on_their_way.fetch_sub(sets, Ordering::Relaxed);
    }

    /// Enters if nobody is there and nothing is on its way.
    fn enter_alone(&self) -> Option<MutexGuard<'_, Commits>> {
        let commits = self.commits.try_lock().ok()?;
        let is_alone = self.on_their_way.load(Ordering::Relaxed) == 0;
        is_alone.then_some(commits)
    }
}

/// The shard's way to durability.
pub(crate) struct Submitter {
    pub turnstile: Arc<Turnstile>,
    pub submissions: Arc<Sender<Submission>>,
    pub progress: Arc<Progress>,
    pub durability: Durability,
    /// The newest set's.
    pub last: CommitId,
}

impl Submitter {
    /// Has `writes` made durable by the committer.
    pub fn submit(&mut self, writes: WriteSet) -> CommitId {
        self.last = self.last.next();
        self.turnstile.on_their_way.fetch_add(1, Ordering::Relaxed);
        self.send(Submission::Writes(self.last, writes));
        self.last
    }

    /// Makes `writes` durable before it returns, if that is worth it for such a `caller`.
    pub fn commit(&mut self, writes: WriteSet, caller: Caller) -> CommitId {
        if caller == Caller::Busy && self.durability == Durability::Synced {
            return self.submit(writes);
        }
        let Some(mut commits) = self.turnstile.enter_alone() else {
            return self.submit(writes);
        };
        let mut group = Group::default();
        group.add(self.last.next(), writes);
        if !commits.take_at_once(&group) {
            drop(commits);
            return self.submit(group.sets.pop().unwrap_or_default());
        }
        self.last = group.last;
        let were_at_rest = commits.are_at_rest();
        let had_failed = self.progress.failure().is_some();
        if let Err(failure) = commits.commit_own(group)
            && !had_failed
        {
            tracing::error!(%failure, "the store stops: nothing more will be acknowledged");
            self.progress.fail(failure);
        }
        drop(commits);
        if were_at_rest {
            self.send(Submission::Rise);
        }
        self.last
    }

    fn send(&self, submission: Submission) {
        // Fails only when the committer panicked, which is reported as a failure.
        drop(self.submissions.send(submission));
    }
}

fn panicked() -> StoreError {
    StoreError::Poisoned("somebody panicked while committing".into())
}

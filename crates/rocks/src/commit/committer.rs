//! Committer: the thread that makes decisions durable, in groups.
//!
//! It takes all write sets that were submitted while it was syncing as one group. There is no
//! timer and no tuning: the slower the disk, the larger the groups. It also runs maintenance at
//! intervals.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use journal::Moves;
use store::{CommitId, StoreError, WriteSet};

use crate::backup;
use crate::commit::commit_progress::CommitProgress;
use crate::commit::group::Group;
use crate::commit::submitter::CommitLock;
use crate::index::unapplied::Unapplied;

/// The interval at which the witness is synced and the file system asked.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
/// The same while nothing has been committed since.
const IDLE_MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);

/// What is asked of the committer.
pub(crate) enum Submission {
    /// To make a write set durable.
    Writes(CommitId, WriteSet),
    /// To write bodies again, so that the segment they are in can go.
    Moves(Moves),
    /// To make a copy of all that was submitted before.
    Backup(backup::BackupOrder),
    /// To run maintenance as often as when the committer commits itself, since a shard commits.
    WakeUp,
}

/// Called whenever there is something new to see at the store.
pub(crate) type Wake = Arc<dyn Fn() + Send + std::marker::Sync>;

/// Everything the thread owns.
pub(crate) struct Committer {
    pub commit_lock: Arc<CommitLock>,
    pub progress: Arc<CommitProgress>,
    pub unapplied: Arc<Unapplied>,
    pub wake: Wake,
}

impl Committer {
    /// Works until the last sender is gone and everything submitted is durable.
    pub fn run(self, submissions: &Receiver<Submission>) {
        let panic_guard = PanicGuard {
            progress: self.progress.clone(),
            wake: self.wake.clone(),
            unapplied: self.unapplied.clone(),
        };
        let worked = self.work(submissions);
        if let Err(failure) = worked.and_then(|()| self.commit_lock.lock()?.finish()) {
            tracing::error!(%failure, "the store stops: nothing more will be acknowledged");
            self.progress.fail(failure);
            (self.wake)();
        }
        drop(panic_guard);
        // A later submission is never answered, and must not fail over a missing thread.
        submissions.iter().for_each(drop);
    }

    fn work(&self, submissions: &Receiver<Submission>) -> Result<(), StoreError> {
        let mut maintained_at = Instant::now();
        let mut timeout = MAINTENANCE_INTERVAL;
        loop {
            match submissions.recv_timeout(timeout) {
                Ok(submission) => {
                    self.commit_batch(submission, submissions)?;
                    timeout = MAINTENANCE_INTERVAL;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if maintained_at.elapsed() >= MAINTENANCE_INTERVAL {
                timeout = self.run_maintenance()?;
                maintained_at = Instant::now();
            }
        }
    }

    /// Returns the time until the next maintenance.
    fn run_maintenance(&self) -> Result<Duration, StoreError> {
        let mut commits = self.commit_lock.lock()?;
        commits.run_maintenance()?;
        let at_rest = commits.is_idle();
        Ok(if at_rest {
            IDLE_MAINTENANCE_INTERVAL
        } else {
            MAINTENANCE_INTERVAL
        })
    }

    /// Commits `first` and what waits behind it as one group. A backup ends the group, and a set
    /// that copies an entity is one of its own.
    fn commit_batch(
        &self,
        first: Submission,
        submissions: &Receiver<Submission>,
    ) -> Result<(), StoreError> {
        let mut group = Group::default();
        let mut backup = None;
        let mut next = Some(first);
        while let Some(submission) = next {
            match submission {
                Submission::Writes(id, set) if set.has_copy() => {
                    self.commit(std::mem::take(&mut group))?;
                    group.add(id, set);
                    self.commit(std::mem::take(&mut group))?;
                }
                Submission::Writes(id, set) => group.add(id, set),
                Submission::Moves(moves) => group.moves.extend(moves),
                Submission::Backup(order) => {
                    backup = Some(order);
                    break;
                }
                Submission::WakeUp => {}
            }
            next = if group.is_full() {
                None
            } else {
                submissions.try_recv().ok()
            };
        }
        self.commit(group)?;
        backup.map_or(Ok(()), |order| self.commit_lock.lock()?.back_up(order))
    }

    fn commit(&self, group: Group) -> Result<(), StoreError> {
        if group.is_empty() {
            return Ok(());
        }
        let mut commits = self.commit_lock.lock()?;
        let sets = group.sets.len();
        commits.commit(group)?;
        self.commit_lock.committed(sets);
        Ok(())
    }
}

/// Tells the others when the thread ends, be it of a bug.
struct PanicGuard {
    progress: Arc<CommitProgress>,
    wake: Wake,
    unapplied: Arc<Unapplied>,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.progress
                .fail(StoreError::Poisoned("the committer panicked".into()));
        }
        self.unapplied.end();
        if thread::panicking() {
            (self.wake)();
        }
    }
}

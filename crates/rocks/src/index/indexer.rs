//! Indexer: the one thread that applies durable groups to the index.
//!
//! It takes many groups together, so a message that was sent and settled meanwhile is never put
//! into the index. A commit does not wait for the indexer. Rows that the index has only in memory
//! are still in the journal; at intervals the index is flushed and old segments are removed.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use index::Index;
use index::range_reclaim::PendingReclaims;
use journal::{Handle, Moves};
use store::StoreError;

use crate::commit::commit_progress::CommitProgress;
use crate::commit::committer::{Submission, Wake};
use crate::index::database::Database;
use crate::index::unapplied::{DurableGroup, Unapplied};
use crate::index::writer_lock::WriterLock;
use crate::retention::Retention;

/// How long readers go first before tables are dropped.
pub(crate) const READER_PRIORITY: Duration = Duration::from_millis(250);

/// Everything the thread owns.
pub(crate) struct Indexer {
    pub index: Index<Database>,
    pub retention: Retention,
    pub unapplied: Arc<Unapplied>,
    pub progress: Arc<CommitProgress>,
    pub wake: Wake,
    /// Does not keep the store open.
    pub submissions: Weak<Sender<Submission>>,
    /// Tables to be dropped, once the deletion up to this position is permanent.
    pub pending_reclaims: PendingReclaims,
    /// Lets readers go first before tables are dropped.
    pub writer_lock: WriterLock,
    /// Bytes of the journal that are flushed for.
    pub flush_after: u64,
    /// Bytes of the journal since the last flush began.
    pub since_flush: u64,
}

impl Indexer {
    /// Runs until there are no more groups, and makes everything permanent then.
    pub fn run(mut self) {
        let panic_guard = PanicGuard {
            unapplied: self.unapplied.clone(),
            progress: self.progress.clone(),
            wake: self.wake.clone(),
        };
        if let Err(failure) = self.work() {
            tracing::error!(%failure, "the store stops: the index cannot be written");
            self.progress.fail(failure);
            (self.wake)();
        }
        drop(panic_guard);
    }

    fn work(&mut self) -> Result<(), StoreError> {
        while let Some(groups) = self.unapplied.take(self.retention.has_work()) {
            self.retention.remove_abandoned();
            let is_idle = groups.is_empty();
            if is_idle {
                self.reclaim_ranges()?;
            } else {
                self.apply(groups)?;
            }
            let settled = self.index.merger.settled();
            if self.retention.collect(is_idle, settled)? {
                self.begin_flush()?;
            }
            self.relocate_remaining_bodies()?;
        }
        if self.progress.failure().is_some() {
            // What a store that failed has not said to be durable is not made permanent.
            return Ok(());
        }
        self.index.tables.flush()
    }

    /// Applies groups, together as far as none copies an entity.
    fn apply(&mut self, groups: Vec<DurableGroup>) -> Result<(), StoreError> {
        let mut together = Vec::with_capacity(groups.len());
        for group in groups {
            let has_copy = group.has_copy();
            if has_copy {
                self.apply_together(std::mem::take(&mut together))?;
            }
            together.push(group);
            if has_copy {
                self.apply_together(std::mem::take(&mut together))?;
            }
        }
        self.apply_together(together)
    }

    fn apply_together(&mut self, groups: Vec<DurableGroup>) -> Result<(), StoreError> {
        let Some(newest) = groups.last() else {
            return Ok(());
        };
        let (last, position) = (newest.last, newest.position);
        let mut sets = Vec::new();
        let (mut moves, mut sealed) = (Moves::new(), Vec::new());
        sync(groups.iter().filter_map(|group| group.unsynced.as_ref()))?;
        for group in groups {
            self.since_flush = self.since_flush.saturating_add(group.journal_bytes);
            sealed.extend(group.sealed);
            sets.extend(group.sets);
            moves.extend(group.moves);
        }
        let reclaims = self.index.apply(&sets, &moves, position, &sealed)?;
        self.retention.add(sealed, position);
        if self.since_flush >= self.flush_after {
            self.begin_flush()?;
        }
        self.progress.advance_applied(last);
        drop(sets);
        self.pending_reclaims.add(position, reclaims);
        self.reclaim_ranges()
    }

    /// Has the few remaining bodies of a segment written to the newest one, so that the segment can
    /// be removed.
    fn relocate_remaining_bodies(&mut self) -> Result<(), StoreError> {
        let settled = self.index.merger.settled();
        let remaining_bodies = self.retention.remaining_bodies(settled)?;
        if let Some(submissions) = self.submissions.upgrade()
            && !remaining_bodies.is_empty()
        {
            // Fails only when the committer panicked, which is reported as a failure.
            drop(submissions.send(Submission::Moves(remaining_bodies)));
        }
        Ok(())
    }

    fn begin_flush(&mut self) -> Result<(), StoreError> {
        self.since_flush = 0;
        self.index.tables.begin_flush()
    }

    /// Drops tables whose rows a range deletion has deleted. The deletion has to be permanent: a
    /// start after a crash would not make it again. Tables that stay are read and written again by
    /// compactions, so readers cannot keep them for long.
    fn reclaim_ranges(&mut self) -> Result<(), StoreError> {
        if self.pending_reclaims.is_empty() {
            return Ok(());
        }
        let database = &self.index.tables;
        let permanent = database.permanent_position()?;
        if !self.pending_reclaims.has_due(permanent) {
            return Ok(());
        }
        let Some(_files) = self.writer_lock.try_acquire(&database.files) else {
            return Ok(());
        };
        self.pending_reclaims.drop_due(permanent, &**database)
    }
}

/// Syncs the journal of a store that acknowledges before it syncs: the permanent index must not be
/// ahead of the journal.
fn sync<'a>(files: impl Iterator<Item = &'a Arc<Handle>>) -> Result<(), StoreError> {
    let mut last: Option<&Arc<Handle>> = None;
    for file in files {
        if last.is_none_or(|last| !Arc::ptr_eq(last, file)) {
            file.sync()
                .map_err(|error| StoreError::Io(format!("syncing the journal: {error}")))?;
        }
        last = Some(file);
    }
    Ok(())
}

/// Notifies the other threads when this one ends, even by a panic.
struct PanicGuard {
    unapplied: Arc<Unapplied>,
    progress: Arc<CommitProgress>,
    wake: Wake,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.progress
                .fail(StoreError::Poisoned("the indexer panicked".into()));
            (self.wake)();
        }
        self.unapplied.stop();
    }
}

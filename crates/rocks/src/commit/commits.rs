//! Commits: makes groups durable, one after the other.
//!
//! A group is written to the journal as one record and synced, the witness is updated, the
//! watermark rises, and the indexer later makes the group readable. After the first failure nothing
//! more is acknowledged. The committing thread holds this for the time of a commit, be it the
//! [committer](crate::commit::committer) or a [submitter](crate::commit::submitter) that commits
//! alone.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::Files;
use journal::incremental_free;
use journal::witness::Witness;
use store::StoreError;

use crate::backup;
use crate::commit::commit_progress::CommitProgress;
use crate::commit::committer::Wake;
use crate::commit::group::Group;
use crate::disk_space::DiskSpace;
use crate::index::database::Database;
use crate::index::unapplied::{DurableGroup, Unapplied};
use crate::log::{CommitLog, Sync};
use crate::options::Durability;
use crate::statistics::{Counts, Statistics};

/// The longest sync that a shard waits for itself.
const FAST_SYNC: Duration = Duration::from_millis(1);

/// All that committing works on.
pub(crate) struct Commits {
    pub log: CommitLog,
    pub database: Arc<Database>,
    pub files: Arc<Files>,
    pub unapplied: Arc<Unapplied>,
    pub witness: Witness,
    pub space: DiskSpace,
    pub durability: Durability,
    /// How many groups the store has had since it was made.
    pub position: u64,
    pub progress: Arc<CommitProgress>,
    pub statistics: Arc<Statistics>,
    pub wake: Wake,
    /// How long the last group waited for the disk, if it did.
    pub sync: Option<Duration>,
    /// The number of groups at the last line of the log.
    pub logged_groups: u64,
    /// The position at the last maintenance.
    pub maintained_at: Option<u64>,
}

impl Commits {
    /// Makes a group durable, wakes its shard, and waits while the indexer is too far behind.
    pub fn commit(&mut self, group: Group) -> Result<(), StoreError> {
        let durable = self.make_durable(group)?;
        (self.wake)();
        self.unapplied.add(durable);
        Ok(())
    }

    /// Makes a group durable for the caller, which is not woken.
    pub fn commit_own(&mut self, group: Group) -> Result<(), StoreError> {
        let durable = self.make_durable(group)?;
        self.unapplied.add_without_waiting(durable);
        Ok(())
    }

    fn make_durable(&mut self, mut group: Group) -> Result<DurableGroup, StoreError> {
        self.check()?;
        // A group of moves alone has no id.
        group.last = group.last.max(self.progress.durable());
        let started = Instant::now();
        self.position += 1;
        let sync = match self.durability {
            Durability::Synced => Sync::Now,
            Durability::Buffered => Sync::Later,
        };
        let appended = self
            .log
            .append(self.position, &mut group.sets, &mut group.moves, sync)?;
        if sync == Sync::Now {
            self.witness
                .record(self.position)
                .map_err(|error| witness_error(&error))?;
        }
        self.progress.advance(group.last);
        self.sync = appended.sync;
        let counts = Counts {
            sets: group.sets.len(),
            writes: group.writes,
            messages: group.messages,
            bytes: usize::try_from(appended.bytes).unwrap_or(usize::MAX),
            sync: appended.sync.unwrap_or_default(),
        };
        self.statistics.count_group(counts, started.elapsed());
        let without_bodies = appended.bytes.saturating_sub(appended.bodies);
        // Staged bodies are on the disk already. Rows are in the journal now, in a table later.
        let spent = appended.bytes.max(group.bytes as u64) + without_bodies;
        let asked = self.space.spend(spent);
        if self.publish_space(asked) {
            (self.wake)();
        }
        incremental_free::free_in_background(appended.large);
        Ok(DurableGroup {
            sets: group.sets,
            moves: group.moves,
            writes: group.writes,
            bytes: without_bodies,
            last: group.last,
            position: self.position,
            sealed: appended.sealed,
            journal_bytes: appended.bytes,
            unsynced: (sync == Sync::Later).then_some(appended.file),
        })
    }

    /// After a failure of any thread nothing more is done.
    fn check(&self) -> Result<(), StoreError> {
        self.progress.failure().map_or(Ok(()), Err)
    }

    /// Whether a group is likely to take little time: one sync of a fast disk; or, if nothing is
    /// synced, a copy into the system's cache.
    pub fn is_quick(&self, group: &Group) -> bool {
        let takes = match self.durability {
            Durability::Synced => {
                group.is_small() && self.sync.is_some_and(|sync| sync <= FAST_SYNC)
            }
            Durability::Buffered => group.is_moderate(),
        };
        takes && self.unapplied.has_room()
    }

    /// Whether no maintenance is due.
    pub fn is_idle(&self) -> bool {
        self.maintained_at == Some(self.position) && !self.space.is_nearly_full()
    }

    /// Makes all durable and ends the segment, of which the index is to know when it is opened.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        self.check()?;
        self.run_maintenance()?;
        self.unapplied.add(DurableGroup {
            last: self.progress.durable(),
            position: self.position,
            sealed: self.log.seal().into_iter().collect(),
            ..DurableGroup::default()
        });
        Ok(())
    }

    /// Makes a copy. A copy that fails is reported to its caller; the store itself only has to be
    /// durable as far as it is acknowledged.
    pub fn back_up(&mut self, order: backup::BackupOrder) -> Result<(), StoreError> {
        self.check()?;
        let started = Instant::now();
        self.sync_all()?;
        let last = self.progress.durable();
        self.unapplied.add(DurableGroup {
            last,
            position: self.position,
            sealed: self.log.seal().into_iter().collect(),
            ..DurableGroup::default()
        });
        self.unapplied.request_apply(last);
        self.progress.wait_until_applied(last)?;
        order.execute(self.position, &self.database, &self.files);
        tracing::info!(waited = ?started.elapsed(), position = self.position, "commits waited for a backup");
        Ok(())
    }

    /// About once a second, and at the end.
    pub fn run_maintenance(&mut self) -> Result<(), StoreError> {
        self.check()?;
        self.sync_all()?;
        self.witness.sync().map_err(|error| witness_error(&error))?;
        let asked = self.space.ask();
        if self.publish_space(asked) {
            (self.wake)();
        }
        self.log_progress();
        self.maintained_at = Some(self.position);
        Ok(())
    }

    /// Makes buffered records durable.
    fn sync_all(&mut self) -> Result<(), StoreError> {
        if self.witness.position() < self.position {
            self.log.sync()?;
            self.witness
                .record(self.position)
                .map_err(|error| witness_error(&error))?;
        }
        Ok(())
    }

    /// Logs how large groups have been, if there was one since. `cargo xtask bench` compares with a
    /// bare disk that gets groups as large.
    fn log_progress(&mut self) {
        let so_far = self.statistics.snapshot();
        if so_far.groups != self.logged_groups {
            self.logged_groups = so_far.groups;
            tracing::debug!(
                groups = so_far.groups,
                messages = so_far.messages,
                bytes = so_far.bytes,
                "committed"
            );
        }
    }

    /// Tells whether the disk is nearly full, and returns whether that is news. A file system
    /// that does not answer is no reason to stop: the last answer holds.
    fn publish_space(&self, asked: io::Result<()>) -> bool {
        if let Err(error) = asked {
            tracing::warn!(%error, "the file system does not say how much is free");
        }
        self.progress.set_space(&self.space)
    }
}

fn witness_error(error: &io::Error) -> StoreError {
    StoreError::Io(format!("writing the witness: {error}"))
}

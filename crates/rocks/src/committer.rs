//! Committer: the one thread that makes decisions durable, in groups.
//!
//! It takes whatever was submitted while it was syncing, writes it to the journal as one record and
//! syncs that, lets the witness know, raises the watermark, wakes those who wait, and leaves it to
//! the indexer to make it readable. There is no timer and nothing to tune: the slower the disk, the
//! larger the groups. After the first failure it acknowledges nothing more.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use store::{CommitId, StoreError, Write, WriteSet};

use crate::backup;
use crate::database::Database;
use crate::journal::{Files, Moves};
use crate::log::{CommitLog, Sync};
use crate::options::Durability;
use crate::progress::Progress;
use crate::space::Space;
use crate::statistics::{Counts, Statistics};
use crate::unapplied::{Durable, Unapplied};
use crate::witness::Witness;

/// A group ends at this many bytes of bodies and of whatever else may be long.
const GROUP_BYTES: usize = 8 << 20;
/// A group ends at this many sets.
const GROUP_SETS: usize = 16_384;
/// How often the witness is synced and the file system asked.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// The same when nothing has been committed since.
const HOUSEKEEPING_AT_REST: Duration = Duration::from_secs(5);

/// What is asked of the committer.
pub(crate) enum Submission {
    /// To make a write set durable.
    Writes(CommitId, WriteSet),
    /// To write bodies again, so that the segment they are in can go.
    Moves(Moves),
    /// To make a copy of all that was submitted before.
    Backup(backup::Order),
}

/// Called whenever there is something new to see at the store.
pub(crate) type Wake = Arc<dyn Fn() + Send + std::marker::Sync>;

/// Everything the thread owns.
pub(crate) struct Committer {
    pub log: CommitLog,
    pub database: Arc<Database>,
    pub files: Arc<Files>,
    pub unapplied: Arc<Unapplied>,
    pub witness: Witness,
    pub space: Space,
    pub durability: Durability,
    /// How many groups the store has had since it was made.
    pub position: u64,
    pub progress: Arc<Progress>,
    pub statistics: Arc<Statistics>,
    pub wake: Wake,
    /// How many groups there were when the log was last told.
    pub told: u64,
    /// How many groups the store had had when the house was last looked after.
    pub kept: Option<u64>,
}

/// What was taken from the queue.
#[derive(Default)]
struct Group {
    sets: Vec<WriteSet>,
    moves: Moves,
    last: CommitId,
    writes: usize,
    messages: usize,
    /// Of bodies.
    bytes: usize,
    /// Of what else a write may have much of.
    others: usize,
}

impl Group {
    fn add(&mut self, id: CommitId, set: WriteSet) {
        self.writes += set.as_slice().len();
        for write in set.as_slice() {
            match write {
                Write::PutBody { body, .. } => {
                    self.messages += 1;
                    self.bytes += body.len();
                }
                Write::PutPatch { patch, .. } => self.others += patch.len(),
                Write::PutEntry { value, .. } => self.others += value.len(),
                Write::PutEntity(row) => self.others += row.definition.len(),
                _ => {}
            }
        }
        self.last = id;
        self.sets.push(set);
    }

    fn is_full(&self) -> bool {
        self.bytes + self.others >= GROUP_BYTES || self.sets.len() >= GROUP_SETS
    }
}

impl Committer {
    /// Works until the last sender is gone and everything submitted is durable.
    pub fn run(mut self, submissions: &Receiver<Submission>) {
        let watch = PanicWatch {
            progress: self.progress.clone(),
            wake: self.wake.clone(),
            unapplied: self.unapplied.clone(),
        };
        let worked = self.work(submissions);
        if let Err(failure) = worked.and_then(|()| self.end()) {
            tracing::error!(%failure, "the store stops: nothing more will be acknowledged");
            self.progress.fail(failure);
            (self.wake)();
        }
        drop(watch);
        // Whoever still submits is never answered, and must not fail over a missing thread.
        submissions.iter().for_each(drop);
    }

    fn work(&mut self, submissions: &Receiver<Submission>) -> Result<(), StoreError> {
        let mut group = Group::default();
        let mut kept_at = Instant::now();
        loop {
            match submissions.recv_timeout(self.rest()) {
                Ok(submission) => self.take(submission, &mut group, submissions)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if kept_at.elapsed() >= HOUSEKEEPING {
                self.keep_house()?;
                kept_at = Instant::now();
            }
        }
    }

    /// How long it waits for something to do before it looks after the house.
    fn rest(&self) -> Duration {
        if self.kept == Some(self.position) && !self.space.is_nearly_full() {
            HOUSEKEEPING_AT_REST
        } else {
            HOUSEKEEPING
        }
    }

    /// Makes all durable and ends the segment, of which the index is to know when it is opened.
    fn end(&mut self) -> Result<(), StoreError> {
        self.keep_house()?;
        self.unapplied.add(Durable {
            last: self.progress.durable(),
            position: self.position,
            sealed: self.log.seal().into_iter().collect(),
            ..Durable::default()
        });
        Ok(())
    }

    /// Commits `first` and what waits behind it as one group. A backup ends the group.
    fn take(
        &mut self,
        first: Submission,
        group: &mut Group,
        submissions: &Receiver<Submission>,
    ) -> Result<(), StoreError> {
        let mut next = Some(first);
        while let Some(submission) = next {
            match submission {
                Submission::Writes(id, set) => group.add(id, set),
                Submission::Moves(moves) => group.moves.extend(moves),
                Submission::Backup(order) => {
                    self.commit_if_any(group)?;
                    return self.back_up(order);
                }
            }
            next = if group.is_full() {
                None
            } else {
                submissions.try_recv().ok()
            };
        }
        self.commit_if_any(group)
    }

    fn commit_if_any(&mut self, group: &mut Group) -> Result<(), StoreError> {
        if group.sets.is_empty() && group.moves.is_empty() {
            return Ok(());
        }
        // Of moves alone nobody waits for an id.
        group.last = group.last.max(self.progress.durable());
        self.commit(group)
    }

    /// Makes a copy. That it can not be made is for whoever asked; the store itself only has to be
    /// durable as far as it is acknowledged.
    fn back_up(&mut self, order: backup::Order) -> Result<(), StoreError> {
        let started = Instant::now();
        self.sync_all()?;
        let last = self.progress.durable();
        self.unapplied.add(Durable {
            last,
            position: self.position,
            sealed: self.log.seal().into_iter().collect(),
            ..Durable::default()
        });
        self.unapplied.want(last);
        self.progress.wait_until_applied(last)?;
        order.carry_out(self.position, &self.database, &self.files);
        tracing::info!(waited = ?started.elapsed(), position = self.position, "commits waited for a backup");
        Ok(())
    }

    fn commit(&mut self, group: &mut Group) -> Result<(), StoreError> {
        if let Some(failure) = self.progress.failure() {
            return Err(failure);
        }
        let started = Instant::now();
        self.position += 1;
        let mut group = std::mem::take(group);
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
        let counts = Counts {
            sets: group.sets.len(),
            writes: group.writes,
            messages: group.messages,
            bytes: usize::try_from(appended.bytes).unwrap_or(usize::MAX),
            sync: appended.sync,
        };
        self.statistics.count_group(counts, started.elapsed());
        let without_bodies = appended.bytes.saturating_sub(appended.bodies);
        // Staged bodies are on the disk already. Rows are in the journal now, in a table later.
        let spent = appended.bytes.max(group.bytes as u64) + without_bodies;
        let asked = self.space.spend(spent);
        self.publish_space(asked);
        (self.wake)();
        let_go(appended.large);
        self.unapplied.add(Durable {
            sets: group.sets,
            moves: group.moves,
            writes: group.writes,
            bytes: without_bodies,
            last: group.last,
            position: self.position,
            sealed: appended.sealed,
            journal_bytes: appended.bytes,
            unsynced: (sync == Sync::Later).then_some(appended.file),
        });
        Ok(())
    }

    /// About once a second, and at the end.
    fn keep_house(&mut self) -> Result<(), StoreError> {
        self.sync_all()?;
        self.witness.sync().map_err(|error| witness_error(&error))?;
        let asked = self.space.ask();
        if self.publish_space(asked) {
            (self.wake)();
        }
        self.tell();
        self.kept = Some(self.position);
        Ok(())
    }

    /// Makes durable what is buffered.
    fn sync_all(&mut self) -> Result<(), StoreError> {
        if self.witness.position() < self.position {
            self.log.sync()?;
            self.witness
                .record(self.position)
                .map_err(|error| witness_error(&error))?;
        }
        Ok(())
    }

    /// Tells the log how large groups have been, if there was one since. `cargo xtask bench`
    /// compares with a bare disk that gets groups as large.
    fn tell(&mut self) {
        let so_far = self.statistics.snapshot();
        if so_far.groups != self.told {
            self.told = so_far.groups;
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
        self.progress.set_nearly_full(self.space.is_nearly_full())
    }
}

/// Gives the memory of large bodies back in another thread: for 100 MiB that can take 20 ms.
fn let_go(large: Vec<Bytes>) {
    if !large.is_empty() {
        let thread = thread::Builder::new().name("letting go".into());
        // Without a thread they go here.
        drop(thread.spawn(move || drop(large)));
    }
}

fn witness_error(error: &io::Error) -> StoreError {
    StoreError::Io(format!("writing the witness: {error}"))
}

/// Tells the others when the thread ends, be it of a bug.
struct PanicWatch {
    progress: Arc<Progress>,
    wake: Wake,
    unapplied: Arc<Unapplied>,
}

impl Drop for PanicWatch {
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

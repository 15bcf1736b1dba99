//! Rocks store: one shard's durable store, made of the journal, RocksDB and segments of bodies.
//!
//! Opening recovers what was acknowledged and starts the threads that commit, index and scrub. A
//! write set goes to the committer, which writes it to the journal. The indexer puts it into
//! RocksDB later: at the latest when a reader needs it, so that readers see all that was submitted.
//! (docs/storage.md)

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use index::range_reclaim::PendingReclaims;
use index::{image, recovery};
use journal::Writer;
use journal::directory::io_error;
use journal::witness::Witness;
use store::{
    Backup, CallerLoad, CommitId, Image, Reader, Recovery, Stager, Store, StoreError, WriteSet,
};

use crate::backup::RocksBackup;
use crate::commit::commit_progress::CommitProgress;
use crate::commit::commits::Commits;
use crate::commit::committer::{Committer, Wake};
use crate::commit::stager::RocksStager;
use crate::commit::submitter::{CommitLock, Submitter};
use crate::damage::damage_log::DamageLog;
use crate::damage::scrubber::{Scrubber, StopScrub};
use crate::disk_space::DiskSpace;
use crate::index::indexer;
use crate::index::indexer::Indexer;
use crate::index::unapplied::Unapplied;
use crate::index::writer_lock::WriterLock;
use crate::log::CommitLog;
use crate::open_store::{self, OpenStore};
use crate::options::Options;
use crate::reader::RocksReader;
use crate::retention::Retention;
use crate::statistics::Statistics;

/// A durable store in a directory of its own.
///
/// Dropping it makes everything submitted durable and closes the directory;
/// [`close`](Self::close) does the same and tells of failures. A [`Reader`] keeps the directory
/// open until it is dropped too.
pub struct RocksStore {
    open_store: Arc<OpenStore>,
    progress: Arc<CommitProgress>,
    statistics: Arc<Statistics>,
    /// None once the store is being closed.
    submitter: Option<Submitter>,
    threads: Vec<JoinHandle<()>>,
    unapplied: Arc<Unapplied>,
    damage: Arc<DamageLog>,
    stop_scrub: Arc<StopScrub>,
    /// Free space below which the disk is nearly full.
    reserve: u64,
    #[cfg(test)]
    hooks: Arc<crate::hooks::Hooks>,
}

impl RocksStore {
    /// Opens the store at `path`, or makes one. `wake` is called when the watermark has risen by
    /// the committer's work, the store has failed, or the disk is or is no longer nearly full; from
    /// any of its threads, or from within [`commit`](Store::commit).
    ///
    /// # Errors
    /// When the directory is locked, was written by a newer program, is damaged, or lost
    /// commits that had been acknowledged.
    pub fn open(path: &Path, options: Options, wake: Wake) -> Result<Self, StoreError> {
        let (open_store, recovered) = open_store::open(path, &options)?;
        let open_store = Arc::new(open_store);
        let layout = open_store.directory.layout();
        let witness = Witness::open(&open_store.system, &layout.witness(), recovered.position)?;
        let asking = |error| io_error("asking for free space at", path, &error);
        let space = DiskSpace::new(layout.root(), options.reserve()).map_err(asking)?;
        let progress = Arc::new(CommitProgress::default());
        progress.set_space(&space);
        let statistics = Arc::new(Statistics::default());
        let unapplied = Arc::new(Unapplied::default());
        let (database, files) = (open_store.database.clone(), open_store.files.clone());
        let (submissions, queue) = mpsc::channel();
        let submissions = Arc::new(submissions);
        let segment_bytes = options.segment_bytes();
        let indexer = Indexer {
            retention: Retention::new(
                database.clone(),
                files.clone(),
                segment_bytes,
                recovered.sealed,
                recovered.position,
            ),
            index: recovered.index,
            unapplied: unapplied.clone(),
            progress: progress.clone(),
            wake: wake.clone(),
            submissions: Arc::downgrade(&submissions),
            pending_reclaims: PendingReclaims::default(),
            writer_lock: WriterLock::new(indexer::READER_PRIORITY),
            flush_after: options.log_cap(),
            since_flush: 0,
        };
        let journal = Writer::new(files.clone(), segment_bytes, recovered.next_segment);
        let log = CommitLog::new(journal);
        #[cfg(test)]
        let hooks = log.hooks.clone();
        let commit_lock = Arc::new(CommitLock::new(Commits {
            log,
            database,
            files,
            unapplied: unapplied.clone(),
            witness,
            space,
            durability: options.durability,
            position: recovered.position,
            progress: progress.clone(),
            statistics: statistics.clone(),
            wake: wake.clone(),
            sync: None,
            logged_groups: 0,
            maintained_at: None,
        }));
        let committer = Committer {
            commit_lock: commit_lock.clone(),
            progress: progress.clone(),
            unapplied: unapplied.clone(),
            wake,
        };
        let submitter = Submitter {
            commit_lock,
            submissions,
            progress: progress.clone(),
            durability: options.durability,
            last: CommitId::default(),
        };
        let mut threads = vec![
            start("committer", move || committer.run(&queue))?,
            start("indexer", move || indexer.run())?,
        ];
        let damage = Arc::new(DamageLog::new(statistics.clone()));
        let stop_scrub = Arc::new(StopScrub::default());
        if options.scrub_bytes > 0 {
            let scrubber = Scrubber {
                open_store: open_store.clone(),
                damage: damage.clone(),
                statistics: statistics.clone(),
                stop: stop_scrub.clone(),
                pace: options.scrub_bytes,
            };
            threads.push(start("scrubber", move || scrubber.run())?);
        }
        Ok(Self {
            open_store,
            progress,
            statistics,
            submitter: Some(submitter),
            threads,
            unapplied,
            damage,
            stop_scrub,
            reserve: options.reserve(),
            #[cfg(test)]
            hooks,
        })
    }

    /// Makes everything submitted durable and closes the store.
    ///
    /// # Errors
    /// When the store has failed, now or before.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.finish();
        self.failure().map_or(Ok(()), Err)
    }

    /// How groups and commits have been going.
    #[must_use]
    pub fn statistics(&self) -> Arc<Statistics> {
        self.statistics.clone()
    }

    /// Everything that was submitted, by a full scan that verifies every checksum. For tests.
    ///
    /// # Errors
    /// When something is damaged, or chunks and their index disagree.
    pub fn image(&self) -> Result<Image, StoreError> {
        self.wait_until_applied()?;
        let _files = self.open_store.database.files.read();
        let recovery = recovery::load(&*self.open_store.database)?;
        image::read(&*self.open_store.database, recovery, |pointer, location| {
            self.open_store.read_body(pointer, location)
        })
    }

    fn finish(&mut self) {
        self.open_store.files.staged.close();
        self.stop_scrub.stop();
        self.submitter = None;
        for thread in self.threads.drain(..) {
            // It reports a panic of its own as a failure.
            drop(thread.join());
        }
    }

    /// Waits until everything that was submitted can be read.
    fn wait_until_applied(&self) -> Result<(), StoreError> {
        let last = self.last();
        self.unapplied.request_apply(last);
        self.progress.wait_until_applied(last)
    }

    /// The newest set's.
    fn last(&self) -> CommitId {
        let last = self.submitter.as_ref().map(|submitter| submitter.last);
        last.unwrap_or_default()
    }
}

impl Store for RocksStore {
    fn submit(&mut self, writes: WriteSet) -> CommitId {
        let submitter = self.submitter.as_mut();
        submitter.map_or_else(CommitId::default, |it| it.submit(writes))
    }

    fn commit(&mut self, writes: WriteSet, caller: CallerLoad) -> CommitId {
        let submitter = self.submitter.as_mut();
        submitter.map_or_else(CommitId::default, |it| it.commit(writes, caller))
    }

    fn durable(&self) -> CommitId {
        self.progress.durable()
    }

    fn failure(&self) -> Option<StoreError> {
        self.progress.failure()
    }

    fn is_nearly_full(&self) -> bool {
        self.progress.is_nearly_full()
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(RocksReader {
            open_store: self.open_store.clone(),
            progress: self.progress.clone(),
            unapplied: self.unapplied.clone(),
            damage: self.damage.clone(),
        })
    }

    fn stager(&self) -> Option<Arc<dyn Stager>> {
        Some(Arc::new(RocksStager {
            open_store: Arc::downgrade(&self.open_store),
            reserve: self.reserve,
        }))
    }

    fn free_bytes(&self) -> Option<u64> {
        Some(self.progress.free())
    }

    fn statistics(&self) -> store::Statistics {
        self.statistics.snapshot()
    }

    fn backup(&self) -> Option<Arc<dyn Backup>> {
        let submissions = &self.submitter.as_ref()?.submissions;
        let progress = self.progress.clone();
        let backup = RocksBackup::new(&self.open_store, submissions, progress, self.reserve);
        Some(Arc::new(backup))
    }

    fn recover(&mut self) -> Result<Recovery, StoreError> {
        self.wait_until_applied()?;
        recovery::load(&*self.open_store.database)
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        RocksStore::close(*self)
    }
}

impl Drop for RocksStore {
    fn drop(&mut self) {
        self.finish();
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let thread = thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|error| StoreError::Io(format!("starting a thread: {error}")))
}

#[cfg(test)]
mod tests;

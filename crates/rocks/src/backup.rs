//! Backup: a copy of an open store that shares its files, made between two commits.
//!
//! Memtables are flushed first, while commits go on, so that little is left in the log. Then the
//! committer itself, between two groups, ends the segment, waits until the index has all groups,
//! links tables and segments, writes a witness of its own position and moves the copy to its
//! target. So the copy ends at an exact position, everything in it is on stable storage in either
//! durability, and no commit beyond it is acknowledged before the copy exists. Commits wait for a
//! few syncs and as many links as there are files.
//!
//! A copy is made inside the data directory; the next opening removes the rest of a copy that a
//! crash interrupted.

pub mod restore;

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::sync::{Arc, Mutex, TryLockError, Weak};

use journal::directory::{Layout, sync_directory};
use journal::witness::Witness;
use journal::{FileSystem, Files};
use store::backup::BackupSummary;
use store::{Backup, BackupError, StoreError};

use crate::commit::commit_progress::CommitProgress;
use crate::commit::committer::Submission;
use crate::disk_space;
use crate::index::database::Database;
use crate::open_store::OpenStore;

/// Makes backups of one store as long as it is open.
pub(crate) struct RocksBackup {
    /// Neither keeps the store open.
    open_store: Weak<OpenStore>,
    submissions: Weak<Sender<Submission>>,
    progress: Arc<CommitProgress>,
    /// Free space below which the disk is nearly full.
    reserve: u64,
    /// Held by the one backup that may be made at a time.
    one: Mutex<()>,
}

/// What the committer is asked for.
pub(crate) struct BackupOrder {
    system: Arc<dyn FileSystem>,
    /// Where the copy is put together; `format` is in it already.
    staging: Layout,
    /// Where it is moved to.
    target: PathBuf,
    /// The position it ends with.
    answer: SyncSender<io::Result<u64>>,
}

impl RocksBackup {
    pub fn new(
        open_store: &Arc<OpenStore>,
        submissions: &Arc<Sender<Submission>>,
        progress: Arc<CommitProgress>,
        reserve: u64,
    ) -> Self {
        Self {
            open_store: Arc::downgrade(open_store),
            submissions: Arc::downgrade(submissions),
            progress,
            reserve,
            one: Mutex::default(),
        }
    }

    /// Has the committer make the copy and waits for it.
    fn order(
        &self,
        system: Arc<dyn FileSystem>,
        staging: Layout,
        target: &Path,
    ) -> Result<u64, BackupError> {
        let (answer, made) = mpsc::sync_channel(1);
        let order = BackupOrder {
            system,
            staging,
            target: target.to_path_buf(),
            answer,
        };
        let submissions = self.submissions.upgrade().ok_or_else(closed)?;
        // Fails only when the committer has panicked, and then no answer comes either.
        drop(submissions.send(Submission::Backup(order)));
        drop(submissions);
        match made.recv() {
            Ok(made) => made.map_err(|error| refused(&error, target)),
            Err(_) => Err(self
                .progress
                .failure()
                .map_or_else(closed, BackupError::Store)),
        }
    }
}

impl Backup for RocksBackup {
    fn back_up(&self, target: &Path) -> Result<BackupSummary, BackupError> {
        let _one = match self.one.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(BackupError::Busy),
            // A thread that panicked left files behind, which are removed now.
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Ok(held) => held,
        };
        let open_store = self.open_store.upgrade().ok_or_else(closed)?;
        if self.progress.is_nearly_full() {
            return Err(BackupError::NearlyFull);
        }
        check_place(open_store.directory.layout().root(), target)?;
        let staging = open_store.directory.layout().staging();
        let made = prepare(&open_store, &staging)
            .and_then(|()| self.order(open_store.system.clone(), staging.clone(), target))
            .and_then(|position| {
                let bytes = bytes_below(target).map_err(|error| refused(&error, target))?;
                Ok(BackupSummary { position, bytes })
            });
        if made.is_err() {
            // What cannot be removed now goes at the next opening.
            drop(staging.remove(&*open_store.system));
        }
        made
    }

    fn check_space(&self) -> Result<(), BackupError> {
        let open_store = self.open_store.upgrade().ok_or_else(closed)?;
        let free = disk_space::free_bytes(open_store.directory.layout().root());
        match free.map_err(|error| BackupError::Io(error.to_string()))? < self.reserve {
            true => Err(BackupError::NearlyFull),
            false => Ok(()),
        }
    }
}

impl BackupOrder {
    /// Makes the copy of a store of which everything up to `position` is durable, and says so.
    pub fn execute(self, position: u64, database: &Database, files: &Files) {
        let made = self.make(position, database, files);
        // The caller may have gone.
        drop(self.answer.send(made.map(|()| position)));
    }

    fn make(&self, position: u64, database: &Database, files: &Files) -> io::Result<()> {
        // No segment goes, and none is written over, while it gets a second name.
        let _files = database.files.read();
        let path = self.staging.database();
        database.checkpoint(&path).map_err(io::Error::other)?;
        fs::create_dir(self.staging.journal())?;
        files.link_into(&self.staging.journal())?;
        Witness::open(&self.system, &self.staging.witness(), position)
            .map(drop)
            .map_err(io::Error::other)?;
        sync_directory(self.staging.root())?;
        // An empty directory would be replaced, and what it is empty for is not known.
        if fs::symlink_metadata(&self.target).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        fs::rename(self.staging.root(), &self.target)?;
        self.target.parent().map_or(Ok(()), sync_directory)
    }
}

/// Refuses what can be refused before anything is done.
fn check_place(root: &Path, target: &Path) -> Result<(), BackupError> {
    let parent = target.parent().unwrap_or(target);
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
    let device_of_parent = device(parent).map_err(|error| refused(&error, parent))?;
    if device_of_parent != device(root).map_err(|error| refused(&error, root))? {
        return Err(refused(&ErrorKind::CrossesDevices.into(), target));
    }
    if fs::symlink_metadata(target).is_ok() {
        return Err(refused(&ErrorKind::AlreadyExists.into(), target));
    }
    Ok(())
}

/// Does what commits need not wait for.
fn prepare(open_store: &OpenStore, staging: &Layout) -> Result<(), BackupError> {
    let begin = || {
        staging.remove(&*open_store.system)?;
        fs::create_dir(staging.root())?;
        // A new version of the file replaces it, so it may be shared.
        fs::hard_link(open_store.directory.layout().format(), staging.format())?;
        File::open(staging.root())?.sync_all()
    };
    begin().map_err(|error| refused(&error, staging.root()))?;
    Ok(open_store.database.flush()?)
}

fn bytes_below(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            bytes_below(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}

fn refused(error: &io::Error, path: &Path) -> BackupError {
    let shown = path.display().to_string();
    match error.kind() {
        ErrorKind::AlreadyExists => BackupError::Exists { path: shown },
        ErrorKind::CrossesDevices => BackupError::OtherFileSystem { path: shown },
        _ => BackupError::Io(format!("{shown}: {error}")),
    }
}

fn closed() -> BackupError {
    BackupError::Store(StoreError::Poisoned("the store was closed".into()))
}

//! Restore: makes a data directory from a backup; it is there whole and verified or not at all.
//!
//! The backup is copied next to the target, opened as at any start, read from end to end, and only
//! then moved to the target. The backup itself is never written to.

#![allow(missing_docs, reason = "the texts say it")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use index::recovery;
use journal::directory::{Layout, sync_directory};
use journal::file_system::OsFileSystem;
use store::StoreError;

use crate::damage::contents::{Contents, read_contents};
use crate::open_store;
use crate::options::Options;

/// Why nothing was restored.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RestoreError {
    #[error("{path} is no backup: it has no {missing}")]
    NoBackup { path: String, missing: &'static str },
    #[error("{path} is not empty: a backup is restored to a new data directory")]
    NotEmpty { path: String },
    #[error("{path} is what an interrupted restore has left: remove it first")]
    Interrupted { path: String },
    #[error(
        "nothing can be put in the place of {path} ({error}), which may be a mount point: restore to a directory in it"
    )]
    InPlace { path: String, error: String },
    #[error("{path}: {error}")]
    Io { path: String, error: String },
    #[error("the backup {path} cannot be used: {error}")]
    Unusable { path: String, error: StoreError },
}

/// Makes a data directory at `target` of the backup at `source`, and returns its contents.
///
/// # Errors
/// When the target has something in it, or the backup is not whole. Then there is nothing at the
/// target, or the empty directory that was there.
pub fn restore(source: &Path, target: &Path, options: &Options) -> Result<Contents, RestoreError> {
    let backup = Layout::new(source);
    check_source(&backup)?;
    check_target(target)?;
    let copy = Layout::new(&sibling_path(target));
    if copy.root().exists() {
        let path = display(copy.root());
        return Err(RestoreError::Interrupted { path });
    }
    check_place(&copy, target)?;
    let restored = copy_store(&backup, &copy)
        .and_then(|()| read_through(&copy, options, source))
        .and_then(|contents| move_to(&copy, target).map(|()| contents));
    if restored.is_err() {
        // If it stays, the next restore reports it.
        drop(copy.remove(&OsFileSystem));
    }
    restored
}

fn check_source(backup: &Layout) -> Result<(), RestoreError> {
    let parts = [
        (backup.format(), "format file"),
        (backup.witness(), "witness"),
        (backup.database(), "database"),
    ];
    match parts.into_iter().find(|(path, _)| !path.exists()) {
        Some((_, missing)) => Err(RestoreError::NoBackup {
            path: display(backup.root()),
            missing,
        }),
        None => Ok(()),
    }
}

fn check_target(target: &Path) -> Result<(), RestoreError> {
    match fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(RestoreError::NotEmpty {
            path: display(target),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error(target, &error)),
    }
}

/// Puts an empty directory in the place of an empty one, as will be done with the copy: better it
/// fails now than when all has been copied and read.
fn check_place(copy: &Layout, target: &Path) -> Result<(), RestoreError> {
    if !target.exists() {
        return Ok(());
    }
    fs::create_dir(copy.root()).map_err(|error| io_error(copy.root(), &error))?;
    fs::rename(copy.root(), target).map_err(|error| {
        // An empty directory; if it stays, the next restore reports it.
        drop(fs::remove_dir(copy.root()));
        RestoreError::InPlace {
            path: display(target),
            error: error.to_string(),
        }
    })
}

/// Where the copy is until it is known to be good.
fn sibling_path(target: &Path) -> PathBuf {
    let mut name = target
        .file_name()
        .map_or_else(OsString::new, OsString::from);
    name.push(".restoring");
    target.with_file_name(name)
}

fn copy_store(from: &Layout, to: &Layout) -> Result<(), RestoreError> {
    let copy = || {
        fs::create_dir_all(to.root())?;
        copy_file(&from.format(), &to.format())?;
        copy_file(&from.witness(), &to.witness())?;
        copy_files(&from.database(), &to.database())?;
        // In format 1 there was none.
        if from.journal().exists() {
            copy_files(&from.journal(), &to.journal())?;
        }
        sync_directory(to.root())
    };
    copy().map_err(|error| io_error(from.root(), &error))
}

/// Neither has directories in its own.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_file(&entry.path(), &to.join(entry.file_name()))?;
    }
    sync_directory(to)
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Opens the copy as a start does, and reads all of it.
fn read_through(copy: &Layout, options: &Options, source: &Path) -> Result<Contents, RestoreError> {
    let read = || {
        let (open_store, recovered) = open_store::open(copy.root(), options)?;
        let recovery = recovery::load(&*open_store.database)?;
        let contents = read_contents(&open_store, &recovery)?;
        let position = recovered.position;
        // What was read from the journal is the next opening's to read again.
        open_store.database.flush()?;
        Ok(Contents {
            position,
            ..contents
        })
    };
    read().map_err(|error| RestoreError::Unusable {
        path: display(source),
        error,
    })
}

fn move_to(copy: &Layout, target: &Path) -> Result<(), RestoreError> {
    let moved = fs::rename(copy.root(), target).and_then(|()| match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    });
    moved.map_err(|error| io_error(target, &error))
}

fn io_error(path: &Path, error: &io::Error) -> RestoreError {
    RestoreError::Io {
        path: display(path),
        error: error.to_string(),
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

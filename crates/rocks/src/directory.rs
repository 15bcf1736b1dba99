//! Directory: where a store keeps its files, locked against a second process.
//!
//! ```text
//! lock      held as long as the store is open
//! format    the version of the layout, readable before RocksDB is
//! witness   the newest acknowledged position in the log
//! reserve   space to let go of when the disk is full
//! rescue/   the log files of an opening that has not been checked yet
//! db/       RocksDB
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use store::StoreError;

use crate::value::{FORMAT, damaged};

const FORMAT_PREFIX: &str = "railbus-store ";

/// A locked data directory.
pub(crate) struct Directory {
    root: PathBuf,
    /// Unlocked by closing it, also when the process dies.
    _lock: File,
}

impl Directory {
    /// Creates the directory if there is none, and locks it.
    pub fn acquire(root: &Path) -> Result<Self, StoreError> {
        create_directory(root).map_err(|error| io_error("creating", root, &error))?;
        let path = root.join("lock");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let lock = lock.map_err(|error| io_error("opening", &path, &error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                root: root.to_path_buf(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked {
                path: root.display().to_string(),
            }),
            Err(TryLockError::Error(error)) => Err(io_error("locking", &path, &error)),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("db")
    }

    pub fn witness(&self) -> PathBuf {
        self.root.join("witness")
    }

    pub fn reserve(&self) -> PathBuf {
        self.root.join("reserve")
    }

    pub fn rescue(&self) -> PathBuf {
        self.root.join("rescue")
    }

    fn format(&self) -> PathBuf {
        self.root.join("format")
    }

    /// Refuses what a newer program wrote. A directory without the file is new.
    pub fn check_format(&self) -> Result<(), StoreError> {
        let path = self.format();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io_error("reading", &path, &error)),
        };
        let version = text.trim_end().strip_prefix(FORMAT_PREFIX).map(str::parse);
        match version {
            Some(Ok(found)) => check_version(found),
            _ => Err(damaged("the format file", format!("{text:?}"))),
        }
    }

    /// Writes the format file if there is none.
    pub fn write_format(&self) -> Result<(), StoreError> {
        let path = self.format();
        if path.exists() {
            return Ok(());
        }
        let written = write_whole(&path, format!("{FORMAT_PREFIX}{FORMAT}\n").as_bytes());
        written.map_err(|error| io_error("writing", &path, &error))
    }
}

/// Refuses a newer version of the layout.
pub(crate) fn check_version(found: u32) -> Result<(), StoreError> {
    if found > FORMAT {
        return Err(StoreError::NewerFormat {
            found,
            known: FORMAT,
        });
    }
    Ok(())
}

/// What went wrong with which file.
pub(crate) fn io_error(doing: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(format!("{doing} {}: {error}", path.display()))
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn create_directory(root: &Path) -> io::Result<()> {
    if root.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(root)?;
    match root.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

/// Writes a file so that after a crash it is there whole or not at all.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    path.parent().map_or(Ok(()), sync_directory)
}

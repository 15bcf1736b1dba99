//! Directory: where a store keeps its files, locked against a second process.
//!
//! ```text
//! lock      held as long as the store is open
//! format    the version of the layout, readable before RocksDB is
//! witness   the newest acknowledged position in the log
//! reserve   space to let go of when the disk is full
//! rescue/   the log files of an opening that has not been checked yet, of format 1
//! staging/  a backup that is being made
//! journal/  the log, and bodies, large ones in files of their own
//! db/       RocksDB
//! ```

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use store::StoreError;

use crate::file_system::{Access, File, FileSystem, Mode};
use crate::value::{FORMAT, damaged};

const FORMAT_PREFIX: &str = "railbus-store ";

/// Where things are in a directory, be it a store's or a backup's.
#[derive(Clone, Debug)]
pub struct Layout(PathBuf);

impl Layout {
    pub fn new(root: &Path) -> Self {
        Self(root.to_path_buf())
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    pub fn database(&self) -> PathBuf {
        self.0.join("db")
    }

    pub fn journal(&self) -> PathBuf {
        self.0.join("journal")
    }

    pub fn witness(&self) -> PathBuf {
        self.0.join("witness")
    }

    pub fn reserve(&self) -> PathBuf {
        self.0.join("reserve")
    }

    pub fn rescue(&self) -> PathBuf {
        self.0.join("rescue")
    }

    /// Where log files are kept after a loss that was accepted.
    pub fn rescued(&self, position: u64) -> PathBuf {
        self.0.join(format!("rescue-after-{position}"))
    }

    pub fn format(&self) -> PathBuf {
        self.0.join("format")
    }

    fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Where a backup is put together.
    pub fn staging(&self) -> Self {
        Self(self.0.join("staging"))
    }

    /// Removes the whole, if it is there.
    pub fn remove(&self, system: &dyn FileSystem) -> io::Result<()> {
        match system.remove_directory(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// A locked data directory.
pub struct Directory {
    system: Arc<dyn FileSystem>,
    layout: Layout,
    /// Unlocked by closing it, also when the process dies.
    _lock: Box<dyn File>,
}

impl Directory {
    /// Creates the directory if there is none, and locks it.
    pub fn acquire(system: &Arc<dyn FileSystem>, root: &Path) -> Result<Self, StoreError> {
        create_directory(&**system, root).map_err(|error| io_error("creating", root, &error))?;
        let layout = Layout::new(root);
        let path = layout.lock();
        let lock = system.open(&path, Mode::Create, Access::Cached);
        let lock = lock.map_err(|error| io_error("opening", &path, &error))?;
        match lock.try_lock() {
            Ok(true) => Ok(Self {
                system: system.clone(),
                layout,
                _lock: lock,
            }),
            Ok(false) => Err(StoreError::Locked {
                path: root.display().to_string(),
            }),
            Err(error) => Err(io_error("locking", &path, &error)),
        }
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Refuses what a newer program wrote. A directory without the file is new.
    pub fn check_format(&self) -> Result<(), StoreError> {
        let path = self.layout.format();
        let text = match self.system.read(&path) {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io_error("reading", &path, &error)),
        };
        let version = text.trim_end().strip_prefix(FORMAT_PREFIX).map(str::parse);
        match version {
            Some(Ok(found)) => check_version(found),
            _ => Err(damaged("the format file", format!("{text:?}"))),
        }
    }

    /// Writes our version to the format file, before anything is written that older programs do not
    /// know.
    pub fn write_format(&self) -> Result<(), StoreError> {
        let path = self.layout.format();
        let ours = format!("{FORMAT_PREFIX}{FORMAT}\n");
        if self
            .system
            .read(&path)
            .is_ok_and(|text| text == ours.as_bytes())
        {
            return Ok(());
        }
        let written = write_whole(&*self.system, &path, ours.as_bytes());
        written.map_err(|error| io_error("writing", &path, &error))
    }
}

/// Refuses a newer version of the layout.
pub fn check_version(found: u32) -> Result<(), StoreError> {
    if found > FORMAT {
        return Err(StoreError::NewerFormat {
            found,
            known: FORMAT,
        });
    }
    Ok(())
}

/// What went wrong with which file.
pub fn io_error(doing: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(format!("{doing} {}: {error}", path.display()))
}

/// Why a body at `offset` was not read: what the disk cannot read any more is damage, and of that
/// place only.
pub(crate) fn read_error(path: &Path, offset: u64, error: &io::Error) -> StoreError {
    if error.raw_os_error() == Some(Errno::IO.raw_os_error()) {
        let detail = format!("byte {offset} of {}: {error}", path.display());
        return damaged("a body", detail);
    }
    io_error("reading", path, error)
}

/// Makes the entries of a directory of the operating system durable.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    crate::file_system::OsFileSystem.sync_directory(path)
}

fn create_directory(system: &dyn FileSystem, root: &Path) -> io::Result<()> {
    if system.is_directory(root) {
        return Ok(());
    }
    system.create_directory(root)?;
    match root.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => system.sync_directory(parent),
        _ => system.sync_directory(Path::new(".")),
    }
}

/// Writes a file so that after a crash it is there whole or not at all.
fn write_whole(system: &dyn FileSystem, path: &Path, content: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let file = system.open(&fresh, Mode::Truncate, Access::Cached)?;
    file.write_all_at(content, 0)?;
    file.sync()?;
    system.rename(&fresh, path)?;
    path.parent()
        .map_or(Ok(()), |folder| system.sync_directory(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_disk_cannot_read_is_damage_and_too_many_open_files_are_not() {
        let path = Path::new("0000000000000001.journal");
        let error = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        let lost = read_error(path, 4_096, &error(Errno::IO));
        assert!(lost.is_damage(), "{lost}");
        assert!(
            lost.to_string().contains("byte 4096 of 0000000000000001"),
            "{lost}"
        );
        assert!(!read_error(path, 4_096, &error(Errno::MFILE)).is_damage());
    }
}

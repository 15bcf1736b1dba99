//! File system: what the store asks of the one that its files are on.
//!
//! [`OsFileSystem`] is the operating system's. The simulator has a model of a disk that loses what
//! was not synced. The methods promise no more than POSIX does: a write is in a cache until its
//! file is synced, and a name until its folder is. A sync that fails leaves what was written in an
//! unknown state, and a later sync that succeeds says nothing of it.

mod os;

use std::fmt::Debug;
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use os::OsFileSystem;

/// How a file is read and written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Through the system's cache.
    Cached,
    /// From and to our own memory, in whole pages.
    Direct,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// To be read; it has to exist.
    Read,
    /// To be read and written; it has to exist.
    Write,
    /// To be read and written; made if it does not exist.
    Create,
    /// To be read and written; it must not exist.
    CreateNew,
    /// To be written from its begin on; made, or emptied.
    Truncate,
}

/// Folders and the names in them.
pub trait FileSystem: Debug + Send + Sync {
    /// Opens a file. If there is no direct access, the system's cache is used.
    ///
    /// # Errors
    /// When the file cannot be opened, or its being there contradicts `mode`.
    fn open(&self, path: &Path, mode: Mode, access: Access) -> io::Result<Box<dyn File>>;

    /// Whether there is a folder of this name.
    fn is_directory(&self, path: &Path) -> bool;

    /// Makes a folder and those that it is in.
    ///
    /// # Errors
    /// When a folder cannot be made.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// The paths of all files and folders in a folder, in any order.
    ///
    /// # Errors
    /// When the folder cannot be read.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Gives a file another name, in the place of a file that has it.
    ///
    /// # Errors
    /// When the file is not there, or its folder refuses.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// When the name is there already, or the file is not.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name of a file; the file goes with its last name and its last handle.
    ///
    /// # Errors
    /// When the name is not there, or its folder refuses.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder and everything in it.
    ///
    /// # Errors
    /// When the folder is not there, or something in it cannot be removed.
    fn remove_directory(&self, path: &Path) -> io::Result<()>;

    /// How many names a file has.
    ///
    /// # Errors
    /// When the file is not there.
    fn names(&self, path: &Path) -> io::Result<u64>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// When the disk fails.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// The whole content of a file.
    ///
    /// # Errors
    /// When the file is not there or cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, Mode::Read, Access::Cached)?;
        let mut content = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut content, 0)?;
        Ok(content)
    }
}

/// The operating system's file system.
#[must_use]
pub fn os() -> Arc<dyn FileSystem> {
    Arc::new(OsFileSystem)
}

/// An open file.
#[allow(
    clippy::len_without_is_empty,
    reason = "nothing asks whether a file is empty"
)]
pub trait File: Debug + Send + Sync {
    /// How it was opened in the end.
    fn access(&self) -> Access;

    /// Reads into `bytes`, perhaps less than has room there; nothing at the end of the file.
    ///
    /// # Errors
    /// When the disk fails.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes the begin of `bytes`, and returns how many.
    ///
    /// # Errors
    /// When the disk fails or has no room.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Writes the begin of all `pieces` together, and returns how many bytes.
    ///
    /// # Errors
    /// When the disk fails or has no room.
    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;

    /// Makes content and length durable.
    ///
    /// # Errors
    /// When the disk fails: then what was written since the sync before is in an unknown state.
    fn sync(&self) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    /// When the disk fails.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file, or lengthens it by zeros that take no place.
    ///
    /// # Errors
    /// When the disk fails.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Takes the place for `len` bytes from `from` on, if the file system can.
    ///
    /// # Errors
    /// `StorageFull` if there is no room for all of them.
    fn allocate(&self, from: u64, len: u64) -> io::Result<()>;

    /// Has the system forget what it keeps of the content in memory.
    ///
    /// # Errors
    /// When the system refuses, which does no harm.
    fn forget_cached(&self) -> io::Result<()>;

    /// Locks the file against other processes until it is closed; false if another one has it.
    ///
    /// # Errors
    /// When the file system cannot lock.
    fn try_lock(&self) -> io::Result<bool>;

    /// Fills `bytes`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before, and what [`read_at`](Self::read_at) returns.
    fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.read_at(bytes, offset) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// What [`write_at`](Self::write_at) returns.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

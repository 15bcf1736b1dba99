//! Os: the operating system's files.
//!
//! With [`Access::Direct`] a file is read and written past the system's cache. Some file systems
//! refuse that when a file is opened, others at the first read; then the cache is used.

use std::fs::{self, File as OsFile, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FallocateFlags, OFlags};
use rustix::io::Errno;

use super::{Access, File, FileSystem, Mode};
use crate::pages::{PAGE, Pages};

/// The file system that this process sees.
#[derive(Clone, Copy, Debug)]
pub struct OsFileSystem;

impl FileSystem for OsFileSystem {
    fn open(&self, path: &Path, mode: Mode, access: Access) -> io::Result<Box<dyn File>> {
        let options = options(mode);
        let opened = match access {
            Access::Direct => open_direct(path, &options),
            Access::Cached => Err(ErrorKind::InvalidInput.into()),
        };
        let (file, access) = match opened {
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                (options.open(path)?, Access::Cached)
            }
            opened => (opened?, Access::Direct),
        };
        Ok(Box::new(Opened { file, access }))
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn names(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.nlink())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        OsFile::open(path)?.sync_all()
    }
}

fn options(mode: Mode) -> OpenOptions {
    let mut options = OpenOptions::new();
    match mode {
        Mode::Read => options.read(true),
        Mode::Write => options.read(true).write(true),
        Mode::Create => options.read(true).write(true).create(true).truncate(false),
        Mode::CreateNew => options.read(true).write(true).create_new(true),
        Mode::Truncate => options.write(true).create(true).truncate(true),
    };
    options
}

fn open_direct(path: &Path, options: &OpenOptions) -> io::Result<OsFile> {
    let flags = i32::try_from(OFlags::DIRECT.bits()).unwrap_or_default();
    let file = options.clone().custom_flags(flags).open(path)?;
    // Some file systems refuse only at the first read. Other errors are left to later readers.
    let mut page = Pages::new(PAGE);
    match file.read_at(&mut page, 0) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(error),
        _ => Ok(file),
    }
}

/// An open file.
#[derive(Debug)]
struct Opened {
    file: OsFile,
    access: Access,
}

impl File for Opened {
    fn access(&self) -> Access {
        self.access
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&self.file, pieces, offset)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, from: u64, len: u64) -> io::Result<()> {
        let allocate = || rustix::fs::fallocate(&self.file, FallocateFlags::empty(), from, len);
        match rustix::io::retry_on_intr(allocate) {
            // Not every file system can. Then the file grows as it is written.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn forget_cached(&self) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed)?)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

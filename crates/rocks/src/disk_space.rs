//! Disk space: how much is free, and a reserve file that can be deleted.
//!
//! Below a mark the store is nearly full, so sends are refused before anything of them is
//! submitted, while settlements go on. The file system is asked at intervals; between two answers
//! every byte written counts as used. The reserve file is deleted when a store is opened on a full
//! disk, since recovery itself needs room.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Written bytes after which the file system is asked again.
const ASK_AFTER: u64 = 16 << 20;

/// What is known about the file system of one directory.
pub(crate) struct DiskSpace {
    path: PathBuf,
    mark: u64,
    /// At the last answer.
    free: u64,
    /// Since the last answer.
    written: u64,
    nearly_full: bool,
}

impl DiskSpace {
    /// Asks for the first time.
    pub fn new(path: &Path, mark: u64) -> io::Result<Self> {
        let free = free_bytes(path)?;
        let nearly_full = free < mark;
        Ok(Self {
            path: path.to_path_buf(),
            mark,
            free,
            written: 0,
            nearly_full,
        })
    }

    /// Counts `bytes` that are about to be on the disk.
    pub fn spend(&mut self, bytes: u64) -> io::Result<()> {
        self.written = self.written.saturating_add(bytes);
        if self.written >= ASK_AFTER {
            return self.ask();
        }
        self.judge();
        Ok(())
    }

    /// Asks the file system.
    pub fn ask(&mut self) -> io::Result<()> {
        self.free = free_bytes(&self.path)?;
        self.written = 0;
        self.judge();
        Ok(())
    }

    pub fn is_nearly_full(&self) -> bool {
        self.nearly_full
    }

    /// What is left of the last answer.
    pub fn free(&self) -> u64 {
        self.free.saturating_sub(self.written)
    }

    fn judge(&mut self) {
        let free = self.free();
        // An eighth more is needed to leave the state than to enter it, so that it does not flap.
        let mark = if self.nearly_full {
            self.mark + self.mark / 8
        } else {
            self.mark
        };
        self.nearly_full = free < mark;
    }
}

/// The file that keeps `bytes` of the disk for a start on a full one.
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
}

impl Reserve {
    pub fn new(path: PathBuf, bytes: u64) -> Self {
        Self { path, bytes }
    }

    /// Gives the space back if less than that much is free.
    pub fn release_if_needed(&self, free: u64) -> io::Result<()> {
        if free >= self.bytes {
            return Ok(());
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes the space if there is plenty. A file system that cannot reserve is not an error:
    /// the mark of a nearly full disk still holds.
    pub fn take(&self, free: u64) {
        if self.path.exists() || free < self.bytes.saturating_mul(4) {
            return;
        }
        if let Err(error) = self.allocate() {
            tracing::debug!(%error, "no space reserved for a start on a full disk");
            drop(fs::remove_file(&self.path));
        }
    }

    fn allocate(&self) -> io::Result<()> {
        let file = File::create(&self.path)?;
        let flags = rustix::fs::FallocateFlags::empty();
        Ok(rustix::fs::fallocate(&file, flags, 0, self.bytes)?)
    }
}

/// What an ordinary user may still write.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let answer = rustix::fs::statvfs(path)?;
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(free: u64, mark: u64) -> DiskSpace {
        let path = PathBuf::new();
        DiskSpace {
            path,
            mark,
            free,
            written: 0,
            nearly_full: false,
        }
    }

    #[test]
    fn written_bytes_count_as_gone_until_the_next_answer() {
        let mut space = space(10_000, 4_000);
        space.spend(6_000).expect("not asked yet");
        assert_eq!(space.free(), 4_000);
        assert!(!space.is_nearly_full());
        space.spend(1).expect("not asked yet");
        assert!(space.is_nearly_full());
    }

    #[test]
    fn a_little_more_than_the_mark_ends_the_state() {
        let mut space = space(3_999, 4_000);
        space.judge();
        assert!(space.is_nearly_full());
        space.free = 4_400;
        space.judge();
        assert!(space.is_nearly_full());
        space.free = 4_500;
        space.judge();
        assert!(!space.is_nearly_full());
    }

    #[test]
    fn the_file_system_is_asked_after_so_many_bytes() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut space = DiskSpace::new(directory.path(), 0).expect("asked");
        space.free = 1;
        space.spend(ASK_AFTER).expect("asked");
        assert!(space.free > 1);
    }

    #[test]
    fn a_reserve_is_taken_with_plenty_of_space_and_released_without() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("reserve");
        let reserve = Reserve::new(path.clone(), 4_096);
        reserve.take(4_096);
        assert!(!path.exists());
        reserve.take(1 << 20);
        let taken = path.exists();
        reserve.release_if_needed(5_000).expect("kept");
        assert_eq!(path.exists(), taken);
        reserve.release_if_needed(4_000).expect("released");
        assert!(!path.exists());
    }
}

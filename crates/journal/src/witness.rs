//! Witness: remembers outside the log how far the log was acknowledged.
//!
//! RocksDB ends its recovery at the first damaged record of the log and opens without the records
//! behind it. The position of each commit is therefore also written here, into one of two slots in
//! turn, each with a CRC32C; a torn write leaves the other slot. The file is synced about once a
//! second only: a power cut may bring back an older position, never one that was not durable.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::StoreError;

use crate::directory::io_error;
use crate::file_system::{Access, File, FileSystem, Mode};

/// Slots lie in pages of their own, so that they are not torn together.
const SLOT_OFFSETS: [u64; 2] = [0, 4_096];
const SLOT: usize = 12;

/// An open witness file.
pub struct Witness {
    system: Arc<dyn FileSystem>,
    file: Box<dyn File>,
    /// Where the file's name still has to be made durable.
    folder: Option<PathBuf>,
    position: u64,
    next_slot: usize,
    synced: bool,
}

/// The content of the file at opening.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WitnessState {
    /// There is no file, as in a new store.
    Nothing,
    Position(u64),
    /// Neither slot is readable.
    Unreadable,
}

impl WitnessState {
    /// The position up to which everything was acknowledged, as far as it tells.
    #[must_use]
    pub fn position(self) -> u64 {
        match self {
            Self::Position(position) => position,
            Self::Nothing | Self::Unreadable => 0,
        }
    }

    /// What is wrong with the witness of a store whose journal was read up to `position`. A store
    /// has one before its first commit.
    #[must_use]
    pub fn damage(self, position: u64) -> Option<&'static str> {
        match self {
            Self::Unreadable => Some("has no slot that can be read"),
            Self::Nothing if position > 0 => Some("is not there"),
            Self::Nothing | Self::Position(_) => None,
        }
    }
}

impl Witness {
    /// Reads the witness of an earlier opening.
    pub fn read(system: &dyn FileSystem, path: &Path) -> Result<WitnessState, StoreError> {
        let file = match system.open(path, Mode::Read, Access::Cached) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(WitnessState::Nothing),
            Err(error) => return Err(io_error("opening", path, &error)),
        };
        let slots = SLOT_OFFSETS.map(|offset| read_slot(&*file, offset));
        Ok(match slots.into_iter().flatten().max() {
            Some(position) => WitnessState::Position(position),
            None => WitnessState::Unreadable,
        })
    }

    /// Opens the file and writes `position` to it.
    pub fn open(
        system: &Arc<dyn FileSystem>,
        path: &Path,
        position: u64,
    ) -> Result<Self, StoreError> {
        Self::try_open(system, path, position).map_err(|error| io_error("writing", path, &error))
    }

    fn try_open(system: &Arc<dyn FileSystem>, path: &Path, position: u64) -> io::Result<Self> {
        let folder = path.parent().map(Path::to_path_buf);
        let is_new = match system.open(path, Mode::Read, Access::Cached) {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        let fresh = path.with_extension("new");
        let place = if is_new { &*fresh } else { path };
        let file = system.open(place, Mode::Create, Access::Cached)?;
        let mut witness = Self {
            system: system.clone(),
            file,
            folder,
            position,
            next_slot: 0,
            synced: false,
        };
        // Both slots, since an accepted loss must not be found again in the other one.
        witness.record(position)?;
        witness.record(position)?;
        if is_new {
            // Whole before it has its name: a first start that ends here, or whose write fails,
            // must not leave an empty witness, which the next one would take for a damaged one.
            witness.file.sync()?;
            system.rename(&fresh, path)?;
        }
        // Before anything is acknowledged.
        witness.sync()?;
        Ok(witness)
    }

    /// Remembers `position`, without waiting for the disk.
    pub fn record(&mut self, position: u64) -> io::Result<()> {
        let mut slot = [0; SLOT];
        let bytes = position.to_be_bytes();
        slot[..8].copy_from_slice(&bytes);
        slot[8..].copy_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
        self.file
            .write_all_at(&slot, SLOT_OFFSETS[self.next_slot])?;
        self.next_slot = 1 - self.next_slot;
        self.position = position;
        self.synced = false;
        Ok(())
    }

    /// What was recorded last.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Makes the recorded position durable.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.synced {
            self.file.sync()?;
            if let Some(folder) = self.folder.take() {
                self.system.sync_directory(&folder)?;
            }
            self.synced = true;
        }
        Ok(())
    }
}

fn read_slot(file: &dyn File, offset: u64) -> Option<u64> {
    let mut slot = [0; SLOT];
    file.read_exact_at(&mut slot, offset).ok()?;
    let (position, crc) = slot.split_first_chunk()?;
    let crc = u32::from_be_bytes(crc.try_into().ok()?);
    (crc32c::crc32c(position) == crc).then_some(u64::from_be_bytes(*position))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::file_system::{OsFileSystem, os};

    #[test]
    fn the_newest_position_is_read_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        assert_eq!(
            Witness::read(&OsFileSystem, &path),
            Ok(WitnessState::Nothing)
        );
        let mut witness = Witness::open(&os(), &path, 5).expect("opened");
        assert_eq!(
            Witness::read(&OsFileSystem, &path),
            Ok(WitnessState::Position(5))
        );
        for position in 6..12 {
            witness.record(position).expect("recorded");
            assert_eq!(
                Witness::read(&OsFileSystem, &path),
                Ok(WitnessState::Position(position))
            );
        }
        witness.sync().expect("synced");
    }

    #[test]
    fn a_damaged_slot_leaves_the_other_and_two_leave_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        let mut witness = Witness::open(&os(), &path, 5).expect("opened");
        witness.record(6).expect("recorded");
        let mut content = fs::read(&path).expect("read");
        content[3] ^= 1;
        fs::write(&path, &content).expect("written");
        assert_eq!(
            Witness::read(&OsFileSystem, &path),
            Ok(WitnessState::Position(5))
        );
        content[4_100] ^= 1;
        fs::write(&path, &content).expect("written");
        assert_eq!(
            Witness::read(&OsFileSystem, &path),
            Ok(WitnessState::Unreadable)
        );
    }

    #[test]
    fn a_first_opening_that_was_interrupted_leaves_no_witness() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        let fresh = path.with_extension("new");
        fs::write(&fresh, b"").expect("written");
        assert_eq!(
            Witness::read(&OsFileSystem, &path),
            Ok(WitnessState::Nothing)
        );
        drop(Witness::open(&os(), &path, 5).expect("opened"));
        assert!(!fresh.exists());
        assert_eq!(
            Witness::read(&OsFileSystem, &path),
            Ok(WitnessState::Position(5))
        );
    }

    #[test]
    fn an_accepted_loss_is_forgotten_in_both_slots() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        drop(Witness::open(&os(), &path, 500).expect("opened"));
        drop(Witness::open(&os(), &path, 20).expect("opened"));
        assert_eq!(
            Witness::read(&OsFileSystem, &path),
            Ok(WitnessState::Position(20))
        );
    }
}

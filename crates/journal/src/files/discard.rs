//! Discards: files to remove, whose space goes back to the file system piece by piece.
//!
//! A file system that reports free blocks to its disk may do so when a file is removed, and some
//! disks stall meanwhile: on ext4 mounted with `discard` every commit waited for 5 ms while a
//! segment was removed. So a file loses its name at once, and then its length, a piece at a time
//! with a pause as long behind it, in a thread that ends with the last file. If many files wait
//! there are no pauses, since the space is needed. The next opening removes files that a crash
//! left, by their name.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::lock;
use crate::file_system::{Access, FileSystem, Mode};

/// How much of a file goes at once.
const PIECE: u64 = 1 << 20;
/// No pause is shorter, for a file system that tells its disk a little later, or longer.
const PAUSE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(100);
/// With this many files waiting there are no pauses.
const NO_PAUSE_FROM: usize = 64;

/// When the space of a removed file goes back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Removal {
    /// In a thread of its own, with pauses.
    InBackground,
    /// Before the call returns that removes the file, without pauses.
    AtOnce,
}

/// What goes, and the thread that sees to it. When it is dropped the rest goes at once.
pub(crate) struct Discards {
    shared: Arc<Shared>,
    removal: Removal,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    system: Arc<dyn FileSystem>,
    paced: bool,
    waiting: Mutex<WaitingFiles>,
    closing: AtomicBool,
}

#[derive(Default)]
struct WaitingFiles {
    paths: VecDeque<PathBuf>,
    is_attended: bool,
}

impl Discards {
    pub fn new(system: Arc<dyn FileSystem>, removal: Removal) -> Self {
        let shared = Shared {
            system,
            paced: removal == Removal::InBackground,
            waiting: Mutex::default(),
            closing: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
            removal,
            thread: Mutex::default(),
        }
    }

    /// Removes a file, which must not be renamed any more.
    pub fn add(&self, path: PathBuf) {
        if self.removal == Removal::AtOnce {
            return self.shared.remove(&path);
        }
        let mut waiting = lock(&self.shared.waiting);
        waiting.paths.push_back(path);
        if waiting.is_attended {
            return;
        }
        let shared = self.shared.clone();
        let thread = thread::Builder::new().name("discards".into());
        match thread.spawn(move || shared.work()) {
            Ok(thread) => {
                waiting.is_attended = true;
                *lock(&self.thread) = Some(thread);
            }
            // It goes with the next.
            Err(error) => tracing::warn!(%error, "no thread for removing old files"),
        }
    }
}

impl Drop for Discards {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        if let Some(thread) = lock(&self.thread).take() {
            drop(thread.join());
        }
        // What there was no thread for.
        self.shared.work();
    }
}

impl Shared {
    fn work(&self) {
        while let Some(path) = self.next() {
            self.remove(&path);
        }
    }

    fn remove(&self, path: &Path) {
        match self.discard(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let path = path.display();
                tracing::warn!(%path, %error, "a file that is not needed any more stays until the next start");
            }
            _ => {}
        }
    }

    fn next(&self) -> Option<PathBuf> {
        let mut waiting = lock(&self.waiting);
        let path = waiting.paths.pop_front();
        waiting.is_attended = path.is_some();
        path
    }

    /// Removes the file even if it cannot be made shorter.
    fn discard(&self, path: &Path) -> io::Result<()> {
        if let Err(error) = self.shorten(path) {
            tracing::debug!(path = %path.display(), %error, "a file goes as a whole");
        }
        self.system.remove(path)
    }

    fn shorten(&self, path: &Path) -> io::Result<()> {
        let file = self.system.open(path, Mode::Write, Access::Cached)?;
        let mut len = file.len()?;
        // One with a second name is in a backup.
        if self.system.names(path)? != 1 || len <= PIECE {
            return Ok(());
        }
        // After a crash it must not have its old name and less than it had.
        path.parent()
            .map_or(Ok(()), |folder| self.system.sync_directory(folder))?;
        while len > PIECE && !self.closing.load(Ordering::Relaxed) {
            len -= PIECE;
            if !self.paced {
                file.set_len(len)?;
                continue;
            }
            let began = Instant::now();
            file.set_len(len)?;
            if lock(&self.waiting).paths.len() < NO_PAUSE_FROM {
                thread::sleep(began.elapsed().clamp(*PAUSE.start(), *PAUSE.end()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::file_system::os;

    fn discards() -> Discards {
        Discards::new(os(), Removal::InBackground)
    }

    fn file(folder: &Path, name: &str, len: u64) -> PathBuf {
        let path = folder.join(name);
        let file = File::create_new(&path).expect("created");
        file.set_len(len).expect("grown");
        path
    }

    #[test]
    fn files_go_and_what_has_a_second_name_stays_whole_under_it() {
        let folder = tempfile::tempdir().expect("a directory");
        let lone = file(folder.path(), "1.gone", 3 * PIECE + 1);
        let linked = file(folder.path(), "2.gone", 3 * PIECE);
        let second = folder.path().join("second");
        fs::hard_link(&linked, &second).expect("linked");
        let discards = discards();
        discards.add(folder.path().join("0.gone"));
        discards.add(lone.clone());
        discards.add(linked.clone());
        drop(discards);
        assert!(!lone.exists() && !linked.exists());
        let kept = fs::metadata(second).expect("there");
        assert_eq!(kept.len(), 3 * PIECE);
    }

    #[test]
    fn a_file_goes_bit_by_bit_down_to_its_last_piece() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = file(folder.path(), "1.gone", 3 * PIECE + 1);
        let discards = discards();
        let shared = &discards.shared;
        shared.shorten(&path).expect("shortened");
        assert_eq!(fs::metadata(&path).expect("there").len(), 1);
        shared.discard(&path).expect("removed");
        assert!(!path.exists());
    }

    #[test]
    fn what_can_not_be_made_shorter_goes_all_the_same() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("1.gone");
        // It cannot be opened.
        std::os::unix::fs::symlink(folder.path().join("nothing"), &path).expect("linked");
        discards().shared.discard(&path).expect("removed");
        assert!(fs::symlink_metadata(&path).is_err());
    }
}

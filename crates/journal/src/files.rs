//! Files: the segments on disk, by their ids.
//!
//! Readers share the open ones. Files that are no longer needed are kept for the next segments, a
//! few of them: writing over blocks that a file has already is cheaper to sync than growing one.
//! Staged bodies lie in the same folder; a file of theirs is never used again.

mod discard;
mod reads;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use store::StoreError;

use self::discard::Discards;
use crate::directory::io_error;
use crate::file_system::{Access, File, FileSystem, Mode};
use crate::handle::Handle;
use crate::pages::{PAGE, Pages};
use crate::record::{FIRST, segment_header};
use crate::staged::{self, StagedBodies, is_staged};

pub use discard::Removal;

/// How many files readers keep open.
const MOST_OPEN: usize = 64;
/// How many unneeded files are kept.
const MOST_SPARE: usize = 4;
const EXTENSION: &str = "journal";
const STAGED: &str = "body";
const SPARE: &str = "spare";
/// Of files whose space is being given back, behind what they were called.
const GONE: &str = "gone";

/// The folder of a store's journal.
pub struct Files {
    system: Arc<dyn FileSystem>,
    folder: PathBuf,
    access: Access,
    /// That there is no direct access is said once.
    cached: Once,
    open: Mutex<BTreeMap<u64, Arc<Handle>>>,
    /// Numbers of spare files.
    spare: Mutex<Vec<u64>>,
    pub staged: Arc<StagedBodies>,
    discards: Discards,
}

impl Files {
    /// Makes the folder if there is none.
    pub fn open(
        system: Arc<dyn FileSystem>,
        folder: PathBuf,
        access: Access,
        removal: Removal,
    ) -> Result<Self, StoreError> {
        let making = |error| io_error("creating", &folder, &error);
        if !system.is_directory(&folder) {
            system.create_directory(&folder).map_err(making)?;
            folder
                .parent()
                .map_or(Ok(()), |parent| system.sync_directory(parent))
                .map_err(making)?;
        }
        let numbers = |extension| {
            let listed = numbers(&*system, &folder, extension);
            listed.map_err(|error| io_error("listing", &folder, &error))
        };
        let (spare, staged) = (numbers(SPARE)?, numbers(STAGED)?);
        let listed = with_extension(&*system, &folder, GONE);
        let discards = Discards::new(system.clone(), removal);
        for gone in listed.map_err(|error| io_error("listing", &folder, &error))? {
            discards.add(gone);
        }
        Ok(Self {
            folder,
            access,
            cached: Once::new(),
            open: Mutex::default(),
            spare: Mutex::new(spare),
            staged: Arc::new(StagedBodies::after(staged.last().copied().unwrap_or(0))),
            discards,
            system,
        })
    }

    /// The files of a store that another process has open, only to be read.
    pub fn beside(system: Arc<dyn FileSystem>, folder: PathBuf, access: Access) -> Self {
        Self {
            folder,
            access,
            cached: Once::new(),
            open: Mutex::default(),
            spare: Mutex::default(),
            staged: Arc::new(StagedBodies::after(0)),
            discards: Discards::new(system.clone(), Removal::InBackground),
            system,
        }
    }

    /// The ids of all segments, ascending.
    pub fn segments(&self) -> io::Result<Vec<u64>> {
        numbers(&*self.system, &self.folder, EXTENSION)
    }

    /// The ids of all files with a staged body, ascending.
    pub fn staged(&self) -> io::Result<Vec<u64>> {
        let numbers = numbers(&*self.system, &self.folder, STAGED)?;
        Ok(numbers.into_iter().map(staged::toggle_staged_bit).collect())
    }

    /// An id that no segment has or had, as far as anything tells of it. What is left of an earlier
    /// use of a file must never be under the same id.
    pub fn next_id(&self, known: &BTreeSet<u64>) -> Result<u64, StoreError> {
        let listing = |error| io_error("listing", &self.folder, &error);
        let there = self.segments().map_err(listing)?;
        let spare = lock(&self.spare).iter().copied().max();
        let known = known.iter().copied().filter(|id| !is_staged(*id)).max();
        let greatest = there.last().copied().max(spare).max(known);
        Ok(greatest.unwrap_or(0).saturating_add(1))
    }

    pub fn path(&self, id: u64) -> PathBuf {
        if is_staged(id) {
            let number = staged::toggle_staged_bit(id);
            return self.folder.join(format!("{number:016x}.{STAGED}"));
        }
        self.folder.join(format!("{id:016x}.{EXTENSION}"))
    }

    fn spare_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:016x}.{SPARE}"))
    }

    /// Makes the segment `id`, of a spare file if there is one. Returns how many whole pages of
    /// the file have their place on the disk already, in bytes.
    pub fn create(&self, id: u64) -> io::Result<(Arc<Handle>, u64)> {
        let path = self.path(id);
        let spare = lock(&self.spare).pop();
        if let Some(spare) = spare {
            self.system.rename(&self.spare_path(spare), &path)?;
        }
        let begun = match self.begin(&path, id, self.access) {
            // Some file systems refuse only what is written.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.begin(&path, id, Access::Cached)
            }
            begun => begun,
        };
        let file = begun?;
        if file.access() != self.access {
            self.tell_cached();
        }
        self.system.sync_directory(&self.folder)?;
        let room = file.file().len()? / PAGE as u64 * PAGE as u64;
        let file = Arc::new(file);
        self.remember(id, &file);
        Ok((file, room))
    }

    /// Opens or makes a file and begins a segment in it.
    fn begin(&self, path: &Path, id: u64, access: Access) -> io::Result<Handle> {
        let file = Handle::open(&*self.system, path, Mode::Create, access)?;
        let mut begin = Pages::new(PAGE);
        begin[..FIRST as usize].copy_from_slice(&segment_header(id));
        file.file().write_all_at(&begin, 0)?;
        Ok(file)
    }

    /// Removes a file that the journal does not need, be it of a segment or of a staged body.
    pub fn remove(&self, id: u64) -> io::Result<()> {
        self.system.remove(&self.path(id))
    }

    fn tell_cached(&self) {
        let folder = self.folder.display();
        self.cached.call_once(|| tracing::info!(%folder, "files here have no direct access: the journal goes through the system's cache"));
    }

    /// The file of a segment, unless it is gone.
    fn get(&self, id: u64) -> io::Result<Option<Arc<Handle>>> {
        if let Some(file) = lock(&self.open).get(&id) {
            return Ok(Some(file.clone()));
        }
        let path = self.path(id);
        let opened = Handle::open(&*self.system, &path, Mode::Read, self.access);
        let file = unless_not_found(opened)?.map(Arc::new);
        // There is one body in a staged one.
        if let Some(file) = file.as_ref().filter(|_| !is_staged(id)) {
            self.remember(id, file);
        }
        Ok(file)
    }

    /// The file of a segment to be read from its begin to its end, unless it is gone.
    pub fn whole(&self, id: u64) -> io::Result<Option<Box<dyn File>>> {
        unless_not_found(self.system.open(&self.path(id), Mode::Read, Access::Cached))
    }

    fn remember(&self, id: u64, file: &Arc<Handle>) {
        let mut open = lock(&self.open);
        if open.len() >= MOST_OPEN {
            // Those that are read in order are in the newest or come one after the other.
            open.pop_first();
        }
        open.insert(id, file.clone());
    }

    /// Gives up a segment in which nothing is needed, with at most `keep` bytes of it for another.
    /// A file with a second name is in a backup and must not be written to. One with a staged body
    /// is removed.
    pub fn release(&self, id: u64, keep: u64) -> io::Result<()> {
        lock(&self.open).remove(&id);
        let path = self.path(id);
        let names = match self.system.names(&path) {
            // Another process has removed a file that is not needed.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        let mut spare = lock(&self.spare);
        if spare.len() >= MOST_SPARE || names != 1 || is_staged(id) {
            return self.discard(id);
        }
        let file = self.system.open(&path, Mode::Write, Access::Cached)?;
        if file.len()? > keep {
            file.set_len(keep)?;
        }
        // What the system remembers of it would be written again as a whole, in pieces as large as
        // they were, for each few bytes that change.
        if let Err(error) = file.forget_cached() {
            tracing::debug!(%error, "a segment stays in memory");
        }
        self.system.rename(&path, &self.spare_path(id))?;
        spare.push(id);
        Ok(())
    }

    /// Removes a file that is not needed. Its space is freed a little later.
    fn discard(&self, id: u64) -> io::Result<()> {
        let path = self.path(id);
        let gone = path.with_added_extension(GONE);
        match self.system.rename(&path, &gone) {
            Ok(()) => {
                self.discards.add(gone);
                Ok(())
            }
            // A full disk may have no room for another name.
            Err(_) => unless_not_found(self.system.remove(&path)).map(drop),
        }
    }

    /// Gives every segment and every staged body that a record names a second name in `folder`.
    pub fn link_into(&self, folder: &Path) -> io::Result<()> {
        let staged = self.staged()?.into_iter();
        let named = staged.filter(|id| self.staged.is_named(*id));
        for id in self.segments()?.into_iter().chain(named) {
            match self.link(id, folder) {
                // It was abandoned meanwhile.
                Err(error) if is_staged(id) && error.kind() == ErrorKind::NotFound => {}
                linked => linked?,
            }
        }
        self.system.sync_directory(folder)
    }

    /// Gives one segment a second name in `folder`, unless it has one there.
    pub fn link(&self, id: u64, folder: &Path) -> io::Result<()> {
        let path = self.path(id);
        let name = path.file_name().unwrap_or_default();
        match self.system.link(&path, &folder.join(name)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}

fn unless_not_found<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The numbers of the files with this extension, ascending.
fn numbers(system: &dyn FileSystem, folder: &Path, extension: &str) -> io::Result<Vec<u64>> {
    let paths = with_extension(system, folder, extension)?.into_iter();
    let number = |path: PathBuf| u64::from_str_radix(path.file_stem()?.to_str()?, 16).ok();
    let mut numbers: Vec<_> = paths.filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn with_extension(
    system: &dyn FileSystem,
    folder: &Path,
    extension: &str,
) -> io::Result<Vec<PathBuf>> {
    let mut paths = system.list(folder)?;
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    Ok(paths)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::file_system::os;

    fn open(folder: PathBuf) -> Files {
        Files::open(os(), folder, Access::Cached, Removal::InBackground).expect("opened")
    }

    #[test]
    fn no_id_is_given_twice() {
        let directory = tempfile::tempdir().expect("a directory");
        let open = || open(directory.path().join("journal"));
        let files = open();
        let none = BTreeSet::new();
        assert_eq!(files.next_id(&none), Ok(1));
        files.create(5).expect("made");
        files.release(5, 1 << 20).expect("given up");
        assert_eq!(files.next_id(&none), Ok(6));
        let files = open();
        assert_eq!(files.next_id(&none), Ok(6));
        assert_eq!(files.next_id(&BTreeSet::from([9])), Ok(10));
        let (_, room) = files.create(6).expect("made of the spare one");
        assert_eq!(room, PAGE as u64);
        assert_eq!(files.segments().expect("listed"), [6]);
    }

    #[test]
    fn what_a_crash_left_of_a_removal_goes_at_the_next_opening() {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("journal");
        let files = open(folder.clone());
        files.create(1).expect("made");
        drop(files);
        let gone = folder.join("0000000000000001.journal.gone");
        fs::rename(folder.join("0000000000000001.journal"), &gone).expect("renamed");
        let files = open(folder);
        assert_eq!(files.segments().expect("listed"), []);
        drop(files);
        assert!(!gone.exists());
    }

    #[test]
    fn a_file_with_a_second_name_is_not_used_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = open(directory.path().join("journal"));
        files.create(1).expect("made");
        files.link_into(directory.path()).expect("linked");
        files.release(1, 1 << 20).expect("given up");
        assert!(lock(&files.spare).is_empty());
        assert!(directory.path().join("0000000000000001.journal").exists());
        files.release(1, 1 << 20).expect("it is gone already");
    }
}

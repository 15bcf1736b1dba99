//! Hooks: where tests stop the commit log, or the writing of a staged body, or make it fail.
//!
//! Between the calls a test sees what a reader or another writer does while a write is under way.
//! They exist in tests of this crate alone.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use journal::file_system::{Access, File, FileSystem, Mode, OsFileSystem};
use store::StoreError;

use journal::log::Sync;

/// Shared between a test and the commit log of its store.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    fail: bool,
    /// Which records have to wait; a held `Sync::Later` holds all.
    hold: Option<Sync>,
    waiting: bool,
}

impl Hooks {
    /// Makes the next write fail.
    pub fn fail_next(&self) {
        self.state.lock().expect("no panic before").fail = true;
    }

    /// Holds records from now on.
    pub fn hold(&self, from: Sync) {
        self.state.lock().expect("no panic before").hold = Some(from);
    }

    /// Returns when a record is being held.
    pub fn wait_until_held(&self) {
        let state = self.state.lock().expect("no panic before");
        drop(
            self.changed
                .wait_while(state, |state| !state.waiting)
                .expect("no panic before"),
        );
    }

    /// Lets everything pass again.
    pub fn release(&self) {
        self.state.lock().expect("no panic before").hold = None;
        self.changed.notify_all();
    }

    /// Called before each write.
    pub fn pass(&self, sync: Sync) -> Result<(), StoreError> {
        let mut state = self.state.lock().expect("no panic before");
        while state.hold == Some(Sync::Later) || state.hold == Some(sync) {
            state.waiting = true;
            self.changed.notify_all();
            state = self.changed.wait(state).expect("no panic before");
        }
        state.waiting = false;
        if std::mem::take(&mut state.fail) {
            return Err(StoreError::Io("injected fault".into()));
        }
        Ok(())
    }
}

/// A file system whose writes to staged bodies pass hooks, and these hooks.
pub(crate) fn file_system() -> (Arc<dyn FileSystem>, Arc<Hooks>) {
    let hooks = Arc::<Hooks>::default();
    (Arc::new(HookedFileSystem(hooks.clone())), hooks)
}

/// The operating system's files, of which each write to a staged body passes the hooks.
#[derive(Debug)]
struct HookedFileSystem(Arc<Hooks>);

impl FileSystem for HookedFileSystem {
    fn open(&self, path: &Path, mode: Mode, access: Access) -> io::Result<Box<dyn File>> {
        let file = OsFileSystem.open(path, mode, access)?;
        if mode == Mode::Write && path.extension().is_some_and(|found| found == "body") {
            let hooks = self.0.clone();
            return Ok(Box::new(HookedFile { file, hooks }));
        }
        Ok(file)
    }

    fn is_directory(&self, path: &Path) -> bool {
        OsFileSystem.is_directory(path)
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.create_directory(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        OsFileSystem.list(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFileSystem.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFileSystem.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.remove(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.remove_directory(path)
    }

    fn names(&self, path: &Path) -> io::Result<u64> {
        OsFileSystem.names(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        OsFileSystem.sync_directory(path)
    }
}

#[derive(Debug)]
struct HookedFile {
    file: Box<dyn File>,
    hooks: Arc<Hooks>,
}

impl File for HookedFile {
    fn access(&self) -> Access {
        self.file.access()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.hooks.pass(Sync::Now).map_err(io::Error::other)?;
        self.file.write_at(bytes, offset)
    }

    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.file.write_pieces_at(pieces, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, from: u64, len: u64) -> io::Result<()> {
        self.file.allocate(from, len)
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.file.forget_cached()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}

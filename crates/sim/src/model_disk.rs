//! Model disk: a file system that keeps, after a power cut, only what a real one must keep.
//!
//! What is written lies in a cache. A sync moves a file's pages to the platter, and a sync of a
//! folder its names; now and then a page goes there by itself. A power cut comes before any call:
//! it keeps the platter, and of the rest any pages, whole or torn, and any changes of names. A sync
//! that fails loses the pages that it was to write. The seed decides all of it.
//!
//! Invariant: a file's pages that were synced, under a name that was synced, survive.

mod content;
mod file;
mod folder;
mod system;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rng::Rng;
use content::Content;
use folder::Folder;

/// Calls of a thousand before which a page goes to the platter by itself.
const WRITE_BACK: u64 = 50;

/// What one call does instead of its work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// A sync fails, and what it was to write is lost.
    Sync,
    /// A write fails.
    Write,
    /// There is no room for a write, a new name or more length.
    NoSpace,
    /// A write writes less than it was given.
    ShortWrite,
    /// A read or a write was interrupted before it did anything.
    Interrupted,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 5] = [
        Self::Sync,
        Self::Write,
        Self::NoSpace,
        Self::ShortWrite,
        Self::Interrupted,
    ];
}

/// Syncs that do nothing, for runs that must fail.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Swallowed {
    /// Those of files.
    pub files: bool,
    /// Those of folders.
    pub folders: bool,
}

/// A disk with one file system. Clones are handles to the same disk.
#[derive(Clone)]
pub struct ModelDisk {
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for ModelDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("ModelDisk")
            .field("calls", &state.calls)
            .field("is_off", &state.is_off)
            .finish_non_exhaustive()
    }
}

impl ModelDisk {
    /// An empty disk. `direct` says whether its files can be reached past the cache.
    #[must_use]
    pub fn new(seed: u64, direct: bool, swallowed: Swallowed) -> Self {
        let state = State {
            rng: Rng::new(seed),
            direct,
            swallowed,
            calls: 0,
            opening: 0,
            is_off: false,
            cut_at: None,
            fault: None,
            cut_behind: None,
            contents: BTreeMap::new(),
            next: 1,
            folders: BTreeMap::from([(PathBuf::from("/"), Folder::default())]),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Another disk with the same content, which goes its own way from here.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            state: Arc::new(Mutex::new(self.lock().clone())),
        }
    }

    /// Has it go another way than the disk that it was forked from.
    pub fn reseed(&self, seed: u64) {
        self.lock().rng = Rng::new(seed);
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Cuts the power before the call that comes after `calls` others.
    pub fn cut_after(&self, calls: u64) {
        let mut state = self.lock();
        state.cut_at = Some(state.calls + 1 + calls);
    }

    /// Has the first call that can fail that way do so, after `calls` others.
    pub fn fail_after(&self, calls: u64, fault: Fault) {
        let mut state = self.lock();
        state.fault = Some((state.calls + 1 + calls, fault));
    }

    /// Cuts the power before the call that comes after `calls` others behind the call that fails
    /// next.
    pub fn cut_behind_failure(&self, calls: u64) {
        self.lock().cut_behind = Some(calls);
    }

    /// Lets the calls that come go well.
    pub fn heal(&self) {
        let mut state = self.lock();
        (state.cut_at, state.fault, state.cut_behind) = (None, None, None);
    }

    /// Whether the power was cut and not switched on again.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.lock().is_off
    }

    /// Cuts the power now, unless it is off.
    pub fn cut(&self) {
        let mut state = self.lock();
        if !state.is_off {
            state.cut();
        }
    }

    /// Switches the power on, if it is off. Without a cut before it this is the end of the process:
    /// its files are closed, and the cache stays.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.is_off = false;
        state.opening += 1;
        (state.cut_at, state.fault, state.cut_behind) = (None, None, None);
    }

    /// Flips a bit of a file below `folder`, mostly of the newest segment, on the platter and in
    /// the cache. Returns which, if
    /// there is a file with something in it.
    pub fn flip_bit(&self, folder: &Path) -> Option<String> {
        self.lock().flip_bit(folder)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call is, as far as faults tell calls apart.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Call {
    Read,
    Write,
    Sync,
    /// It needs room for a name or for length.
    Grow,
    Other,
}

impl Call {
    fn can_have(self, fault: Fault) -> bool {
        match fault {
            Fault::Sync => self == Self::Sync,
            Fault::Write | Fault::ShortWrite => self == Self::Write,
            Fault::NoSpace => self == Self::Write || self == Self::Grow,
            Fault::Interrupted => self == Self::Read || self == Self::Write,
        }
    }
}

#[derive(Clone)]
struct State {
    rng: Rng,
    direct: bool,
    swallowed: Swallowed,
    calls: u64,
    /// Raised with each restart: files that were opened before are closed.
    opening: u64,
    is_off: bool,
    cut_at: Option<u64>,
    fault: Option<(u64, Fault)>,
    /// How long behind the fault the power is cut.
    cut_behind: Option<u64>,
    contents: BTreeMap<u64, Content>,
    next: u64,
    folders: BTreeMap<PathBuf, Folder>,
}

impl State {
    /// Counts a call, and returns what is to go wrong with it.
    fn call(&mut self, call: Call) -> io::Result<Option<Fault>> {
        if self.is_off {
            return Err(power_is_off());
        }
        self.calls += 1;
        if self.cut_at.is_some_and(|at| at <= self.calls) {
            self.cut();
            return Err(power_is_off());
        }
        if self.rng.chance(WRITE_BACK) {
            self.write_back();
        }
        match self.fault {
            Some((at, fault)) if at <= self.calls && call.can_have(fault) => {
                self.fault = None;
                if let Some(calls) = self.cut_behind.take() {
                    self.cut_at = Some(self.calls + 1 + calls);
                }
                Ok(Some(fault))
            }
            _ => Ok(None),
        }
    }

    /// A page goes to the platter without a sync.
    fn write_back(&mut self) {
        let unsynced: Vec<_> = self
            .contents
            .iter()
            .filter(|(_, content)| content.has_unsynced_pages())
            .map(|(id, _)| *id)
            .collect();
        if unsynced.is_empty() || self.swallowed.files {
            return;
        }
        let id = unsynced[self.rng.below(unsynced.len())];
        if let Some(content) = self.contents.get_mut(&id) {
            content.write_back(&mut self.rng);
        }
    }

    fn cut(&mut self) {
        self.is_off = true;
        self.cut_at = None;
        self.fault = None;
        for folder in self.folders.values_mut() {
            folder.cut(&mut self.rng);
        }
        self.drop_lost_folders();
        let named = |id: &u64| self.folders.values().any(|folder| folder.count(*id) > 0);
        let lost: Vec<_> = self
            .contents
            .keys()
            .filter(|id| !named(id))
            .copied()
            .collect();
        for id in lost {
            self.contents.remove(&id);
        }
        for content in self.contents.values_mut() {
            content.cut(&mut self.rng);
        }
    }

    /// A folder goes with its name.
    fn drop_lost_folders(&mut self) {
        let paths: Vec<_> = self.folders.keys().cloned().collect();
        // A folder comes before those in it.
        for path in paths {
            let Some((parent, name)) = path.parent().zip(path.file_name()) else {
                continue;
            };
            let is_there = self
                .folders
                .get(parent)
                .is_some_and(|folder| folder.get(name).is_some());
            if !is_there {
                self.folders.remove(&path);
            }
        }
    }

    fn flip_bit(&mut self, root: &Path) -> Option<String> {
        let mut files = Vec::new();
        for (path, folder) in self.folders.range(root.to_path_buf()..) {
            if path.starts_with(root) {
                files.extend(folder.files().map(|(name, id)| (path.join(name), id)));
            }
        }
        files.retain(|(_, id)| {
            self.contents
                .get(id)
                .is_some_and(|content| !content.is_empty())
        });
        if files.is_empty() {
            return None;
        }
        let newest = files.iter().filter(|(path, _)| {
            path.extension()
                .is_some_and(|extension| extension == "journal")
        });
        let newest = newest.max_by_key(|(path, _)| path);
        let any = &files[self.rng.below(files.len())];
        // Where most depends on each byte.
        let (path, id) = newest.filter(|_| self.rng.chance(500)).unwrap_or(any);
        let offset = self.contents.get_mut(id)?.flip_bit(&mut self.rng);
        Some(format!("{} at byte {offset}", path.display()))
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the power is off")
}

//! Folder: names, as they are and as the platter has them.
//!
//! A change of a name is durable when its folder was synced after it. A power cut keeps a prefix of
//! the other changes, or any of them; a rename within a folder counts as one change.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::rng::Rng;

type Names = BTreeMap<OsString, Entry>;

/// What a name stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entry {
    /// The content with this number.
    File(u64),
    /// A folder, found by its path.
    Folder,
}

#[derive(Clone, Debug)]
enum Change {
    Add(OsString, Entry),
    Remove(OsString),
    Rename(OsString, OsString),
}

/// The names in one folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Folder {
    names: Names,
    synced: Names,
    /// What was done to the names since they were synced.
    changes: Vec<Change>,
}

impl Folder {
    pub fn get(&self, name: &OsStr) -> Option<Entry> {
        self.names.get(name).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = &OsString> {
        self.names.keys()
    }

    pub fn files(&self) -> impl Iterator<Item = (&OsString, u64)> {
        self.names.iter().filter_map(|(name, entry)| match entry {
            Entry::File(id) => Some((name, *id)),
            Entry::Folder => None,
        })
    }

    /// How many names a content has here.
    pub fn count(&self, id: u64) -> u64 {
        self.files().filter(|(_, file)| *file == id).count() as u64
    }

    pub fn add(&mut self, name: &OsStr, entry: Entry) {
        self.change(Change::Add(name.to_owned(), entry));
    }

    pub fn remove(&mut self, name: &OsStr) {
        self.change(Change::Remove(name.to_owned()));
    }

    pub fn rename(&mut self, from: &OsStr, to: &OsStr) {
        self.change(Change::Rename(from.to_owned(), to.to_owned()));
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }

    pub fn sync(&mut self) {
        self.synced = self.names.clone();
        self.changes.clear();
    }

    /// The power is cut.
    pub fn cut(&mut self, rng: &mut Rng) {
        let mut names = std::mem::take(&mut self.synced);
        let kept = rng.between(0, self.changes.len() as u64);
        let in_order = rng.chance(500);
        for (number, change) in (0_u64..).zip(std::mem::take(&mut self.changes)) {
            if if in_order {
                number < kept
            } else {
                rng.chance(500)
            } {
                apply(&mut names, &change);
            }
        }
        self.synced = names.clone();
        self.names = names;
    }
}

/// Does nothing to a name that is not there, since what made it was lost.
fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Add(name, entry) => drop(names.insert(name.clone(), *entry)),
        Change::Remove(name) => drop(names.remove(name)),
        Change::Rename(from, to) => {
            if let Some(entry) = names.remove(from) {
                names.insert(to.clone(), entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rename_that_was_not_synced_is_undone_as_a_whole_or_not_at_all() {
        let (one, two) = (OsStr::new("one"), OsStr::new("two"));
        let mut undone = 0;
        for seed in 0..100 {
            let mut folder = Folder::default();
            folder.add(one, Entry::File(1));
            folder.sync();
            folder.rename(one, two);
            folder.cut(&mut Rng::new(seed));
            assert_eq!(folder.count(1), 1);
            undone += usize::from(folder.get(one).is_some());
        }
        assert!((20..80).contains(&undone), "{undone}");
    }
}

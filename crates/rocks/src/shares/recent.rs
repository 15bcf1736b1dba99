//! Recent: the pages of counts that were last in use, so that a group seldom reads one.
//!
//! A page is here whole or not at all. Beyond the bound those go that were longest not in use; they
//! are in the database, as are all that were never here.

use std::collections::BTreeMap;

use rocksdb::ReadOptions;
use store::{EntityId, StoreError};

use super::page::{Page, Place};
use crate::database::{Database, refused};
use crate::key;

/// A million counts, in six megabytes.
const MAX_PAGES: usize = 16_384;
/// Pages that are read at once.
const PAGES_PER_ROUND: usize = 1_024;

/// Pages by their places.
pub(super) struct Recent {
    pages: BTreeMap<Place, Kept>,
    max_pages: usize,
    /// Rises with each group.
    clock: u64,
}

/// A page in memory.
pub(super) struct Kept {
    pub page: Box<Page>,
    /// Whether there is a row of it.
    pub on_disk: bool,
    /// Whether it says something else than its row.
    pub changed: bool,
    used: u64,
}

impl Recent {
    pub fn new() -> Self {
        Self::with_pages(MAX_PAGES)
    }

    fn with_pages(max_pages: usize) -> Self {
        Self {
            pages: BTreeMap::new(),
            max_pages,
            clock: 0,
        }
    }

    /// Makes sure of all pages at `places`, which are ascending, until the bound is seen to.
    pub fn load(&mut self, places: &[Place], database: &Database) -> Result<(), StoreError> {
        self.clock += 1;
        let mut missing = Vec::new();
        for place in places {
            match self.pages.get_mut(place) {
                Some(kept) => kept.used = self.clock,
                None => missing.push(*place),
            }
        }
        for places in missing.chunks(PAGES_PER_ROUND) {
            self.read(places, database)?;
        }
        Ok(())
    }

    fn read(&mut self, places: &[Place], database: &Database) -> Result<(), StoreError> {
        let key = |place: &Place| key::share(place.home, place.page);
        let keys: Vec<_> = places.iter().map(key).collect();
        let (state, options) = (database.families().state, ReadOptions::default());
        let found = database
            .db
            .batched_multi_get_cf_opt(state, &keys, true, &options);
        for (place, value) in places.iter().zip(found) {
            let page = value.map_err(refused)?.map(|value| Page::decode(&value));
            self.keep(*place, page.transpose()?);
        }
        Ok(())
    }

    fn keep(&mut self, place: Place, page: Option<Page>) {
        let kept = Kept {
            on_disk: page.is_some(),
            page: Box::new(page.unwrap_or_else(Page::empty)),
            changed: false,
            used: self.clock,
        };
        self.pages.insert(place, kept);
    }

    pub fn get_mut(&mut self, place: Place) -> Option<&mut Kept> {
        self.pages.get_mut(&place)
    }

    pub fn remove(&mut self, place: Place) {
        self.pages.remove(&place);
    }

    /// Forgets all bodies of a home.
    pub fn forget(&mut self, home: EntityId) {
        self.pages.retain(|place, _| place.home != home);
    }

    /// An eighth of the bound goes at least, so that looking for the oldest is seldom needed.
    pub fn keep_to_the_bound(&mut self) {
        if self.pages.len() <= self.max_pages {
            return;
        }
        let surplus = self.pages.len() - self.max_pages + self.max_pages / 8;
        let mut used: Vec<_> = self
            .pages
            .iter()
            .map(|(place, kept)| (kept.used, *place))
            .collect();
        used.select_nth_unstable(surplus - 1);
        for (_, place) in &used[..surplus] {
            self.pages.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(home: u64, page: u64) -> Place {
        Place {
            home: EntityId(home),
            page,
        }
    }

    /// What one group uses.
    fn keep(recent: &mut Recent, places: impl IntoIterator<Item = Place>) {
        recent.clock += 1;
        for place in places {
            recent.keep(place, None);
        }
        recent.keep_to_the_bound();
    }

    #[test]
    fn the_pages_longest_not_in_use_go_first() {
        let mut recent = Recent::with_pages(16);
        for page in 0..16 {
            keep(&mut recent, [place(1, page)]);
        }
        assert_eq!(recent.pages.len(), 16);
        keep(&mut recent, [place(1, 0), place(2, 0)]);
        let left: Vec<_> = recent.pages.keys().copied().collect();
        let mut expected = vec![place(1, 0)];
        expected.extend((4..16).map(|page| place(1, page)));
        expected.push(place(2, 0));
        assert_eq!(left, expected);
    }

    #[test]
    fn the_bound_holds_after_each_group_whatever_it_uses() {
        let mut recent = Recent::with_pages(16);
        for group in 1..50_u64 {
            keep(&mut recent, (0..group).map(|page| place(group % 7, page)));
            assert!(recent.pages.len() <= 16, "group {group}");
        }
    }

    #[test]
    fn a_removed_home_is_forgotten_and_no_other() {
        let mut recent = Recent::new();
        keep(&mut recent, [place(1, 5), place(2, 5)]);
        recent.forget(EntityId(1));
        assert_eq!(recent.pages.keys().collect::<Vec<_>>(), [&place(2, 5)]);
    }
}

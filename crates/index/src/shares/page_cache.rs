//! Page cache: the pages of counts that were used last, so that a group seldom reads one.
//!
//! A page is here whole or not at all. Beyond the limit the least recently used pages are evicted;
//! they are in the database, as are all other pages.

use std::collections::BTreeMap;

use journal::key;
use store::{EntityId, StoreError};

use super::page::{Page, PageKey};
use crate::tables::{Family, Tables};

/// Pages that are read at once.
const PAGES_PER_ROUND: usize = 1_024;

/// Pages by their places.
pub(super) struct PageCache {
    pages: BTreeMap<PageKey, CachedPage>,
    max_pages: usize,
    /// Rises with each group.
    clock: u64,
}

/// A page in memory.
pub(super) struct CachedPage {
    pub page: Box<Page>,
    /// Whether there is a row of it.
    pub on_disk: bool,
    /// Whether it differs from its row.
    pub changed: bool,
    used: u64,
}

impl PageCache {
    pub fn new(max_pages: usize) -> Self {
        Self {
            pages: BTreeMap::new(),
            max_pages,
            clock: 0,
        }
    }

    /// Makes sure of all pages at `page_keys`, which are ascending, until the bound is seen to.
    pub fn load(&mut self, page_keys: &[PageKey], tables: &impl Tables) -> Result<(), StoreError> {
        self.clock += 1;
        let mut missing = Vec::new();
        for page_key in page_keys {
            match self.pages.get_mut(page_key) {
                Some(kept) => kept.used = self.clock,
                None => missing.push(*page_key),
            }
        }
        for page_keys in missing.chunks(PAGES_PER_ROUND) {
            self.read(page_keys, tables)?;
        }
        Ok(())
    }

    fn read(&mut self, page_keys: &[PageKey], tables: &impl Tables) -> Result<(), StoreError> {
        let key = |page_key: &PageKey| key::share(page_key.home, page_key.page);
        let keys: Vec<_> = page_keys.iter().map(key).collect();
        let found = tables.get_each(Family::State, &keys);
        for (page_key, value) in page_keys.iter().zip(found) {
            let page = value.and_then(|value| value.map(|value| Page::decode(&value)).transpose());
            let page = match page {
                // Without counts its bodies stay.
                Err(error) if error.is_damage() => {
                    let (home, page) = (page_key.home.0, page_key.page);
                    tracing::error!(%error, home, page, "the bodies whose copies are counted there stay");
                    None
                }
                page => page?,
            };
            self.insert(*page_key, page);
        }
        Ok(())
    }

    fn insert(&mut self, page_key: PageKey, page: Option<Page>) {
        let kept = CachedPage {
            on_disk: page.is_some(),
            page: Box::new(page.unwrap_or_else(Page::empty)),
            changed: false,
            used: self.clock,
        };
        self.pages.insert(page_key, kept);
    }

    pub fn get_mut(&mut self, page_key: PageKey) -> Option<&mut CachedPage> {
        self.pages.get_mut(&page_key)
    }

    pub fn remove(&mut self, page_key: PageKey) {
        self.pages.remove(&page_key);
    }

    /// Forgets all bodies of a home.
    pub fn forget(&mut self, home: EntityId) {
        self.pages.retain(|page_key, _| page_key.home != home);
    }

    /// An eighth of the bound goes at least, so that looking for the oldest is seldom needed.
    pub fn evict_excess(&mut self) {
        if self.pages.len() <= self.max_pages {
            return;
        }
        let surplus = self.pages.len() - self.max_pages + self.max_pages / 8;
        let mut used: Vec<_> = self
            .pages
            .iter()
            .map(|(page_key, kept)| (kept.used, *page_key))
            .collect();
        used.select_nth_unstable(surplus - 1);
        for (_, page_key) in &used[..surplus] {
            self.pages.remove(page_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_key(home: u64, page: u64) -> PageKey {
        PageKey {
            home: EntityId(home),
            page,
        }
    }

    /// What one group uses.
    fn insert(page_cache: &mut PageCache, page_keys: impl IntoIterator<Item = PageKey>) {
        page_cache.clock += 1;
        for page_key in page_keys {
            page_cache.insert(page_key, None);
        }
        page_cache.evict_excess();
    }

    #[test]
    fn the_pages_longest_not_in_use_go_first() {
        let mut page_cache = PageCache::new(16);
        for page in 0..16 {
            insert(&mut page_cache, [page_key(1, page)]);
        }
        assert_eq!(page_cache.pages.len(), 16);
        insert(&mut page_cache, [page_key(1, 0), page_key(2, 0)]);
        let left: Vec<_> = page_cache.pages.keys().copied().collect();
        let mut expected = vec![page_key(1, 0)];
        expected.extend((4..16).map(|page| page_key(1, page)));
        expected.push(page_key(2, 0));
        assert_eq!(left, expected);
    }

    #[test]
    fn the_bound_holds_after_each_group_whatever_it_uses() {
        let mut page_cache = PageCache::new(16);
        for group in 1..50_u64 {
            insert(
                &mut page_cache,
                (0..group).map(|page| page_key(group % 7, page)),
            );
            assert!(page_cache.pages.len() <= 16, "group {group}");
        }
    }

    #[test]
    fn a_removed_home_is_forgotten_and_no_other() {
        let mut page_cache = PageCache::new(16);
        insert(&mut page_cache, [page_key(1, 5), page_key(2, 5)]);
        page_cache.forget(EntityId(1));
        assert_eq!(
            page_cache.pages.keys().collect::<Vec<_>>(),
            [&page_key(2, 5)]
        );
    }
}

//! Shares: how many copies of each shared body are left, and which bodies go with their last one.
//!
//! Counts stand in pages of neighbours, one row each, so the cost is per page and not per release:
//! bodies are shared and released in about the order of their numbers. The changes of a group are
//! summed up per body first; a page that is not cached is read as the group before left it. A body
//! that is shared and released completely within one group leaves no trace. A group that does
//! neither costs nothing here. Invariant: a page in memory equals the database once the group is
//! written.

use journal::key;
use store::{BodyPointer, EntityId, StoreError};

use crate::tables::{Batch, Family, Tables};
use page::PageKey;
use page_cache::PageCache;

pub use page::Page;

mod page;
mod page_cache;

/// The pages last in use, and what one group changes in them.
pub struct Shares {
    page_cache: PageCache,
    changes: Vec<Change>,
    /// Where the changes are, ascending.
    page_keys: Vec<PageKey>,
    scratch: Vec<u8>,
}

/// What one group does to a shared body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Change {
    pointer: BodyPointer,
    /// How many there are before anything is released; 0 while that is unknown.
    copies: u32,
    released: u32,
}

impl Change {
    fn left(&self) -> u32 {
        self.copies.saturating_sub(self.released)
    }
}

impl Shares {
    /// That keeps at most `pages` in memory.
    pub fn new(pages: usize) -> Self {
        Self {
            page_cache: PageCache::new(pages),
            changes: Vec::new(),
            page_keys: Vec::new(),
            scratch: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        self.changes.clear();
        self.page_keys.clear();
    }

    pub fn share(&mut self, pointer: BodyPointer, copies: u32) {
        // None at all breaks the contract, which the memory store reports.
        if copies > 0 {
            self.changes.push(Change {
                pointer,
                copies,
                released: 0,
            });
        }
    }

    pub fn release(&mut self, pointer: BodyPointer) {
        self.changes.push(Change {
            pointer,
            copies: 0,
            released: 1,
        });
    }

    /// Works out what is left of each body. To be called when the group is known and before
    /// anything of it is in the database.
    pub fn settle(&mut self, tables: &impl Tables) -> Result<(), StoreError> {
        if self.changes.is_empty() {
            return Ok(());
        }
        self.sum_up();
        let page_keys = self
            .changes
            .iter()
            .map(|change| PageKey::of(change.pointer));
        self.page_keys.extend(page_keys);
        self.page_keys.dedup();
        self.page_cache.load(&self.page_keys, tables)?;
        self.subtract();
        self.drop_unknown();
        Ok(())
    }

    /// The bodies whose last copy this group releases.
    pub fn gone(&self) -> impl Iterator<Item = BodyPointer> {
        let gone = self.changes.iter().filter(|change| change.left() == 0);
        gone.map(|change| change.pointer)
    }

    /// Adds the pages that have changed to the group's batch.
    pub fn write(&mut self, batch: &mut impl Batch) {
        for page_key in &self.page_keys {
            let Some(kept) = self.page_cache.get_mut(*page_key) else {
                continue;
            };
            let key = key::share(page_key.home, page_key.page);
            let empty = kept.page.is_empty();
            if kept.changed && !empty {
                kept.page.encode(&mut self.scratch);
                batch.put(Family::State, key, &self.scratch);
            } else if empty && kept.on_disk {
                batch.delete(Family::State, key);
            }
            kept.changed = false;
            kept.on_disk = !empty;
            if empty {
                self.page_cache.remove(*page_key);
            }
        }
        self.page_cache.evict_excess();
    }

    /// Forgets the bodies of a removed entity.
    pub fn forget(&mut self, home: EntityId) {
        self.page_cache.forget(home);
    }

    /// One change per body, in the order of their keys.
    fn sum_up(&mut self) {
        self.changes
            .sort_unstable_by_key(|change| (change.pointer, change.released));
        self.changes.dedup_by(|next, first| {
            let same = next.pointer == first.pointer;
            if same {
                first.released = first.released.saturating_add(next.released);
            }
            same
        });
    }

    fn subtract(&mut self) {
        let neighbours =
            |one: &Change, two: &Change| PageKey::of(one.pointer) == PageKey::of(two.pointer);
        for changes in self.changes.chunk_by_mut(neighbours) {
            let Some(kept) = self.page_cache.get_mut(PageKey::of(changes[0].pointer)) else {
                continue;
            };
            for change in changes {
                let before = kept.page.copies(change.pointer);
                if change.copies == 0 {
                    change.copies = before;
                }
                if change.left() != before {
                    kept.page.set(change.pointer, change.left());
                    kept.changed = true;
                }
            }
        }
    }

    /// Rather a body too many than one too few: a body without a count is not removed.
    fn drop_unknown(&mut self) {
        let all = self.changes.len();
        self.changes.retain(|change| change.copies > 0);
        let unknown = all - self.changes.len();
        if unknown > 0 {
            tracing::warn!(unknown, "bodies were released that are not shared");
        }
    }
}

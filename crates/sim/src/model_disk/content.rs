//! Content: the pages of one file, in the cache and on the platter.
//!
//! A page that is not there is all zeros. A power cut keeps any of the pages that were not synced,
//! each as it is in the cache, as it was on the platter, or torn between two sectors.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::rng::Rng;

/// The bytes of a page.
pub(super) const PAGE: usize = 4_096;
/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

type Page = Arc<[u8; PAGE]>;
type Pages = BTreeMap<u64, Page>;

/// One file's bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    len: u64,
    cache: Pages,
    synced_len: u64,
    platter: Pages,
    /// Pages of the cache that are not on the platter.
    unsynced: BTreeSet<u64>,
}

impl Content {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.platter.is_empty()
    }

    pub fn has_unsynced_pages(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Reads into `bytes` up to the end of the file.
    pub fn read(&self, bytes: &mut [u8], offset: u64) -> usize {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = bytes.len().min(left);
        for (number, in_page, in_bytes) in pieces(offset, wanted) {
            match self.cache.get(&number) {
                Some(page) => bytes[in_bytes].copy_from_slice(&page[in_page]),
                None => bytes[in_bytes].fill(0),
            }
        }
        wanted
    }

    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        for (number, in_page, in_bytes) in pieces(offset, bytes.len()) {
            let bytes = &bytes[in_bytes];
            self.unsynced.insert(number);
            if !self.cache.contains_key(&number) && bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            let page = self.cache.entry(number).or_insert_with(zeros);
            Arc::make_mut(page)[in_page].copy_from_slice(bytes);
        }
        self.len = self.len.max(offset + bytes.len() as u64);
    }

    /// Sets the length; what is behind it is gone.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            let behind = len.div_ceil(PAGE as u64);
            let gone = self.cache.split_off(&behind);
            self.unsynced.extend(gone.into_keys());
            let last = len / PAGE as u64;
            if let Some(page) = self.cache.get_mut(&last) {
                let kept = usize::try_from(len % PAGE as u64).unwrap_or(0);
                Arc::make_mut(page)[kept..].fill(0);
                self.unsynced.insert(last);
            }
        }
        self.len = len;
    }

    /// Everything goes to the platter.
    pub fn sync(&mut self) {
        for number in std::mem::take(&mut self.unsynced) {
            copy(&self.cache, &mut self.platter, number);
        }
        self.synced_len = self.len;
    }

    /// A sync that fails: each page reached the platter, or the cache forgets it.
    pub fn fail_sync(&mut self, rng: &mut Rng) {
        for number in std::mem::take(&mut self.unsynced) {
            if rng.chance(300) {
                copy(&self.cache, &mut self.platter, number);
            } else {
                copy(&self.platter, &mut self.cache, number);
            }
        }
        self.synced_len = self.len;
    }

    /// One page goes to the platter.
    pub fn write_back(&mut self, rng: &mut Rng) {
        let at = rng.below(self.unsynced.len());
        let Some(number) = self.unsynced.iter().nth(at).copied() else {
            return;
        };
        self.unsynced.remove(&number);
        copy(&self.cache, &mut self.platter, number);
        let end = ((number + 1) * PAGE as u64).min(self.len);
        self.synced_len = self.synced_len.max(end);
    }

    /// The power is cut.
    pub fn cut(&mut self, rng: &mut Rng) {
        let chance = [0, 500, 900, 1_000][rng.below(4)];
        let mut len = if rng.chance(chance) {
            self.len
        } else {
            self.synced_len
        };
        for number in std::mem::take(&mut self.unsynced) {
            if !rng.chance(chance) {
                continue;
            }
            if rng.chance(700) {
                copy(&self.cache, &mut self.platter, number);
            } else {
                self.tear(number, rng);
            }
            let end = ((number + 1) * PAGE as u64).min(self.len);
            len = len.max(end);
        }
        self.cache = std::mem::take(&mut self.platter);
        // Beyond its end a file has zeros, if it ever gets longer.
        self.len = len.max(self.synced_len);
        self.set_len(len);
        self.unsynced.clear();
        self.platter = self.cache.clone();
        self.synced_len = len;
    }

    /// Some sectors of a page go to the platter.
    fn tear(&mut self, number: u64, rng: &mut Rng) {
        let mut torn = self.platter.get(&number).cloned().unwrap_or_else(zeros);
        let new = self.cache.get(&number).cloned().unwrap_or_else(zeros);
        let sectors = rng.number();
        let page = Arc::make_mut(&mut torn);
        for (sector, at) in (0..PAGE).step_by(SECTOR).enumerate() {
            if sectors >> sector & 1 == 1 {
                page[at..at + SECTOR].copy_from_slice(&new[at..at + SECTOR]);
            }
        }
        self.platter.insert(number, torn);
    }

    /// Flips a bit, and returns in which byte.
    pub fn flip_bit(&mut self, rng: &mut Rng) -> u64 {
        let at = rng.below(self.platter.len());
        let number = self.platter.keys().nth(at).copied().unwrap_or_default();
        let bit = rng.below(PAGE * 8);
        if let Some(page) = self.platter.get_mut(&number) {
            Arc::make_mut(page)[bit / 8] ^= 1 << (bit % 8);
        }
        copy(&self.platter, &mut self.cache, number);
        number * PAGE as u64 + (bit / 8) as u64
    }
}

fn copy(from: &Pages, to: &mut Pages, number: u64) {
    match from.get(&number) {
        Some(page) => drop(to.insert(number, page.clone())),
        None => drop(to.remove(&number)),
    }
}

fn zeros() -> Page {
    Arc::new([0; PAGE])
}

/// The pages that `len` bytes at `offset` touch: which one, where in it, and where in the bytes.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let begin = usize::try_from(at % PAGE as u64).unwrap_or(0);
        let more = (PAGE - begin).min(len - done);
        let piece = (at / PAGE as u64, begin..begin + more, done..done + more);
        done += more;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(bytes: &[u8]) -> Content {
        let mut content = Content::default();
        content.write(bytes, 0);
        content
    }

    fn bytes(content: &Content) -> Vec<u8> {
        let mut bytes = vec![9; 3 * PAGE];
        let read = content.read(&mut bytes, 0);
        bytes.truncate(read);
        bytes
    }

    #[test]
    fn what_was_synced_survives_and_of_the_rest_any_sector_may() {
        let old = vec![1; 2 * PAGE];
        let (mut lost, mut kept, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let mut content = content(&old);
            content.sync();
            content.write(&[2; 100], PAGE as u64 + 500);
            content.cut(&mut Rng::new(seed));
            let found = bytes(&content);
            assert_eq!(found[..PAGE + 500], old[..PAGE + 500]);
            match (found[PAGE + 500], found[PAGE + 599]) {
                (1, 1) => lost += 1,
                (2, 2) => kept += 1,
                _ => torn += 1,
            }
        }
        assert!(lost > 20 && kept > 20 && torn > 5, "{lost} {kept} {torn}");
    }

    #[test]
    fn what_a_failed_sync_lost_is_not_there_after_one_that_succeeds() {
        let mut lost = 0;
        for seed in 0..50 {
            let mut content = content(&[1; 10]);
            content.fail_sync(&mut Rng::new(seed));
            content.sync();
            lost += usize::from(bytes(&content) == [0; 10]);
        }
        assert!(lost > 20, "{lost}");
    }

    #[test]
    fn a_file_that_was_cut_and_grows_has_zeros_there() {
        let mut content = content(&[1; 2 * PAGE]);
        content.set_len(10);
        content.set_len(PAGE as u64 + 1);
        let found = bytes(&content);
        assert_eq!(found[..10], [1; 10]);
        assert_eq!(found[10..], vec![0; PAGE - 9]);
    }
}

//! Filter: which ids may have been accepted, in 2 bytes each.
//!
//! Blocked Bloom filters, one after the other: an id sets 8 bits of one 512-bit block, so a look
//! costs one cache line per segment; about one in a thousand ids is taken for known by a full
//! segment. A segment goes as a whole when everything in it has been swept from the store, so a
//! "never seen" can be relied on.

use std::ops::RangeInclusive;

use crate::api::time::Wall;
use crate::message::id::IdHash;

/// Ids of the first segment; each next one holds twice as many, up to the largest.
const SMALLEST: usize = 1 << 10;
const LARGEST: usize = 1 << 20;
/// The most ids of a filter. Beyond them it is dropped.
const MOST: usize = 1 << 24;
const BITS_PER_ID: usize = 16;
const WORDS_PER_BLOCK: usize = 8;
const BITS_PER_BLOCK: usize = WORDS_PER_BLOCK * 64;
const PROBES: u32 = 8;

type Block = [u64; WORDS_PER_BLOCK];

#[derive(Debug)]
struct Segment {
    blocks: Vec<Block>,
    ids: usize,
    capacity: usize,
    /// When the first and the latest of its ids were accepted.
    oldest: Wall,
    newest: Wall,
}

#[derive(Debug, Default)]
pub(super) struct Filter {
    segments: Vec<Segment>,
}

impl Filter {
    /// Whether the id may have been inserted; if not, it was not.
    pub(super) fn may_contain(&self, id: IdHash) -> bool {
        self.spans(id).next().is_some()
    }

    /// The spans of time in one of which the id was inserted, if it was.
    pub(super) fn spans(&self, id: IdHash) -> impl Iterator<Item = RangeInclusive<Wall>> {
        let mask = mask(id);
        let segments = self.segments.iter();
        let those = segments.filter(move |segment| segment.may_contain(id, &mask));
        those.map(|segment| segment.oldest..=segment.newest)
    }

    pub(super) fn insert(&mut self, id: IdHash, at: Wall) {
        match self.segments.last_mut() {
            Some(last) if last.ids < last.capacity => last.insert(id, at),
            last => {
                let capacity = last.map_or(SMALLEST, |last| (last.capacity * 2).min(LARGEST));
                let mut segment = Segment::new(capacity);
                segment.insert(id, at);
                self.segments.push(segment);
            }
        }
    }

    /// Everything accepted before this moment has left the store.
    pub(super) fn swept(&mut self, before: Wall) {
        self.segments.retain(|segment| segment.newest >= before);
    }

    /// Whether it would take more memory than it may.
    pub(super) fn is_too_large(&self) -> bool {
        let ids: usize = self.segments.iter().map(|segment| segment.capacity).sum();
        ids > MOST
    }

    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }
}

impl Segment {
    fn new(capacity: usize) -> Self {
        let blocks = (capacity * BITS_PER_ID).div_ceil(BITS_PER_BLOCK);
        Self {
            blocks: vec![[0; WORDS_PER_BLOCK]; blocks],
            ids: 0,
            capacity,
            oldest: Wall(u64::MAX),
            newest: Wall(0),
        }
    }

    fn insert(&mut self, id: IdHash, at: Wall) {
        let block = self.block(id);
        let words = self.blocks[block].iter_mut().zip(mask(id));
        words.for_each(|(word, mask)| *word |= mask);
        self.ids += 1;
        self.oldest = self.oldest.min(at);
        self.newest = self.newest.max(at);
    }

    fn may_contain(&self, id: IdHash, mask: &Block) -> bool {
        let mut words = self.blocks[self.block(id)].iter().zip(mask);
        words.all(|(word, mask)| word & mask == *mask)
    }

    /// Which block is the id's.
    fn block(&self, id: IdHash) -> usize {
        let (_, which) = id.halves();
        let blocks = self.blocks.len() as u64;
        usize::try_from(which % blocks).expect("below a length")
    }
}

/// The id's bits in its block of whatever segment.
fn mask(id: IdHash) -> Block {
    let (mut bits, _) = id.halves();
    let mut mask = [0; WORDS_PER_BLOCK];
    for _ in 0..PROBES {
        let word = usize::try_from(bits >> 61).expect("three bits");
        mask[word] |= 1 << (bits >> 55 & 63);
        // Eight probes of nine bits are more than there are: the rest comes round again.
        bits = bits.rotate_left(9).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::incoming::Incoming;

    fn id(n: u64) -> IdHash {
        let message = Incoming {
            message_id: Some(n.to_string().into()),
            ..Incoming::default()
        };
        IdHash::of(&message).unwrap()
    }

    #[test]
    fn what_was_inserted_is_found_and_few_others() {
        let mut filter = Filter::default();
        let ids = 100_000;
        (0..ids).for_each(|n| filter.insert(id(n), Wall(n)));
        assert!((0..ids).all(|n| filter.may_contain(id(n))));
        let mistaken = (ids..2 * ids)
            .filter(|n| filter.may_contain(id(*n)))
            .count();
        assert!(mistaken < 1_500, "{mistaken} of {ids}");
        let bytes: usize = filter.segments.iter().map(|s| s.blocks.len() * 64).sum();
        assert!(bytes <= 4 * 100_000, "{bytes} bytes");
    }

    #[test]
    fn ten_million_ids_take_two_bytes_each_and_few_others_are_taken_for_them() {
        let mut filter = Filter::default();
        // Any numbers that look random will do, and hashing this many takes long.
        let id = |n: u64| {
            let mixed = u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            IdHash((mixed ^ mixed >> 61).to_be_bytes())
        };
        let ids = 10_000_000;
        (0..ids).for_each(|n| filter.insert(id(n), Wall(n)));
        let mistaken = (ids..ids + 100_000)
            .filter(|n| filter.may_contain(id(*n)))
            .count();
        assert!(mistaken < 2_000, "{mistaken} of 100000");
        let bytes: usize = filter.segments.iter().map(|s| s.blocks.len() * 64).sum();
        assert!(bytes <= 24 << 20, "{bytes} bytes");
        assert!(!filter.is_too_large());
    }

    #[test]
    fn a_segment_goes_when_all_in_it_has_been_swept() {
        let mut filter = Filter::default();
        (0..2 * SMALLEST as u64).for_each(|n| filter.insert(id(n), Wall(n)));
        filter.swept(Wall(SMALLEST as u64 - 1));
        assert!(filter.may_contain(id(0)));
        filter.swept(Wall(SMALLEST as u64));
        assert_eq!(filter.segments.len(), 1);
        assert!(filter.may_contain(id(SMALLEST as u64)));
    }
}

//! Page: how many copies are left of neighbouring bodies, in memory and as a value.
//!
//! On disk each count is a number of seven bits a byte, so almost always one byte, up to the last
//! body that is shared at all. Decoding trusts nothing.

use store::{BodyPointer, EntityId, SequenceNumber, StoreError};

use journal::value::damaged;

/// Neighbouring numbers on one page: few enough that a page for a single count is cheap.
const NUMBERS: usize = 64;

/// Which page of whose.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PageKey {
    pub home: EntityId,
    pub page: u64,
}

impl PageKey {
    pub fn of(pointer: BodyPointer) -> Self {
        Self {
            home: pointer.home,
            page: pointer.number.0 / NUMBERS as u64,
        }
    }
}

/// The counts of neighbours; 0 for a body that is not shared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    copies: [u32; NUMBERS],
}

impl Page {
    pub fn empty() -> Self {
        Self {
            copies: [0; NUMBERS],
        }
    }

    pub fn is_empty(&self) -> bool {
        self.copies == [0; NUMBERS]
    }

    pub fn copies(&self, pointer: BodyPointer) -> u32 {
        self.copies[index_of(pointer)]
    }

    pub fn set(&mut self, pointer: BodyPointer, copies: u32) {
        self.copies[index_of(pointer)] = copies;
    }

    /// The shared bodies of page number `page` and their counts. Nothing where no such page can be.
    pub fn counts(&self, page: u64) -> Option<Vec<(SequenceNumber, u32)>> {
        let first = page.checked_mul(NUMBERS as u64)?;
        let numbered = (first..=u64::MAX).map(SequenceNumber).zip(self.copies);
        Some(numbered.filter(|(_, copies)| *copies > 0).collect())
    }

    /// Encodes a page that is not empty into `value`.
    pub fn encode(&self, value: &mut Vec<u8>) {
        value.clear();
        let shared = self.copies.iter().rposition(|copies| *copies > 0);
        for copies in &self.copies[..shared.map_or(0, |last| last + 1)] {
            let mut rest = *copies;
            while rest > 0x7F {
                value.push(low_bits(rest) | 0x80);
                rest >>= 7;
            }
            value.push(low_bits(rest));
        }
    }

    /// Decodes a page.
    pub fn decode(value: &[u8]) -> Result<Self, StoreError> {
        parse(value).ok_or_else(|| damaged("counts of copies", format!("{value:02x?}")))
    }
}

fn parse(mut value: &[u8]) -> Option<Page> {
    let mut page = Page::empty();
    for copies in &mut page.copies {
        if value.is_empty() {
            break;
        }
        *copies = take_count(&mut value)?;
    }
    (value.is_empty() && !page.is_empty()).then_some(page)
}

fn take_count(value: &mut &[u8]) -> Option<u32> {
    let mut count = 0_u64;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = value.split_first()?;
        *value = rest;
        count |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(count).ok();
        }
    }
    None
}

fn low_bits(count: u32) -> u8 {
    u8::try_from(count & 0x7F).expect("seven bits")
}

fn index_of(pointer: BodyPointer) -> usize {
    usize::try_from(pointer.number.0 % NUMBERS as u64).expect("below the size of a page")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(number: u64) -> BodyPointer {
        BodyPointer {
            home: EntityId(1),
            number: SequenceNumber(number),
        }
    }

    fn encoded(page: &Page) -> Vec<u8> {
        let mut value = vec![1, 2, 3];
        page.encode(&mut value);
        value
    }

    proptest! {
        #[test]
        fn every_page_survives_the_disk(
            counts in prop::collection::vec((0..64_u64, 1..=u32::MAX), 1..64),
            page in 0..=u64::MAX / 64,
        ) {
            let mut written = Page::empty();
            for (index, copies) in &counts {
                written.set(at(page * 64 + index), *copies);
            }
            let read = Page::decode(&encoded(&written)).expect("readable");
            for (number, copies) in read.counts(page).expect("such a page can be") {
                prop_assert_eq!(copies, written.copies(at(number.0)));
            }
            prop_assert_eq!(read, written);
        }

        #[test]
        fn foreign_bytes_are_refused_or_a_page_but_never_a_panic(
            value in prop::collection::vec(any::<u8>(), 0..90),
            number: u64,
        ) {
            if let Ok(page) = Page::decode(&value) {
                prop_assert!(!page.is_empty());
                drop(page.counts(number));
            }
        }
    }

    #[test]
    fn a_few_copies_take_a_byte_each_up_to_the_last_body_that_is_shared() {
        let mut page = Page::empty();
        for (number, copies) in [(64, 2), (66, 127), (67, 128)] {
            page.set(at(number), copies);
        }
        assert_eq!(encoded(&page), [2, 0, 127, 0x80, 1]);
    }

    #[test]
    fn the_last_page_ends_with_the_last_number() {
        let mut page = Page::empty();
        page.set(at(u64::MAX), 3);
        let last = PageKey::of(at(u64::MAX)).page;
        let counts = page.counts(last);
        assert_eq!(counts, Some(vec![(SequenceNumber(u64::MAX), 3)]));
        assert_eq!(page.counts(last + 1), None);
    }

    #[test]
    fn too_many_counts_and_too_large_ones_are_refused() {
        assert!(Page::decode(&[1; 64]).is_ok());
        assert!(Page::decode(&[1; 65]).is_err());
        assert!(Page::decode(&[0; 3]).is_err());
        assert!(Page::decode(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]).is_ok());
        assert!(Page::decode(&[0xFF, 0xFF, 0xFF, 0xFF, 0x1F]).is_err());
        assert!(Page::decode(&[0x80]).is_err());
    }
}

//! Segment: the facts about one file of the journal besides its records.

use std::collections::BTreeMap;

use store::{BodyPointer, EntityId, SequenceNumber};

use crate::value::Fields;

/// Whose bodies are in a segment: for each home the least and the greatest number.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BodyRanges {
    spans: BTreeMap<EntityId, (u64, u64)>,
}

impl BodyRanges {
    pub fn add(&mut self, pointer: BodyPointer) {
        let number = pointer.number.0;
        let span = self.spans.entry(pointer.home).or_insert((number, number));
        *span = (span.0.min(number), span.1.max(number));
    }

    /// Adds all that `other` has.
    pub fn extend(&mut self, other: &Self) {
        for (first, last) in other.spans() {
            self.add(first);
            self.add(last);
        }
    }

    /// The first and the last body each home may have here.
    pub fn spans(&self) -> impl Iterator<Item = (BodyPointer, BodyPointer)> {
        let pointer = |home, number| BodyPointer {
            home,
            number: SequenceNumber(number),
        };
        self.spans
            .iter()
            .map(move |(home, (first, last))| (pointer(*home, *first), pointer(*home, *last)))
    }
}

/// A segment that gets no more records, or the file of a staged body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SealedSegment {
    pub id: u64,
    /// Of its last record, or of the one that names it.
    pub position: u64,
    pub bytes: u64,
    pub body_ranges: BodyRanges,
}

impl SealedSegment {
    /// Nothing is known of it yet.
    pub fn empty(id: u64) -> Self {
        Self {
            id,
            position: 0,
            bytes: 0,
            body_ranges: BodyRanges::default(),
        }
    }

    /// As a value of the index; the key tells the id.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(16 + 24 * self.body_ranges.spans.len());
        value.extend_from_slice(&self.position.to_be_bytes());
        value.extend_from_slice(&self.bytes.to_be_bytes());
        for (home, (first, last)) in &self.body_ranges.spans {
            for field in [home.0, *first, *last] {
                value.extend_from_slice(&field.to_be_bytes());
            }
        }
        value
    }

    pub fn decode(id: u64, value: &[u8]) -> Option<Self> {
        let mut fields = Fields(value);
        let (position, bytes) = (fields.u64()?, fields.u64()?);
        let mut body_ranges = BodyRanges::default();
        while !fields.0.is_empty() {
            let home = EntityId(fields.u64()?);
            let span = (fields.u64()?, fields.u64()?);
            body_ranges.spans.insert(home, span);
        }
        Some(Self {
            id,
            position,
            bytes,
            body_ranges,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_segment_comes_back() {
        let mut body_ranges = BodyRanges::default();
        for (home, number) in [(1, 5), (2, 9), (1, 3), (1, 4)] {
            body_ranges.add(BodyPointer {
                home: EntityId(home),
                number: SequenceNumber(number),
            });
        }
        let sealed = SealedSegment {
            id: 7,
            position: 8,
            bytes: 9,
            body_ranges,
        };
        let value = sealed.encode();
        assert_eq!(SealedSegment::decode(7, &value), Some(sealed.clone()));
        assert_eq!(SealedSegment::decode(7, &value[..value.len() - 1]), None);
        let spans: Vec<_> = sealed.body_ranges.spans().collect();
        let numbers: Vec<_> = spans
            .iter()
            .map(|(one, two)| (one.number.0, two.number.0))
            .collect();
        assert_eq!(numbers, [(3, 5), (9, 9)]);
    }
}

//! Copies of an image: an entity gets what another one has, as a snapshot needs it.
//!
//! Rows, delivery counts, patches, deadlines and entries are copied, bodies are not: the rows of
//! both point to the same ones. The entity that gets them must have had none.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{ContractViolation, Image};
use crate::id::{EntityId, Part, SequenceNumber};

impl Image {
    /// Gives `to` rows, delivery counts, patches, expiries and entries as `from` has them.
    pub(super) fn copy_entity(
        &mut self,
        from: EntityId,
        to: EntityId,
    ) -> Result<(), ContractViolation> {
        let is_new =
            self.messages.range(rows(to)).next().is_none() && self.entries_of(to).next().is_none();
        copy(&mut self.messages, rows(from), |key| (to, key.1, key.2));
        copy(&mut self.patches, numbers(from), |key| (to, key.1));
        copy(&mut self.delivery_counts, numbers(from), |key| (to, key.1));
        copy(&mut self.expiries, blocks(from), |key| (to, key.1, key.2));
        let entries: Vec<_> = self
            .entries_of(from)
            .map(|((_, index, key), value)| ((to, *index, key.clone()), value.clone()))
            .collect();
        self.entries.extend(entries);
        if is_new {
            Ok(())
        } else {
            Err(ContractViolation::CopiedOver(to))
        }
    }
}

fn rows(entity: EntityId) -> RangeInclusive<(EntityId, Part, SequenceNumber)> {
    (entity, FIRST, SequenceNumber(0))..=(entity, LAST, SequenceNumber::MAX)
}

fn numbers(entity: EntityId) -> RangeInclusive<(EntityId, SequenceNumber)> {
    (entity, SequenceNumber(0))..=(entity, SequenceNumber::MAX)
}

fn blocks(entity: EntityId) -> RangeInclusive<(EntityId, Part, u64)> {
    (entity, FIRST, 0)..=(entity, LAST, u64::MAX)
}

const FIRST: Part = Part::ALL[0];
const LAST: Part = Part::ALL[Part::ALL.len() - 1];

fn copy<K: Copy + Ord, V: Clone>(
    table: &mut BTreeMap<K, V>,
    range: RangeInclusive<K>,
    place: impl Fn(K) -> K,
) {
    let found = table.range(range);
    let copies: Vec<_> = found
        .map(|(key, value)| (place(*key), value.clone()))
        .collect();
    table.extend(copies);
}

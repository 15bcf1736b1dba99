//! Entities: those that come and go, and what goes with them. (I1, I9)
//!
//! A subscription whose copies share bodies with others goes in pieces: it is gone at once for all
//! clients, and what is left of it, its tombstone, is emptied row by row.

use std::ops::RangeInclusive;

use store::{EntityId, EntityRow, Part, SequenceNumber};

use super::{Books, Kind, Page, Place};
use crate::violation::Violation;

impl Books {
    /// An entity at that path is to be of this kind, once there is one.
    pub fn expect(&mut self, path: &str, kind: Kind) {
        self.expected.insert(path.to_lowercase(), kind);
    }

    /// Whether an entity is there, and not what is left of one.
    #[must_use]
    pub fn is_live(&self, entity: EntityId) -> bool {
        self.live.contains(&entity)
    }

    pub(super) fn define(&mut self, row: &EntityRow, page: &mut Page) {
        if is_router(row) {
            self.routers.insert(row.id);
            return;
        }
        if is_tombstone(row) {
            self.live.remove(&row.id);
            page.changes.tombstones.push(row.id);
            self.deadlines.retain(|(_, (entity, ..))| *entity != row.id);
            return;
        }
        if self.live.insert(row.id) {
            page.changes.created.push(row.clone());
        }
        if let Some(kind) = self.expected.get(&row.path.to_lowercase()) {
            self.kinds.entry(row.id).or_insert(*kind);
        }
    }

    /// An entity goes with all that is in it, and with the bodies that have arrived there.
    pub(super) fn remove_entity(
        &mut self,
        entity: EntityId,
        page: &mut Page,
    ) -> Result<(), Violation> {
        self.live.remove(&entity);
        page.changes.removed.insert(entity);
        let numbers = all_numbers(entity);
        let parts = (entity, Part::ALL[0], SequenceNumber(0))
            ..=(entity, Part::ALL[Part::ALL.len() - 1], SequenceNumber::MAX);
        let rows: Vec<_> = self.rows.range(parts).map(|(key, _)| *key).collect();
        for (entity, part, number) in rows {
            let place = Place {
                entity,
                part,
                number,
            };
            self.remove_row(place, page)?;
        }
        let bodies: Vec<_> = self
            .bodies
            .range(numbers.clone())
            .map(|(key, _)| *key)
            .collect();
        for key in bodies {
            let Some(body) = self.bodies.remove(&key) else {
                continue;
            };
            if body.pointers > 0 {
                let what = format!(
                    "the body of message {} was removed with {entity:?}",
                    body.id
                );
                return Err(Violation::new("I1", what));
            }
            // What comes and goes within the set is still to be looked at.
            page.changes.passed.insert(key, body.bytes);
        }
        self.counts.retain(|(of, _), _| *of != entity);
        self.patches.retain(|(of, _), _| *of != entity);
        self.accepted.retain(|(of, _), _| *of != entity);
        self.skipped.retain(|(of, _)| *of != entity);
        self.expiries.retain(|(of, ..), _| *of != entity);
        self.entries.retain(|(of, ..), _| *of != entity);
        self.heads.remove(&entity);
        self.tallies.remove(&entity);
        Ok(())
    }
}

/// Whether that is what is left of a subscription or queue.
pub(super) fn is_tombstone(row: &EntityRow) -> bool {
    has_mark(row, b"\"grave\"")
}

/// Whether that is a router, which has no messages.
pub(super) fn is_router(row: &EntityRow) -> bool {
    has_mark(row, b"{\"router\"")
}

fn has_mark(row: &EntityRow, mark: &[u8]) -> bool {
    row.definition.windows(mark.len()).any(|part| part == mark)
}

fn all_numbers(entity: EntityId) -> RangeInclusive<(EntityId, SequenceNumber)> {
    (entity, SequenceNumber(0))..=(entity, SequenceNumber::MAX)
}

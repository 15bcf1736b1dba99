//! The removals of a group, which come behind all puts.
//!
//! Neighbours become one range deletion. What was removed is also added up by stretch: a stretch
//! that is settled and long enough is deleted as a whole, so that its tables can be dropped
//! (`settled.rs`).

use journal::key::{self, KeyKind};
use journal::value;
use store::{BodyPointer, EntityId, SequenceNumber, StoreError};

use super::{Merge, Merger};
use crate::range_reclaim::RangeReclaim;
use crate::removal::Run;
use crate::tables::{Batch, Cursor, Family, Tables};

/// What a row takes on disk with its key, about.
const ROW_BYTES: u64 = 72;
/// The same of a body's place.
const LOCATION_BYTES: u64 = 56;

impl<T: Tables> Merge<'_, '_, T> {
    pub fn remove_rows(&mut self) {
        let family = Family::Message;
        let Merger {
            rows, settled_rows, ..
        } = &mut *self.merger;
        for run in rows.runs() {
            let (entity, part) = run.scope();
            let key = |number| key::message(entity, part, SequenceNumber(number));
            let range = |first, last| (key(first), key::message(entity, part, after(last)));
            if run.is_range() {
                let (from, until) = range(run.first(), run.last());
                self.batch.delete_range(family, from, until);
            } else {
                run.on_disk()
                    .for_each(|number| self.batch.delete(family, key(number)));
            }
            for run in run.settled() {
                let bytes = count(&run).saturating_mul(ROW_BYTES);
                if let Some((first, last)) =
                    settled_rows.add(run.scope(), run.first(), run.last(), count(&run), bytes)
                {
                    let reclaim = RangeReclaim::Rows(key(first), key(last));
                    reclaim.begin(&mut self.batch);
                    self.reclaims.push(reclaim);
                }
            }
        }
    }

    pub fn remove_bodies(&mut self) -> Result<(), StoreError> {
        let Merger {
            bodies,
            settled_bodies,
            large_bodies,
            ..
        } = &mut *self.merger;
        for run in bodies.runs() {
            let home = run.scope();
            let pointer = |number| BodyPointer { home, number };
            let key = |number| key::body(pointer(SequenceNumber(number)), 0);
            let range = |first, last| (key(first), key::body(pointer(after(last)), 0));
            if *large_bodies {
                remove_large(self.tables, &run, &mut self.batch)?;
            }
            if run.is_range() {
                let (from, until) = range(run.first(), run.last());
                self.batch.delete_range(Family::Body, from, until);
            } else {
                let family = Family::Body;
                run.on_disk()
                    .for_each(|number| self.batch.delete(family, key(number)));
            }
            let fresh = run.on_disk().count() as u64;
            let bytes = fresh.saturating_mul(LOCATION_BYTES);
            if let Some((first, last)) =
                settled_bodies.add(home, run.first(), run.last(), fresh, bytes)
            {
                let end = key::body(pointer(SequenceNumber(last)), u32::MAX);
                let reclaim = RangeReclaim::Bodies(key(first), end);
                reclaim.begin(&mut self.batch);
                self.reclaims.push(reclaim);
            }
        }
        Ok(())
    }

    /// What an entity has in the families that keep their order. Its rows, bodies and entries go at
    /// the end.
    pub fn remove_entity(&mut self, entity: EntityId) {
        let state = Family::State;
        self.heads.remove(&entity);
        self.batch
            .delete(state, key::of_entity(KeyKind::Entity, entity));
        self.batch
            .delete(state, key::of_entity(KeyKind::Head, entity));
        let (from, until) = key::expiries_of(entity);
        self.batch.delete_range(state, from, until);
        for kind in [KeyKind::DeliveryCount, KeyKind::Patch] {
            let (from, until) = key::of_numbers(kind, entity);
            self.batch.delete_range(state, from, until);
        }
        self.removed_entities.push(entity);
    }

    pub fn remove_entities(&mut self) {
        let first = SequenceNumber(0);
        for entity in std::mem::take(&mut self.removed_entities) {
            let next = key::after(entity);
            let (from, until) = key::messages_of(entity);
            self.batch.delete_range(Family::Message, from, until);
            let body = |home| {
                key::body(
                    BodyPointer {
                        home,
                        number: first,
                    },
                    0,
                )
            };
            self.batch
                .delete_range(Family::Body, body(entity), body(next));
            let (from, until) = key::entries_of(entity);
            self.batch.delete_range(Family::State, from, until);
            for kind in [KeyKind::LargeBody, KeyKind::Share] {
                let (from, until) = key::of_numbers(kind, entity);
                self.batch.delete_range(Family::State, from, until);
            }
            self.merger.shares.forget(entity);
            self.merger.settled_rows.forget(|scope| scope.0 == entity);
            self.merger.settled_bodies.forget(|scope| scope == entity);
        }
    }
}

/// Removes the chunks and the index of those bodies of a run that have several chunks.
fn remove_large(
    tables: &impl Tables,
    run: &Run<'_, EntityId>,
    batch: &mut impl Batch,
) -> Result<(), StoreError> {
    let home = run.scope();
    let key = |number| key::of_number(KeyKind::LargeBody, home, number);
    let (from, until) = (key(SequenceNumber(run.first())), key(after(run.last())));
    let mut scan = tables.scan(Family::State, from, until);
    loop {
        let found = match scan.next() {
            // Chunks of which nothing is known stay until their home goes.
            Err(error) if error.is_damage() => {
                tracing::error!(%error, entity = home.0, "chunks of removed bodies stay");
                return Ok(());
            }
            found => found?,
        };
        let Some((found, _)) = found else {
            return Ok(());
        };
        batch.delete(Family::State, found);
        let (_, number) = key::parse_of_number(KeyKind::LargeBody, found)
            .ok_or_else(|| value::damaged("the index of large bodies", format!("{found:02x?}")))?;
        let from = key::body(BodyPointer { home, number }, 1);
        let until = key::body(
            BodyPointer {
                home,
                number: key::after_number(number),
            },
            0,
        );
        batch.delete_range(Family::Body, from, until);
    }
}

fn after(number: u64) -> SequenceNumber {
    key::after_number(SequenceNumber(number))
}

fn count<S: Copy>(run: &Run<'_, S>) -> u64 {
    (run.last() - run.first()).saturating_add(1)
}

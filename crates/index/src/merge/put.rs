//! The puts of a group, which come before its removals.
//!
//! Rows, bodies, heads and entries are collected first; other writes go into the batch at once. A
//! row or body that the same group removes later is left out.

use journal::key::{self, KeyKind, single};
use journal::value;
use store::{EntityRow, Part, Write};

use super::Merge;
use crate::removal::Place;
use crate::tables::{Batch, Family, Tables};

impl<'a, T: Tables> Merge<'a, '_, T> {
    pub fn put(&mut self, at: Place, write: &'a Write) {
        let state = Family::State;
        match write {
            Write::PutEntity(row) => self.put_entity(row),
            Write::RemoveEntity(entity) => self.remove_entity(*entity),
            Write::PutHead { entity, head } => drop(self.heads.insert(*entity, head)),
            Write::PutMessage {
                entity,
                part,
                number,
                row,
            } => {
                let rows = &mut self.merger.rows;
                if let Some(other) = waits_in_turn_with(*part) {
                    rows.note_return((*entity, other), number.0, at);
                }
                if !rows.cancels((*entity, *part), number.0, at) {
                    self.rows.push(((*entity, *part, *number), row));
                }
            }
            Write::PutBody { pointer, body } => {
                if !self.merger.bodies.cancels(pointer.home, pointer.number.0, at) {
                    let location = body.as_ref().try_into();
                    let location =
                        location.expect("what the journal hands on for a body is its place");
                    self.bodies.push((*pointer, location));
                }
            }
            Write::PutDeliveryCount {
                entity,
                number,
                count,
            } => {
                let key = key::of_number(KeyKind::DeliveryCount, *entity, *number);
                self.batch.put(state, key, count.to_be_bytes());
            }
            Write::RemoveDeliveryCount { entity, number } => {
                self.batch.delete(
                    state,
                    key::of_number(KeyKind::DeliveryCount, *entity, *number),
                );
            }
            Write::PutPatch {
                entity,
                number,
                patch,
            } => {
                self.batch.put(
                    state,
                    key::of_number(KeyKind::Patch, *entity, *number),
                    patch,
                );
            }
            Write::RemovePatch { entity, number } => {
                self.batch
                    .delete(state, key::of_number(KeyKind::Patch, *entity, *number));
            }
            Write::PutExpiry {
                entity,
                part,
                block,
                due_ms,
            } => {
                let key = key::expiry(*entity, *part, *block);
                self.batch.put(state, key, due_ms.to_be_bytes());
            }
            Write::RemoveExpiry {
                entity,
                part,
                block,
            } => {
                self.batch
                    .delete(state, key::expiry(*entity, *part, *block));
            }
            Write::PutEntry {
                entity,
                index,
                key,
                value,
            } => self.entries.add(*entity, *index, key, Some(value)),
            Write::RemoveEntry { entity, index, key } => {
                self.entries.add(*entity, *index, key, None);
            }
            Write::RemoveEntries {
                entity,
                index,
                keys,
            } => self.entries.remove(*entity, *index, keys),
            // Done next, when all puts are known.
            Write::Copy { .. }
            // Known from the survey, done at the end.
            | Write::RemoveMessage { .. }
            | Write::RemoveBody { .. }
            | Write::ShareBody { .. }
            | Write::ReleaseBody { .. } => {}
        }
    }

    fn put_entity(&mut self, row: &EntityRow) {
        let state = Family::State;
        let key = key::of_entity(KeyKind::Entity, row.id);
        self.batch.put(state, key, value::encode_entity(row));
        if self.merger.last_entity < Some(row.id) {
            self.merger.last_entity = Some(row.id);
            self.batch
                .put(state, single::LAST_ENTITY, row.id.0.to_be_bytes());
        }
    }

    /// Puts the places of the bodies that are left.
    pub fn put_bodies(&mut self) {
        self.bodies.sort_by_key(|(pointer, _)| *pointer);
        for (pointer, location) in self.bodies.drain(..) {
            let key = key::body(pointer, 0);
            self.batch.put(Family::Body, key, location);
        }
    }

    pub fn put_heads(&mut self) {
        for (entity, head) in std::mem::take(&mut self.heads) {
            value::encode_head(head, &mut self.merger.scratch);
            let key = key::of_entity(KeyKind::Head, entity);
            self.batch.put(Family::State, key, &self.merger.scratch);
        }
    }
}

/// The part from which a message of this one comes back under its own number: one that waits for
/// its next delivery is in the scheduled part meanwhile.
fn waits_in_turn_with(part: Part) -> Option<Part> {
    match part {
        Part::Active => Some(Part::Scheduled),
        Part::Scheduled => Some(Part::Active),
        _ => None,
    }
}

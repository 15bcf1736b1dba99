//! What a group puts.

use bytes::Bytes;
use store::{BodyPointer, EntityRow, StoreError, Write};

use super::Merge;
use crate::database::{Database, refused};
use crate::key::{self, Kind, single};
use crate::value;

impl<'a> Merge<'a> {
    pub fn put(&mut self, write: &'a Write) {
        let state = self.families.state;
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
                if !self.merger.rows.cancels((*entity, *part), number.0) {
                    self.rows.push(((*entity, *part, *number), row));
                }
            }
            Write::PutBody { pointer, body } => {
                if !self.merger.bodies.cancels(pointer.home, pointer.number.0) {
                    self.bodies.push((*pointer, body));
                }
            }
            Write::PutDeliveryCount {
                entity,
                number,
                count,
            } => {
                let key = key::of_number(Kind::DeliveryCount, *entity, *number);
                self.batch.put_cf(state, key, count.to_be_bytes());
            }
            Write::RemoveDeliveryCount { entity, number } => {
                self.batch
                    .delete_cf(state, key::of_number(Kind::DeliveryCount, *entity, *number));
            }
            Write::PutPatch {
                entity,
                number,
                patch,
            } => {
                self.batch
                    .put_cf(state, key::of_number(Kind::Patch, *entity, *number), patch);
            }
            Write::RemovePatch { entity, number } => {
                self.batch
                    .delete_cf(state, key::of_number(Kind::Patch, *entity, *number));
            }
            Write::PutExpiry {
                entity,
                part,
                block,
                due_ms,
            } => {
                let key = key::expiry(*entity, *part, *block);
                self.batch.put_cf(state, key, due_ms.to_be_bytes());
            }
            Write::RemoveExpiry {
                entity,
                part,
                block,
            } => {
                self.batch
                    .delete_cf(state, key::expiry(*entity, *part, *block));
            }
            Write::PutEntry {
                entity,
                index,
                key,
                value,
            } => {
                self.batch
                    .put_cf(state, key::entry(*entity, *index, key), value);
            }
            Write::RemoveEntry { entity, index, key } => {
                self.batch
                    .delete_cf(state, key::entry(*entity, *index, key));
            }
            // Known from the survey, done at the end.
            Write::RemoveMessage { .. }
            | Write::RemoveBody { .. }
            | Write::ShareBody { .. }
            | Write::ReleaseBody { .. } => {}
        }
    }

    fn put_entity(&mut self, row: &EntityRow) {
        let state = self.families.state;
        let key = key::of_entity(Kind::Entity, row.id);
        self.batch.put_cf(state, key, value::encode_entity(row));
        if self.merger.last_entity < Some(row.id) {
            self.merger.last_entity = Some(row.id);
            self.batch
                .put_cf(state, single::LAST_ENTITY, row.id.0.to_be_bytes());
        }
    }

    pub fn put_rows(&mut self) {
        self.rows.sort_by_key(|(key, _)| *key);
        for ((entity, part, number), row) in self.rows.drain(..) {
            let value = value::encode_row(entity, number, row);
            let key = key::message(entity, part, number);
            self.batch.put_cf(self.families.message, key, value);
        }
    }

    pub fn put_bodies(&mut self) {
        self.bodies.sort_by_key(|(pointer, _)| *pointer);
        for (pointer, place) in self.bodies.drain(..) {
            let key = key::body(pointer, 0);
            self.batch.put_cf(self.families.body, key, place);
        }
    }

    /// A body that was removed in between, or is here, stays removed: its move is of no use.
    pub fn move_body(
        &mut self,
        pointer: BodyPointer,
        place: &'a Bytes,
        database: &Database,
    ) -> Result<(), StoreError> {
        let is_removed = self.merger.bodies.holds(pointer.home, pointer.number.0);
        let key = key::body(pointer, 0);
        let family = self.families.body;
        if !is_removed
            && database
                .db
                .get_pinned_cf(family, key)
                .map_err(refused)?
                .is_some()
        {
            self.bodies.push((pointer, place));
        }
        Ok(())
    }

    pub fn put_heads(&mut self) {
        for (entity, head) in std::mem::take(&mut self.heads) {
            value::encode_head(head, &mut self.merger.scratch);
            let key = key::of_entity(Kind::Head, entity);
            self.batch
                .put_cf(self.families.state, key, &self.merger.scratch);
        }
    }
}

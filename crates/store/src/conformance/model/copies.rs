//! Copies of entities in the model: what is kept of an entity, and entities that are made of it.

use std::collections::BTreeSet;

use super::{Entity, Model, entity_row};
use crate::id::EntityId;
use crate::image::MessageKey;
use crate::write::{Write, WriteSet};

impl Model {
    /// The copy that `choice` falls on.
    pub fn pick_copy(&self, choice: u64) -> Option<u64> {
        let copies = self.entities.iter().filter(|(_, entity)| entity.is_copy);
        let copies: Vec<_> = copies.map(|(id, _)| *id).collect();
        let nth = usize::try_from(choice).ok()?.checked_rem(copies.len())?;
        Some(copies[nth])
    }

    /// Copies an entity, to keep what it has: the bodies belong to the copy then.
    pub fn keep_copy(&mut self, entity: u64, set: &mut WriteSet) {
        let copy = Entity {
            is_copy: true,
            ..self.entity(entity).clone()
        };
        let live = self.entity(entity).live.values_mut();
        live.for_each(|message| message.borrows = true);
        self.add_copy(entity, copy, set);
    }

    /// Makes a copy of what was kept, which has no body of its own.
    pub fn copy_back(&mut self, kept: u64, set: &mut WriteSet) {
        let mut copy = Entity {
            is_copy: false,
            ..self.entity(kept).clone()
        };
        let live = copy.live.values_mut();
        live.for_each(|message| message.borrows = true);
        self.add_copy(kept, copy, set);
    }

    fn add_copy(&mut self, from: u64, copy: Entity, set: &mut WriteSet) {
        self.last_entity += 1;
        let to = self.last_entity;
        let has_head = copy.given > 0;
        self.entities.insert(to, copy);
        set.push(Write::PutEntity(entity_row(EntityId(to))));
        set.push(Write::Copy {
            from: EntityId(from),
            to: EntityId(to),
        });
        if has_head {
            self.write_head(to, set);
        }
    }

    /// Removes a copy unless a message elsewhere borrows one of its bodies.
    pub fn remove_copy(&mut self, kept: u64, set: &mut WriteSet) {
        let own = self.entity(kept).live.values();
        let own = own.filter(|message| !message.borrows);
        let own: BTreeSet<_> = own.map(|message| message.row.body).collect();
        let mut others = self.entities.values().flat_map(|other| other.live.values());
        if others.any(|other| other.borrows && own.contains(&other.row.body)) {
            return;
        }
        self.remove_entity(kept, set);
    }

    /// Whether the body of a row belongs to another one.
    pub fn borrows(&self, (entity, _, number): &MessageKey) -> bool {
        self.entities[&entity.0].live[&number.0].borrows
    }
}

//! Model: the expected content of a store, kept as simply as possible.
//!
//! Entities are lists of messages; nothing is shared with the image that the memory store uses.
//! Each operation changes the model and adds to a write set the writes of a broker for it.

mod copies;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{body_of, entity_row};
use crate::entry::{EntryKey, Index};
use crate::id::{EntityId, Part, SequenceNumber};
use crate::image::Image;
use crate::record::{BodyPointer, Head, MessageRow};
use crate::write::{Write, WriteSet};

/// A live message.
#[derive(Clone, Debug)]
struct Message {
    part: Part,
    row: MessageRow,
    /// Whether it was sent as one of several copies.
    shares: bool,
    /// Whether the body belongs to a message of a copy of its entity.
    borrows: bool,
    count: u32,
    patch: Option<Bytes>,
}

#[derive(Clone, Debug, Default)]
struct Entity {
    /// Numbers given out so far.
    given: u64,
    live: BTreeMap<u64, Message>,
    expiries: BTreeMap<(Part, u64), u64>,
    entries: BTreeMap<(Index, EntryKey), Bytes>,
    /// Whether it is a copy, of which nothing is changed.
    is_copy: bool,
}

/// All entities, live messages and their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    entities: BTreeMap<u64, Entity>,
    last_entity: u64,
}

impl Model {
    pub fn create_entity(&mut self, set: &mut WriteSet) {
        self.last_entity += 1;
        self.entities.insert(self.last_entity, Entity::default());
        set.push(Write::PutEntity(entity_row(EntityId(self.last_entity))));
    }

    /// The entity that `choice` falls on.
    pub fn pick_entity(&self, choice: u64) -> Option<u64> {
        let entities: Vec<_> = self.entities().into_iter().collect();
        let nth = usize::try_from(choice).ok()?.checked_rem(entities.len())?;
        Some(entities[nth])
    }

    /// The live message that `choice` falls on.
    pub fn pick_message(&self, entity: u64, choice: u64) -> Option<u64> {
        let live = &self.entities[&entity].live;
        let nth = usize::try_from(choice).ok()?.checked_rem(live.len())?;
        live.keys().nth(nth).copied()
    }

    /// The first `count` live numbers from the one that `choice` falls on.
    pub fn pick_run(&self, entity: u64, choice: u64, count: usize) -> Vec<u64> {
        let Some(first) = self.pick_message(entity, choice) else {
            return Vec::new();
        };
        self.entities[&entity]
            .live
            .range(first..)
            .map(|(number, _)| *number)
            .take(count)
            .collect()
    }

    pub fn part_of(&self, entity: u64, number: u64) -> Part {
        self.entities[&entity].live[&number].part
    }

    pub fn send(&mut self, entity: u64, part: Part, len: usize, set: &mut WriteSet) {
        let message = self.arrive(entity, part, len, set);
        self.insert(entity, message.row.body.number, message, set);
        self.write_head(entity, set);
    }

    /// One body, and a copy of its message in each of `to`, where an entity may stand repeatedly.
    pub fn publish(&mut self, home: u64, to: &[u64], len: usize, set: &mut WriteSet) {
        let message = self.arrive(home, Part::Active, len, set);
        set.push(Write::ShareBody {
            pointer: message.row.body,
            copies: u32::try_from(to.len()).expect("a test has few copies"),
        });
        self.write_head(home, set);
        for &entity in to {
            let number = self.next_number(entity);
            let copy = Message {
                shares: true,
                ..message.clone()
            };
            self.insert(entity, number, copy, set);
            self.write_head(entity, set);
        }
    }

    /// A body under the next number, and a message of it that is nowhere yet.
    fn arrive(&mut self, entity: u64, part: Part, len: usize, set: &mut WriteSet) -> Message {
        let number = self.next_number(entity);
        let pointer = BodyPointer {
            home: EntityId(entity),
            number,
        };
        let due = number.0.is_multiple_of(3).then_some(1_000 + number.0);
        let row = MessageRow {
            enqueued_ms: 1_000,
            ttl_ms: due.map_or(u64::MAX, |due| due - 1_000),
            expires_ms: due.unwrap_or(u64::MAX),
            size: u32::try_from(len).expect("test bodies are small"),
            flags: 0,
            session_hash: number.0 % 2,
            enqueued_number: number.0 % 5,
            body: pointer,
        };
        set.push(Write::PutBody {
            pointer,
            body: body_of(pointer, len),
        });
        Message {
            part,
            row,
            shares: false,
            borrows: false,
            count: 0,
            patch: None,
        }
    }

    /// Moves a message to another part under its own number.
    pub fn change_part(&mut self, entity: u64, number: u64, part: Part, set: &mut WriteSet) {
        let message = self.message(entity, number);
        let row = message.row;
        let from = std::mem::replace(&mut message.part, part);
        let (entity_id, number) = (EntityId(entity), SequenceNumber(number));
        set.push(Write::RemoveMessage {
            entity: entity_id,
            part: from,
            number,
        });
        set.push(Write::PutMessage {
            entity: entity_id,
            part,
            number,
            row,
        });
        self.write_head(entity, set);
    }

    /// Gives a message a new number, as activation and forwarding do; the body stays where it is.
    pub fn renumber(&mut self, entity: u64, number: u64, to: u64, set: &mut WriteSet) {
        let message = self.take(entity, number, set);
        let number = self.next_number(to);
        let message = Message {
            part: Part::Active,
            count: 0,
            patch: None,
            ..message
        };
        self.insert(to, number, message, set);
        self.write_head(entity, set);
        self.write_head(to, set);
    }

    /// A failed delivery, with or without changed properties.
    pub fn abandon(&mut self, entity: u64, number: u64, patch: Option<Bytes>, set: &mut WriteSet) {
        let message = self.message(entity, number);
        message.count += 1;
        let count = message.count;
        let (entity, number) = (EntityId(entity), SequenceNumber(number));
        set.push(Write::PutDeliveryCount {
            entity,
            number,
            count,
        });
        if let Some(patch) = patch {
            message.patch = Some(patch.clone());
            set.push(Write::PutPatch {
                entity,
                number,
                patch,
            });
        }
    }

    /// The end of a message.
    pub fn complete(&mut self, entity: u64, number: u64, set: &mut WriteSet) {
        let message = self.take(entity, number, set);
        message.drop_body(set);
        self.write_head(entity, set);
    }

    pub fn set_expiry(&mut self, entity: u64, block: u64, due: Option<u64>, set: &mut WriteSet) {
        let part = Part::Active;
        let expiries = &mut self.entity(entity).expiries;
        let entity = EntityId(entity);
        if let Some(due_ms) = due {
            expiries.insert((part, block), due_ms);
            set.push(Write::PutExpiry {
                entity,
                part,
                block,
                due_ms,
            });
        } else if expiries.remove(&(part, block)).is_some() {
            set.push(Write::RemoveExpiry {
                entity,
                part,
                block,
            });
        }
    }

    /// An entry of one of a few names, so that some are put again.
    pub fn put_entry(&mut self, entity: u64, choice: u64, set: &mut WriteSet) {
        let (index, key) = entry_place(choice);
        let value = Bytes::from(choice.to_string());
        let entries = &mut self.entity(entity).entries;
        entries.insert((index, key.clone()), value.clone());
        set.push(Write::PutEntry {
            entity: EntityId(entity),
            index,
            key,
            value,
        });
    }

    /// Removes an entry, which may not be there.
    pub fn remove_entry(&mut self, entity: u64, choice: u64, set: &mut WriteSet) {
        let (index, key) = entry_place(choice);
        self.entity(entity).entries.remove(&(index, key.clone()));
        let entity = EntityId(entity);
        set.push(Write::RemoveEntry { entity, index, key });
    }

    /// Removes those of an index between two places, of which the second may come first.
    pub fn remove_entries(&mut self, entity: u64, choice: u64, set: &mut WriteSet) {
        let (index, from) = entry_place(choice);
        let (_, until) = entry_place(choice / 63);
        let entries = &mut self.entity(entity).entries;
        entries.retain(|(of, key), _| *of != index || *key < from || *key >= until);
        set.push(Write::RemoveEntries {
            entity: EntityId(entity),
            index,
            keys: Box::new(from..until),
        });
    }

    /// Removes an entity unless another entity still needs one of its bodies.
    pub fn remove_entity(&mut self, entity: u64, set: &mut WriteSet) {
        let others = self.entities.iter().filter(|(id, _)| **id != entity);
        let mut pointers = others.flat_map(|(_, other)| other.live.values());
        if pointers.any(|message| message.row.body.home.0 == entity) {
            return;
        }
        let gone = self
            .entities
            .remove(&entity)
            .expect("only known entities are removed");
        set.push(Write::RemoveEntity(EntityId(entity)));
        for message in gone
            .live
            .values()
            .filter(|message| message.row.body.home.0 != entity)
        {
            message.drop_body(set);
        }
    }

    /// Everything a full scan should find.
    pub fn image(&self) -> Image {
        let last_entity = (self.last_entity > 0).then_some(EntityId(self.last_entity));
        let mut image = Image {
            last_entity,
            ..Image::default()
        };
        for (&id, entity) in &self.entities {
            let entity_id = EntityId(id);
            image.entities.insert(entity_id, entity_row(entity_id));
            if entity.given > 0 {
                image.heads.insert(entity_id, entity.head());
            }
            for (&(part, block), &due) in &entity.expiries {
                image.expiries.insert((entity_id, part, block), due);
            }
            for ((index, key), value) in &entity.entries {
                let place = (entity_id, *index, key.clone());
                image.entries.insert(place, value.clone());
            }
            for (&number, message) in &entity.live {
                message.add_to(&mut image, entity_id, SequenceNumber(number));
            }
        }
        image
    }

    /// The entities that have not been removed, but for copies.
    pub fn entities(&self) -> BTreeSet<u64> {
        let entities = self.entities.iter().filter(|(_, entity)| !entity.is_copy);
        entities.map(|(id, _)| *id).collect()
    }

    fn entity(&mut self, entity: u64) -> &mut Entity {
        self.entities
            .get_mut(&entity)
            .expect("only known entities are used")
    }

    fn message(&mut self, entity: u64, number: u64) -> &mut Message {
        self.entity(entity)
            .live
            .get_mut(&number)
            .expect("only live messages are picked")
    }

    fn next_number(&mut self, entity: u64) -> SequenceNumber {
        let entity = self.entity(entity);
        entity.given += 1;
        SequenceNumber(entity.given)
    }

    fn insert(
        &mut self,
        entity: u64,
        number: SequenceNumber,
        message: Message,
        set: &mut WriteSet,
    ) {
        let (part, row) = (message.part, message.row);
        set.push(Write::PutMessage {
            entity: EntityId(entity),
            part,
            number,
            row,
        });
        self.entity(entity).live.insert(number.0, message);
    }

    /// Removes a message's row and what hangs on its number, but not its body.
    fn take(&mut self, entity: u64, number: u64, set: &mut WriteSet) -> Message {
        let message = self
            .entity(entity)
            .live
            .remove(&number)
            .expect("only live messages are picked");
        let (entity, number, part) = (EntityId(entity), SequenceNumber(number), message.part);
        set.push(Write::RemoveMessage {
            entity,
            part,
            number,
        });
        if message.count > 0 {
            set.push(Write::RemoveDeliveryCount { entity, number });
        }
        if message.patch.is_some() {
            set.push(Write::RemovePatch { entity, number });
        }
        message
    }

    fn write_head(&mut self, entity: u64, set: &mut WriteSet) {
        let head = self.entity(entity).head();
        set.push(Write::PutHead {
            entity: EntityId(entity),
            head,
        });
    }
}

impl Entity {
    fn head(&self) -> Head {
        let mut head = Head {
            next_number: SequenceNumber(self.given + 1),
            schedule_from: (self.given % 3, SequenceNumber(self.given % 2)),
            ..Head::empty()
        };
        for part in Part::ALL {
            let live = || self.live.iter().filter(|(_, message)| message.part == part);
            let part = head.part_mut(part);
            part.count = live().count() as u64;
            part.bytes = live().map(|(_, message)| u64::from(message.row.size)).sum();
            part.resume = live()
                .map(|(number, _)| *number)
                .next()
                .unwrap_or(self.given + 1);
            if part.count > 1 && part.resume.is_multiple_of(2) {
                // Now and then the first one counts as a straggler, to be held for long.
                part.stragglers = vec![SequenceNumber(part.resume)];
                part.resume = live()
                    .map(|(number, _)| *number)
                    .nth(1)
                    .unwrap_or(part.resume);
            }
        }
        head
    }
}

impl Message {
    /// Its row is gone.
    fn drop_body(&self, set: &mut WriteSet) {
        if self.borrows {
            return;
        }
        let pointer = self.row.body;
        set.push(if self.shares {
            Write::ReleaseBody { pointer }
        } else {
            Write::RemoveBody { pointer }
        });
    }

    fn add_to(&self, image: &mut Image, entity: EntityId, number: SequenceNumber) {
        let pointer = self.row.body;
        let len = usize::try_from(self.row.size).expect("sizes fit");
        image.messages.insert((entity, self.part, number), self.row);
        image
            .bodies
            .insert((pointer.home, pointer.number), body_of(pointer, len));
        if self.shares && !self.borrows {
            let copies = image.shares.entry((pointer.home, pointer.number));
            *copies.or_default() += 1;
        }
        if self.count > 0 {
            image.delivery_counts.insert((entity, number), self.count);
        }
        if let Some(patch) = &self.patch {
            image.patches.insert((entity, number), patch.clone());
        }
    }
}

fn entry_place(choice: u64) -> (Index, EntryKey) {
    let index = Index::ALL[usize::try_from(choice % 7).expect("below seven")];
    let group = vec![b'g'; usize::try_from(choice / 7 % 3).expect("below three")];
    (index, EntryKey::new(group, SequenceNumber(choice / 21 % 3)))
}

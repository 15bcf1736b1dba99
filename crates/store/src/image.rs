//! Image: the whole content of a store, as ordered tables in memory.
//!
//! The memory store keeps two of them, the submitted and the durable one, and an audit of any store
//! produces one. Applying a write never fails; a write that breaks the contract (a row put twice, a
//! missing body removed) is applied and reported, so that a simulation finds its cause.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use bytes::Bytes;

use crate::entry::{EntryKey, Index};
use crate::error::StoreError;
use crate::id::{EntityId, Part, SequenceNumber};
use crate::query::{BodyLocation, Found, Query, StoredMessage};
use crate::record::{BodyPointer, EntityRow, ExpiryRow, Head, MessageRow, Recovery};
use crate::write::Write;

mod copies;
mod entries;
mod shares;

/// The key of a message's row.
pub type MessageKey = (EntityId, Part, SequenceNumber);
/// The key of a delivery count or a patch.
pub type NumberKey = (EntityId, SequenceNumber);
/// The key of the expiry of a block of numbers.
pub type ExpiryKey = (EntityId, Part, u64);
/// The key of an entry of any entity.
pub type FullEntryKey = (EntityId, Index, EntryKey);

/// Everything a store holds. The tables are open: a test or an audit may look at all of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Image {
    /// Definitions.
    pub entities: BTreeMap<EntityId, EntityRow>,
    /// The greatest entity id ever given out.
    pub last_entity: Option<EntityId>,
    /// Counters and pointers.
    pub heads: BTreeMap<EntityId, Head>,
    /// Message rows of all parts.
    pub messages: BTreeMap<MessageKey, MessageRow>,
    /// Bodies, by the home and number they arrived at.
    pub bodies: BTreeMap<NumberKey, Bytes>,
    /// How many copies are left of each shared body.
    pub shares: BTreeMap<NumberKey, u32>,
    /// Delivery counts of messages delivered more than once.
    pub delivery_counts: BTreeMap<NumberKey, u32>,
    /// Properties changed since arrival.
    pub patches: BTreeMap<NumberKey, Bytes>,
    /// Least deadline of each block.
    pub expiries: BTreeMap<ExpiryKey, u64>,
    /// Entries of all indexes.
    pub entries: BTreeMap<FullEntryKey, Bytes>,
}

/// A write that breaks the storage contract.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say it")]
pub enum ContractViolation {
    #[error("row {0:?} is put over another row")]
    RowPutTwice(MessageKey),
    #[error("row {0:?} is removed, but is not there")]
    RowNotThere(MessageKey),
    #[error("body {0:?} is put twice")]
    BodyPutTwice(BodyPointer),
    #[error("body {0:?} is removed, but is not there")]
    BodyNotThere(BodyPointer),
    #[error("body {0:?} is shared by no message, or twice, or before it is put")]
    SharedWrongly(BodyPointer),
    #[error("body {0:?} is released, but not shared")]
    NotShared(BodyPointer),
    #[error("body {0:?} is removed while others share it")]
    SharedBodyRemoved(BodyPointer),
    #[error("{0:?} has messages or entries, and is made a copy of another entity")]
    CopiedOver(EntityId),
}

impl Image {
    /// Makes `write` true.
    ///
    /// # Errors
    /// When the write breaks the contract; it is applied anyway.
    pub fn apply(&mut self, write: &Write) -> Result<(), ContractViolation> {
        match write {
            Write::PutEntity(row) => self.put_entity(row),
            Write::RemoveEntity(entity) => self.remove_entity(*entity),
            Write::PutHead { entity, head } => drop(self.heads.insert(*entity, head.clone())),
            Write::PutMessage {
                entity,
                part,
                number,
                row,
            } => {
                return self.put_message((*entity, *part, *number), row);
            }
            Write::RemoveMessage {
                entity,
                part,
                number,
            } => {
                return self.remove_message((*entity, *part, *number));
            }
            Write::PutBody { pointer, body } => return self.put_body(*pointer, body),
            Write::RemoveBody { pointer } => return self.remove_body(*pointer),
            Write::ShareBody { pointer, copies } => return self.share_body(*pointer, *copies),
            Write::ReleaseBody { pointer } => return self.release_body(*pointer),
            Write::PutDeliveryCount {
                entity,
                number,
                count,
            } => {
                self.delivery_counts.insert((*entity, *number), *count);
            }
            Write::RemoveDeliveryCount { entity, number } => {
                self.delivery_counts.remove(&(*entity, *number));
            }
            Write::PutPatch {
                entity,
                number,
                patch,
            } => {
                self.patches.insert((*entity, *number), patch.clone());
            }
            Write::RemovePatch { entity, number } => {
                self.patches.remove(&(*entity, *number));
            }
            Write::PutExpiry {
                entity,
                part,
                block,
                due_ms,
            } => {
                self.expiries.insert((*entity, *part, *block), *due_ms);
            }
            Write::RemoveExpiry {
                entity,
                part,
                block,
            } => {
                self.expiries.remove(&(*entity, *part, *block));
            }
            Write::PutEntry {
                entity,
                index,
                key,
                value,
            } => {
                self.entries
                    .insert((*entity, *index, key.clone()), value.clone());
            }
            Write::RemoveEntry { entity, index, key } => {
                self.entries.remove(&(*entity, *index, key.clone()));
            }
            Write::RemoveEntries {
                entity,
                index,
                keys,
            } => self.remove_entries(*entity, *index, keys),
            Write::Copy { from, to } => return self.copy_entity(*from, *to),
        }
        Ok(())
    }

    /// Answers `query`.
    ///
    /// # Errors
    /// When a row points to a body that is not there.
    pub fn read(&self, query: &Query) -> Result<Found, StoreError> {
        match query {
            Query::Range {
                entity,
                part,
                from,
                until,
                limit,
                bodies,
                max_bytes,
            } => {
                let rows = self.rows(*entity, *part, *from, *until).take(*limit);
                let found = self.load_within(rows, *bodies, *max_bytes);
                found.map(Found::Messages)
            }
            Query::Points {
                entity,
                part,
                numbers,
                bodies,
                max_bytes,
            } => {
                let mut numbers = numbers.clone();
                numbers.sort_unstable();
                numbers.dedup();
                let rows = numbers
                    .into_iter()
                    .filter_map(|number| self.messages.get_key_value(&(*entity, *part, number)));
                let found = self.load_within(rows, *bodies, *max_bytes);
                found.map(Found::Messages)
            }
            Query::Bodies {
                entity,
                part,
                known,
            } => {
                let there = known
                    .iter()
                    .map(|known| ((*entity, *part, known.number), known))
                    .filter(|(key, _)| self.messages.contains_key(key));
                let found = there.map(|(key, known)| {
                    Ok(StoredMessage {
                        delivery_count: known.delivery_count,
                        ..self.load(key, &known.row, true)?
                    })
                });
                found.collect::<Result<_, _>>().map(Found::Messages)
            }
            Query::Entries { .. } | Query::EntryPoints { .. } | Query::Groups { .. } => {
                Ok(Found::Entries(self.read_entries(query)))
            }
        }
    }

    /// The state from which a broker starts.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        Recovery {
            entities: self.entities.values().cloned().collect(),
            heads: self
                .heads
                .iter()
                .map(|(entity, head)| (*entity, head.clone()))
                .collect(),
            expiries: self
                .expiries
                .iter()
                .map(|(&(entity, part, block), &due_ms)| ExpiryRow {
                    entity,
                    part,
                    block,
                    due_ms,
                })
                .collect(),
            rules: self.rules(),
            last_entity: self.last_entity,
        }
    }

    /// Rows of one part with `from <= number < until`, ascending.
    pub fn rows(
        &self,
        entity: EntityId,
        part: Part,
        from: SequenceNumber,
        until: SequenceNumber,
    ) -> impl Iterator<Item = (&MessageKey, &MessageRow)> {
        // A range that ends before it starts is empty here and a panic in a B-tree.
        let until = until.max(from);
        self.messages
            .range((entity, part, from)..(entity, part, until))
    }

    fn load_within<'a>(
        &self,
        rows: impl Iterator<Item = (&'a MessageKey, &'a MessageRow)>,
        bodies: bool,
        max_bytes: usize,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let mut found = Vec::new();
        let mut collected = 0_usize;
        for (key, row) in rows {
            let message = self.load(*key, row, bodies)?;
            collected = collected.saturating_add(message.body.as_ref().map_or(0, Bytes::len));
            found.push(message);
            if bodies && collected >= max_bytes {
                break;
            }
        }
        Ok(found)
    }

    fn load(
        &self,
        (entity, part, number): MessageKey,
        row: &MessageRow,
        bodies: bool,
    ) -> Result<StoredMessage, StoreError> {
        let body = if bodies {
            Some(self.body(row.body)?)
        } else {
            None
        };
        let patch = if bodies {
            self.patches.get(&(entity, number)).cloned()
        } else {
            None
        };
        let delivery_count = self
            .delivery_counts
            .get(&(entity, number))
            .copied()
            .unwrap_or(0);
        Ok(StoredMessage {
            part,
            number,
            row: *row,
            delivery_count,
            patch,
            body,
            body_location: BodyLocation::UNKNOWN,
        })
    }

    fn body(&self, pointer: BodyPointer) -> Result<Bytes, StoreError> {
        self.bodies
            .get(&(pointer.home, pointer.number))
            .cloned()
            .ok_or_else(|| StoreError::Corrupt {
                what: "a body".into(),
                detail: format!("{pointer:?} is missing"),
            })
    }

    fn put_entity(&mut self, row: &EntityRow) {
        self.last_entity = self.last_entity.max(Some(row.id));
        self.entities.insert(row.id, row.clone());
    }

    fn remove_entity(&mut self, entity: EntityId) {
        let first = SequenceNumber(0);
        let numbers = (entity, first)..=(entity, SequenceNumber::MAX);
        self.entities.remove(&entity);
        self.heads.remove(&entity);
        let parts = (entity, Part::ALL[0]);
        let last = (entity, Part::ALL[Part::ALL.len() - 1]);
        remove_range(
            &mut self.messages,
            (parts.0, parts.1, first)..=(last.0, last.1, SequenceNumber::MAX),
        );
        remove_range(&mut self.bodies, numbers.clone());
        remove_range(&mut self.shares, numbers.clone());
        remove_range(&mut self.delivery_counts, numbers.clone());
        remove_range(&mut self.patches, numbers);
        self.remove_entries_of(entity);
        remove_range(
            &mut self.expiries,
            (parts.0, parts.1, 0)..=(last.0, last.1, u64::MAX),
        );
    }

    fn put_message(&mut self, key: MessageKey, row: &MessageRow) -> Result<(), ContractViolation> {
        match self.messages.insert(key, *row) {
            Some(before) if before != *row => Err(ContractViolation::RowPutTwice(key)),
            _ => Ok(()),
        }
    }

    fn remove_message(&mut self, key: MessageKey) -> Result<(), ContractViolation> {
        self.messages
            .remove(&key)
            .map(drop)
            .ok_or(ContractViolation::RowNotThere(key))
    }

    fn put_body(&mut self, pointer: BodyPointer, body: &Bytes) -> Result<(), ContractViolation> {
        match self
            .bodies
            .insert((pointer.home, pointer.number), body.clone())
        {
            Some(_) => Err(ContractViolation::BodyPutTwice(pointer)),
            None => Ok(()),
        }
    }

    fn remove_body(&mut self, pointer: BodyPointer) -> Result<(), ContractViolation> {
        let key = (pointer.home, pointer.number);
        let removed = self.bodies.remove(&key);
        if self.shares.contains_key(&key) {
            return Err(ContractViolation::SharedBodyRemoved(pointer));
        }
        removed
            .map(drop)
            .ok_or(ContractViolation::BodyNotThere(pointer))
    }
}

fn remove_range<K: Copy + Ord, V>(table: &mut BTreeMap<K, V>, range: impl RangeBounds<K>) {
    let keys: Vec<K> = table.range(range).map(|(key, _)| *key).collect();
    for key in keys {
        table.remove(&key);
    }
}

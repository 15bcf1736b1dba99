//! Merge: from the write sets of a group to one batch for RocksDB.
//!
//! First come all puts of rows and bodies, then their removals, in runs; interleaved they cost a
//! microsecond more per message, and since no number is ever used twice the order does not matter
//! for them. Every other family keeps its order, but of several heads of one entity only the last
//! is written, and so it is with counts of copies. A message that is sent and settled within the
//! group is not written at all.

use std::collections::BTreeMap;

use bytes::Bytes;
use rocksdb::WriteBatch;
use store::{
    BodyPointer, EntityId, EntityRow, Head, MessageRow, Part, SequenceNumber, StoreError, Write,
    WriteSet,
};

use crate::chunk::{self, CHUNK};
use crate::database::{Database, Families};
use crate::key::{self, Kind, single};
use crate::log::{CommitLog, Sync};
use crate::removal::{Removals, Run};
use crate::scan::Scan;
use crate::settled::Settled;
use crate::shares::Shares;
use crate::value;

/// How many chunks of a large body go into one batch.
const CHUNKS_PER_BATCH: u32 = 4;
/// What a row takes on disk with its key, about.
const ROW_BYTES: u64 = 48;
/// What a write takes in a batch apart from a body, about.
const WRITE_BYTES: usize = 64;

/// What outlives one group.
pub(crate) struct Merger {
    last_entity: Option<EntityId>,
    /// Whether there may be bodies of several chunks.
    large_bodies: bool,
    /// Running mean of the size of a body.
    mean_body: u64,
    rows: Removals<(EntityId, Part)>,
    bodies: Removals<EntityId>,
    shares: Shares,
    settled_rows: Settled<(EntityId, Part)>,
    settled_bodies: Settled<EntityId>,
    scratch: Vec<u8>,
}

/// A group, ready to be written.
pub(crate) struct Merged {
    pub batch: WriteBatch,
    pub give_back: Vec<GiveBack>,
}

/// Keys whose files may be dropped as soon as the batch is durable, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GiveBack {
    Rows([u8; 17], [u8; 17]),
    Bodies([u8; 20], [u8; 20]),
}

impl Merger {
    /// For a store as it was found at opening.
    pub fn new(last_entity: Option<EntityId>, large_bodies: bool) -> Self {
        Self {
            last_entity,
            large_bodies,
            mean_body: 1_024,
            rows: Removals::new(),
            bodies: Removals::new(),
            shares: Shares::new(),
            settled_rows: Settled::new(),
            settled_bodies: Settled::new(),
            scratch: Vec::new(),
        }
    }

    /// Makes one batch of `sets`, which ends at `position` in the log. Chunks of large bodies are
    /// written right away, in batches of their own.
    pub fn merge(
        &mut self,
        sets: &[WriteSet],
        position: u64,
        log: &mut CommitLog,
    ) -> Result<Merged, StoreError> {
        let database = log.database().clone();
        let bytes = self.survey(sets, &database)?;
        let mut merge = Merge {
            merger: self,
            log,
            families: database.families(),
            batch: WriteBatch::with_capacity_bytes(bytes),
            heads: BTreeMap::new(),
            removed_entities: Vec::new(),
            give_back: Vec::new(),
        };
        for write in sets.iter().flat_map(WriteSet::as_slice) {
            merge.put(write)?;
        }
        merge.put_heads();
        merge
            .merger
            .shares
            .write(merge.families.state, &mut merge.batch);
        merge.batch.put_cf(
            merge.families.state,
            single::POSITION,
            position.to_be_bytes(),
        );
        merge.remove_rows();
        merge.remove_bodies(&database.db)?;
        merge.remove_entities();
        Ok(Merged {
            batch: merge.batch,
            give_back: merge.give_back,
        })
    }

    /// Collects what is removed, and returns how large the batch will be at most, about.
    fn survey(&mut self, sets: &[WriteSet], database: &Database) -> Result<usize, StoreError> {
        self.rows.clear();
        self.bodies.clear();
        self.shares.clear();
        let mut bytes = 256;
        for write in sets.iter().flat_map(WriteSet::as_slice) {
            bytes += WRITE_BYTES;
            match write {
                Write::RemoveMessage {
                    entity,
                    part,
                    number,
                } => {
                    self.rows.add((*entity, *part), number.0);
                }
                Write::RemoveBody { pointer } => self.bodies.add(pointer.home, pointer.number.0),
                Write::ShareBody { pointer, copies } => self.shares.share(*pointer, *copies),
                Write::ReleaseBody { pointer } => self.shares.release(*pointer),
                Write::PutBody { body, .. } if body.len() <= CHUNK => bytes += body.len(),
                Write::PutPatch { patch, .. } => bytes += patch.len(),
                Write::PutEntry { key, value, .. } => bytes += key.group.len() + value.len(),
                Write::PutHead { .. } => bytes += 4 * WRITE_BYTES,
                _ => {}
            }
        }
        self.shares.settle(database)?;
        for pointer in self.shares.gone() {
            self.bodies.add(pointer.home, pointer.number.0);
        }
        self.rows.seal();
        self.bodies.seal();
        Ok(bytes)
    }
}

/// One group being merged.
struct Merge<'a> {
    merger: &'a mut Merger,
    log: &'a mut CommitLog,
    families: Families<'a>,
    batch: WriteBatch,
    heads: BTreeMap<EntityId, &'a Head>,
    removed_entities: Vec<EntityId>,
    give_back: Vec<GiveBack>,
}

impl<'a> Merge<'a> {
    fn put(&mut self, write: &'a Write) -> Result<(), StoreError> {
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
                self.put_message(*entity, *part, *number, row);
            }
            Write::PutBody { pointer, body } => self.put_body(*pointer, body)?,
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
        Ok(())
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

    fn put_message(
        &mut self,
        entity: EntityId,
        part: Part,
        number: SequenceNumber,
        row: &MessageRow,
    ) {
        if self.merger.rows.cancels((entity, part), number.0) {
            return;
        }
        let value = value::encode_row(entity, number, row);
        self.batch.put_cf(
            self.families.message,
            key::message(entity, part, number),
            value,
        );
    }

    fn put_body(&mut self, pointer: BodyPointer, body: &Bytes) -> Result<(), StoreError> {
        if self.merger.bodies.cancels(pointer.home, pointer.number.0) {
            return Ok(());
        }
        let merger = &mut *self.merger;
        merger.mean_body = (merger.mean_body.saturating_mul(15) + body.len() as u64) / 16;
        if body.len() > CHUNK {
            return self.put_large_body(pointer, body);
        }
        chunk::encode_whole(pointer, body, &mut merger.scratch);
        self.batch
            .put_cf(self.families.body, key::body(pointer, 0), &merger.scratch);
        Ok(())
    }

    /// Writes all chunks ahead of the group. Until the group is there too, a note says that they
    /// belong to nobody; the next opening removes them by it after a crash in between.
    fn put_large_body(&mut self, pointer: BodyPointer, body: &Bytes) -> Result<(), StoreError> {
        let chunks = chunk::chunks_of(body.len());
        let note = key::of_number(Kind::PendingBody, pointer.home, pointer.number);
        for first in (0..chunks).step_by(CHUNKS_PER_BATCH as usize) {
            let mut batch = WriteBatch::default();
            if first == 0 {
                batch.put_cf(self.families.state, note, []);
            }
            for index in first..chunks.min(first + CHUNKS_PER_BATCH) {
                chunk::encode_piece(pointer, body, index, &mut self.merger.scratch);
                let key = key::body(pointer, index);
                batch.put_cf(self.families.body, key, &self.merger.scratch);
            }
            self.log.append(batch, Sync::Later)?;
        }
        // A megabyte is not kept for the small ones.
        self.merger.scratch = Vec::new();
        self.merger.large_bodies = true;
        let state = self.families.state;
        let key = key::of_number(Kind::LargeBody, pointer.home, pointer.number);
        self.batch.put_cf(state, key, chunks.to_be_bytes());
        self.batch.delete_cf(state, note);
        Ok(())
    }

    fn put_heads(&mut self) {
        for (entity, head) in std::mem::take(&mut self.heads) {
            value::encode_head(head, &mut self.merger.scratch);
            let key = key::of_entity(Kind::Head, entity);
            self.batch
                .put_cf(self.families.state, key, &self.merger.scratch);
        }
    }

    fn remove_rows(&mut self) {
        let family = self.families.message;
        let Merger {
            rows, settled_rows, ..
        } = &mut *self.merger;
        for run in rows.runs() {
            let (entity, part) = run.scope();
            let key = |number| key::message(entity, part, SequenceNumber(number));
            let range = |first, last| (key(first), key::message(entity, part, after(last)));
            if run.is_range() {
                let (from, until) = range(run.first(), run.last());
                self.batch.delete_range_cf(family, from, until);
            } else {
                run.on_disk()
                    .for_each(|number| self.batch.delete_cf(family, key(number)));
            }
            let bytes = count(&run).saturating_mul(ROW_BYTES);
            if let Some((first, last)) =
                settled_rows.add(run.scope(), run.first(), run.last(), bytes)
            {
                let (from, until) = range(first, last);
                self.batch.delete_range_cf(family, from, until);
                self.give_back.push(GiveBack::Rows(key(first), key(last)));
            }
        }
    }

    fn remove_bodies(&mut self, db: &rocksdb::DB) -> Result<(), StoreError> {
        let Merger {
            bodies,
            settled_bodies,
            mean_body,
            large_bodies,
            ..
        } = &mut *self.merger;
        for run in bodies.runs() {
            let home = run.scope();
            let pointer = |number| BodyPointer { home, number };
            let key = |number| key::body(pointer(SequenceNumber(number)), 0);
            let range = |first, last| (key(first), key::body(pointer(after(last)), 0));
            if *large_bodies {
                remove_large(db, self.families, &run, &mut self.batch)?;
            }
            if run.is_range() {
                let (from, until) = range(run.first(), run.last());
                self.batch.delete_range_cf(self.families.body, from, until);
            } else {
                let family = self.families.body;
                run.on_disk()
                    .for_each(|number| self.batch.delete_cf(family, key(number)));
            }
            let bytes = count(&run).saturating_mul(*mean_body);
            if let Some((first, last)) = settled_bodies.add(home, run.first(), run.last(), bytes) {
                let (from, until) = range(first, last);
                self.batch.delete_range_cf(self.families.body, from, until);
                let end = key::body(pointer(SequenceNumber(last)), u32::MAX);
                self.give_back.push(GiveBack::Bodies(from, end));
            }
        }
        Ok(())
    }

    /// What an entity has in the families that keep their order. Its rows and bodies go at the end.
    fn remove_entity(&mut self, entity: EntityId) {
        let state = self.families.state;
        self.heads.remove(&entity);
        self.batch
            .delete_cf(state, key::of_entity(Kind::Entity, entity));
        self.batch
            .delete_cf(state, key::of_entity(Kind::Head, entity));
        let (from, until) = key::expiries_of(entity);
        self.batch.delete_range_cf(state, from, until);
        let (from, until) = key::entries_of(entity);
        self.batch.delete_range_cf(state, from, until);
        for kind in [Kind::DeliveryCount, Kind::Patch] {
            let (from, until) = key::of_numbers(kind, entity);
            self.batch.delete_range_cf(state, from, until);
        }
        self.removed_entities.push(entity);
    }

    fn remove_entities(&mut self) {
        let first = SequenceNumber(0);
        for entity in std::mem::take(&mut self.removed_entities) {
            let next = key::after(entity);
            let row = |entity| key::message(entity, Part::Active, first);
            self.batch
                .delete_range_cf(self.families.message, row(entity), row(next));
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
                .delete_range_cf(self.families.body, body(entity), body(next));
            for kind in [Kind::LargeBody, Kind::Share] {
                let (from, until) = key::of_numbers(kind, entity);
                self.batch.delete_range_cf(self.families.state, from, until);
            }
            self.merger.shares.forget(entity);
            self.merger.settled_rows.forget(|scope| scope.0 == entity);
            self.merger.settled_bodies.forget(|scope| scope == entity);
        }
    }
}

/// Removes the chunks and the index of those bodies of a run that have several chunks.
fn remove_large(
    db: &rocksdb::DB,
    families: Families<'_>,
    run: &Run<'_, EntityId>,
    batch: &mut WriteBatch,
) -> Result<(), StoreError> {
    let home = run.scope();
    let key = |number| key::of_number(Kind::LargeBody, home, number);
    let (from, until) = (key(SequenceNumber(run.first())), key(after(run.last())));
    let mut scan = Scan::new(db, families.state, from, until);
    while let Some((found, _)) = scan.next()? {
        batch.delete_cf(families.state, found);
        let (_, number) = key::parse_of_number(Kind::LargeBody, found)
            .ok_or_else(|| value::damaged("the index of large bodies", format!("{found:02x?}")))?;
        let from = key::body(BodyPointer { home, number }, 1);
        let until = key::body(
            BodyPointer {
                home,
                number: key::after_number(number),
            },
            0,
        );
        batch.delete_range_cf(families.body, from, until);
    }
    Ok(())
}

fn after(number: u64) -> SequenceNumber {
    key::after_number(SequenceNumber(number))
}

fn count<S: Copy>(run: &Run<'_, S>) -> u64 {
    (run.last() - run.first()).saturating_add(1)
}

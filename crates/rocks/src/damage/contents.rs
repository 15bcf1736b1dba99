//! Contents: what a store holds that is whole, by reading all of it.
//!
//! Every row of every family is decoded and every checksum checked, every row's body has to exist
//! and every head has to have the right counts. Only counts by entity are kept, however large the
//! store is.

use std::collections::BTreeMap;

use index::Family;
use index::image::{each, each_of};
use index::recovery::entry_of;
use index::shares::Page;
use journal::chunk::{self, Chunk};
use journal::key::{self, KeyKind};
use journal::value::{self, damaged};
use store::{BodyPointer, EntityId, Head, MessageRow, Part, Recovery, SequenceNumber, StoreError};

use crate::index::database::{Database, refused};
use crate::open_store::OpenStore;

/// What a store that is whole holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Contents {
    /// Queues, topics and subscriptions.
    pub entities: u64,
    /// Their messages, in whatever state.
    pub messages: u64,
    /// The groups that were committed in its life.
    pub position: u64,
}

/// Reads everything; `recovery` is what was read of the small tables.
pub(crate) fn read_contents(
    open_store: &OpenStore,
    recovery: &Recovery,
) -> Result<Contents, StoreError> {
    let database = &*open_store.database;
    let mut counted = BTreeMap::new();
    each(database, Family::Message, |key, value| {
        let (entity, part, number) = key::parse_message(key)?;
        let row = value::decode_row(entity, number, value);
        Some(row.and_then(|row| {
            count(&mut counted, (entity, part), &row);
            match chunk::location_in_row(row.body, value)? {
                Some(location) => {
                    check_no_other_place(database, row.body)?;
                    open_store.read_body(row.body, location).map(drop)
                }
                None => check_body_is_there(database, row.body),
            }
        }))
    })?;
    check_bodies(open_store)?;
    check_small_rows(database)?;
    let messages = counted.values().map(|&(count, _)| count).sum();
    for (entity, head) in &recovery.heads {
        check_head(*entity, head, &mut counted)?;
    }
    match counted.into_keys().next() {
        Some((entity, part)) => Err(damaged(
            "a head",
            format!("{entity:?} has none, and messages in {part:?}"),
        )),
        None => Ok(Contents {
            entities: recovery.entities.len() as u64,
            messages,
            position: 0,
        }),
    }
}

/// Messages and their bytes.
type Counted = BTreeMap<(EntityId, Part), (u64, u64)>;

fn count(counted: &mut Counted, queue_part: (EntityId, Part), row: &MessageRow) {
    let (messages, bytes) = counted.entry(queue_part).or_default();
    *messages += 1;
    *bytes = bytes.saturating_add(u64::from(row.size));
}

fn check_body_is_there(database: &Database, pointer: BodyPointer) -> Result<(), StoreError> {
    let families = database.families();
    let body = key::body(pointer, 0);
    let found = database.db.get_pinned_cf(families.body, body);
    if found.map_err(refused)?.is_some() {
        return Ok(());
    }
    let row = database
        .db
        .get_pinned_cf(families.message, key::own_row(pointer));
    let row = row.map_err(refused)?;
    if row.is_some_and(|row| value::location_in_row(&row).is_some()) {
        return Ok(());
    }
    Err(damaged("a body", format!("{pointer:?} is not there")))
}

/// A place in a row is the only one.
fn check_no_other_place(database: &Database, pointer: BodyPointer) -> Result<(), StoreError> {
    let family = database.families().body;
    let found = database.db.get_pinned_cf(family, key::body(pointer, 0));
    match found.map_err(refused)? {
        Some(_) => Err(damaged("a body", format!("{pointer:?} has two places"))),
        None => Ok(()),
    }
}

/// Compares a head with what was counted, and takes that out.
fn check_head(entity: EntityId, head: &Head, counted: &mut Counted) -> Result<(), StoreError> {
    for part in Part::ALL {
        let (messages, bytes) = counted.remove(&(entity, part)).unwrap_or_default();
        let said = head.part(part);
        if (said.count, said.bytes) != (messages, bytes) {
            let detail = format!(
                "{entity:?} {part:?}: it counts {} messages of {} bytes, there are {messages} of {bytes}",
                said.count, said.bytes
            );
            return Err(damaged("a head", detail));
        }
    }
    Ok(())
}

/// A large body whose chunks are being read.
struct PartialBody {
    pointer: BodyPointer,
    chunks: u32,
    total: u64,
    /// So far.
    seen: u32,
    bytes: u64,
}

/// Every body has its checksums right, and large ones all of their chunks.
fn check_bodies(open_store: &OpenStore) -> Result<(), StoreError> {
    let database = &*open_store.database;
    let mut reading: Option<PartialBody> = None;
    let mut large = 0_u64;
    each(database, Family::Body, |key, value| {
        let (pointer, index) = key::parse_body(key)?;
        let mut check = || {
            if index == 0 {
                finish(reading.take())?;
            }
            match chunk::decode(pointer, index, value)? {
                Chunk::Whole(_) => {}
                Chunk::Elsewhere(location) => drop(open_store.read_body(pointer, location)?),
                Chunk::First {
                    chunks,
                    total,
                    bytes,
                } => {
                    large += 1;
                    check_index(database, pointer, chunks)?;
                    reading = Some(PartialBody {
                        pointer,
                        chunks,
                        total,
                        seen: 1,
                        bytes: bytes.len() as u64,
                    });
                }
                Chunk::Further(bytes) => {
                    let expected = reading
                        .as_mut()
                        .filter(|body| body.pointer == pointer && body.seen == index);
                    let body = expected.ok_or_else(|| incomplete(pointer))?;
                    body.seen += 1;
                    body.bytes += bytes.len() as u64;
                }
            }
            Ok(())
        };
        Some(check())
    })?;
    finish(reading)?;
    each_of(database, KeyKind::LargeBody, |_, _| {
        large = large.wrapping_sub(1);
        Some(Ok(()))
    })?;
    match large {
        0 => Ok(()),
        _ => Err(damaged(
            "the index of large bodies",
            "it names others than are there",
        )),
    }
}

fn finish(reading: Option<PartialBody>) -> Result<(), StoreError> {
    match reading {
        Some(body) if (body.seen, body.bytes) != (body.chunks, body.total) => {
            Err(incomplete(body.pointer))
        }
        _ => Ok(()),
    }
}

fn check_index(database: &Database, pointer: BodyPointer, chunks: u32) -> Result<(), StoreError> {
    let key = key::of_number(KeyKind::LargeBody, pointer.home, pointer.number);
    let indexed = database.single(&key)?;
    let indexed = indexed.map(|value| value::decode_u32("the index of large bodies", &value));
    if indexed.transpose()? == Some(chunks) {
        return Ok(());
    }
    Err(incomplete(pointer))
}

fn incomplete(pointer: BodyPointer) -> StoreError {
    damaged(
        "a large body",
        format!("{pointer:?} has not all its chunks"),
    )
}

/// What belongs to messages and entities besides rows, bodies and what a recovery reads.
fn check_small_rows(database: &Database) -> Result<(), StoreError> {
    each_of(database, KeyKind::DeliveryCount, |key, value| {
        key::parse_of_number(KeyKind::DeliveryCount, key)?;
        Some(value::decode_u32("a delivery count", value).map(drop))
    })?;
    each_of(database, KeyKind::Patch, |key, _| {
        let _: (EntityId, SequenceNumber) = key::parse_of_number(KeyKind::Patch, key)?;
        Some(Ok(()))
    })?;
    each_of(database, KeyKind::Share, |key, value| {
        key::parse_share(key)?;
        Some(Page::decode(value).map(drop))
    })?;
    each_of(database, KeyKind::Entry, |key, value| {
        Some(entry_of(key, value).map(drop))
    })
}

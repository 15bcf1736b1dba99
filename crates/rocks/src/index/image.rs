//! Image: everything the database holds.
//!
//! It walks over every row of every family, so it is for tests, not for
//! a running broker. Chunks without a first one, a large body without its index and the reverse
//! are damage; the image's own audit finds orphans among whole bodies.

use std::collections::BTreeMap;

use bytes::Bytes;
use journal::chunk::{self, Chunk};
use journal::key::{self, KeyKind};
use journal::value::{self, damaged};
use rocksdb::ColumnFamily;
use store::{BodyPointer, EntityId, Image, Recovery, SequenceNumber, StoreError};

use crate::index::database::Database;
use crate::index::shares::Page;
use crate::open_store::OpenStore;
use crate::reader::scan::Scan;

/// Scans all families; `recovery` is what was read of the small ones.
pub(crate) fn read(open_store: &OpenStore, recovery: Recovery) -> Result<Image, StoreError> {
    let database = &open_store.database;
    let mut image = Image {
        entities: recovery
            .entities
            .into_iter()
            .map(|row| (row.id, row))
            .collect(),
        last_entity: recovery.last_entity,
        heads: recovery.heads.into_iter().collect(),
        ..Image::default()
    };
    for row in recovery.expiries {
        image
            .expiries
            .insert((row.entity, row.part, row.block), row.due_ms);
    }
    let families = database.families();
    each(database, families.message, |key, value| {
        let (entity, part, number) = key::parse_message(key)?;
        let mut visit = || {
            let row = value::decode_row(entity, number, value)?;
            image.messages.insert((entity, part, number), row);
            if let Some(location) = chunk::location_in_row(row.body, value)? {
                let body = open_store.read_body(row.body, location)?;
                image.bodies.insert((entity, number), body);
            }
            Ok(())
        };
        Some(visit())
    })?;
    each_of(database, KeyKind::DeliveryCount, |key, value| {
        let count = value::decode_u32("a delivery count", value);
        let key = key::parse_of_number(KeyKind::DeliveryCount, key)?;
        Some(count.map(|count| {
            image.delivery_counts.insert(key, count);
        }))
    })?;
    each_of(database, KeyKind::Patch, |key, value| {
        let key = key::parse_of_number(KeyKind::Patch, key)?;
        image.patches.insert(key, Bytes::copy_from_slice(value));
        Some(Ok(()))
    })?;
    each_of(database, KeyKind::Share, |key, value| {
        let (home, number) = key::parse_share(key)?;
        Page::decode(value).map_or_else(
            |error| Some(Err(error)),
            |page| {
                let counts = page.counts(number)?.into_iter();
                let counts = counts.map(|(number, copies)| ((home, number), copies));
                image.shares.extend(counts);
                Some(Ok(()))
            },
        )
    })?;
    each_of(database, KeyKind::Entry, |key, value| {
        let location = key::parse_entry(key)?;
        image
            .entries
            .insert(location, Bytes::copy_from_slice(value));
        Some(Ok(()))
    })?;
    for (at, body) in bodies(open_store)? {
        if image.bodies.insert(at, body).is_some() {
            return Err(damaged("a body", format!("{at:?} has two places")));
        }
    }
    Ok(image)
}

fn bodies(
    open_store: &OpenStore,
) -> Result<BTreeMap<(EntityId, SequenceNumber), Bytes>, StoreError> {
    let database = &open_store.database;
    let mut whole = BTreeMap::new();
    let mut pieces: BTreeMap<BodyPointer, Pieces> = BTreeMap::new();
    each(database, database.families().body, |key, value| {
        let (pointer, index) = key::parse_body(key)?;
        let mut visit = || {
            match chunk::decode(pointer, index, value)? {
                Chunk::Whole(body) => {
                    whole.insert((pointer.home, pointer.number), Bytes::copy_from_slice(body));
                }
                Chunk::First { chunks, bytes, .. } => {
                    pieces.entry(pointer).or_default().add(index, bytes).chunks = chunks;
                }
                Chunk::Further(bytes) => drop(pieces.entry(pointer).or_default().add(index, bytes)),
                Chunk::Elsewhere(location) => {
                    let body = open_store.read_body(pointer, location)?;
                    whole.insert((pointer.home, pointer.number), body);
                }
            }
            Ok(())
        };
        Some(visit())
    })?;
    let mut indexed = BTreeMap::new();
    each_of(database, KeyKind::LargeBody, |key, value| {
        let (home, number) = key::parse_of_number(KeyKind::LargeBody, key)?;
        let chunks = value::decode_u32("the index of large bodies", value);
        let pointer = BodyPointer { home, number };
        Some(chunks.map(|chunks| {
            indexed.insert(pointer, chunks);
        }))
    })?;
    for (pointer, pieces) in pieces {
        if indexed.remove(&pointer) != Some(pieces.found) || pieces.chunks != pieces.found {
            return Err(damaged(
                "a large body",
                format!("{pointer:?} and its index disagree"),
            ));
        }
        whole.insert((pointer.home, pointer.number), Bytes::from(pieces.bytes));
    }
    match indexed.first_key_value() {
        Some((pointer, _)) => Err(damaged(
            "a large body",
            format!("{pointer:?} has no chunks"),
        )),
        None => Ok(whole),
    }
}

/// The chunks of a large body found so far.
#[derive(Default)]
struct Pieces {
    /// What the first chunk says.
    chunks: u32,
    found: u32,
    bytes: Vec<u8>,
}

impl Pieces {
    fn add(&mut self, index: u32, bytes: &[u8]) -> &mut Self {
        // Out of turn means that one is missing, which the comparison of the counts finds.
        if index == self.found {
            self.found += 1;
            self.bytes.extend_from_slice(bytes);
        }
        self
    }
}

/// What is done with a row. Nothing is returned for a key that is not understood.
type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Option<Result<(), StoreError>>;

/// Every row of a family of its own.
pub(crate) fn each(
    database: &Database,
    family: &ColumnFamily,
    mut visit: impl FnMut(&[u8], &[u8]) -> Option<Result<(), StoreError>>,
) -> Result<(), StoreError> {
    walk(
        Scan::new(&database.db, family, [0], [u8::MAX; 21]),
        &mut visit,
    )
}

/// Every row of a kind.
pub(crate) fn each_of(
    database: &Database,
    kind: KeyKind,
    mut visit: impl FnMut(&[u8], &[u8]) -> Option<Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let (from, until) = kind.bounds();
    walk(
        Scan::new(&database.db, database.families().state, from, until),
        &mut visit,
    )
}

fn walk(mut scan: Scan<'_>, visit: Visit<'_>) -> Result<(), StoreError> {
    while let Some((key, value)) = scan.next()? {
        let taken = visit(key, value);
        taken.ok_or_else(|| damaged("a key", format!("{key:02x?}")))??;
    }
    Ok(())
}

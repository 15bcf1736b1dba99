//! Image: everything the index holds.
//!
//! It walks over every row of every family, so it is for tests, not for
//! a running broker. Chunks without a first one, a large body without its index and the reverse
//! are damage; the image's own audit finds orphans among whole bodies.

use std::collections::BTreeMap;

use bytes::Bytes;
use journal::JournalLocation;
use journal::chunk::{self, Chunk};
use journal::key::{self, KeyKind};
use journal::value::{self, damaged};
use store::{BodyPointer, EntityId, Image, Recovery, SequenceNumber, StoreError};

use crate::shares::Page;
use crate::tables::{Cursor, Family, Tables};

/// Scans all families; `recovery` is what was read of the small ones, and `read_body` reads bodies
/// from the journal.
pub fn read(
    tables: &impl Tables,
    recovery: Recovery,
    mut read_body: impl FnMut(BodyPointer, JournalLocation) -> Result<Bytes, StoreError>,
) -> Result<Image, StoreError> {
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
    each(tables, Family::Message, |key, value| {
        let (entity, part, number) = key::parse_message(key)?;
        let mut visit = || {
            let row = value::decode_row(entity, number, value)?;
            image.messages.insert((entity, part, number), row);
            if let Some(location) = chunk::location_in_row(row.body, value)? {
                let body = read_body(row.body, location)?;
                image.bodies.insert((entity, number), body);
            }
            Ok(())
        };
        Some(visit())
    })?;
    each_of(tables, KeyKind::DeliveryCount, |key, value| {
        let count = value::decode_u32("a delivery count", value);
        let key = key::parse_of_number(KeyKind::DeliveryCount, key)?;
        Some(count.map(|count| {
            image.delivery_counts.insert(key, count);
        }))
    })?;
    each_of(tables, KeyKind::Patch, |key, value| {
        let key = key::parse_of_number(KeyKind::Patch, key)?;
        image.patches.insert(key, Bytes::copy_from_slice(value));
        Some(Ok(()))
    })?;
    each_of(tables, KeyKind::Share, |key, value| {
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
    each_of(tables, KeyKind::Entry, |key, value| {
        let location = key::parse_entry(key)?;
        image
            .entries
            .insert(location, Bytes::copy_from_slice(value));
        Some(Ok(()))
    })?;
    for (at, body) in bodies(tables, &mut read_body)? {
        if image.bodies.insert(at, body).is_some() {
            return Err(damaged("a body", format!("{at:?} has two places")));
        }
    }
    Ok(image)
}

fn bodies(
    tables: &impl Tables,
    read_body: &mut impl FnMut(BodyPointer, JournalLocation) -> Result<Bytes, StoreError>,
) -> Result<BTreeMap<(EntityId, SequenceNumber), Bytes>, StoreError> {
    let mut whole = BTreeMap::new();
    let mut pieces: BTreeMap<BodyPointer, Pieces> = BTreeMap::new();
    each(tables, Family::Body, |key, value| {
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
                    let body = read_body(pointer, location)?;
                    whole.insert((pointer.home, pointer.number), body);
                }
            }
            Ok(())
        };
        Some(visit())
    })?;
    let mut indexed = BTreeMap::new();
    each_of(tables, KeyKind::LargeBody, |key, value| {
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
pub fn each(
    tables: &impl Tables,
    family: Family,
    mut visit: impl FnMut(&[u8], &[u8]) -> Option<Result<(), StoreError>>,
) -> Result<(), StoreError> {
    walk(tables.scan(family, [0], [u8::MAX; 21]), &mut visit)
}

/// Every row of a kind.
pub fn each_of(
    tables: &impl Tables,
    kind: KeyKind,
    mut visit: impl FnMut(&[u8], &[u8]) -> Option<Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let (from, until) = kind.bounds();
    walk(tables.scan(Family::State, from, until), &mut visit)
}

fn walk(mut scan: impl Cursor, visit: Visit<'_>) -> Result<(), StoreError> {
    while let Some((key, value)) = scan.next()? {
        let taken = visit(key, value);
        taken.ok_or_else(|| damaged("a key", format!("{key:02x?}")))??;
    }
    Ok(())
}

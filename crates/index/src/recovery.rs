//! Recovery: reads from the index what a broker starts from.

use bytes::Bytes;
use journal::key::{self, KeyKind, single};
use journal::value;
use store::{EntityId, EntityRow, Entry, EntryKey, ExpiryRow, Head, Index, Recovery, StoreError};

use crate::tables::{Cursor, Family, Tables};

/// What a broker starts from.
pub fn load(tables: &impl Tables) -> Result<Recovery, StoreError> {
    let entities = load_entities(tables)?;
    Ok(Recovery {
        rules: load_rules(tables, &entities)?,
        entities,
        heads: load_heads(tables)?,
        expiries: load_expiries(tables)?,
        last_entity: last_entity(tables)?,
    })
}

/// The definitions of all entities.
pub fn load_entities(tables: &impl Tables) -> Result<Vec<EntityRow>, StoreError> {
    let (from, until) = KeyKind::Entity.bounds();
    let mut scan = tables.scan(Family::State, from, until);
    let mut entities = Vec::new();
    while let Some((key, value)) = scan.next()? {
        entities.push(value::decode_entity(key, value)?);
    }
    Ok(entities)
}

fn load_heads(tables: &impl Tables) -> Result<Vec<(EntityId, Head)>, StoreError> {
    let (from, until) = KeyKind::Head.bounds();
    let mut scan = tables.scan(Family::State, from, until);
    let mut heads = Vec::new();
    while let Some((key, value)) = scan.next()? {
        let entity = key::parse_of_entity(KeyKind::Head, key);
        let entity = entity.ok_or_else(|| value::damaged("a head's key", format!("{key:02x?}")))?;
        heads.push((entity, value::decode_head(entity, value)?));
    }
    Ok(heads)
}

fn load_expiries(tables: &impl Tables) -> Result<Vec<ExpiryRow>, StoreError> {
    let (from, until) = KeyKind::Expiry.bounds();
    let mut scan = tables.scan(Family::State, from, until);
    let mut expiries = Vec::new();
    while let Some((key, value)) = scan.next()? {
        let parsed = key::parse_expiry(key);
        let (entity, part, block) =
            parsed.ok_or_else(|| value::damaged("an expiry's key", format!("{key:02x?}")))?;
        let due_ms = value::decode_u64("an expiry", value)?;
        expiries.push(ExpiryRow {
            entity,
            part,
            block,
            due_ms,
        });
    }
    Ok(expiries)
}

/// One seek per entity, since rules lie among entries of which there may be millions.
fn load_rules(
    tables: &impl Tables,
    entities: &[EntityRow],
) -> Result<Vec<(EntityId, Entry)>, StoreError> {
    let mut rules = Vec::new();
    for row in entities {
        let from = key::index_of(row.id, Index::Rule);
        let until = key::after_index(row.id, Index::Rule);
        let mut scan = tables.scan(Family::State, from, until);
        while let Some((key, value)) = scan.next()? {
            rules.push((row.id, entry_of(key, value)?));
        }
    }
    Ok(rules)
}

/// The largest id that an entity has had.
pub fn last_entity(tables: &impl Tables) -> Result<Option<EntityId>, StoreError> {
    let value = tables.get(Family::State, single::LAST_ENTITY)?;
    value
        .map(|value| value::decode_u64("the last entity", &value).map(EntityId))
        .transpose()
}

/// An entry as it stands in a row.
pub fn entry_of(key: &[u8], value: &[u8]) -> Result<Entry, StoreError> {
    let (_, _, key) = parse_entry(key)?;
    let value = Bytes::copy_from_slice(value);
    Ok(Entry { key, value })
}

/// What the key of an entry says.
pub fn parse_entry(key: &[u8]) -> Result<(EntityId, Index, EntryKey), StoreError> {
    let parsed = key::parse_entry(key);
    parsed.ok_or_else(|| value::damaged("an entry's key", format!("{key:02x?}")))
}

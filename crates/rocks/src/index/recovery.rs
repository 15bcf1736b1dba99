//! Recovery: reads from the index what a broker starts from.

use journal::key::{self, KeyKind, single};
use journal::value;
use store::{EntityId, EntityRow, Entry, ExpiryRow, Head, Index, Recovery, StoreError};

use crate::index::database::Database;
use crate::reader::entries;
use crate::reader::scan::Scan;

/// What a broker starts from.
pub fn load(database: &Database) -> Result<Recovery, StoreError> {
    let entities = load_entities(database)?;
    Ok(Recovery {
        rules: load_rules(database, &entities)?,
        entities,
        heads: load_heads(database)?,
        expiries: load_expiries(database)?,
        last_entity: last_entity(database)?,
    })
}

/// The definitions of all entities.
pub fn load_entities(database: &Database) -> Result<Vec<EntityRow>, StoreError> {
    let (from, until) = KeyKind::Entity.bounds();
    let mut scan = Scan::new(&database.db, database.families().state, from, until);
    let mut entities = Vec::new();
    while let Some((key, value)) = scan.next()? {
        entities.push(value::decode_entity(key, value)?);
    }
    Ok(entities)
}

fn load_heads(database: &Database) -> Result<Vec<(EntityId, Head)>, StoreError> {
    let (from, until) = KeyKind::Head.bounds();
    let mut scan = Scan::new(&database.db, database.families().state, from, until);
    let mut heads = Vec::new();
    while let Some((key, value)) = scan.next()? {
        let entity = key::parse_of_entity(KeyKind::Head, key);
        let entity = entity.ok_or_else(|| value::damaged("a head's key", format!("{key:02x?}")))?;
        heads.push((entity, value::decode_head(entity, value)?));
    }
    Ok(heads)
}

fn load_expiries(database: &Database) -> Result<Vec<ExpiryRow>, StoreError> {
    let (from, until) = KeyKind::Expiry.bounds();
    let mut scan = Scan::new(&database.db, database.families().state, from, until);
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
    database: &Database,
    entities: &[EntityRow],
) -> Result<Vec<(EntityId, Entry)>, StoreError> {
    let mut rules = Vec::new();
    for row in entities {
        let from = key::index_of(row.id, Index::Rule);
        let until = key::after_index(row.id, Index::Rule);
        let mut scan = Scan::new(&database.db, database.families().state, from, until);
        while let Some((key, value)) = scan.next()? {
            rules.push((row.id, entries::entry_of(key, value)?));
        }
    }
    Ok(rules)
}

/// The largest id that an entity has had.
pub fn last_entity(database: &Database) -> Result<Option<EntityId>, StoreError> {
    let value = database.single(single::LAST_ENTITY)?;
    value
        .map(|value| value::decode_u64("the last entity", &value).map(EntityId))
        .transpose()
}

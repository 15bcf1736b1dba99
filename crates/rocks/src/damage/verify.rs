//! Verify: reads all of a store and lists what is damaged, be it closed or used by a broker.
//!
//! A closed store is opened as at a start, and its counts are compared too. Of a store in use the
//! contents on the disk are read beside the process that uses it, which notices nothing: damage
//! counts if the index still has the place after it was looked at again.

use std::collections::BTreeMap;
use std::path::Path;

use index::recovery;
use journal::directory::Layout;
use journal::file_system::os;
use journal::{Files, JournalLocation};
use store::{BodyPointer, EntityId, StoreError};

use crate::damage::contents::read_contents;
use crate::damage::manifest;
use crate::index::database::Database;
use crate::open_store;
use crate::options::Options;

use crate::damage::walk::{Damage, Walk, has_place, read_body};

/// What was read so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// Rows of the index.
    pub rows: u64,
    /// Their bytes and those of bodies.
    pub bytes: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Verified {
    /// What was read.
    pub progress: Progress,
    /// Whether a broker uses the store.
    pub is_in_use: bool,
    /// A sentence on each damage.
    pub damage: Vec<String>,
}

/// Reads all of the store at `path`, and calls `report` after each piece of about 256 KiB.
///
/// # Errors
/// When the store does not open, or the disk fails.
pub fn verify(
    path: &Path,
    options: &Options,
    mut report: impl FnMut(Progress),
) -> Result<Verified, StoreError> {
    match open_store::open(path, options) {
        Ok((open_store, _)) => {
            let recovery = recovery::load(&*open_store.database)?;
            let mut verified = walk(
                &open_store.database,
                &open_store.files,
                &mut report,
                |_, _| Ok(true),
            )?;
            if verified.damage.is_empty()
                && let Err(error) = read_contents(&open_store, &recovery)
            {
                verified.damage.push(error.to_string());
            }
            // What was read from the journal is the next opening's to read again.
            open_store.database.flush()?;
            Ok(verified)
        }
        Err(StoreError::Locked { .. }) => verify_in_use(path, options, &mut report),
        Err(error) => Err(error),
    }
}

fn verify_in_use(
    path: &Path,
    options: &Options,
    report: &mut impl FnMut(Progress),
) -> Result<Verified, StoreError> {
    let layout = Layout::new(path);
    // RocksDB may have begun another one in between.
    let check = || manifest::check(&layout);
    check().or_else(|_| check())?;
    let database = Database::open_beside(&layout.database(), options)?;
    let files = Files::beside(os(), layout.journal(), options.access());
    let is_still_so = |pointer, location: JournalLocation| {
        for _attempt in 0..2 {
            database.catch_up()?;
            if !has_place(&database, pointer, location)? {
                return Ok(false);
            }
            let files = Files::beside(os(), layout.journal(), options.access());
            if read_body(&files, pointer, location)?.is_ok() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let verified = walk(&database, &files, report, is_still_so)?;
    Ok(Verified {
        is_in_use: true,
        ..verified
    })
}

/// Reads everything; damage to a body counts if `is_still_so`.
fn walk(
    database: &Database,
    files: &Files,
    report: &mut impl FnMut(Progress),
    is_still_so: impl Fn(BodyPointer, JournalLocation) -> Result<bool, StoreError>,
) -> Result<Verified, StoreError> {
    let names = names(database);
    let mut verified = Verified::default();
    let mut walk = Walk::new(database, files);
    while let Some(piece) = walk.next()? {
        for damage in &piece.damage {
            if let Damage::Body(pointer, location, _) = damage
                && !is_still_so(*pointer, *location)?
            {
                continue;
            }
            let sentence = describe(damage, &names);
            if verified.damage.last() != Some(&sentence) {
                verified.damage.push(sentence);
            }
        }
        verified.progress.rows += piece.rows;
        verified.progress.bytes += piece.bytes;
        report(verified.progress);
    }
    Ok(verified)
}

/// The paths of entities, as far as they can be read.
fn names(database: &Database) -> BTreeMap<EntityId, String> {
    let entities = recovery::load(database).map(|recovery| recovery.entities);
    let rows = entities.unwrap_or_default().into_iter();
    rows.map(|row| (row.id, row.path)).collect()
}

fn describe(damage: &Damage, names: &BTreeMap<EntityId, String>) -> String {
    let name = |entity: EntityId| match names.get(&entity) {
        Some(path) => path.clone(),
        None => format!("entity {}", entity.0),
    };
    match damage {
        Damage::Body(pointer, _, error) => {
            format!(
                "message {} of {}: {error}",
                pointer.number,
                name(pointer.home)
            )
        }
        Damage::Rows(Some(entity), error) => format!("some messages of {}: {error}", name(*entity)),
        Damage::Rows(None, error) => error.to_string(),
    }
}

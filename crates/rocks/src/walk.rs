//! Walk: reads everything at rest in pieces, and goes on behind what is damaged.
//!
//! It reads each row of the index, and with it the blocks of RocksDB's tables and their checksums,
//! and each body that a row has a place for. Between two pieces nothing is held: readers, and files
//! that are to be removed, wait for one piece at most.

use journal::{Files, JournalLocation};
use rocksdb::{ColumnFamily, ReadOptions};
use store::{BodyPointer, EntityId, StoreError};

use crate::database::Database;
use crate::retention::location_of;
use crate::scan::Scan;

/// What a read from the disk brings at least.
const PAGE: u64 = 4_096;
/// The most rows and bytes of bodies of one piece.
const ROWS: u64 = 256;
const BYTES: u64 = 256 << 10;
/// What a row takes about, besides its body.
const ROW_BYTES: u64 = 64;
/// Entities that are tried behind damage before a table is given up.
const MOST_SKIPPED: u32 = 4_096;
/// No key is longer than this.
const LAST_KEY: [u8; 21] = [u8::MAX; 21];

/// A part of a store that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Damage {
    /// The body of one message, which should be at this place.
    Body(BodyPointer, JournalLocation, StoreError),
    /// Rows of an entity, or of one kind of the small tables.
    Rows(Option<EntityId>, StoreError),
}

impl Damage {
    pub fn error(&self) -> &StoreError {
        match self {
            Self::Body(_, _, error) | Self::Rows(_, error) => error,
        }
    }
}

/// What one piece had.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub rows: u64,
    pub bytes: u64,
    pub damage: Vec<Damage>,
}

/// A position in a store that is being read.
pub(crate) struct Walk<'a> {
    database: &'a Database,
    files: &'a Files,
    /// The family, and the key in it from which on it is to be read.
    family: usize,
    from: Vec<u8>,
    /// How many times in a row nothing could be read.
    skipped: u32,
}

impl<'a> Walk<'a> {
    pub fn new(database: &'a Database, files: &'a Files) -> Self {
        Self {
            database,
            files,
            family: 0,
            from: vec![0],
            skipped: 0,
        }
    }

    /// Reads the next piece; nothing at the end.
    ///
    /// # Errors
    /// When the disk fails. Damage is part of the piece.
    pub fn next(&mut self) -> Result<Option<Piece>, StoreError> {
        let database = self.database;
        let families = database.families();
        let all = [families.state, families.message, families.body];
        let Some(family) = all.get(self.family) else {
            return Ok(None);
        };
        let has_bodies = self.family > 0;
        // No file goes while its bodies are being read.
        let _files = database.files.read();
        let mut piece = Piece::default();
        let wanted = self.read_rows(family, has_bodies, &mut piece)?;
        for (pointer, location) in wanted {
            self.read_body(pointer, location, &mut piece)?;
        }
        Ok(Some(piece))
    }

    /// Reads rows from where the last piece ended, and returns the bodies that they have.
    fn read_rows(
        &mut self,
        family: &ColumnFamily,
        has_bodies: bool,
        piece: &mut Piece,
    ) -> Result<Vec<(BodyPointer, JournalLocation)>, StoreError> {
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        let from = self.from.clone();
        let db = &self.database.db;
        let mut scan = Scan::with(db, family, from, LAST_KEY, options);
        let mut wanted = Vec::new();
        loop {
            let (key, value) = match scan.next() {
                Ok(Some(row)) => row,
                Ok(None) => {
                    self.next_family();
                    return Ok(wanted);
                }
                Err(error @ StoreError::Corrupt { .. }) => {
                    self.skip(has_bodies, error, piece);
                    return Ok(wanted);
                }
                Err(error) => return Err(error),
            };
            self.skipped = 0;
            piece.rows += 1;
            piece.bytes += ROW_BYTES;
            self.from.clear();
            self.from.extend_from_slice(key);
            // The least key behind this one.
            self.from.push(0);
            if has_bodies {
                match location_of(key, value) {
                    Ok(found) => wanted.extend(found),
                    Err(error) => piece.damage.push(Damage::Rows(entity_of(key), error)),
                }
            }
            let bytes: u64 = wanted.iter().map(|(_, place)| u64::from(place.len)).sum();
            if piece.rows >= ROWS || bytes >= BYTES {
                return Ok(wanted);
            }
        }
    }

    fn next_family(&mut self) {
        self.family += 1;
        self.skipped = 0;
        self.from = vec![0];
    }

    /// Goes on with the next entity, or the next small table, behind a block that is damaged.
    fn skip(&mut self, has_bodies: bool, error: StoreError, piece: &mut Piece) {
        let prefix = if has_bodies { 8 } else { 1 };
        let entity = has_bodies.then(|| entity_of(&self.from)).flatten();
        piece.damage.push(Damage::Rows(entity, error));
        self.skipped += 1;
        if self.skipped > MOST_SKIPPED {
            return self.next_family();
        }
        let mut next = self.from.clone();
        next.resize(prefix, 0);
        while let Some(last) = next.pop() {
            if let Some(greater) = last.checked_add(1) {
                next.push(greater);
                self.from = next;
                return;
            }
        }
        self.next_family();
    }

    fn read_body(
        &self,
        pointer: BodyPointer,
        location: JournalLocation,
        piece: &mut Piece,
    ) -> Result<(), StoreError> {
        // A body is read in whole pages.
        piece.bytes += u64::from(location.len).next_multiple_of(PAGE);
        if let Err(error) = read_body(self.files, pointer, location)? {
            piece.damage.push(Damage::Body(pointer, location, error));
        }
        Ok(())
    }
}

/// Reads one body, and tells what is wrong with it.
///
/// # Errors
/// When the disk fails.
pub(crate) fn read_body(
    files: &Files,
    pointer: BodyPointer,
    location: JournalLocation,
) -> Result<Result<(), StoreError>, StoreError> {
    match files.read(&[Some((pointer, location))]) {
        Ok(found) if found.iter().all(Option::is_some) => Ok(Ok(())),
        Ok(_) => Ok(Err(files.missing(pointer, location))),
        Err(error @ StoreError::Corrupt { .. }) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// The entity whose row this is, in a family of rows or of bodies.
fn entity_of(key: &[u8]) -> Option<EntityId> {
    let id = key.first_chunk().copied().map(u64::from_be_bytes)?;
    Some(EntityId(id))
}

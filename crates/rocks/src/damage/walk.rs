//! Walk: reads everything at rest in pieces, and goes on behind what is damaged.
//!
//! It reads each row of the index, and with it the blocks of RocksDB's tables and their checksums,
//! and each body that a row has a place for. What removes files waits while rows of one piece are
//! read, and while one body is read a second time that could not be read at first: it may have
//! moved.

use index::key_search::readable_from;
use index::liveness::location_of;
use journal::key;
use journal::{Files, JournalLocation};
use rocksdb::{ColumnFamily, ReadOptions};
use store::{BodyPointer, EntityId, StoreError};

use crate::index::database::{Database, unreadable};
use crate::reader::scan::Scan;

/// What a read from the disk brings at least.
const PAGE: u64 = 4_096;
/// The most rows and bytes of bodies of one piece.
const ROWS: u64 = 256;
const BYTES: u64 = 256 << 10;
/// What a row takes about, besides its body.
const ROW_BYTES: u64 = 64;
/// No key is above this one.
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
}

/// A body, and where it should be.
type Placed = (BodyPointer, JournalLocation);

impl<'a> Walk<'a> {
    pub fn new(database: &'a Database, files: &'a Files) -> Self {
        Self {
            database,
            files,
            family: 0,
            from: vec![0],
        }
    }

    /// Reads the next piece; nothing at the end.
    ///
    /// # Errors
    /// When the store cannot be read for another reason than damage, which is part of the piece.
    pub fn next(&mut self) -> Result<Option<Piece>, StoreError> {
        let families = self.database.families();
        let all = [families.state, families.message, families.body];
        let Some(family) = all.get(self.family) else {
            return Ok(None);
        };
        let mut piece = Piece::default();
        let placed = self.read_rows(family, &mut piece)?;
        self.read_bodies(&placed, &mut piece)?;
        Ok(Some(piece))
    }

    /// Reads rows from where the last piece ended, and returns the bodies that they have.
    fn read_rows(
        &mut self,
        family: &ColumnFamily,
        piece: &mut Piece,
    ) -> Result<Vec<Placed>, StoreError> {
        let has_bodies = self.family > 0;
        // A snapshot pins no files.
        let _files = self.database.files.read();
        let mut scan = self.scan(family, &self.from);
        let mut placed = Vec::new();
        let mut last = Vec::new();
        loop {
            let (key, value) = match scan.next() {
                Ok(Some(row)) => row,
                Ok(None) => {
                    self.next_family();
                    return Ok(placed);
                }
                Err(error) if error.is_damage() => {
                    if !last.is_empty() {
                        self.from = last;
                    }
                    self.skip(family, error, piece)?;
                    return Ok(placed);
                }
                Err(error) => return Err(error),
            };
            piece.rows += 1;
            piece.bytes += ROW_BYTES;
            last.clear();
            last.extend_from_slice(key);
            // The least key behind this one.
            last.push(0);
            if has_bodies {
                match location_of(key, value) {
                    Ok(found) => placed.extend(found),
                    Err(error) => piece.damage.push(Damage::Rows(entity_of(key), error)),
                }
            }
            let bytes: u64 = placed.iter().map(|(_, place)| u64::from(place.len)).sum();
            if piece.rows >= ROWS || bytes >= BYTES {
                self.from = last;
                return Ok(placed);
            }
        }
    }

    fn scan(&self, family: &ColumnFamily, from: &[u8]) -> Scan<'a> {
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        Scan::with(&self.database.db, family, from, LAST_KEY, options)
    }

    fn next_family(&mut self) {
        self.family += 1;
        self.from = vec![0];
    }

    /// Goes on behind a block that is damaged.
    fn skip(
        &mut self,
        family: &ColumnFamily,
        error: StoreError,
        piece: &mut Piece,
    ) -> Result<(), StoreError> {
        let entity = (self.family > 0).then(|| entity_of(&self.from)).flatten();
        piece.damage.push(Damage::Rows(entity, error));
        let mut from = LAST_KEY;
        let len = self.from.len().min(from.len());
        from.fill(0);
        from[..len].copy_from_slice(&self.from[..len]);
        let read = |key: &[u8; LAST_KEY.len()]| self.scan(family, key).next().map(drop);
        let found = readable_from(from, LAST_KEY, read)?;
        if found == LAST_KEY {
            self.next_family();
        } else {
            self.from = found.to_vec();
        }
        Ok(())
    }

    /// Reads bodies at once, without holding up what removes files. What cannot be read so is read
    /// again by itself.
    fn read_bodies(&self, placed: &[Placed], piece: &mut Piece) -> Result<(), StoreError> {
        for (_, location) in placed {
            // A body is read in whole pages.
            piece.bytes += u64::from(location.len).next_multiple_of(PAGE);
        }
        let mut wanted = Vec::with_capacity(placed.len());
        let mut bytes = 0;
        for (at, body) in placed.iter().enumerate() {
            wanted.push(Some(*body));
            bytes += u64::from(body.1.len);
            if bytes < BYTES && at + 1 < placed.len() {
                continue;
            }
            let found = self.files.read(&wanted);
            if !found.is_ok_and(|found| found.iter().all(Option::is_some)) {
                for (pointer, location) in wanted.iter().flatten() {
                    self.read_alone(*pointer, *location, piece)?;
                }
            }
            wanted.clear();
            bytes = 0;
        }
        Ok(())
    }

    /// Reads a body that the index still has there, which it has until no file goes.
    fn read_alone(
        &self,
        pointer: BodyPointer,
        location: JournalLocation,
        piece: &mut Piece,
    ) -> Result<(), StoreError> {
        let _files = self.database.files.read();
        if has_place(self.database, pointer, location)?
            && let Err(error) = read_body(self.files, pointer, location)?
        {
            piece.damage.push(Damage::Body(pointer, location, error));
        }
        Ok(())
    }
}

/// Whether the index has this place for a body, as far as it can be read.
pub(crate) fn has_place(
    database: &Database,
    pointer: BodyPointer,
    location: JournalLocation,
) -> Result<bool, StoreError> {
    let families = database.families();
    let (row, own) = (key::own_row(pointer), key::body(pointer, 0));
    for (family, key) in [(families.message, &row[..]), (families.body, &own[..])] {
        let value = database.db.get_pinned_cf(family, key).map_err(unreadable);
        let place = value.and_then(|value| {
            let place = value.map(|value| location_of(key, &value)).transpose()?;
            Ok(place.flatten())
        });
        match place {
            Ok(place) if place == Some((pointer, location)) => return Ok(true),
            Ok(_) => {}
            // It is reported where rows are read.
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Reads one body, and tells what is wrong with it.
///
/// # Errors
/// When it cannot be read for another reason than damage.
pub(crate) fn read_body(
    files: &Files,
    pointer: BodyPointer,
    location: JournalLocation,
) -> Result<Result<(), StoreError>, StoreError> {
    match files.read(&[Some((pointer, location))]) {
        Ok(found) if found.iter().all(Option::is_some) => Ok(Ok(())),
        Ok(_) => Ok(Err(files.missing(pointer, location))),
        Err(error) if error.is_damage() => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

/// The entity whose row this is, in a family of rows or of bodies.
fn entity_of(key: &[u8]) -> Option<EntityId> {
    let id = key.first_chunk().copied().map(u64::from_be_bytes)?;
    Some(EntityId(id))
}

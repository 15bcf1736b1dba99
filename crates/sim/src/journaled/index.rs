//! Model index: what RocksDB promises the store, in memory.
//!
//! Batches are applied one after the other. A flush makes all of them permanent; without one a
//! crash keeps any number of them, the first ones, since RocksDB may flush by itself at any time.
//! It has rows, and for each body where in the journal that is.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use journal::{JournalLocation, Moves, SealedSegment, chunk};
use store::{BodyPointer, Image, StoreError, WriteSet};

use crate::rng::Rng;

/// What is applied at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub sets: Vec<WriteSet>,
    pub moves: Moves,
    pub position: u64,
    /// Segments that ended.
    pub sealed: Vec<SealedSegment>,
    /// Segments that are gone.
    pub forgotten: Vec<u64>,
}

/// What the index holds at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// With locations in the place of bodies.
    pub image: Image,
    pub segments: BTreeMap<u64, SealedSegment>,
    pub position: u64,
}

impl Rows {
    fn apply(&mut self, batch: &Batch) {
        for write in batch.sets.iter().flat_map(WriteSet::as_slice) {
            // What breaks the contract is reported where sets are submitted.
            let _reported = self.image.apply(write);
        }
        for (pointer, location) in &batch.moves {
            if let Some(body) = self.image.bodies.get_mut(&(pointer.home, pointer.number)) {
                body.clone_from(location);
            }
        }
        for sealed in &batch.sealed {
            self.segments.insert(sealed.id, sealed.clone());
        }
        for id in &batch.forgotten {
            self.segments.remove(id);
        }
        self.position = self.position.max(batch.position);
    }

    /// Every body and where it is.
    pub fn locations(&self) -> Result<Vec<(BodyPointer, JournalLocation)>, StoreError> {
        let bodies = self.image.bodies.iter();
        bodies
            .map(|((home, number), value)| {
                let pointer = BodyPointer {
                    home: *home,
                    number: *number,
                };
                Ok((pointer, location(pointer, value)?))
            })
            .collect()
    }

    /// The segments that have a body in them.
    pub fn needed(&self) -> Result<BTreeSet<u64>, StoreError> {
        let locations = self.locations()?.into_iter();
        Ok(locations.map(|(_, location)| location.segment).collect())
    }
}

fn location(pointer: BodyPointer, value: &Bytes) -> Result<JournalLocation, StoreError> {
    match chunk::decode(pointer, 0, value)? {
        chunk::Chunk::Elsewhere(location) => Ok(location),
        _ => Err(StoreError::Corrupt {
            what: "a body".into(),
            detail: format!("{pointer:?} has no location"),
        }),
    }
}

/// The index in both of its states.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelIndex {
    rows: Rows,
    permanent: Rows,
    /// Applied since the last flush.
    unflushed: Vec<Batch>,
}

impl ModelIndex {
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    pub fn permanent(&self) -> &Rows {
        &self.permanent
    }

    pub fn apply(&mut self, batch: Batch) {
        self.rows.apply(&batch);
        self.unflushed.push(batch);
    }

    pub fn flush(&mut self) {
        for batch in self.unflushed.drain(..) {
            self.permanent.apply(&batch);
        }
    }

    /// The process or the machine dies.
    pub fn crash(&mut self, rng: &mut Rng) {
        let kept = rng.below(self.unflushed.len() + 1);
        for batch in self.unflushed.drain(..).take(kept) {
            self.permanent.apply(&batch);
        }
        self.rows = self.permanent.clone();
    }
}

//! Opening: from the model disk to a journal that can be written to, as the store opens its own.
//!
//! In the order of a start: lock, format, the index as it was made permanent, the journal beyond
//! it, the witness, the ranges that a crash left marked. A journal that lost what is known to have
//! been acknowledged is refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use index::liveness::{each_location, is_needed};
use index::model::ModelTables;
use index::{Batch, Catchup, Family, Index, Tables, image, opening, range_reclaim, recovery};
use journal::directory::Directory;
use journal::log::CommitLog;
use journal::witness::{Witness, WitnessState};
use journal::{
    Access, FileSystem, Files, JournalLocation, Moves, Removal, ReplayStart, ReplayedJournal,
    SealedSegment, Writer, key,
};
use store::{BodyPointer, Image, StoreError};

use super::indexer::{Group, Indexer, LIMITS};
use super::{Control, SEGMENT_BYTES};
use crate::model_disk::ModelDisk;

/// Bodies that are read at once.
const AT_ONCE: usize = 64;

/// How records are written.
pub(super) enum Log {
    /// As the store does: the first error is final.
    Final(CommitLog),
    /// A control: a sync that fails is done again, and believed.
    Retrying(Writer),
}

/// An open journal.
pub(super) struct Opened {
    pub files: Arc<Files>,
    pub log: Log,
    pub witness: Witness,
    /// Of the newest record.
    pub position: u64,
    /// Durable, and not in the index.
    pub unapplied: Vec<Group>,
    pub indexer: Indexer,
    _directory: Directory,
}

/// A start.
pub(super) struct Start<'a> {
    pub disk: &'a ModelDisk,
    pub root: &'a Path,
    pub tables: Arc<ModelTables>,
    pub control: Option<Control>,
    /// Writes of the journal that the index gets at once, about.
    pub writes_at_once: usize,
}

impl Start<'_> {
    /// Opens what is there.
    pub fn open(self) -> Result<Opened, StoreError> {
        let system: Arc<dyn FileSystem> = Arc::new(self.disk.clone());
        let directory = Directory::acquire(&system, self.root)?;
        directory.check_format()?;
        let layout = directory.layout().clone();
        let files = Files::open(
            system.clone(),
            layout.journal(),
            Access::Direct,
            Removal::AtOnce,
        )?;
        let files = Arc::new(files);
        let witness = Witness::read(&*system, &layout.witness())?;
        directory.write_format()?;
        let tables = self.tables.clone();
        range_reclaim::recover(&*tables)?;
        let mut index = Index::open(self.tables.clone(), LIMITS)?;
        if self.control == Some(Control::DropWhatComesBack) {
            index.merger.drop_what_comes_back();
        }
        let mut known = opening::known_segments(&*tables)?;
        let mut found = self.replay(&files, &mut index, &known, witness)?;
        if self.control != Some(Control::CutAtDamage) {
            examine(&found, witness, &tables)?;
        }
        forget_missing(&mut known, &files, &tables)?;
        let unneeded = std::mem::take(&mut found.useless).into_iter();
        for id in unneeded.chain(std::mem::take(&mut found.unnamed)) {
            let removing = |error| StoreError::Io(format!("removing {id}: {error}"));
            files.remove(id).map_err(removing)?;
        }
        index.apply(&[], &Moves::new(), found.position, &found.sealed)?;
        range_reclaim::recover(&*tables)?;
        if !found.sealed.is_empty() {
            tables.flush();
        }
        let writer = Writer::new(files.clone(), SEGMENT_BYTES, found.next_id);
        let log = match self.control {
            Some(Control::BelieveRetriedSync) => Log::Retrying(writer),
            _ => Log::Final(CommitLog::new(writer)),
        };
        let sealed = known.into_values().chain(found.sealed).collect();
        Ok(Opened {
            witness: Witness::open(&system, &layout.witness(), found.position)?,
            files,
            log,
            position: found.position,
            unapplied: Vec::new(),
            indexer: Indexer::new(index, sealed, found.position),
            _directory: directory,
        })
    }

    /// Applies what the index has not made permanent.
    fn replay(
        &self,
        files: &Files,
        index: &mut Index<ModelTables>,
        known: &BTreeMap<u64, SealedSegment>,
        witness: WitnessState,
    ) -> Result<ReplayedJournal, StoreError> {
        let start = ReplayStart {
            position: opening::position(&*self.tables)?,
            known: &known.keys().copied().collect(),
            witnessed: witness.position(),
        };
        let mut catchup = Catchup::new(index, self.writes_at_once);
        let found = journal::replay(files, &start, |position, set, moves| {
            catchup.add(position, set, &moves)
        })?;
        catchup.finish()?;
        Ok(found)
    }
}

/// Refuses a journal that lost what was acknowledged, or has bodies where nothing can be read.
fn examine(
    found: &ReplayedJournal,
    witness: WitnessState,
    tables: &ModelTables,
) -> Result<(), StoreError> {
    let acknowledged = found.acknowledged(witness);
    if acknowledged > found.position {
        return Err(StoreError::LostCommits {
            recovered: found.position,
            witnessed: acknowledged,
            hint: String::new(),
        });
    }
    if let Some(what) = witness.damage(found.position) {
        return Err(damaged("the witness", what.into()));
    }
    let mut doubtful: BTreeMap<u64, u64> = found.doubtful.clone();
    doubtful.extend(
        found
            .useless
            .iter()
            .chain(&found.unnamed)
            .map(|id| (*id, 0)),
    );
    each_location(tables, |pointer, location| {
        let end = doubtful.get(&location.segment);
        if end.is_some_and(|end| location.reaches(*end)) {
            return Err(damaged("the journal", format!("{pointer:?} may be gone")));
        }
        Ok(())
    })
}

/// Forgets the segments whose files are gone, as they may be once nothing in them is needed.
fn forget_missing(
    known: &mut BTreeMap<u64, SealedSegment>,
    files: &Files,
    tables: &ModelTables,
) -> Result<(), StoreError> {
    let listing = |error| StoreError::Io(format!("listing: {error}"));
    let there = files.segments().map_err(listing)?;
    let mut batch = tables.batch(0);
    for (id, sealed) in known.extract_if(.., |id, _| !there.contains(id)) {
        if is_needed(&sealed, tables)? {
            return Err(damaged("the journal", format!("segment {id} is not there")));
        }
        batch.delete(Family::State, key::segment(id));
    }
    tables.write(batch)
}

fn damaged(what: &str, detail: String) -> StoreError {
    StoreError::Corrupt {
        what: what.into(),
        detail,
    }
}

impl Opened {
    /// Writes a record and makes it durable.
    pub fn append(&mut self, group: &mut Group) -> Result<(), StoreError> {
        self.position += 1;
        group.position = self.position;
        let (sets, moves) = (&mut group.sets, &mut group.moves);
        let appended = match &mut self.log {
            Log::Final(log) => log.append(self.position, sets, moves, journal::log::Sync::Now)?,
            Log::Retrying(writer) => {
                let failed = |error| StoreError::Io(format!("{error}"));
                let appended = writer.append(self.position, sets, moves).map_err(failed)?;
                writer.sync().or_else(|_| writer.sync()).map_err(failed)?;
                appended
            }
        };
        group.sealed = appended.sealed;
        let recording = |error| StoreError::Io(format!("the witness: {error}"));
        self.witness.record(self.position).map_err(recording)
    }

    /// Ends the segment that is written to.
    pub fn seal(&mut self) -> Option<SealedSegment> {
        match &mut self.log {
            Log::Final(log) => log.seal(),
            Log::Retrying(writer) => writer.seal(),
        }
    }

    /// Reads all rows and their bodies, and compares all of it with what should be there. A body
    /// that cannot be read is counted if bits were flipped, else it is an error.
    pub fn compare(&self, expected: &Image, flipped: bool) -> Result<u64, String> {
        let (mut found, locations) = self.image().map_err(|error| error.to_string())?;
        let mut refused = 0;
        for wanted in locations.chunks(AT_ONCE) {
            let each: Vec<_> = wanted.iter().copied().map(Some).collect();
            let bodies = match self.files.read(&each) {
                Ok(bodies) => bodies,
                Err(_) if flipped => self.read_each(&each),
                Err(error) => return Err(error.to_string()),
            };
            for ((pointer, _), body) in wanted.iter().zip(bodies) {
                let key = (pointer.home, pointer.number);
                let body = match body {
                    Some(body) => body,
                    None if flipped => {
                        refused += 1;
                        expected.bodies.get(&key).cloned().unwrap_or_default()
                    }
                    None => return Err(format!("{pointer:?} has no segment")),
                };
                found.bodies.insert(key, body);
            }
        }
        if found == *expected {
            return Ok(refused);
        }
        Err(difference(&found, expected))
    }

    /// Everything in the index, and where bodies are.
    fn image(&self) -> Result<(Image, Vec<Located>), StoreError> {
        let tables = self.indexer.tables();
        let mut locations = Vec::new();
        let found = image::read(tables, recovery::load(tables)?, |pointer, location| {
            locations.push((pointer, location));
            Ok(Bytes::new())
        })?;
        Ok((found, locations))
    }

    fn read_each(&self, wanted: &[Wanted]) -> Vec<Option<Bytes>> {
        let read = |wanted: &Wanted| {
            let bodies = self.files.read(std::slice::from_ref(wanted)).ok()?;
            bodies.into_iter().next().flatten()
        };
        wanted.iter().map(read).collect()
    }

    /// The bodies of a segment, if they are few, to be written again.
    pub fn read_few(&self, segment: u64) -> Result<Moves, StoreError> {
        let left = self.indexer.left_in(segment)?;
        let wanted: Vec<_> = left.iter().copied().map(Some).collect();
        let bodies = self.files.read(&wanted)?.into_iter();
        let pointers = left.into_iter().map(|(pointer, _)| pointer);
        Ok(pointers
            .zip(bodies)
            .filter_map(|(pointer, body)| Some((pointer, body?)))
            .collect())
    }
}

type Located = (BodyPointer, JournalLocation);
type Wanted = Option<Located>;

/// Which table differs.
fn difference(found: &Image, expected: &Image) -> String {
    let tables = [
        ("rows", found.messages == expected.messages),
        ("bodies", found.bodies == expected.bodies),
        ("heads", found.heads == expected.heads),
        ("entries", found.entries == expected.entries),
        ("entities", found.entities == expected.entities),
    ];
    let different = tables.iter().filter(|(_, same)| !same);
    let names: Vec<_> = different.map(|(name, _)| *name).collect();
    format!(
        "{names:?} differ: {} rows for {}, {} bodies for {}",
        found.messages.len(),
        expected.messages.len(),
        found.bodies.len(),
        expected.bodies.len()
    )
}

//! Opening: from the model disk to a journal that can be written to, as the store opens its own.
//!
//! In the order of a start: lock, format, the index as it was made permanent, the journal beyond
//! it, the witness. A journal that lost what is known to have been acknowledged is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use journal::directory::Directory;
use journal::log::CommitLog;
use journal::witness::{Witness, WitnessState};
use journal::{
    Access, FileSystem, Files, Moves, Removal, ReplayStart, ReplayedJournal, SealedSegment, Writer,
};
use store::{Image, StoreError};

use super::index::{Batch, ModelIndex, Rows};
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
    pub unapplied: Vec<Batch>,
    _directory: Directory,
}

/// Opens what is below `root` on `disk`, of which `index` is the index.
pub(super) fn open(
    disk: &ModelDisk,
    root: &Path,
    index: &mut ModelIndex,
    control: Option<Control>,
) -> Result<Opened, StoreError> {
    let system: Arc<dyn FileSystem> = Arc::new(disk.clone());
    let directory = Directory::acquire(&system, root)?;
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
    let mut found = replay(&files, index, witness)?;
    if control != Some(Control::CutAtDamage) {
        examine(&found, witness, index.rows())?;
    }
    forget_missing(&files, index)?;
    let unneeded = std::mem::take(&mut found.useless).into_iter();
    for id in unneeded.chain(std::mem::take(&mut found.unnamed)) {
        let removing = |error| StoreError::Io(format!("removing {id}: {error}"));
        files.remove(id).map_err(removing)?;
    }
    let was_read = !found.sealed.is_empty();
    index.apply(Batch {
        position: found.position,
        sealed: found.sealed,
        ..Batch::default()
    });
    if was_read {
        index.flush();
    }
    let writer = Writer::new(files.clone(), SEGMENT_BYTES, found.next_id);
    let log = match control {
        Some(Control::BelieveRetriedSync) => Log::Retrying(writer),
        _ => Log::Final(CommitLog::new(writer)),
    };
    Ok(Opened {
        witness: Witness::open(&system, &layout.witness(), found.position)?,
        files,
        log,
        position: found.position,
        unapplied: Vec::new(),
        _directory: directory,
    })
}

/// Applies what the index has not made permanent.
fn replay(
    files: &Files,
    index: &mut ModelIndex,
    witness: WitnessState,
) -> Result<ReplayedJournal, StoreError> {
    let known: BTreeSet<u64> = index.rows().segments.keys().copied().collect();
    let start = ReplayStart {
        position: index.rows().position,
        known: &known,
        witnessed: witness.position(),
    };
    journal::replay(files, &start, |position, set, moves| {
        index.apply(Batch {
            sets: vec![set],
            moves,
            position,
            ..Batch::default()
        });
        Ok(())
    })
}

/// Refuses a journal that lost what was acknowledged, or has bodies where nothing can be read.
fn examine(found: &ReplayedJournal, witness: WitnessState, rows: &Rows) -> Result<(), StoreError> {
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
    for (pointer, location) in rows.locations()? {
        let end = doubtful.get(&location.segment);
        if end.is_some_and(|end| location.reaches(*end)) {
            return Err(damaged("the journal", format!("{pointer:?} may be gone")));
        }
    }
    Ok(())
}

/// Forgets the segments whose files are gone, as they may be once nothing in them is needed.
fn forget_missing(files: &Files, index: &mut ModelIndex) -> Result<(), StoreError> {
    let listing = |error| StoreError::Io(format!("listing: {error}"));
    let there = files.segments().map_err(listing)?;
    let needed = index.rows().needed()?;
    let known = index.rows().segments.keys();
    let missing: Vec<u64> = known.filter(|id| !there.contains(id)).copied().collect();
    if let Some(id) = missing.iter().find(|id| needed.contains(id)) {
        return Err(damaged("the journal", format!("segment {id} is not there")));
    }
    index.apply(Batch {
        forgotten: missing,
        ..Batch::default()
    });
    Ok(())
}

fn damaged(what: &str, detail: String) -> StoreError {
    StoreError::Corrupt {
        what: what.into(),
        detail,
    }
}

impl Opened {
    /// Writes a record and makes it durable.
    pub fn append(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        self.position += 1;
        batch.position = self.position;
        let (sets, moves) = (&mut batch.sets, &mut batch.moves);
        let appended = match &mut self.log {
            Log::Final(log) => log.append(self.position, sets, moves, journal::log::Sync::Now)?,
            Log::Retrying(writer) => {
                let failed = |error| StoreError::Io(format!("{error}"));
                let appended = writer.append(self.position, sets, moves).map_err(failed)?;
                writer.sync().or_else(|_| writer.sync()).map_err(failed)?;
                appended
            }
        };
        batch.sealed = appended.sealed;
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

    /// Reads the bodies of `rows` and compares all of it with what should be there. A body that
    /// cannot be read is counted if bits were flipped, else it is an error.
    pub fn compare(&self, rows: &Rows, expected: &Image, flipped: bool) -> Result<u64, String> {
        let mut found = rows.image.clone();
        let mut refused = 0;
        let locations = rows.locations().map_err(|error| error.to_string())?;
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

    fn read_each(&self, wanted: &[Wanted]) -> Vec<Option<Bytes>> {
        let read = |wanted: &Wanted| {
            let bodies = self.files.read(std::slice::from_ref(wanted)).ok()?;
            bodies.into_iter().next().flatten()
        };
        wanted.iter().map(read).collect()
    }

    /// The bodies of a segment, if they are few, to be written again.
    pub fn read_few(&self, rows: &Rows, segment: u64, most: usize) -> Result<Moves, StoreError> {
        let mut left = rows.locations()?;
        left.retain(|(_, location)| location.segment == segment);
        if left.len() > most {
            return Ok(Moves::new());
        }
        let wanted: Vec<_> = left.iter().copied().map(Some).collect();
        let bodies = self.files.read(&wanted)?.into_iter();
        let pointers = left.into_iter().map(|(pointer, _)| pointer);
        Ok(pointers
            .zip(bodies)
            .filter_map(|(pointer, body)| Some((pointer, body?)))
            .collect())
    }
}

type Wanted = Option<(store::BodyPointer, journal::JournalLocation)>;

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

//! Open store: from a directory to a complete store that only this process uses.
//!
//! In this order: lock, format, free space, the index as it was made permanent, the journal beyond
//! it, and the witness. Only when the witness confirms that no acknowledged commit is missing is
//! the rest of an interrupted commit cleaned up.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use index::liveness::{each_location, is_needed};
use index::{Batch, Catchup, Family, Index, Limits, Tables, opening, range_reclaim, recovery};
use journal::directory::{Directory, Layout, check_version, io_error, sync_directory};
use journal::key::{self, single};
use journal::value::{self, FORMAT};
use journal::witness::{Witness, WitnessState};
use journal::{FileSystem, Files, JournalLocation, Moves, Removal, SealedSegment};
use store::{BodyPointer, StoreError};

use crate::damage::loss;
use crate::damage::manifest;
use crate::damage::rescue::Rescue;
use crate::disk_space::{self, Reserve};
use crate::index::database::Database;
use crate::options::Options;

/// Writes of the journal that are applied at once.
const WRITES_AT_ONCE: usize = 32_768;
/// A copy is written in batches of about this.
const COPY_BYTES: usize = if cfg!(test) { 4 << 10 } else { 8 << 20 };

/// An open index and journal in their locked directory.
pub(crate) struct OpenStore {
    // Closed before the directory is unlocked, hence above it.
    pub database: Arc<Database>,
    pub files: Arc<Files>,
    pub directory: Directory,
    pub system: Arc<dyn FileSystem>,
    #[cfg(test)]
    pub staging_hooks: Arc<crate::hooks::Hooks>,
}

/// Where the store goes on.
pub(crate) struct Recovered {
    /// The position of the newest group.
    pub position: u64,
    pub index: Index<Database>,
    /// Segments that have something in them.
    pub sealed: Vec<SealedSegment>,
    /// The least id for a new segment.
    pub next_segment: u64,
    /// Whether there were segments that the index did not know.
    pub was_read: bool,
}

impl OpenStore {
    /// A body that the index has a place for.
    pub fn read_body(
        &self,
        pointer: BodyPointer,
        location: JournalLocation,
    ) -> Result<Bytes, StoreError> {
        let read = self.files.read(&[Some((pointer, location))])?;
        read.into_iter().flatten().next().ok_or_else(|| {
            let detail = format!("the segment that {pointer:?} is in is not there");
            value::damaged("a body", detail)
        })
    }
}

/// Opens what is at `path`, or makes it.
pub(crate) fn open(path: &Path, options: &Options) -> Result<(OpenStore, Recovered), StoreError> {
    let system = journal::file_system::os();
    let directory = Directory::acquire(&system, path)?;
    directory.check_format()?;
    let layout = directory.layout();
    let unfinished = layout.staging();
    let removing = |error| io_error("removing", unfinished.root(), &error);
    unfinished.remove(&*system).map_err(removing)?;
    let asking = |error| io_error("asking for free space at", path, &error);
    let reserve = Reserve::new(layout.reserve(), options.memtables());
    let free = disk_space::free_bytes(path).map_err(asking)?;
    reserve.release_if_needed(free).map_err(asking)?;
    manifest::check(layout)?;
    let rescue = Rescue::link(&layout.database(), layout.rescue());
    let database = Arc::new(Database::open(&layout.database(), options)?);
    check_format(&database)?;
    #[cfg(test)]
    let (system, staging_hooks) = crate::hooks::file_system();
    let files = Files::open(
        system.clone(),
        layout.journal(),
        options.access(),
        Removal::InBackground,
    );
    let files = Arc::new(files?);
    let witness_state = Witness::read(&*system, &layout.witness())?;
    // Also if the opening is refused after that: what is replayed may be made permanent at any
    // time.
    directory.write_format()?;
    let mut recovered = replay(&database, &files, witness_state, layout, (rescue, options))?;
    let has_pending = opening::remove_pending_bodies(&*database)?;
    range_reclaim::recover(&*database)?;
    if recovered.was_read || has_pending {
        // Before anything is added: what the journal has beyond its end, and what was pending, must
        // not be seen again with another eye once there is more.
        note_format(&database)?;
        database.flush()?;
    } else {
        note_format(&database)?;
    }
    reserve.take(disk_space::free_bytes(path).map_err(asking)?);
    recovered.sealed.sort_by_key(|sealed| sealed.id);
    let open_store = OpenStore {
        database,
        files,
        directory,
        system,
        #[cfg(test)]
        staging_hooks,
    };
    Ok((open_store, recovered))
}

/// Tells the index what it has not made permanent, and what became of the segments.
fn replay(
    database: &Arc<Database>,
    files: &Files,
    witness_state: WitnessState,
    layout: &Layout,
    (rescue, options): (Rescue, &Options),
) -> Result<Recovered, StoreError> {
    // Rows that dropped files have brought up must not be taken for any that are there.
    range_reclaim::recover(&**database)?;
    let mut known = opening::known_segments(&**database)?;
    files.staged.skip(known.keys().copied());
    let limits = Limits {
        copy_bytes: COPY_BYTES,
        ..Limits::default()
    };
    let mut index = Index::open(database.clone(), limits)?;
    let from = journal::ReplayStart {
        position: database.position()?,
        known: &known.keys().copied().collect(),
        witnessed: witness_state.position(),
    };
    let mut catchup = Catchup::new(&mut index, WRITES_AT_ONCE);
    let mut found = journal::replay(files, &from, |position, set, moves| {
        catchup.add(position, set, &moves)
    })?;
    catchup.finish()?;
    let accepted = examine((layout, files), witness_state, &found, options, rescue)?;
    if accepted {
        let acknowledged = found.acknowledged(witness_state);
        let entities = recovery::load_entities(&**database)?;
        loss::report((found.position, acknowledged), &found.beyond, &entities);
        keep_segments(layout, files, &found)?;
    }
    check_doubtful(&mut found, database, files, options)?;
    know_staged(&mut known, &found.staged);
    forget_missing(&mut known, files, database, options)?;
    for id in found.useless.into_iter().chain(found.unnamed) {
        let removing = |error| io_error("removing", &files.path(id), &error);
        files.remove(id).map_err(removing)?;
    }
    let staged = found.staged.keys().filter_map(|id| known.get(id)).cloned();
    let new: Vec<_> = found.sealed.iter().cloned().chain(staged).collect();
    index.apply(&[], &Moves::new(), found.position, &new)?;
    Ok(Recovered {
        position: found.position,
        index,
        was_read: !found.sealed.is_empty(),
        sealed: known.into_values().chain(found.sealed).collect(),
        next_segment: found.next_id,
    })
}

/// Adds the files of staged bodies that records name, whose bodies may be gone by now.
fn know_staged(known: &mut BTreeMap<u64, SealedSegment>, named: &BTreeMap<u64, SealedSegment>) {
    for (id, file) in named {
        let known = known.entry(*id).or_insert_with(|| file.clone());
        known.body_ranges.extend(&file.body_ranges);
    }
}

/// Looks for bodies in the parts of segments that could not be read, and in those without a record
/// that counts, which are about to go: a damaged record must not take along what is behind it.
fn check_doubtful(
    found: &mut journal::ReplayedJournal,
    database: &Database,
    files: &Files,
    options: &Options,
) -> Result<(), StoreError> {
    let useless = found.useless.iter().map(|id| (*id, 0));
    let mut doubtful: BTreeMap<u64, u64> = found
        .doubtful
        .iter()
        .map(|(id, end)| (*id, *end))
        .chain(useless)
        .collect();
    if doubtful.is_empty() {
        // Whatever the index knows stands in a record that was read, or in a segment that it knows.
        return Ok(());
    }
    doubtful.extend(found.unnamed.iter().map(|id| (*id, 0)));
    let mut kept: BTreeMap<u64, u64> = BTreeMap::new();
    each_location(database, |pointer, location| {
        if doubtful
            .get(&location.segment)
            .is_none_or(|end| !location.reaches(*end))
        {
            return Ok(());
        }
        if !options.repair {
            let path = files.path(location.segment);
            let end = doubtful.get(&location.segment).copied().unwrap_or(0);
            let detail = format!(
                "{} cannot be read from byte {end} on, and the index has bodies there. \
                 Restore a backup, or start with --repair",
                path.display()
            );
            return Err(value::damaged("the journal", detail));
        }
        *kept.entry(location.segment).or_default() += 1;
        found.keep_for(location.segment, pointer);
        Ok(())
    })?;
    for (id, bodies) in kept {
        let path = files.path(id);
        let path = path.display();
        tracing::warn!(
            "repair: {path} cannot be read as a whole, and has the bodies of {bodies} messages: \
             those that are damaged are refused to their receivers"
        );
    }
    Ok(())
}

/// Forgets the segments whose files are gone, as they may be once nothing in them is needed.
fn forget_missing(
    known: &mut BTreeMap<u64, SealedSegment>,
    files: &Files,
    database: &Database,
    options: &Options,
) -> Result<(), StoreError> {
    let listing = |error| io_error("listing", &files.path(0), &error);
    let mut there = files.segments().map_err(listing)?;
    there.extend(files.staged().map_err(listing)?);
    let mut batch = database.batch(0);
    for (id, sealed) in known.extract_if(.., |id, _| there.binary_search(id).is_err()) {
        if is_needed(&sealed, database)? {
            let path = files.path(id);
            let path = path.display();
            if !options.repair {
                let detail = format!(
                    "{path} is not there, and the index has bodies in it. Restore a backup, or \
                     start with --repair"
                );
                return Err(value::damaged("the journal", detail));
            }
            tracing::warn!(
                "repair: {path} is not there: the messages whose bodies were in it are refused to \
                 their receivers"
            );
        }
        batch.delete(Family::State, key::segment(id));
    }
    database.write(batch)
}

/// Compares what was recovered with what the witness saw acknowledged, and with what the journal
/// tells of its own. Returns whether a loss was accepted.
fn examine(
    (layout, files): (&Layout, &Files),
    witness_state: WitnessState,
    found: &journal::ReplayedJournal,
    options: &Options,
    rescue: Rescue,
) -> Result<bool, StoreError> {
    let removing_failed = |error| io_error("removing", &layout.rescue(), &error);
    let acknowledged = found.acknowledged(witness_state);
    let lost = if acknowledged > found.position {
        StoreError::LostCommits {
            recovered: found.position,
            witnessed: acknowledged,
            hint: way_out(layout, files, found),
        }
    } else if let Some(what) = witness_state.damage(found.position) {
        let detail = format!(
            "{} {what}, so the end of the journal cannot be checked. Restore a backup, or start \
             with --repair, which takes the journal as it is",
            layout.witness().display()
        );
        value::damaged("the witness of the log", detail)
    } else {
        if !found.beyond.is_empty() {
            let commits = found.beyond.len();
            tracing::warn!(
                commits,
                position = found.position,
                "commits that a power cut interrupted are left out: none of them was acknowledged as synced"
            );
        }
        rescue.release().map_err(removing_failed)?;
        return Ok(false);
    };
    if !options.repair {
        return Err(lost);
    }
    tracing::warn!(%lost, "opening with data loss, as asked");
    rescue.keep(found.position).map_err(removing_failed)?;
    Ok(true)
}

/// Where the journal is damaged, and what to do.
fn way_out(layout: &Layout, files: &Files, found: &journal::ReplayedJournal) -> String {
    let place = match found.end {
        Some((id, offset)) => {
            let path = files.path(id);
            format!("{} is damaged from byte {offset} on", path.display())
        }
        None => format!("{} has no journal", layout.journal().display()),
    };
    format!(
        "{place}. Restore a backup, or start with --repair, which goes on with what is left and \
         keeps damaged log files"
    )
}

/// Links the segments that were read into a second folder, for an analysis.
fn keep_segments(
    layout: &Layout,
    files: &Files,
    found: &journal::ReplayedJournal,
) -> Result<(), StoreError> {
    let folder = layout.rescued(found.position);
    let ids = found.sealed.iter().map(|sealed| sealed.id);
    let keep = || {
        fs::create_dir_all(&folder)?;
        ids.chain(found.useless.iter().copied())
            .chain(found.unnamed.iter().copied())
            .try_for_each(|id| files.link(id, &folder))?;
        sync_directory(&folder)
    };
    keep().map_err(|error| io_error("keeping segments in", &folder, &error))
}

/// Refuses a newer layout.
fn check_format(database: &Database) -> Result<(), StoreError> {
    let found = database.single(single::FORMAT)?;
    found.map_or(Ok(()), |found| {
        check_version(value::decode_u32("the format version", &found)?)
    })
}

/// Notes our layout in the index too.
fn note_format(database: &Database) -> Result<(), StoreError> {
    let mut batch = database.batch(0);
    batch.put(Family::State, single::FORMAT, FORMAT.to_be_bytes());
    // The format file has it too, and is durable.
    database.write(batch)
}

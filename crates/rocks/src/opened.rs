//! Opened: from a directory to a database that is whole and nobody else's.
//!
//! In this order: lock, format, room, links to the log, recovery by RocksDB, and the witness. Only
//! when the witness agrees that nothing acknowledged is missing are the links let go of and the
//! rest of a commit that a crash cut short is cleaned up.

use std::path::Path;
use std::sync::Arc;

use rocksdb::WriteBatch;
use store::{BodyPointer, EntityId, StoreError};

use crate::database::Database;
use crate::directory::{Directory, Layout, check_version, io_error};
use crate::key::{self, Kind, single};
use crate::log::{CommitLog, Sync};
use crate::options::Options;
use crate::rescue::Rescue;
use crate::scan::Scan;
use crate::space::{self, Reserve};
use crate::value::{self, FORMAT};
use crate::witness::{Testimony, Witness};

/// An open database in its locked directory.
pub(crate) struct Opened {
    // Closed before the directory is unlocked, hence above it.
    pub database: Arc<Database>,
    pub directory: Directory,
    /// The position of the newest group that was recovered.
    pub position: u64,
    pub last_entity: Option<EntityId>,
    /// Whether there are bodies of several chunks.
    pub large_bodies: bool,
}

/// Opens what is at `path`, or makes it.
pub(crate) fn open(path: &Path, options: &Options) -> Result<Opened, StoreError> {
    let directory = Directory::acquire(path)?;
    directory.check_format()?;
    let layout = directory.layout();
    let unfinished = layout.staging();
    let removing = |error| io_error("removing", unfinished.root(), &error);
    unfinished.remove().map_err(removing)?;
    let asking = |error| io_error("asking for free space at", path, &error);
    let reserve = Reserve::new(layout.reserve(), options.memtables());
    let free = space::free_bytes(path).map_err(asking)?;
    reserve.release_if_needed(free).map_err(asking)?;
    let rescue = Rescue::link(&layout.database(), layout.rescue());
    let database = Arc::new(Database::open(&layout.database(), options)?);
    let position = recovered_position(&database)?;
    examine(layout, position, options, rescue)?;
    let mut log = CommitLog::new(database.clone());
    settle_format(&database, &mut log)?;
    directory.write_format()?;
    remove_pending_bodies(&database, &mut log)?;
    reserve.take(space::free_bytes(path).map_err(asking)?);
    let last_entity = last_entity(&database)?;
    let large_bodies = has_large_bodies(&database)?;
    Ok(Opened {
        database,
        directory,
        position,
        last_entity,
        large_bodies,
    })
}

/// Compares what was recovered with what the witness saw acknowledged.
fn examine(
    layout: &Layout,
    recovered: u64,
    options: &Options,
    rescue: Rescue,
) -> Result<(), StoreError> {
    let letting_go = |error| io_error("removing", &layout.rescue(), &error);
    let lost = match Witness::read(&layout.witness())? {
        Testimony::Position(witnessed) if witnessed > recovered => {
            let rescue = layout.rescue();
            let hint = format!("damaged log files are kept in {}", rescue.display());
            StoreError::LostCommits {
                recovered,
                witnessed,
                hint,
            }
        }
        Testimony::Unreadable => {
            let detail = format!("{}: neither slot", layout.witness().display());
            value::damaged("the witness of the log", detail)
        }
        Testimony::Nothing | Testimony::Position(_) => return rescue.release().map_err(letting_go),
    };
    if !options.accept_data_loss {
        return Err(lost);
    }
    tracing::warn!(%lost, "opening with data loss, as asked");
    rescue.keep(recovered).map_err(letting_go)
}

fn recovered_position(database: &Database) -> Result<u64, StoreError> {
    let value = database.single(single::POSITION)?;
    value.map_or(Ok(0), |value| {
        value::decode_u64("the position in the log", &value)
    })
}

pub(crate) fn last_entity(database: &Database) -> Result<Option<EntityId>, StoreError> {
    let value = database.single(single::LAST_ENTITY)?;
    value
        .map(|value| value::decode_u64("the last entity", &value).map(EntityId))
        .transpose()
}

/// Refuses a newer layout, and notes ours in a new store.
fn settle_format(database: &Database, log: &mut CommitLog) -> Result<(), StoreError> {
    if let Some(found) = database.single(single::FORMAT)? {
        return check_version(value::decode_u32("the format version", &found)?);
    }
    let mut batch = WriteBatch::default();
    batch.put_cf(
        database.families().state,
        single::FORMAT,
        FORMAT.to_be_bytes(),
    );
    // The format file says it too; this goes to the disk with the first commit.
    log.append(batch, Sync::Later)
}

/// Removes chunks whose message never came: a crash fell between them and their set.
fn remove_pending_bodies(database: &Database, log: &mut CommitLog) -> Result<(), StoreError> {
    let families = database.families();
    let (from, until) = Kind::PendingBody.bounds();
    let mut scan = Scan::new(&database.db, families.state, from, until);
    let mut batch = WriteBatch::default();
    while let Some((found, _)) = scan.next()? {
        let (home, number) = key::parse_of_number(Kind::PendingBody, found)
            .ok_or_else(|| value::damaged("a pending body's key", format!("{found:02x?}")))?;
        let pointer = BodyPointer { home, number };
        let next = BodyPointer {
            number: key::after_number(pointer.number),
            ..pointer
        };
        batch.delete_range_cf(families.body, key::body(pointer, 0), key::body(next, 0));
        batch.delete_cf(families.state, found);
    }
    if batch.is_empty() {
        Ok(())
    } else {
        log.append(batch, Sync::Now)
    }
}

fn has_large_bodies(database: &Database) -> Result<bool, StoreError> {
    let (from, until) = Kind::LargeBody.bounds();
    let mut scan = Scan::new(&database.db, database.families().state, from, until);
    Ok(scan.next()?.is_some())
}

//! Database: RocksDB with our column families and options, opened.
//!
//! All decisions about RocksDB that rest on measurements stand here. It has no log: what it has
//! not made permanent is in the journal. All families are flushed together, so everything up to
//! one position is permanent. The [indexer](crate::index::indexer) writes, and so does the opening;
//! readers use [`Scan`](crate::reader::scan::Scan) and point reads.

use std::path::Path;
use std::{env, process};

use index::Family;
use journal::key::single;
use journal::value;
use parking_lot::RwLock;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB,
    DBCompressionType, DBRecoveryMode, ErrorKind, FlushOptions, LogLevel, ReadOptions, ReadTier,
    WriteBufferManager,
};
use store::StoreError;

use crate::index::yield_filter::YieldFilter;
use crate::options::Options;

/// Range deletions after which a memtable is flushed, since its reads walk over all of them.
const MEMTABLE_RANGE_DELETIONS: u32 = 4_096;
/// Seconds in which a table of the last level is not written again only because it could be
/// simpler, or because rows in it that were deleted under a reader's eyes could go. Most are gone
/// by then.
const LAST_LEVEL_AS_IT_IS: u32 = 24 * 60 * 60;
/// Small enough that a settled range holds whole files, which can be dropped.
const TABLE_FILE: u64 = 16 << 20;
/// A new table spans all from what was settled to what was sent meanwhile, so merging it with the
/// whole of a backlog would write that again. Small levels above the last have it merged with
/// little at a time: what was sent is handed down at once, being larger than the first of them, and
/// deletions come down by and by, in tables that are small enough to wait until there are that
/// many.
const FIRST_LEVEL: u64 = 4 << 20;
const NEW_TABLES: i32 = 16;
/// Open tables at a time; the rest of the descriptors is for connections.
const OPEN_FILES: i32 = 512;
/// What flushes and compactions may write per second at most; tuned down by RocksDB itself.
const BACKGROUND_BYTES_PER_SECOND: i64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// What RocksDB says of `EIO`.
const DISK_ERROR: &str = "Input/output error";

/// The column families by name. Each costs a sync when a store is made and a table when one is
/// opened again, so the small tables share one and differ in the first byte of their keys.
mod family {
    /// The one that every RocksDB has.
    pub const STATE: &str = rocksdb::DEFAULT_COLUMN_FAMILY_NAME;
    pub const MESSAGE: &str = "msg";
    pub const BODY: &str = "body";
    pub const ALL: [&str; 3] = [STATE, MESSAGE, BODY];
}

/// Handles of all families, looked up once per use.
#[derive(Clone, Copy)]
pub(crate) struct Families<'a> {
    /// Everything by [`Kind`](journal::key::Kind), and what there is one of.
    pub state: &'a ColumnFamily,
    /// Messages' rows.
    pub message: &'a ColumnFamily,
    /// Chunks of bodies.
    pub body: &'a ColumnFamily,
}

impl<'a> Families<'a> {
    pub fn of(&self, family: Family) -> &'a ColumnFamily {
        match family {
            Family::State => self.state,
            Family::Message => self.message,
            Family::Body => self.body,
        }
    }
}

/// An open RocksDB.
pub(crate) struct Database {
    pub db: DB,
    /// Held shared by readers, and exclusively to drop files: a snapshot pins no files, so an older
    /// one could see a row again whose deletion was dropped with its file.
    pub files: RwLock<()>,
}

impl Database {
    pub fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let cache = Cache::new_lru_cache(to_usize(options.block_cache()));
        let families = family::ALL
            .map(|name| ColumnFamilyDescriptor::new(name, family_options(name, options, &cache)));
        let db = DB::open_cf_descriptors(&database_options(options), path, families);
        Ok(Self {
            db: db.map_err(|error| unusable(path, error))?,
            files: RwLock::new(()),
        })
    }

    /// Opens what another process has open, to read what that has made permanent.
    pub fn open_beside(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let cache = Cache::new_lru_cache(to_usize(options.block_cache()));
        let families = family::ALL
            .map(|name| ColumnFamilyDescriptor::new(name, family_options(name, options, &cache)));
        let mut database = database_options(options);
        // A file that the other process removes can then still be read.
        database.set_max_open_files(-1);
        // RocksDB wants a place for its own log.
        let place = env::temp_dir().join(format!("railbus-verify-{}", process::id()));
        let db = DB::open_cf_descriptors_as_secondary(&database, path, &place, families);
        let db = db.map_err(|error| unusable(path, error));
        drop(std::fs::remove_dir_all(&place));
        Ok(Self {
            db: db?,
            files: RwLock::new(()),
        })
    }

    /// Goes on to what the other process has made permanent since.
    pub fn catch_up(&self) -> Result<(), StoreError> {
        self.db.try_catch_up_with_primary().map_err(refused)
    }

    pub fn families(&self) -> Families<'_> {
        Families {
            state: self.family(Family::State),
            message: self.family(Family::Message),
            body: self.family(Family::Body),
        }
    }

    /// The handle of one of them.
    pub fn family(&self, family: Family) -> &ColumnFamily {
        let name = match family {
            Family::State => family::STATE,
            Family::Message => family::MESSAGE,
            Family::Body => family::BODY,
        };
        self.db.cf_handle(name).expect("every family was opened")
    }

    /// Writes all memtables to tables, and returns when that is done.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.flush_with(&FlushOptions::default())
    }

    /// Has all memtables written to tables, soon.
    pub fn begin_flush(&self) -> Result<(), StoreError> {
        let mut options = FlushOptions::default();
        options.set_wait(false);
        self.flush_with(&options)
    }

    fn flush_with(&self, options: &FlushOptions) -> Result<(), StoreError> {
        let families = self.families();
        let families = [families.state, families.message, families.body];
        self.db.flush_cfs_opt(&families, options).map_err(refused)
    }

    /// The position up to which everything is permanent; 0 if nothing is.
    pub fn permanent_position(&self) -> Result<u64, StoreError> {
        let mut options = ReadOptions::default();
        options.set_read_tier(ReadTier::Persisted);
        let state = self.families().state;
        let found = self.db.get_cf_opt(state, single::POSITION, &options);
        position_in(found.map_err(refused)?)
    }

    /// The position up to which everything is here; 0 if nothing is.
    pub fn position(&self) -> Result<u64, StoreError> {
        position_in(self.single(single::POSITION)?)
    }

    /// Makes a copy of what is here, at `path`. Nothing but notes on segments may be written
    /// meanwhile.
    pub fn checkpoint(&self, path: &Path) -> Result<(), StoreError> {
        let checkpoint = Checkpoint::new(&self.db).map_err(refused)?;
        checkpoint.create_checkpoint(path).map_err(refused)
    }

    /// A value of which there is one.
    pub fn single(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.db.get_cf(self.families().state, key).map_err(refused)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Without this, closing waits for compactions that are not needed any more.
        self.db.cancel_all_background_work(true);
    }
}

fn position_in(value: Option<Vec<u8>>) -> Result<u64, StoreError> {
    value.map_or(Ok(0), |value| {
        value::decode_u64("the position in the log", &value)
    })
}

/// Why the database at `path` does not open, which RocksDB does not always say.
fn unusable(path: &Path, error: rocksdb::Error) -> StoreError {
    let is_damage = error.kind() == ErrorKind::Corruption;
    let detail = format!("{} does not open: {}", path.display(), error.into_string());
    if !is_damage {
        return StoreError::Io(detail);
    }
    let detail = format!("{detail}. It has the places of all messages: restore a backup");
    value::damaged("the index", detail)
}

/// A read that failed: what the disk cannot read any more is damage, and of that place only.
pub(crate) fn unreadable(error: rocksdb::Error) -> StoreError {
    let is_lost = error.kind() == ErrorKind::IOError && error.as_ref().contains(DISK_ERROR);
    match refused(error) {
        StoreError::Io(detail) if is_lost => value::damaged("the database", detail),
        error => error,
    }
}

/// RocksDB's errors in the contract's terms.
pub(crate) fn refused(error: rocksdb::Error) -> StoreError {
    match error.kind() {
        ErrorKind::Corruption => StoreError::Corrupt {
            what: "the database".into(),
            detail: error.into_string(),
        },
        _ => StoreError::Io(error.into_string()),
    }
}

fn database_options(options: &Options) -> rocksdb::Options {
    // No other file to sync at the start, for an identity that the manifest has too. Of stores in
    // format 1, which had a log here, the manifest also knows every log that was closed, so that
    // one which is missing or cut is noticed even where newer ones follow it. A store that failed
    // must not make permanent what it has not said to be durable.
    let mut db = parsed(
        "write_identity_file=false;track_and_verify_wals_in_manifest=true;avoid_flush_during_shutdown=true",
    );
    db.set_write_dbid_to_manifest(true);
    db.create_if_missing(true);
    db.create_missing_column_families(true);
    // The witness tells whether the point in time is the right one.
    db.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    db.set_atomic_flush(true);
    db.set_bytes_per_sync(MIB);
    db.set_enable_pipelined_write(false);
    db.set_unordered_write(false);
    db.set_manual_wal_flush(false);
    let memtables = to_usize(options.memtables());
    db.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager(
        memtables, false,
    ));
    db.set_max_background_jobs(2);
    db.set_auto_tuned_ratelimiter(BACKGROUND_BYTES_PER_SECOND, 100_000, 10);
    db.set_max_open_files(OPEN_FILES);
    db.set_max_file_opening_threads(2);
    db.set_skip_stats_update_on_db_open(true);
    db.set_stats_dump_period_sec(0);
    db.set_stats_persist_period_sec(0);
    db.set_log_level(LogLevel::Warn);
    db.set_keep_log_file_num(4);
    db.set_max_log_file_size(to_usize(4 * MIB));
    db
}

fn family_options(name: &str, options: &Options, cache: &Cache) -> rocksdb::Options {
    let mut family = parsed(&format!(
        "memtable_max_range_deletions={MEMTABLE_RANGE_DELETIONS};bottommost_file_compaction_delay={LAST_LEVEL_AS_IT_IS}"
    ));
    family.set_compression_per_level(&compressions(name));
    family.set_block_based_table_factory(&table_options(name, cache));
    // Those that wait for a slow flush become one file, so they must not be large.
    family.set_max_write_buffer_number(4);
    family.set_target_file_size_base(TABLE_FILE);
    family.set_write_buffer_size(to_usize(options.memtables() / 8));
    family.set_compaction_filter_factory(YieldFilter);
    // With a filter all tables would be written again when they are a month old.
    family.set_periodic_compaction_seconds(0);
    if name != family::STATE {
        family.set_level_zero_file_num_compaction_trigger(NEW_TABLES);
        family.set_max_bytes_for_level_base(FIRST_LEVEL);
        family.set_level_zero_slowdown_writes_trigger(3 * NEW_TABLES);
        family.set_level_zero_stop_writes_trigger(4 * NEW_TABLES);
    }
    family
}

/// How a family's tables are compressed, level by level. What is flushed is soon compacted, or goes
/// as a whole. Rows and places of a backlog come in the order of their keys: in one compression for
/// all levels a table is handed from level to level as it is, rather than written again.
fn compressions(name: &str) -> [DBCompressionType; 7] {
    let (none, lz4) = (DBCompressionType::None, DBCompressionType::Lz4);
    match name {
        family::STATE => [none, lz4, lz4, lz4, lz4, lz4, lz4],
        _ => [none; 7],
    }
}

/// Default options but for one that has no setter.
fn parsed(option: &str) -> rocksdb::Options {
    let parsed = rocksdb::Options::default().get_options_from_string(option);
    parsed.expect("RocksDB knows its own options")
}

fn table_options(name: &str, cache: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_format_version(6);
    // The index of a large backlog must not sit in memory: only what is used is in the cache.
    table.set_cache_index_and_filter_blocks(true);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    match name {
        // Asked for delivery counts and patches that are not there.
        family::STATE => table.set_bloom_filter(10.0, false),
        _ => table.set_block_size(8 << 10),
    }
    table
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

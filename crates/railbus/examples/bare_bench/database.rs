//! Database: messages in RocksDB, with its own log, synced once a group.
//!
//! Families, tables and the memory for them are like those of `rocks`, and nothing is compressed;
//! where another choice made this program faster, it has that. Half of the memory for memtables is
//! for bodies, so that more are settled before they are in a table; a stretch of settled messages
//! goes by one deletion; and logs are written over.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType,
    LogLevel, Options, WriteBatch, WriteBufferManager, WriteOptions,
};

use crate::committer::{Set, Store, Write};
use crate::row::{self, Head, Place};

const MIB: usize = 1 << 20;
/// All memtables together, one of bodies and one of anything else, and the cache.
const MEMTABLES: usize = 64 * MIB;
const MEMTABLE_OF_BODIES: usize = 32 * MIB;
const MEMTABLE: usize = 8 * MIB;
const CACHE: usize = 32 * MIB;
/// Logs that are written over rather than made anew, which spares a sync the file's length.
const LOGS: usize = 8;
const MESSAGE: &str = "msg";
const BODY: &str = "body";
/// Neighbours from which on one deletion removes them together.
const RANGE: u64 = 16;

/// See the module.
pub struct Database {
    db: Arc<DB>,
    options: WriteOptions,
    /// Bytes of the last group, as about many as the next one has.
    group: usize,
}

/// What reads messages back.
pub struct Table(Arc<DB>);

impl Database {
    /// Opens the one in `directory`, or makes it.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let cache = Cache::new_lru_cache(CACHE);
        let families = [rocksdb::DEFAULT_COLUMN_FAMILY_NAME, MESSAGE, BODY]
            .map(|name| ColumnFamilyDescriptor::new(name, family_options(name, &cache)));
        let db = DB::open_cf_descriptors(&database_options(), directory, families);
        let mut options = WriteOptions::default();
        options.set_sync(true);
        Ok(Self {
            db: Arc::new(db.map_err(io::Error::other)?),
            options,
            group: 0,
        })
    }

    /// Reads what it has.
    pub fn table(&self) -> Table {
        Table(Arc::clone(&self.db))
    }
}

impl Store for Database {
    fn commit(&mut self, group: &[Set], heads: &[(u32, Head)]) -> io::Result<()> {
        let (messages, bodies) = (family(&self.db, MESSAGE), family(&self.db, BODY));
        let mut batch = WriteBatch::with_capacity_bytes(self.group);
        let mut stretch = None;
        for write in group.iter().flatten() {
            match write {
                Write::Put(place, body, _) => {
                    let row = row::message(body.len());
                    batch.put_cf(messages, place.message(), row);
                    batch.put_cf(bodies, place.body(), body);
                }
                Write::Remove(place, _) => {
                    if let Some(done) = Stretch::grow(&mut stretch, *place) {
                        done.delete(&mut batch, messages, bodies);
                    }
                }
            }
        }
        if let Some(last) = stretch {
            last.delete(&mut batch, messages, bodies);
        }
        for (queue, head) in heads {
            batch.put(Head::key(*queue), head.encode());
        }
        self.group = batch.size_in_bytes();
        let written = self.db.write_opt(batch, &self.options);
        written.map_err(io::Error::other)
    }
}

impl Table {
    /// The body of the message at `place`.
    pub fn read(&self, place: Place) -> io::Result<Bytes> {
        let found = self.0.get_cf(family(&self.0, BODY), place.body());
        let body = found.map_err(io::Error::other)?;
        body.map(Bytes::from)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Settled messages that are neighbours.
#[derive(Clone, Copy)]
struct Stretch {
    first: Place,
    end: Place,
}

impl Stretch {
    /// Adds `place` to the stretch, or begins another and returns the one that was there.
    fn grow(stretch: &mut Option<Self>, place: Place) -> Option<Self> {
        match stretch {
            Some(stretch) if stretch.end == place => {
                stretch.end = place.next();
                None
            }
            other => other.replace(Self {
                first: place,
                end: place.next(),
            }),
        }
    }

    fn delete(self, batch: &mut WriteBatch, messages: &ColumnFamily, bodies: &ColumnFamily) {
        let Self { first, end } = self;
        if end.number - first.number >= RANGE {
            batch.delete_range_cf(messages, first.message(), end.message());
            batch.delete_range_cf(bodies, first.body(), end.body());
            return;
        }
        for number in first.number..end.number {
            let place = Place { number, ..first };
            batch.delete_cf(messages, place.message());
            batch.delete_cf(bodies, place.body());
        }
    }
}

fn family<'a>(db: &'a DB, name: &str) -> &'a ColumnFamily {
    db.cf_handle(name).expect("every family was opened")
}

fn database_options() -> Options {
    let mut db = Options::default();
    db.create_if_missing(true);
    db.create_missing_column_families(true);
    db.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager(
        MEMTABLES, false,
    ));
    db.set_recycle_log_file_num(LOGS);
    db.set_max_background_jobs(2);
    db.set_bytes_per_sync(MIB as u64);
    db.set_stats_dump_period_sec(0);
    db.set_stats_persist_period_sec(0);
    db.set_log_level(LogLevel::Warn);
    db
}

fn family_options(name: &str, cache: &Cache) -> Options {
    // As in `rocks`: tables that overlap nothing are handed down as they are.
    let parsed =
        Options::default().get_options_from_string("bottommost_file_compaction_delay=86400");
    let mut family = parsed.expect("RocksDB knows its own options");
    family.set_compression_type(DBCompressionType::None);
    family.set_max_write_buffer_number(4);
    family.set_write_buffer_size(match name {
        BODY => MEMTABLE_OF_BODIES,
        _ => MEMTABLE,
    });
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_block_size(8 << 10);
    family.set_block_based_table_factory(&table);
    family
}

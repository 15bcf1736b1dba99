//! The embedded store: a journal, and RocksDB as its index.
//!
//! One [`RocksStore`] owns one data directory. Write sets go to one committer thread, which makes
//! them durable in the journal in large groups (the submitting thread may commit a single one
//! itself), and from there to the indexer, which makes them readable. Readers work on snapshots
//! and disturb neither. An acknowledged commit is never lost silently: a log that ends too early
//! is refused at opening.

mod backup;
mod commit_progress;
mod commits;
mod committer;
mod contents;
mod damage_log;
mod database;
mod disk_space;
mod entries;
mod group;
#[cfg(test)]
mod hooks;
mod image;
mod indexer;
mod key_search;
#[cfg(test)]
mod log;
mod loss;
mod manifest;
mod merge;
mod open_store;
mod options;
mod range_reclaim;
mod reader;
mod removal;
mod rescue;
mod restore;
mod retention;
mod rocks_store;
mod scan;
mod scrubber;
mod settled;
mod shares;
mod stager;
pub mod statistics;
mod submitter;
mod unapplied;
mod verify;
mod walk;
mod writer_lock;
mod yield_filter;

#[cfg(not(test))]
use journal::log;
use journal::{chunk, directory, incremental_free, key, value, witness};

pub use contents::Contents;
pub use options::{Durability, Options};
pub use restore::{RestoreError, restore};
pub use rocks_store::RocksStore;
pub use statistics::Statistics;
pub use verify::{Progress, Verified, verify};

//! The embedded store: a journal, and RocksDB as its index.
//!
//! One [`RocksStore`] owns one data directory. Write sets go to one committer thread, which makes
//! them durable in the journal in large groups (the submitting thread may commit a single one
//! itself), and from there to the indexer, which makes them readable. Readers work on snapshots
//! and disturb neither. An acknowledged commit is never lost silently: a log that ends too early
//! is refused at opening.

mod backup;
mod commit;
mod damage;
mod disk_space;
#[cfg(test)]
mod hooks;
mod index;
#[cfg(test)]
mod log;
mod open_store;
mod options;
mod reader;
mod retention;
mod rocks_store;
pub mod statistics;

#[cfg(not(test))]
use journal::log;

pub use backup::restore::{RestoreError, restore};
pub use damage::contents::Contents;
pub use damage::verify::{Progress, Verified, verify};
pub use options::{Durability, Options};
pub use rocks_store::RocksStore;
pub use statistics::Statistics;

//! The embedded store on RocksDB: keys, committer, witness and recovery.
//!
//! One [`RocksStore`] owns one data directory. Write sets go to one committer thread, which makes
//! them durable in large groups; readers work on snapshots and never disturb it. Nothing that was
//! acknowledged is ever lost silently: a log that ends too early is refused at opening.

mod audit;
mod backup;
mod chunk;
mod committer;
mod database;
mod directory;
mod entries;
#[cfg(test)]
mod hooks;
mod key;
mod log;
mod merge;
mod opened;
mod options;
mod progress;
mod reader;
mod removal;
mod rescue;
mod restore;
mod rocks_store;
mod scan;
mod settled;
mod shares;
mod space;
pub mod statistics;
mod value;
mod verify;
mod witness;

pub use options::{Durability, Options};
pub use restore::{RestoreError, restore};
pub use rocks_store::RocksStore;
pub use statistics::Statistics;
pub use verify::Contents;

//! Index: applies durable groups to RocksDB, and drops what they have settled.

pub mod database;
pub mod image;
pub mod indexer;
pub mod merge;
pub mod range_reclaim;
pub mod recovery;
pub mod removal;
pub mod settled;
pub mod shares;
pub mod unapplied;
pub mod writer_lock;
pub mod yield_filter;

//! Index: RocksDB as the tables of the index, and the thread that applies durable groups.

pub mod database;
pub mod indexer;
mod tables;
pub mod unapplied;
pub mod writer_lock;
pub mod yield_filter;

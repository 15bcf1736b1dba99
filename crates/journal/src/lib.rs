//! Journal: the store's own log, in which bodies stay, and the encoding of the rows beside it.
//!
//! A group of write sets becomes one record: the writes, and behind them the bodies as they came.
//! A record is on the disk whole or not at all, and so is a group. The index has no log of its own
//! and no bodies: it gets a group after it is durable, and finds bodies by their
//! [`JournalLocation`]. Bodies are thus written once and never moved by a compaction.
//!
//! Records lie in numbered segments. A segment is kept until the index has made everything in it
//! permanent and needs no body in it any more. Then another segment overwrites its file, which
//! costs less than a new file does. A large body has a file of its own, written before its record.
//!
//! All files are reached through a [`FileSystem`], so that the simulator can put a model of a disk
//! in its place. Nothing here links RocksDB.

#![allow(
    missing_docs,
    reason = "one store uses it; what a name does not say is said"
)]

mod bit_error;
pub mod chunk;
mod codec;
pub mod directory;
pub mod file_system;
mod files;
mod handle;
pub mod incremental_free;
mod journal_location;
pub mod key;
pub mod log;
mod output;
mod pages;
mod record;
mod replay;
mod segment;
mod segment_reader;
mod staged;
pub mod value;
pub mod witness;
mod writer;

pub use file_system::{Access, FileSystem};
pub use files::{Files, Removal};
pub use handle::Handle;
pub use journal_location::{JournalLocation, Moves};
pub use replay::{ReplayStart, ReplayedJournal, replay};
pub use segment::SealedSegment;
pub use staged::{STAGED_FROM, StagedBodies, is_staged};
pub use writer::{AppendedRecord, Writer};

//! Journal: the store's own log, in which bodies stay.
//!
//! A group of write sets becomes one record: the writes, and behind them the bodies as they came.
//! A record is on the disk whole or not at all, and so is a group. RocksDB has no log of its own
//! and no bodies: it is the index, gets a group after it is durable, and finds bodies by their
//! [`JournalLocation`]. Bodies are thus written once and never moved by a compaction.
//!
//! Records lie in numbered segments. A segment is kept until the index has made everything in it
//! permanent and needs no body in it any more. Then another segment overwrites its file, which
//! costs less than a new file does. A large body has a file of its own, written before its record.

mod bit_error;
mod codec;
mod files;
mod handle;
mod journal_location;
mod output;
mod pages;
mod record;
mod replay;
mod segment;
mod segment_reader;
mod staged;
mod writer;

use bytes::Bytes;
use store::BodyPointer;

pub(crate) use files::Files;
pub(crate) use handle::{Access, Handle};
pub(crate) use journal_location::JournalLocation;
pub(crate) use replay::{ReplayStart, ReplayedJournal, replay};
pub(crate) use segment::SealedSegment;
pub(crate) use staged::{STAGED_FROM, is_staged};
pub(crate) use writer::{AppendedRecord, Writer};

/// Bodies that get a new place: first the body itself, then the place as a value of the index.
pub(crate) type Moves = Vec<(BodyPointer, Bytes)>;

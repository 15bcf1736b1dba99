//! The storage contract: ids, records, write sets, the [`Store`] trait, a memory store and a
//! conformance suite.
//!
//! It speaks of messages, not keys, and takes *results*, not commands: a [`WriteSet`] says what
//! is true afterwards and can be applied by something that knows no broker. Everything submitted
//! as one set becomes durable as one, and sets become durable in the order of their ids.

pub mod audit;
pub mod backup;
pub mod conformance;
pub mod entry;
pub mod error;
pub mod id;
pub mod image;
pub mod memory;
pub mod query;
pub mod record;
pub mod statistics;
pub mod write;

pub use backup::{Backup, BackupError};
pub use entry::{Entry, EntryKey, Index};
pub use error::StoreError;
pub use id::{CommitId, EntityId, NamespaceId, Part, SequenceNumber};
pub use image::Image;
pub use memory::{MemoryDisk, MemoryStore};
pub use query::{BodyLocation, Found, KnownMessage, Query, StoredMessage};
pub use record::{BodyPointer, EntityRow, ExpiryRow, Head, MessageRow, PartHead, Recovery};
pub use statistics::Statistics;
pub use write::{Write, WriteSet};

use std::sync::Arc;

use bytes::Bytes;

/// Whether somebody who commits has something else to do meanwhile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Caller {
    /// It has, or will have soon.
    Busy,
    /// It has not.
    Alone,
}

/// One shard's door to durable storage. A wake-up handed over at opening tells of progress.
pub trait Store: Send {
    /// Queues `writes` to become durable as one, and returns at once. Ids rise by one per call, so that it is
    /// known before which one it will be.
    fn submit(&mut self, writes: WriteSet) -> CommitId;

    /// As [`submit`](Self::submit), but it may block for a moment and return when `writes` are durable, which
    /// nobody is woken for then: for a `caller` who is alone as long as a quick disk takes for a sync, for one
    /// who is busy no longer than other threads would take from it.
    fn commit(&mut self, writes: WriteSet, caller: Caller) -> CommitId {
        let _ = caller;
        self.submit(writes)
    }

    /// The newest commit that would survive a crash now; so would all before it.
    fn durable(&self) -> CommitId;

    /// Why nothing will become durable any more. A failed commit is final. (Architecture: poisoned store)
    fn failure(&self) -> Option<StoreError>;

    /// Whether sends should be refused so that settlements can go on. (Architecture: disk full)
    fn is_nearly_full(&self) -> bool;

    /// For what was dropped from memory. Reading blocks, so it happens off the shard.
    fn reader(&self) -> Arc<dyn Reader>;

    /// For large bodies, before they are put; none of a store to which their size means nothing.
    fn stager(&self) -> Option<Arc<dyn Stager>> {
        None
    }

    /// How commits have been going; all zero where nobody counts.
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    /// For copies of the store; none of a store that has no files.
    fn backup(&self) -> Option<Arc<dyn Backup>> {
        None
    }

    /// What a broker starts from: one row per entity, whatever the backlog.
    ///
    /// # Errors
    /// When a row can not be read or understood.
    fn recover(&mut self) -> Result<Recovery, StoreError>;

    /// Makes everything submitted durable and closes the store. May block.
    ///
    /// # Errors
    /// When the store has failed, now or before: then not everything submitted may be durable.
    fn close(self: Box<Self>) -> Result<(), StoreError>;
}

/// Reads from a snapshot that holds every commit up to the one named.
pub trait Reader: Send + Sync {
    /// Answers `query` from a snapshot that holds `after` and everything before it, waiting for
    /// that commit to be applied if need be. Rows come in ascending order of their keys.
    ///
    /// # Errors
    /// When the disk fails, a checksum does not match, or the store is poisoned.
    fn read(&self, after: CommitId, query: &Query) -> Result<Found, StoreError>;
}

/// Makes large bodies durable ahead of the sets that put them, so that no other set waits for that.
pub trait Stager: Send + Sync {
    /// Bodies of fewer bytes are not worth it.
    fn min_size(&self) -> usize;

    /// Writes `body`, which blocks, and returns the same bytes. The store knows them when they are put, as
    /// a whole and as they lie in memory; what is a copy or a part of them is put as any other body.
    /// If nobody puts them, nothing of them stays once the last handle is gone. A body that can not
    /// be staged comes back as it was.
    fn stage(&self, body: Bytes) -> Bytes;
}

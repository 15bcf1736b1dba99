//! The storage contract: ids, records, write sets, the [`Store`] trait, a memory store and a
//! conformance suite.
//!
//! It speaks of messages, not keys, and takes *results*, not commands: a [`WriteSet`] holds the new
//! state and can be applied without a broker. All writes of one set become durable together, and
//! sets become durable in the order of their ids.

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

/// Whether the caller of a commit has other work meanwhile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallerLoad {
    /// It has, or will have soon.
    Busy,
    /// It has not.
    Idle,
}

/// The durable storage of one shard. A callback that is passed at opening reports progress.
pub trait Store: Send {
    /// Queues `writes` to become durable as one, and returns at once. Ids rise by one per call, so
    /// the caller knows the next one in advance.
    fn submit(&mut self, writes: WriteSet) -> CommitId;

    /// As [`submit`](Self::submit), but it may block for a short time and return when `writes` are
    /// durable. In that case there is no wake-up. With [`CallerLoad::Idle`] it may block as long
    /// as a quick disk takes for a sync, with [`CallerLoad::Busy`] no longer than other threads
    /// would take from the caller.
    fn commit(&mut self, writes: WriteSet, caller: CallerLoad) -> CommitId {
        let _ = caller;
        self.submit(writes)
    }

    /// The newest commit that would survive a crash now; so would all before it.
    fn durable(&self) -> CommitId;

    /// Why nothing will become durable any more. A failed commit is final. (Architecture: poisoned
    /// store)
    fn failure(&self) -> Option<StoreError>;

    /// Whether sends should be refused so that settlements can go on. (Architecture: disk full)
    fn is_nearly_full(&self) -> bool;

    /// What may still be written to the disk, in bytes, as of the last look at it; `None` if the
    /// store has no files.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// A reader for data that is not in memory. Reading blocks, so it runs outside the shard task.
    fn reader(&self) -> Arc<dyn Reader>;

    /// A stager for large bodies, before they are put; `None` if the store treats all sizes alike.
    fn stager(&self) -> Option<Arc<dyn Stager>> {
        None
    }

    /// Counters of commits; all zero if the store does not count.
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    /// Makes copies of the store; `None` if the store has no files.
    fn backup(&self) -> Option<Arc<dyn Backup>> {
        None
    }

    /// The state from which a broker starts: one row per entity, whatever the backlog.
    ///
    /// # Errors
    /// When a row cannot be read or decoded.
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
    /// The smallest size of a body, in bytes, that is worth staging.
    fn min_size(&self) -> usize;

    /// Writes `body`, which blocks, and returns the same bytes. The store knows them when they are
    /// put, as a whole and as they lie in memory; a copy or a part of them is put as any other
    /// body. If they are never put, nothing of them stays once the last handle is dropped. A body
    /// that cannot be staged comes back as it was.
    fn stage(&self, body: Bytes) -> Bytes;
}

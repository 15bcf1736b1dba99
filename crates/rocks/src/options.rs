//! Options: the settings of a store, and the sizes that follow from them.
//!
//! Sizes of memtables, block cache, journal and reserve are computed from the memory that the store
//! may use.

use journal::Access;

const MIB: u64 = 1 << 20;

/// When a write set counts as durable.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Durability {
    /// After it is on stable storage. Survives a power cut.
    #[default]
    Synced,
    /// After it is with the operating system, synced about once a second. Survives the death of
    /// the process, but not a power cut.
    Buffered,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// When a write set counts as durable.
    pub durability: Durability,
    /// What RocksDB may use for memtables (two thirds) and block cache (one third), in bytes. After
    /// as much of the journal the memtables are flushed, so this also bounds how long a restart
    /// takes.
    pub memory_bytes: u64,
    /// Below this much free space the store is nearly full. By default the log cap, the memtables
    /// and one compaction: the space that settling everything could still need.
    pub reserve_bytes: Option<u64>,
    /// Opens a store whose log lost acknowledged commits, with what is left. For use after
    /// [`StoreError::LostCommits`](store::StoreError::LostCommits), by decision of the operator.
    pub repair: bool,
    /// What the scrubber reads of the store in a second, in bytes; 0 if there is none.
    pub scrub_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            memory_bytes: 96 << 20,
            reserve_bytes: None,
            repair: false,
            scrub_bytes: 0,
        }
    }
}

impl Options {
    /// Less than this and RocksDB would do nothing but flush.
    const LEAST_MEMORY: u64 = 12 << 20;

    /// The least default of [`reserve_bytes`](Self::reserve_bytes).
    const LEAST_RESERVE: u64 = 64 << 20;

    pub(crate) fn memory(&self) -> u64 {
        self.memory_bytes.max(Self::LEAST_MEMORY)
    }

    /// All memtables together.
    pub(crate) fn memtables(&self) -> u64 {
        self.memory() / 3 * 2
    }

    pub(crate) fn block_cache(&self) -> u64 {
        self.memory() / 3
    }

    /// The journal that is not permanent in the index yet, before that is made to be.
    pub(crate) fn log_cap(&self) -> u64 {
        self.memory()
    }

    /// What is not synced at once is better off in the system's cache.
    pub(crate) fn access(&self) -> Access {
        match self.durability {
            Durability::Synced => Access::Direct,
            Durability::Buffered => Access::Cached,
        }
    }

    /// How large a segment of the journal is: whole mebibytes.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.memory() / 3 / MIB * MIB
    }

    /// Free space below which the store is nearly full.
    pub(crate) fn reserve(&self) -> u64 {
        let one_compaction = self.memtables();
        let default = self.log_cap() + self.memtables() + one_compaction;
        self.reserve_bytes
            .unwrap_or(default.max(Self::LEAST_RESERVE))
    }
}

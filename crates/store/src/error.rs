//! Store errors: failures of the disk and damage to its content.

#![allow(missing_docs, reason = "the texts say it")]

use crate::entry::{EntryKey, Index};
use crate::id::{EntityId, SequenceNumber};

/// Why the store fails. All of them are final for this process.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    #[error("{path} is used by another process")]
    Locked { path: String },
    #[error("the format file names format version {found}; this program understands up to {known}")]
    NewerFormat { found: u32, known: u32 },
    #[error("the log ends at commit {recovered}, but commit {witnessed} was acknowledged: {hint}")]
    LostCommits {
        recovered: u64,
        witnessed: u64,
        hint: String,
    },
    #[error("{what} is damaged: {detail}")]
    Corrupt { what: String, detail: String },
    /// Of an answer to a range of messages: those numbers cannot be read, be there messages or not.
    /// The `intact` rows in front of them can.
    #[error("messages {from} to #{} cannot be read: {detail}", until.0.saturating_sub(1))]
    UnreadableRows {
        intact: usize,
        from: SequenceNumber,
        until: SequenceNumber,
        detail: String,
    },
    /// Of an answer to a range of entries whose groups are numbers: those below `until` cannot be
    /// read, be there any or not, but for the first `intact` ones.
    #[error("entries of the {index:?} of entity {} cannot be read: {detail}", entity.0)]
    UnreadableEntries {
        entity: EntityId,
        index: Index,
        intact: usize,
        until: EntryKey,
        detail: String,
    },
    #[error("the disk refused: {0}")]
    Io(String),
    #[error("the store stopped after an earlier failure: {0}")]
    Poisoned(String),
}

impl StoreError {
    /// Whether what was asked for is damaged, and the disk gave what it has.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. } | Self::UnreadableRows { .. } | Self::UnreadableEntries { .. }
        )
    }
}

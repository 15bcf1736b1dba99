//! Store errors: failures of the disk and damage to its content.

#![allow(missing_docs, reason = "the texts say it")]

/// Why the store fails. All of them are final for this process.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StoreError {
    #[error("the data directory {path} is used by another process")]
    Locked { path: String },
    #[error(
        "the data directory has format version {found}; this program understands up to {known}"
    )]
    NewerFormat { found: u32, known: u32 },
    #[error("the log ends at commit {recovered}, but commit {witnessed} was acknowledged: {hint}")]
    LostCommits {
        recovered: u64,
        witnessed: u64,
        hint: String,
    },
    #[error("{what} is damaged: {detail}")]
    Corrupt { what: String, detail: String },
    #[error("the disk refused: {0}")]
    Io(String),
    #[error("the store stopped after an earlier failure: {0}")]
    Poisoned(String),
}

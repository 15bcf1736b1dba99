//! Backup: a whole copy of a store, made while it goes on working.

#![allow(missing_docs, reason = "the texts say it")]

use std::path::Path;

use crate::error::StoreError;

/// Makes copies of an open store. Kept apart from the [`Store`](crate::Store), since making one
/// blocks; a store that is closed meanwhile makes none.
pub trait Backup: Send + Sync {
    /// Makes a copy at `target`, which must not be there yet; its parent must. The copy ends
    /// between two commits and is whole and on stable storage before the later of them is
    /// acknowledged: it holds everything that was acknowledged until then.
    ///
    /// # Errors
    /// When there is no copy. The store is as well as before.
    fn back_up(&self, target: &Path) -> Result<BackupSummary, BackupError>;
}

/// A backup that was made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BackupSummary {
    /// How many groups the store had committed in its life: what the copy ends with.
    pub position: u64,
    /// What its files are long, those included that it shares with the store.
    pub bytes: u64,
}

/// Why there is no backup.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BackupError {
    #[error("{path} is there already")]
    Exists { path: String },
    #[error("another backup is being made")]
    Busy,
    #[error("the disk is nearly full")]
    NearlyFull,
    #[error(
        "{path} is on another file system than the store, whose files a backup shares: back up beside the store, \
         then copy"
    )]
    OtherFileSystem { path: String },
    #[error("the disk refused: {0}")]
    Io(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

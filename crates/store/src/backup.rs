//! Backup: a whole copy of a store, made while it stays open.

#![allow(missing_docs, reason = "the texts say it")]

use std::path::Path;

use crate::error::StoreError;

/// Makes copies of an open store. It is separate from the [`Store`](crate::Store), since making one
/// blocks; a closed store makes none.
pub trait Backup: Send + Sync {
    /// Makes a copy at `target`, which must not be there yet; its parent must. The copy ends
    /// between two commits and is whole and on stable storage before the later of them is
    /// acknowledged: it holds everything that was acknowledged until then.
    ///
    /// # Errors
    /// When no copy was made. The store itself is not affected.
    fn back_up(&self, target: &Path) -> Result<BackupSummary, BackupError>;

    /// Asks the file system of the store whether more may be written there by others.
    ///
    /// # Errors
    /// When the disk is nearly full, or does not answer.
    fn check_space(&self) -> Result<(), BackupError>;
}

/// A completed backup.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BackupSummary {
    /// The number of groups that the store has committed since its creation: the copy ends with the
    /// last.
    pub position: u64,
    /// The size of its files, including those that it shares with the store.
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

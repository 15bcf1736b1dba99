//! Namespace backup: one file with all that a namespace has, made while the broker works, and given
//! to a namespace again.
//!
//! The broker keeps what there is at one moment until the file is written, so the file is
//! consistent, and nothing waits for it. On the way back the whole file is checked first; then its
//! messages are loaded in pieces that no client sees, and the last order makes them the
//! namespace's in one commit. Either way memory holds a piece at a time, besides the definitions.

mod codec;
mod export;
mod file;
mod load;

pub use export::{Exported, export};
pub use file::{FileError, check};
pub use load::Loading;

/// Bytes of bodies that are read or loaded at a time, more only if one is larger.
const PIECE_BYTES: usize = 1 << 20;
/// Messages and entries that are read or loaded at a time.
const PIECE: usize = 512;

/// Why a namespace is not in a file, or what is in a file not in a namespace.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say it")]
pub enum Error {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Entity(#[from] broker::EntityError),
    #[error(transparent)]
    Shard(#[from] crate::shard::shard_client::ShardError),
    #[error(transparent)]
    Store(#[from] store::StoreError),
    #[error(transparent)]
    Backup(#[from] store::BackupError),
    #[error("messages of {0} cannot be read: repair the store before a backup")]
    Unreadable(String),
    #[error("the answer of the broker does not fit the request")]
    Unexpected,
}

//! Snapshots: what a namespace had at one moment, to go back to or to make another one of.

use crate::api::entity_error::EntityError;
use crate::api::namespace::is_label;
use crate::api::time::Wall;

/// The most snapshots of one namespace.
pub const MAX_SNAPSHOTS: usize = 64;
/// The most messages that a snapshot holds: the copies of their rows are made as one.
pub const MAX_SNAPSHOT_MESSAGES: u64 = 1_000_000;
/// The most characters of a name.
const MAX_NAME: usize = 63;

/// A snapshot, as administrators see it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct SnapshotDescription {
    pub name: String,
    pub created: Wall,
    /// Queues, topics and subscriptions.
    pub entities: usize,
    pub messages: u64,
    /// Of the messages as they were received.
    pub bytes: u64,
}

/// Whether a snapshot can have this name.
pub(crate) fn check_name(name: &str) -> Result<(), EntityError> {
    if name.len() <= MAX_NAME && is_label(name) {
        return Ok(());
    }
    Err(EntityError::Invalid(format!(
        "snapshot '{}': a name has 1 to {MAX_NAME} lower-case letters, digits and '-', \
         and begins and ends with a letter or digit",
        name.escape_debug()
    )))
}

//! Effects: what one or several steps caused, for the caller to act on.
//!
//! Writes are submitted as one. Outputs wait for the commit that they rest on; reads wait for one
//! that the index has to have.

use store::{CommitId, Query, WriteSet};

use crate::api::id::ReadId;
use crate::api::lineage::LineageEffects;
use crate::api::output::Output;

/// What one or several steps caused.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Effects {
    /// The newest commit when the turn began: its own writes will be the next one.
    pub submitted: CommitId,
    pub writes: WriteSet,
    pub outputs: Vec<Output>,
    /// After this turn's commit at most.
    pub reads: Vec<ReadRequest>,
    /// Whether there is a piece of a batch deletion: no other is begun before
    /// [`Durable`](crate::Command::Durable).
    pub deletes: bool,
    pub lineage: LineageEffects,
}

/// A read to be made off the shard; its rows come back as `Command::Loaded`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct ReadRequest {
    pub read: ReadId,
    /// What the answer has to hold, with everything before it.
    pub after: CommitId,
    pub query: Query,
}

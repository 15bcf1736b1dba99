//! Turn end: the state of store and reads when a turn of the shard is over.

use broker::ReadRequest;
use store::{CommitId, EntityId};

/// The state of store and reads when a turn is over.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct TurnEnd<'a> {
    pub durable: CommitId,
    pub submitted: CommitId,
    /// Nothing new is accepted.
    pub nearly_full: bool,
    /// The store has failed: nothing is written or said any more.
    pub has_failed: bool,
    /// The turn has written something of another namespace, or waits for a read of one: what time
    /// brings there may come first.
    pub is_busy_elsewhere: bool,
    /// Reads that the broker waits for.
    pub reads: &'a [ReadRequest],
}

impl TurnEnd<'_> {
    /// Whether everything decided was said.
    pub(super) fn is_quiet(&self) -> bool {
        self.durable == self.submitted
    }

    /// Whether the broker waits for something of an entity's.
    pub(super) fn is_reading(&self, of: EntityId) -> bool {
        self.reads.iter().any(|read| entity_of(read) == of)
    }
}

/// Whose rows or entries are read.
pub fn entity_of(read: &ReadRequest) -> EntityId {
    use store::Query::{Bodies, Entries, EntryPoints, Groups, Points, Range};
    match read.query {
        Range { entity, .. }
        | Points { entity, .. }
        | Bodies { entity, .. }
        | Entries { entity, .. }
        | EntryPoints { entity, .. }
        | Groups { entity, .. } => entity,
    }
}

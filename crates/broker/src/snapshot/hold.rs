//! Hold: why a snapshot without a name stays in this process, whether an entity needs it or not.
//!
//! It is being read, or it is being loaded; then this is how far the load has come. A hold ends
//! with the connection that asked for it at the latest. A restart knows of none, so it removes such
//! a snapshot if no entity needs it.

use store::{EntityId, EntryKey, Head, Index, Part, SequenceNumber};

use crate::api::id::ConnectionId;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Of the client that reads or loads.
    pub connection: ConnectionId,
    pub purpose: Purpose,
}

/// What is done with the snapshot.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// It is being read.
    Export,
    /// It is being loaded.
    Load(Load),
}

/// A load under way.
#[derive(Debug)]
pub(crate) struct Load {
    /// In the order in which they were brought.
    pub entities: Vec<Loaded>,
    /// How many of them are queues and topics.
    pub roots: usize,
}

/// What has come of one entity.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub part: EntityId,
    /// What its head has to be in the end.
    pub head: Head,
    /// Above every number that it can have given out.
    pub end: SequenceNumber,
    /// The greatest number of each part that has come.
    pub last: [Option<SequenceNumber>; Part::ALL.len()],
    /// The greatest key of each index that has come.
    pub last_keys: [Option<EntryKey>; Index::ALL.len()],
    /// How many entries of scheduled messages have come.
    pub scheduled: u64,
    /// How many messages that their session has to find, and how many entries that find them.
    pub in_sessions: u64,
    pub found_in_sessions: u64,
    /// What the states of sessions that have come take.
    pub state_bytes: u64,
}

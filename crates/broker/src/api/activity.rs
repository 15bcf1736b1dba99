//! Activity: the receivers of an entity, their locks, and its sessions, at one moment.
//!
//! Of each the first are listed, and all are counted.

use std::sync::Arc;

use bytes::Bytes;
use filter::Selector;
use store::SequenceNumber;

use crate::api::id::{ConnectionId, ReceiverId, Subqueue};
use crate::api::receive_mode::ReceiveMode;
use crate::api::settings::Expiry;
use crate::api::time::Wall;

/// What is wanted of an entity's activity.
#[derive(Clone, Debug)]
pub enum ActivityWanted {
    /// The first of each list, this number at most.
    First(usize),
    /// These sessions alone, held or not, in this order.
    Sessions(Vec<Bytes>),
}

/// What is going on at an entity.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct Activity {
    /// When it was so, by the clock of the entity's namespace.
    pub at: Wall,
    /// What becomes of messages at the end of their time to live, in the end by the broker's
    /// setting.
    pub expiry: Expiry,
    pub receivers: Vec<ActiveReceiver>,
    pub receiver_count: usize,
    /// In the order of their messages, those of the entity itself first.
    pub locks: Vec<ActiveLock>,
    /// Of each subqueue, in the order of [`Subqueue::ALL`].
    pub lock_counts: [usize; Subqueue::ALL.len()],
    /// Held ones first, then those with messages that wait for a receiver, the oldest first.
    pub sessions: Vec<ActiveSession>,
    pub session_count: usize,
}

/// A receiver of an entity.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct ActiveReceiver {
    pub id: ReceiverId,
    pub subqueue: Subqueue,
    /// How it takes messages; one that is only shown them has none.
    pub mode: Option<ReceiveMode>,
    /// It is given only messages that this selects.
    pub selector: Option<Arc<Selector>>,
    /// Messages that it may still be given.
    pub credit: u32,
    /// Whether it is given none, since its connection does not read.
    pub is_blocked: bool,
    /// The session that it holds.
    pub session: Option<Box<[u8]>>,
    pub waits_for_session: bool,
}

/// A message that is locked.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct ActiveLock {
    pub number: SequenceNumber,
    pub subqueue: Subqueue,
    pub connection: ConnectionId,
    /// The receiver's link; a message that was asked for by its number has none.
    pub link: Option<u32>,
    /// Milliseconds until it ends, unless it ends with its session or its receiver.
    pub left_ms: Option<u64>,
    pub delivery_count: u32,
}

/// A session that is held or has messages.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct ActiveSession {
    pub id: Box<[u8]>,
    pub hold: Option<ActiveHold>,
}

/// The hold of a session.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named for what they are")]
pub struct ActiveHold {
    pub receiver: ReceiverId,
    pub left_ms: u64,
    /// The number of its messages that the holder has locked.
    pub locked: usize,
    /// What its state takes, if the holder has used it.
    pub state_bytes: Option<u64>,
}

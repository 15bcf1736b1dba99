//! Asked: what a request is about, as long as it waits for its answer.

use broker::{LockToken, Mono, ReceiverId, TransactionId, Wall};
use store::{EntityId, SequenceNumber};

use super::Ask;
use super::administration::Change;
use super::browse::Listed;
use super::redrive::Redrive;
use super::sessions::Key;
use crate::message::MessageId;
use crate::session::Session;

/// What is known of the locks that a request is about.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum LockState {
    /// All of them are held.
    Held,
    Unknown,
    /// One of them is over.
    Lost,
}

/// What a request was about.
#[derive(Debug)]
pub(super) enum Asked {
    Send {
        entity: EntityId,
        ids: Vec<MessageId>,
        /// How many messages may be available there with these.
        most: u64,
        /// Whether messages may be sent there.
        allowed: bool,
        /// The least that the wall clock has shown since.
        asked: Wall,
    },
    Settle {
        entity: EntityId,
        ids: Vec<MessageId>,
        ask: Ask,
        lock_state: LockState,
        /// Whether the connection that asked certainly held the session that it named.
        holds_session: bool,
    },
    Renew {
        tokens: Vec<LockToken>,
        at: Mono,
        lock_state: LockState,
    },
    Redrive(Redrive),
    /// Something that takes reads of that entity.
    Read(EntityId),
    /// Messages, of one session or all, and some that were there.
    Peek {
        entity: EntityId,
        session: Option<Session>,
        /// The turn in which it was asked.
        since: u64,
        there: Vec<(SequenceNumber, MessageId)>,
    },
    /// Sessions, and those that were there.
    List {
        entity: EntityId,
        listed: Vec<Listed>,
    },
    RenewSession {
        key: Key,
        holder: Option<ReceiverId>,
        at: Mono,
        lock_state: LockState,
    },
    Publish(MessageId),
    Declare,
    /// An entity or a rule.
    Change(Change),
    Deletion,
    /// Something is to be part of a transaction, which has it as that part if it is open.
    Enlist {
        id: TransactionId,
        part: Option<usize>,
        lock_state: LockState,
    },
    Discharge,
    /// A session's state is read or set.
    State {
        key: Key,
        holder: Option<ReceiverId>,
        lock_state: LockState,
        /// Which of its values it had.
        since: usize,
    },
}

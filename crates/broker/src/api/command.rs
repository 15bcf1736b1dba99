//! Command: everything that can happen to a broker, one variant each.
//!
//! Commands come from clients and administrators, from the store (rows that were read) and from
//! time (a tick). `broker/step.rs` has one arm for each. The answer is an `Output` (`output.rs`)
//! that repeats the command's request id; a variant's documentation names it.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use std::sync::Arc;

use bytes::Bytes;
use filter::Selector;
use store::{EntityId, Found, NamespaceId, SequenceNumber, StoreError};

use crate::api::client_affine::SubscribeRequest;
use crate::api::fault::ClientNames;
use crate::api::id::{
    ConnectionId, LockToken, ReadId, ReceiverId, RequestId, SubqueueId, TransactionId,
};
use crate::api::incoming::Incoming;
use crate::api::node::{NodeLinkId, NodeRequest, NodeUse};
use crate::api::operation::{Operation, RefusalReport};
use crate::api::order::Order;
use crate::api::outcome::Outcome;
use crate::api::output::MessageState;
use crate::api::publication::Publication;
use crate::api::receive_mode::ReceiveMode;
use crate::api::rule::RuleDescription;
use crate::api::settings::BrokerLimits;
use crate::api::time::Wall;

/// What a receiver does with messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    Consume(ReceiveMode),
    /// As the receivers of a higher or lower priority than others do, whose is 0: one is given
    /// messages only while none of a higher priority can take them. (docs/spec/rabbitmq.md#10.1)
    Prioritized {
        mode: ReceiveMode,
        priority: i32,
        /// Milliseconds for which it may hold a message by a `LinkLock`, whatever the entity says;
        /// 0 for any time. (docs/spec/rabbitmq.md#10.6)
        consumer_timeout: Option<u64>,
        /// Whether it is told by `Output::Activity`.
        hears_activity: bool,
    },
    /// The receiver is shown all messages of the subqueue, locked or not, from the first one on,
    /// and takes none. Its tokens name no locks.
    Browse,
}

/// Which session a receiver wants. (docs/spec/amqp.md#3.4)
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SessionFilter {
    ById(Bytes),
    /// Whichever is next; waits so long for one.
    Next {
        timeout_ms: u64,
    },
}

/// What the broker is told. A command about something unknown (a detached receiver, a closed
/// connection) changes nothing.
#[derive(Clone, Debug)]
pub enum Command {
    /// Creates, changes, shows or deletes entities and rules. Answered by `Output::Administered`.
    Administer {
        request: RequestId,
        namespace: NamespaceId,
        order: Box<Order>,
    },
    /// Adds a rule to a subscription. Answered by `Output::RuleChanged`.
    AddRule {
        request: RequestId,
        entity: EntityId,
        rule: Box<RuleDescription>,
    },
    /// Answered by `Output::RuleChanged`.
    RemoveRule {
        request: RequestId,
        entity: EntityId,
        name: String,
    },
    /// Lists rules in the order of their names. Answered by `Output::Rules`.
    ListRules {
        request: RequestId,
        entity: EntityId,
        skip: usize,
        top: usize,
    },
    /// Enqueues all messages or none. Answered by `Output::Sent`.
    Send {
        request: RequestId,
        entity: EntityId,
        messages: Vec<Incoming>,
    },
    /// Routes a message to the queues and topics that a router's bindings tell, and enqueues it at
    /// each of them once. Answered by `Output::Published`.
    Publish {
        request: RequestId,
        publication: Box<Publication>,
    },
    /// A receiver appears, without credit. With a `selector` it is given only messages that the
    /// selector selects.
    Attach {
        receiver: ReceiverId,
        subqueue: SubqueueId,
        access: Access,
        selector: Option<Arc<Selector>>,
    },
    /// A receiver appears, without credit, and comes for a subscription of a topic, which is made
    /// if it is not there. Answered by `Output::Subscribed`.
    Subscribe {
        receiver: ReceiverId,
        request: Box<SubscribeRequest>,
    },
    /// A receiver appears, without credit, and comes for a session. Answered by
    /// `Output::SessionAccepted` or `Output::SessionRefused`, perhaps later; nothing comes after a
    /// `Detach`.
    AcceptSession {
        receiver: ReceiverId,
        entity: EntityId,
        mode: ReceiveMode,
        session: SessionFilter,
    },
    /// Renews the lock of a session that the connection holds. Answered by
    /// `Output::SessionRenewed`.
    RenewSession {
        request: RequestId,
        entity: EntityId,
        session: Bytes,
    },
    /// Reads the state of a session that the connection holds. Answered by `Output::SessionState`.
    GetSessionState {
        request: RequestId,
        entity: EntityId,
        session: Bytes,
    },
    /// Sets (or, with `None`, clears) the state of a session that the connection holds. Answered
    /// by `Output::SessionStateSet`.
    SetSessionState {
        request: RequestId,
        entity: EntityId,
        session: Bytes,
        state: Option<Bytes>,
    },
    /// Whether a fault rule lets a sender be attached, while some may not: senders need nothing of
    /// the broker. Answered by `Output::SenderAttached`.
    AttachSender {
        request: RequestId,
        entity: EntityId,
    },
    /// Reads the state of a session, be it held or not. Answered by `Output::SessionState`.
    ShowSessionState {
        request: RequestId,
        entity: EntityId,
        session: Bytes,
    },
    /// Lists sessions with messages or a state, or those whose state was set after a moment.
    /// Answered by `Output::Sessions`.
    ListSessions {
        request: RequestId,
        entity: EntityId,
        updated_after: Option<Wall>,
        skip: usize,
        top: usize,
    },
    /// Browses one session from a number on. Answered by `Output::Browsed`.
    PeekSession {
        request: RequestId,
        entity: EntityId,
        session: Bytes,
        from: SequenceNumber,
        count: usize,
        max_bytes: usize,
    },
    /// `limit` as a serial number: the most deliveries that the receiver may have been given in
    /// all, counted from 0 at attach. With `drain`, what is available is delivered, then
    /// `Output::Drained`.
    Credit {
        receiver: ReceiverId,
        limit: u32,
        drain: bool,
    },
    Detach {
        receiver: ReceiverId,
    },
    /// A receiver goes with its session: deliveries that last as long as it does count as failed.
    /// (docs/spec/rabbitmq.md#10.3)
    LoseReceiver {
        receiver: ReceiverId,
    },
    /// Ends a lock. Answered by `Output::Settled` if there is a `request`.
    Settle {
        request: Option<RequestId>,
        subqueue: SubqueueId,
        /// The session that the asker says it holds: with one that it does hold, a token that names
        /// no lock is a lost message, otherwise a lost session.
        session: Option<Bytes>,
        token: LockToken,
        outcome: Outcome,
    },
    /// Renews locks, all or none. Answered by `Output::Renewed`.
    Renew {
        request: RequestId,
        subqueue: SubqueueId,
        tokens: Vec<LockToken>,
    },
    /// Ends several locks in the same way, all or none. Answered by `Output::Settled`.
    SettleMany {
        request: RequestId,
        subqueue: SubqueueId,
        session: Option<Bytes>,
        tokens: Vec<LockToken>,
        outcome: Outcome,
    },
    /// Puts a dead letter that is locked back where it came from, as new and without the reason why
    /// it was one. Answered by `Output::Settled`.
    Redrive {
        request: RequestId,
        subqueue: SubqueueId,
        token: LockToken,
        message: RedrivenMessage,
    },
    /// Browses from a number on, what is in any state or in one. Answered by `Output::Browsed`.
    Peek {
        request: RequestId,
        subqueue: SubqueueId,
        state: Option<MessageState>,
        from: SequenceNumber,
        count: usize,
        max_bytes: usize,
    },
    /// Browses scheduled messages in the order in which they are due, from a moment and a number
    /// on. What cannot be read is passed over. Answered by `Output::Browsed`, which is empty at the
    /// end alone.
    PeekSchedule {
        request: RequestId,
        entity: EntityId,
        from: (Wall, SequenceNumber),
        count: usize,
        max_bytes: usize,
    },
    /// Locks (or takes) deferred messages, all or none: none too if together they are larger than
    /// `max_bytes`, or if one is not of the `session` that is named. Answered by
    /// `Output::Deferred`.
    ReceiveDeferred {
        request: RequestId,
        subqueue: SubqueueId,
        session: Option<Bytes>,
        numbers: Vec<SequenceNumber>,
        mode: ReceiveMode,
        max_bytes: usize,
    },
    /// Takes scheduled messages back, all or none. Answered by `Output::Cancelled`.
    CancelScheduled {
        request: RequestId,
        entity: EntityId,
        numbers: Vec<SequenceNumber>,
    },
    /// Deletes the oldest available messages, at most `count`, of those enqueued before a moment
    /// (of one session, if one is named). Answered by `Output::Deleted`.
    DeleteMessages {
        request: RequestId,
        subqueue: SubqueueId,
        session: Option<Bytes>,
        enqueued_before: Wall,
        count: usize,
    },
    /// Time passes in a namespace alone: its clock is further ahead of the broker's from then on.
    AdvanceClock {
        namespace: NamespaceId,
        ms: u64,
    },
    /// A link asks for a dynamic node of its own. Answered by `Output::NodeOpened`.
    CreateNode {
        link: NodeLinkId,
        namespace: NamespaceId,
        node: NodeRequest,
    },
    /// A link is to use a dynamic node of its namespace that another link made. Answered by
    /// `Output::NodeOpened`.
    OpenNode {
        link: NodeLinkId,
        namespace: NamespaceId,
        node: EntityId,
        used: NodeUse,
    },
    /// A link of a dynamic node is closed; its receiver is detached by its own command.
    CloseNode {
        link: NodeLinkId,
    },
    /// A transaction of a connection in that namespace begins. It ends with `coordinator`, a link
    /// of the connection's own numbering. Answered by `Output::Declared`.
    Declare {
        request: RequestId,
        namespace: NamespaceId,
        coordinator: u32,
    },
    /// An operation becomes part of a transaction of the same connection. It is checked and
    /// answered at once, and done at the commit. Operations with a `scope` must all have the same:
    /// the entity that the transaction is about, unless it may touch any. What else a refusal does
    /// depends on what the client learns of it.
    Enlist {
        request: RequestId,
        transaction: TransactionId,
        operation: Box<Operation>,
        scope: Option<EntityId>,
        refusal: RefusalReport,
    },
    /// An operation of a transaction was refused before it could be enlisted, and its client may
    /// not know: the transaction cannot be committed any more.
    FailTransaction {
        connection: ConnectionId,
        transaction: TransactionId,
        reason: String,
    },
    /// A transaction is committed or, with `fail`, rolled back. Answered by `Output::Discharged`.
    Discharge {
        request: RequestId,
        transaction: TransactionId,
        fail: bool,
    },
    /// A coordinator is gone: its transactions are rolled back.
    EndTransactions {
        connection: ConnectionId,
        coordinator: u32,
    },
    /// The connection has written `bytes` bytes of deliveries (as counted by
    /// [`Delivery::size`](crate::Delivery)).
    Written {
        connection: ConnectionId,
        bytes: usize,
    },
    /// Whose connection it is, while there are fault rules that ask for it. (docs/faults.md)
    Introduce {
        connection: ConnectionId,
        client: Box<ClientNames>,
    },
    /// The connection is gone, and all its receivers with it.
    Disconnect {
        connection: ConnectionId,
    },
    /// The connection was there for one request: its receivers go with it, and its locks hold on
    /// whatever the settings say of connections that are lost.
    Leave {
        connection: ConnectionId,
    },
    /// A read came back.
    Loaded {
        read: ReadId,
        found: Result<Found, StoreError>,
    },
    /// Whether the disk is nearly full: sends are refused, settlements go on.
    StoreSpace {
        nearly_full: bool,
    },
    /// All that came of the last turn with [`Effects::deletes`](crate::Effects) is durable.
    Durable,
    /// Other limits hold from now on: a transaction's time for those that begin later, the rest at
    /// once.
    SetLimits(BrokerLimits),
    /// Time has passed.
    Tick,
}

/// What a dead letter becomes that is put back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RedrivenMessage {
    /// What its receiver was given.
    Unchanged(Bytes),
    /// Another message in its place, of the same priority and not for later.
    Edited(Box<Incoming>),
}

impl Command {
    /// Whether it copies entities with their messages, which has to be a turn of its own.
    #[must_use]
    pub fn copies(&self) -> bool {
        match self {
            Self::Administer { order, .. } => {
                matches!(&**order, Order::Namespaces(order) if order.copies())
            }
            _ => false,
        }
    }

    /// The messages that it brings.
    #[must_use]
    pub fn messages(&self) -> &[Incoming] {
        match self {
            Self::Send { messages, .. } => messages,
            Self::Enlist { operation, .. } => match &**operation {
                Operation::Send { messages, .. } => messages,
                _ => &[],
            },
            Self::Publish { publication, .. } => std::slice::from_ref(&publication.message),
            _ => &[],
        }
    }

    /// The same, to be changed.
    pub fn messages_mut(&mut self) -> &mut [Incoming] {
        match self {
            Self::Send { messages, .. } => messages,
            Self::Enlist { operation, .. } => match &mut **operation {
                Operation::Send { messages, .. } => messages,
                _ => &mut [],
            },
            Self::Publish { publication, .. } => std::slice::from_mut(&mut publication.message),
            _ => &mut [],
        }
    }

    /// Whether a client or an administrator wants something else than a deletion of messages. The
    /// shard itself gives the other commands, whatever is asked of it.
    pub(crate) fn is_asked_for(&self) -> bool {
        match self {
            Self::DeleteMessages { .. }
            | Self::AdvanceClock { .. }
            | Self::Introduce { .. }
            | Self::Durable
            | Self::Loaded { .. }
            | Self::StoreSpace { .. }
            | Self::SetLimits(_)
            | Self::Tick => false,
            Self::Attach { .. }
            | Self::AttachSender { .. }
            | Self::AcceptSession { .. }
            | Self::Subscribe { .. }
            | Self::Credit { .. }
            | Self::Detach { .. }
            | Self::LoseReceiver { .. }
            | Self::Send { .. }
            | Self::Publish { .. }
            | Self::Settle { .. }
            | Self::SettleMany { .. }
            | Self::Redrive { .. }
            | Self::Renew { .. }
            | Self::RenewSession { .. }
            | Self::GetSessionState { .. }
            | Self::SetSessionState { .. }
            | Self::ListSessions { .. }
            | Self::Peek { .. }
            | Self::PeekSession { .. }
            | Self::PeekSchedule { .. }
            | Self::ShowSessionState { .. }
            | Self::ReceiveDeferred { .. }
            | Self::CancelScheduled { .. }
            | Self::AddRule { .. }
            | Self::RemoveRule { .. }
            | Self::ListRules { .. }
            | Self::Administer { .. }
            | Self::CreateNode { .. }
            | Self::OpenNode { .. }
            | Self::CloseNode { .. }
            | Self::Declare { .. }
            | Self::Enlist { .. }
            | Self::Discharge { .. }
            | Self::FailTransaction { .. }
            | Self::EndTransactions { .. }
            | Self::Written { .. }
            | Self::Disconnect { .. }
            | Self::Leave { .. } => true,
        }
    }
}

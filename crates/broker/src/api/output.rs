//! Output: what the broker says, once the commit it rests on is durable.

#![allow(
    missing_docs,
    reason = "the variants and fields are named for what they are"
)]

use bytes::Bytes;
use store::{CommitId, EntityId, NamespaceId, SequenceNumber};

use crate::api::additions::Additions;
use crate::api::client_affine::{SubscribeError, Subscribed};
use crate::api::death::Deaths;
use crate::api::entity_error::EntityError;
use crate::api::error::{
    Eviction, RequestError, SendError, SessionError, SettleError, TransactionError,
};
use crate::api::fault::{InjectedEnd, Requester};
use crate::api::id::{ConnectionId, LockToken, ReceiverId, RequestId, TransactionId};
use crate::api::kind::EntityKind;
use crate::api::namespace::NamespaceChange;
use crate::api::node::{Node, NodeError, NodeLinkId};
use crate::api::order::Answer;
use crate::api::outcome::DeadLettering;
use crate::api::publication::{PublishError, Routed};
use crate::api::rule::{RuleDescription, RuleError, RuleSnapshot};
use crate::api::settings::QueueSettings;
use crate::api::store_only::AuthorizationRule;
use crate::api::time::Wall;
use crate::message::patch;

/// A message's state as the wire shows it. (docs/spec/entities.md#5)
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MessageState {
    Active = 0,
    Deferred = 1,
    Scheduled = 2,
}

/// How long a message stays locked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LockTime {
    /// Milliseconds from now.
    Own(u64),
    /// As long as its session is held: at present this many milliseconds from now.
    WithSession(u64),
    /// As long as its receiver is attached.
    WithReceiver,
}

impl LockTime {
    /// Milliseconds from now, at present.
    #[must_use]
    pub const fn left_ms(self) -> u64 {
        match self {
            Self::Own(left) | Self::WithSession(left) => left,
            Self::WithReceiver => u64::MAX,
        }
    }
}

/// A message as shown to a receiver or browser.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Browsed {
    /// Where it is shown.
    pub entity: EntityId,
    pub number: SequenceNumber,
    /// Its number where it first arrived; another one only if it was forwarded.
    pub enqueued_number: SequenceNumber,
    /// Whether it was forwarded from one entity to another by itself.
    pub was_forwarded: bool,
    /// Whether it waited for a time set by its sender before it became available.
    pub was_scheduled: bool,
    /// `None` when it is not locked, also when it was received and deleted.
    pub lock: Option<LockTime>,
    /// When it is due, of one that is scheduled or waits for its next delivery.
    pub enqueued: Wall,
    /// Effective, milliseconds; `None` is for ever.
    pub ttl_ms: Option<u64>,
    pub expires: Option<Wall>,
    /// Failed deliveries before this one.
    pub delivery_count: u32,
    /// Of a delivery: how often it was handed out before, as far as memory tells.
    pub acquired_count: u32,
    pub state: MessageState,
    /// The encoded message as it was received.
    pub payload: Bytes,
    /// What has become of it besides since it was received, if anything has.
    pub additions: Option<Box<Additions>>,
}

impl Browsed {
    /// See [`Additions::changes`].
    #[must_use]
    pub fn changes(&self) -> &[(String, Bytes)] {
        self.additions.as_ref().map_or(&[], |it| &it.changes)
    }

    /// See [`Additions::annotations`].
    #[must_use]
    pub fn annotations(&self) -> &[(String, Bytes)] {
        self.additions.as_ref().map_or(&[], |it| &it.annotations)
    }

    /// See [`Additions::deaths`].
    #[must_use]
    pub fn deaths(&self) -> Option<&Deaths> {
        self.additions.as_ref()?.deaths.as_ref()
    }

    /// The id of a message that has none, since an older version stored it or a rule's action took
    /// its id away: 32 hexadecimal digits, the same whenever it is shown here, and no other
    /// message's. (docs/spec/amqp.md#4.2)
    #[must_use]
    pub fn id_of_its_place(&self) -> String {
        format!("{:016x}{:016x}", self.entity.0, self.number.0)
    }

    /// See [`Additions::dead_letter_source`].
    #[must_use]
    pub fn dead_letter_source(&self) -> Option<&str> {
        self.additions.as_ref()?.dead_letter_source.as_deref()
    }

    /// The encoded message as filters see it: with its changed application properties, and without
    /// what is added when it is handed out.
    #[must_use]
    pub fn seen_by_filters(&self) -> Bytes {
        patch::applied(self.changes(), &self.payload)
    }
}

/// A message handed to a receiver.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery {
    pub message: Browsed,
    /// Also given in receive-and-delete mode.
    pub token: LockToken,
    /// The commit with which all this is on the disk.
    pub rests_on: CommitId,
}

impl Delivery {
    /// Milliseconds of lock left; `None` in receive-and-delete mode.
    #[must_use]
    pub fn lock_ms(&self) -> Option<u64> {
        self.message.lock.map(LockTime::left_ms)
    }

    /// What it counts against the output buffer of the connection, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let message = &self.message;
        let changes = message.changes().iter().chain(message.annotations());
        let changes: usize = changes.map(|(key, value)| key.len() + value.len()).sum();
        self.message.payload.len() + changes + 256
    }
}

/// What is to be known of an entity that was created or changed, or that is gone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EntityChange {
    pub id: EntityId,
    pub namespace: NamespaceId,
    /// In the case used at creation.
    pub path: String,
    pub kind: EntityKind,
    /// `None` when it is gone.
    pub settings: Option<QueueSettings>,
    /// Of a queue or topic: the rules that grant access besides those of the namespace.
    pub authorization_rules: Vec<AuthorizationRule>,
    /// The first of the entities of that path that restores have replaced, one by the next, up to
    /// this one.
    pub replaces: Option<EntityId>,
}

/// Ids of sessions, and how many to skip for those after them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionPage {
    pub ids: Vec<Bytes>,
    pub skip: usize,
}

/// What the broker says to a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Administered {
        request: RequestId,
        result: Box<Result<Answer, EntityError>>,
    },
    RuleChanged {
        request: RequestId,
        result: Result<(), RuleError>,
    },
    Rules {
        request: RequestId,
        result: Result<Vec<RuleDescription>, RuleError>,
    },
    /// For the server, whichever client caused it: it keeps its directory of entities by this.
    EntityChanged(Box<EntityChange>),
    /// The same, of what a topic's rules are from now on.
    RulesChanged(NamespaceId, Box<RuleSnapshot>),
    /// The same, of a namespace.
    NamespaceChanged(Box<NamespaceChange>),
    /// The number of the first message; the arrivals of the others follow on its own, without those
    /// that were duplicates: of each its place is told and the number of the message that was
    /// accepted before.
    Sent {
        request: RequestId,
        result: Result<SequenceNumber, SendError>,
        duplicates: Vec<(usize, SequenceNumber)>,
    },
    Published {
        request: RequestId,
        result: Result<Routed, PublishError>,
    },
    Deliver {
        receiver: ReceiverId,
        delivery: Box<Delivery>,
    },
    /// Nothing more is coming: the receiver's credit up to the limit it named is used up.
    Drained { receiver: ReceiverId },
    /// The receiver has held a message for too long: others may have it now, and the receiver is
    /// given nothing more before it names its credit again. (docs/spec/rabbitmq.md#10.6)
    DeliveryTimedOut {
        receiver: ReceiverId,
        token: LockToken,
    },
    /// Whether the receiver is one that is given messages, to one that has asked to be told: once
    /// it is attached, and when that changes. (docs/spec/rabbitmq.md#10.1)
    Activity { receiver: ReceiverId, active: bool },
    Settled {
        request: RequestId,
        result: Result<(), SettleError>,
    },
    /// A lock has ended by an `Outcome::Reported`, and its message may be a dead letter now. It has
    /// not ended if there is an error, which only a command without an answer tells here.
    LockEnded {
        connection: ConnectionId,
        token: LockToken,
        result: Result<Option<Box<DeadLettering>>, SettleError>,
    },
    /// Milliseconds of lock from now, for each token.
    Renewed {
        request: RequestId,
        result: Result<u64, RequestError>,
    },
    Browsed {
        request: RequestId,
        result: Result<Vec<Browsed>, RequestError>,
    },
    Deferred {
        request: RequestId,
        result: Result<Vec<Delivery>, RequestError>,
    },
    Cancelled {
        request: RequestId,
        result: Result<(), RequestError>,
    },
    /// How many messages went.
    Deleted {
        request: RequestId,
        result: Result<usize, RequestError>,
    },
    Declared {
        request: RequestId,
        result: Result<TransactionId, TransactionError>,
    },
    /// A transaction is over; with an error it was rolled back.
    Discharged {
        request: RequestId,
        result: Result<(), TransactionError>,
    },
    /// A transaction took too long and was rolled back.
    TimedOut {
        connection: ConnectionId,
        transaction: TransactionId,
    },
    /// The broker ends the receiver, or has not let it in. Its locks hold on, unless its entity is
    /// gone or they were lent with a session.
    Evicted {
        receiver: ReceiverId,
        reason: Eviction,
    },
    /// What is there of a dynamic node for a link that has asked for it.
    NodeOpened {
        link: NodeLinkId,
        result: Result<Node, NodeError>,
    },
    /// The dynamic node of a link is gone, with its receivers.
    NodeClosed { link: NodeLinkId },
    /// A fault rule has the connection dropped. Nothing it has asked for is answered any more.
    Dropped { connection: ConnectionId },
    /// A fault rule has a part of the connection end: the link that asked for something, its
    /// session or all of it. What it asked for is not carried out and has no other answer.
    Ended {
        requester: Requester,
        end: InjectedEnd,
    },
    /// A fault rule takes the credit of all links that the connection sends on, or gives it back.
    CreditWithheld {
        connection: ConnectionId,
        withheld: bool,
    },
    /// The sender may be attached.
    SenderAttached {
        request: RequestId,
        result: Result<(), RequestError>,
    },
    /// The receiver is attached to its subscription, or has none.
    Subscribed {
        receiver: ReceiverId,
        result: Box<Result<Subscribed, SubscribeError>>,
    },
    /// The receiver holds the session for so long. Credit it has named before counts.
    SessionAccepted {
        receiver: ReceiverId,
        session_id: Bytes,
        lock_ms: u64,
    },
    /// The receiver is gone.
    SessionRefused {
        receiver: ReceiverId,
        error: SessionError,
    },
    /// The time of the receiver's session is up, and the receiver is gone.
    SessionLost { receiver: ReceiverId },
    /// Milliseconds of lock from now.
    SessionRenewed {
        request: RequestId,
        result: Result<u64, RequestError>,
    },
    SessionState {
        request: RequestId,
        result: Result<Option<Bytes>, RequestError>,
    },
    SessionStateSet {
        request: RequestId,
        result: Result<(), RequestError>,
    },
    Sessions {
        request: RequestId,
        result: Result<SessionPage, RequestError>,
    },
}

/// Where an output goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Addressee {
    Server,
    /// It is the answer to this.
    Request(RequestId),
    Receiver(ReceiverId),
    Connection(ConnectionId),
}

impl Output {
    /// The connection it is for.
    #[must_use]
    pub fn connection(&self) -> ConnectionId {
        match self.addressee() {
            Addressee::Server => ConnectionId::SERVER,
            Addressee::Request(request) => request.connection,
            Addressee::Receiver(receiver) => receiver.connection,
            Addressee::Connection(connection) => connection,
        }
    }

    /// The request that it answers, if any.
    pub(crate) fn request(&self) -> Option<RequestId> {
        match self.addressee() {
            Addressee::Request(request) => Some(request),
            _ => None,
        }
    }

    /// The receiver that it is for, if any.
    pub(crate) fn receiver(&self) -> Option<ReceiverId> {
        match self.addressee() {
            Addressee::Receiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    fn addressee(&self) -> Addressee {
        match self {
            Self::EntityChanged(_) | Self::RulesChanged(..) | Self::NamespaceChanged(_) => {
                Addressee::Server
            }
            Self::Administered { request, .. }
            | Self::RuleChanged { request, .. }
            | Self::Rules { request, .. }
            | Self::Sent { request, .. }
            | Self::Published { request, .. }
            | Self::Settled { request, .. }
            | Self::Renewed { request, .. }
            | Self::Browsed { request, .. }
            | Self::Deferred { request, .. }
            | Self::Cancelled { request, .. }
            | Self::SenderAttached { request, .. }
            | Self::Deleted { request, .. }
            | Self::Declared { request, .. }
            | Self::Discharged { request, .. }
            | Self::SessionRenewed { request, .. }
            | Self::SessionState { request, .. }
            | Self::SessionStateSet { request, .. }
            | Self::Sessions { request, .. } => Addressee::Request(*request),
            Self::Deliver { receiver, .. }
            | Self::Drained { receiver }
            | Self::DeliveryTimedOut { receiver, .. }
            | Self::Activity { receiver, .. }
            | Self::Evicted { receiver, .. }
            | Self::Subscribed { receiver, .. }
            | Self::SessionAccepted { receiver, .. }
            | Self::SessionRefused { receiver, .. }
            | Self::SessionLost { receiver } => Addressee::Receiver(*receiver),
            Self::NodeOpened { link, .. } | Self::NodeClosed { link } => {
                Addressee::Connection(link.connection)
            }
            Self::Ended { requester, .. } => Addressee::Connection(requester.connection()),
            Self::Dropped { connection }
            | Self::CreditWithheld { connection, .. }
            | Self::LockEnded { connection, .. }
            | Self::TimedOut { connection, .. } => Addressee::Connection(*connection),
        }
    }
}

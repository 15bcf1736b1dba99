//! Pending requests: what a connection keeps of each request to the broker until its answer.

use amqp::{Attach, Value};
use broker::{LockToken, TransactionId};
use endpoint::{LinkId, SessionId};

use crate::receiver::disposition::Settlement;

/// A request to the broker, by the kind of its answer.
#[derive(Debug)]
pub(crate) enum PendingRequest {
    /// A sender that a fault rule may object to, and the answer to its attach.
    AttachSender(LinkId, Box<Attach>),
    /// Messages of one delivery.
    Send(PendingSend),
    /// A disposition that waits for its answer.
    Settle(PendingDisposition),
    /// A disposition within a transaction.
    Enlist(EnlistedDisposition),
    Declare(Control),
    Discharge(Discharge),
    /// Something about a subscription or an entity that a JMS client makes.
    Jms(JmsRequest),
    /// An operation on a management node.
    Manage(Box<PendingOperation>),
}

impl PendingRequest {
    /// The link that asked.
    pub(crate) fn link(&self) -> LinkId {
        match self {
            Self::AttachSender(link, _) => *link,
            Self::Send(send) => send.link,
            Self::Settle(settle) => settle.link,
            Self::Enlist(enlist) => enlist.disposition.link,
            Self::Declare(control) => control.link,
            Self::Discharge(discharge) => discharge.control.link,
            Self::Jms(request) => request.link(),
            Self::Manage(operation) => operation.request_link,
        }
    }
}

/// A request of a JMS client's link.
#[derive(Debug)]
pub(crate) enum JmsRequest {
    Make(LinkId),
    Find(LinkId),
    Unsubscribe(LinkId),
}

impl JmsRequest {
    /// The link that asked.
    pub(crate) fn link(&self) -> LinkId {
        let (Self::Make(link) | Self::Find(link) | Self::Unsubscribe(link)) = *self;
        link
    }
}

/// A delivery that the broker has not answered.
#[derive(Debug)]
pub(crate) struct PendingSend {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
    /// The transaction that it is part of.
    pub(crate) transaction: Option<TransactionId>,
    /// The path that it names itself, on a link without a target.
    pub(crate) relayed_to: Option<Box<str>>,
}

/// A disposition that the broker has not answered: where the answer goes, and the outcome if it
/// succeeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingDisposition {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settlement: Settlement,
}

/// A disposition that is part of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnlistedDisposition {
    pub(crate) transaction: TransactionId,
    pub(crate) token: LockToken,
    /// Whether the client has settled the delivery.
    pub(crate) settled: bool,
    pub(crate) disposition: PendingDisposition,
}

/// A declare or discharge that the broker was given.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
}

/// A discharge that the broker was given.
#[derive(Debug)]
pub(crate) struct Discharge {
    pub(crate) control: Control,
    pub(crate) transaction: TransactionId,
    pub(crate) fail: bool,
}

/// An operation of a management node that the broker has not answered.
#[derive(Debug)]
pub(crate) struct PendingOperation {
    pub(crate) request_link: LinkId,
    pub(crate) response_link: LinkId,
    /// The request's message id, to be given back as it came.
    pub(crate) correlation: Option<Value>,
    /// The node as error texts name it.
    pub(crate) resource: String,
    /// The operation, if there is such an operation.
    pub(crate) operation: Option<&'static str>,
    /// The number of elements in the request, where the answer needs it.
    pub(crate) count: usize,
    /// Whether the messages of the answer are wanted without their bodies.
    pub(crate) without_bodies: bool,
}

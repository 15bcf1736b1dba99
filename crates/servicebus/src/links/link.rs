//! Link: the state of one attached link of a connection.
//!
//! A link is a sender's (messages come in), a receiver's (messages go out), a coordinator's, or one
//! half of a request-response pair. Each holds its path and the right that it requires, so that it
//! can be found when a token expires.

use std::sync::Arc;

use access::RequiredRight;
use broker::Subqueue;
use dialect::CreditWindow;
use endpoint::SessionId;
use store::EntityId;

use crate::links::node_links::{RequestLink, ResponseLink};
use crate::links::receiver_link::Receiver;
use crate::sender::relay::Relay;

/// One attached link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) session: SessionId,
    pub(crate) name: String,
    /// The node's path for claims: normalised, in lower case, without `/$management`.
    pub(crate) path: String,
    /// The node as error texts name it.
    pub(crate) resource: String,
    /// The right that the connection must keep for the link to stay attached.
    pub(crate) required_right: RequiredRight,
    /// The entity of the link; `None` for nodes of the namespace.
    pub(crate) entity: Option<EntityRef>,
    pub(crate) kind: LinkKind,
}

/// The entity of a link.
#[derive(Clone, Debug)]
pub(crate) struct EntityRef {
    pub(crate) id: EntityId,
    /// The entity's path as the directory has it.
    pub(crate) path: String,
    pub(crate) subqueue: Subqueue,
    /// The queue itself, or the topic of a subscription.
    pub(crate) top_level: EntityId,
    /// Whether its messages are received by session.
    pub(crate) sessions: bool,
    /// The largest message that the entity takes.
    pub(crate) max_message_size: u64,
}

/// The kind of a link.
#[derive(Debug)]
pub(crate) enum LinkKind {
    /// The client sends messages to an entity.
    Sender(Sender),
    /// The client receives messages of an entity.
    Receiver(Receiver),
    /// The client sends requests to a node.
    Request(RequestLink),
    /// The client receives a node's answers.
    Response(ResponseLink),
    /// The client declares and discharges transactions.
    Coordinator(Coordinator),
}

impl LinkKind {
    /// The path of the entity that a sender sends to via its own.
    pub(crate) fn transfer_to(&self) -> Option<&str> {
        match self {
            Self::Sender(sender) => sender.transfer_to.as_deref(),
            _ => None,
        }
    }
}

/// A sender link's own state.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) destination: SenderDestination,
    /// The path of the entity that messages are sent to via this one. (docs/spec/amqp.md#8.2)
    pub(crate) transfer_to: Option<Arc<str>>,
    pub(crate) credit_window: CreditWindow,
    pub(crate) max_message_size: u64,
}

/// Where the messages of a sender go.
#[derive(Debug)]
pub(crate) enum SenderDestination {
    Entity(EntityId),
    /// Each message says it.
    Relay(Relay),
}

/// A coordinator link's own state.
#[derive(Debug)]
pub(crate) struct Coordinator {
    pub(crate) credit_window: CreditWindow,
    /// Whether the client takes `rejected` for an answer.
    pub(crate) understands_rejected: bool,
}

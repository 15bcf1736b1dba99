//! Pending attach: an attach that is not answered yet.

use amqp::Attach;
use endpoint::{LinkId, SessionId};

use crate::address::Node;
use crate::attach::requested_session::RequestedSession;
use crate::links::link::EntityRef;
use crate::links::receiver_link::Receiver;

/// An attach of the client that is not accepted yet.
#[derive(Debug)]
pub(crate) struct AttachRequest {
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) attach: Box<Attach>,
    pub(crate) node: Node,
}

/// An attach that waits for its session.
#[derive(Debug)]
pub(crate) struct PendingAttach {
    pub(crate) request: AttachRequest,
    pub(crate) reply: Attach,
    pub(crate) requested_session: RequestedSession,
    pub(crate) entity_ref: EntityRef,
    pub(crate) path: String,
    pub(crate) receiver: Receiver,
}

impl PendingAttach {
    /// The link's name.
    pub(crate) fn name(&self) -> &str {
        &self.request.attach.name
    }
}

//! Link: the state of one attached link of a connection.
//!
//! A link is a sender's (messages come in), a receiver's (messages go out), a coordinator's, or one
//! half of a request-response pair. Each holds its path and the right that it requires, so that it
//! can be found when a token expires.

use access::RequiredRight;
use broker::Subqueue;
use endpoint::{LinkId, SessionId};
use store::EntityId;

use amqp::Value;

use crate::coordinator::Coordinator;
use crate::disposition::Settlement;
use crate::receiver::Receiver;
use crate::request_response::{RequestLink, ResponseLink};
use crate::sender::Sender;

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

/// A disposition that the broker has not answered: where the answer goes, and the outcome if it
/// succeeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingDisposition {
    pub(crate) session: SessionId,
    pub(crate) delivery_id: u32,
    pub(crate) settlement: Settlement,
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

/// How many windows of deliveries may wait for answers on one link. Some clients send beyond their
/// credit (rule 19); a client that exceeds this bound ignores credit altogether.
const WINDOWS: u32 = 4;

/// Credit of a link that the client sends on: a window over what has arrived and was not answered.
///
/// Invariant: credit given plus arrivals unanswered never exceed the window.
#[derive(Debug)]
pub(crate) struct CreditWindow {
    window: u32,
    unanswered: u32,
}

impl CreditWindow {
    pub(crate) const fn new(window: u32) -> Self {
        Self {
            window,
            unanswered: 0,
        }
    }

    /// Counts a delivery; false if it is one too many, and the link must be detached.
    #[must_use]
    pub(crate) fn arrived(&mut self) -> bool {
        self.unanswered = self.unanswered.saturating_add(1);
        self.unanswered <= self.window.saturating_mul(WINDOWS)
    }

    pub(crate) fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// The credit to give when `left` is what the client has; `None` while it has more than half
    /// of what it could have. So one flow goes out for half a window of answers.
    pub(crate) fn top_up(&self, left: u32) -> Option<u32> {
        let room = self.window.saturating_sub(self.unanswered);
        let worth = (self.window / 2).max(1);
        (room.saturating_sub(left) >= worth).then_some(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_topped_up_once_half_a_window_is_answered() {
        let mut credit_window = CreditWindow::new(10);
        for _ in 0..10 {
            assert!(credit_window.arrived());
        }
        assert_eq!(credit_window.top_up(0), None);
        for _ in 0..4 {
            credit_window.answered();
        }
        assert_eq!(credit_window.top_up(0), None);
        credit_window.answered();
        assert_eq!(credit_window.top_up(0), Some(5));
        assert_eq!(credit_window.top_up(5), None);
    }

    #[test]
    fn a_client_that_overruns_its_credit_gets_none_until_it_is_answered() {
        let mut credit_window = CreditWindow::new(2);
        for _ in 0..5 {
            assert!(credit_window.arrived());
        }
        for _ in 0..3 {
            credit_window.answered();
            assert_eq!(credit_window.top_up(0), None);
        }
        credit_window.answered();
        assert_eq!(credit_window.top_up(0), Some(1));
    }

    #[test]
    fn four_windows_may_wait_for_answers_and_no_more() {
        let mut credit_window = CreditWindow::new(2);
        for _ in 0..8 {
            assert!(credit_window.arrived());
        }
        assert!(!credit_window.arrived());
        credit_window.answered();
        credit_window.answered();
        assert!(credit_window.arrived());
    }
}

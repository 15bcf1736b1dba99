//! Receiver link: the state of a link on which the client receives messages.

use std::collections::VecDeque;

use amqp::DeliveryState;
use broker::{Delivery, Outcome, ReceiveMode, SettleError, Subqueue};
use bytes::Bytes;
use dialect::Credit;
use endpoint::{LinkId, SessionId};
use store::EntityId;

use crate::client::events::ReceivedDisposition;
use crate::pending_requests::PendingDisposition;
use crate::receiver::disposition::{self, Decision, Settlement};

/// A receiver link's own state.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) session: SessionId,
    pub(crate) entity: EntityId,
    pub(crate) subqueue: Subqueue,
    pub(crate) mode: ReceiveMode,
    /// Whether it browses: its deliveries are copies, and settled.
    pub(crate) browses: bool,
    /// The session that it holds.
    pub(crate) held_session: Option<Bytes>,
    /// The outcome of deliveries that are settled without one. [AMQP 3.5.3]
    pub(crate) default_outcome: Option<DeliveryState>,
    pub(crate) credit: Credit,
    /// Deliveries that wait for credit: received and deleted, browsed, or locked while the broker
    /// drains.
    pub(crate) waiting: VecDeque<Box<Delivery>>,
}

impl Receiver {
    /// A disposition that waits for the broker's answer.
    pub(crate) fn pending_disposition(
        &self,
        disposition: &ReceivedDisposition,
        settlement: Settlement,
    ) -> PendingDisposition {
        PendingDisposition {
            link: disposition.link,
            session: self.session,
            delivery_id: disposition.delivery_id,
            settlement,
        }
    }

    /// How deliveries end in which the client has no more say. [AMQP 3.5.3]
    pub(crate) fn default_settlement(&self) -> (Outcome, Settlement) {
        match disposition::decide(None, true, self.default_outcome.as_ref()) {
            Ok(Decision::Settle(outcome, settlement)) if self.check(&outcome).is_ok() => {
                (outcome, settlement)
            }
            // The default outcome has a fault itself.
            Ok(_) | Err(_) => (Outcome::Release, Settlement::Released),
        }
    }

    /// Whether its deliveries may end so.
    pub(crate) fn check(&self, outcome: &Outcome) -> Result<(), SettleError> {
        outcome.check(self.subqueue, self.held_session.is_some())
    }

    /// Whether it keeps a delivery that has no credit, instead of returning it.
    pub(crate) fn holds(&self) -> bool {
        self.mode == ReceiveMode::ReceiveAndDelete || self.credit.is_draining()
    }
}

/// A detached receiver, so that late deliveries for it can be returned.
#[derive(Debug)]
pub(crate) struct DetachedReceiver {
    pub(crate) link: LinkId,
    pub(crate) entity: EntityId,
    pub(crate) subqueue: Subqueue,
}

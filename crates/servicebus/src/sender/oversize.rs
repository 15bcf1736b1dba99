//! Oversize: a delivery that is larger than its link allows, refused before its end.
//! (docs/spec/amqp.md#5.5)
//!
//! It is rejected as soon as it exceeds the limit. The rest of its payload is dropped on arrival,
//! and the link stays attached. The sender of a settled delivery would not see a rejection, so its
//! link is detached with the same error.

use amqp::{DeliveryState, Error};
use dialect::{Origin, Subject};

use crate::client::Client;
use crate::client::events::OversizeDelivery;
use crate::errors;
use crate::links::link::LinkKind;
use crate::pending_requests::{Control, PendingSend};
use crate::transactions;

impl Client {
    /// Rejects a delivery for its size.
    pub(crate) fn handle_oversize(&mut self, oversize: &OversizeDelivery) {
        let link = oversize.link;
        let Some(credit_window) = self.links.credit_window(link) else {
            return;
        };
        if !credit_window.arrived() {
            return self.detach(link, errors::credit_overrun());
        }
        let error = errors::larger_than_link(oversize.limit);
        match self.links.get(link).map(|link| &link.kind) {
            Some(LinkKind::Sender(_)) => {
                return self.refuse_or_detach(&oversize.pending_send(), error);
            }
            _ if oversize.settled => {}
            Some(LinkKind::Coordinator(_)) => {
                let state = DeliveryState::Rejected(Some(error.clone()));
                self.answer_control(&oversize.control(), state);
            }
            _ => self.refuse_oversize_request(oversize, error.clone()),
        }
        if oversize.settled {
            self.detach(link, error);
        }
    }

    fn refuse_oversize_request(&mut self, oversize: &OversizeDelivery, error: Error) {
        let error = self.tracked(error);
        self.note_request(Subject::Request, oversize.link, Origin::default(), &error);
        let state = DeliveryState::Rejected(Some(error));
        self.connection
            .dispose_received(oversize.session, oversize.delivery_id, state, true);
        self.request_answered(oversize.link);
    }
}

impl OversizeDelivery {
    fn pending_send(&self) -> PendingSend {
        PendingSend {
            link: self.link,
            session: self.session,
            delivery_id: self.delivery_id,
            settled: self.settled,
            transaction: transactions::of_state(self.state.as_ref()),
            relayed_to: None,
        }
    }

    fn control(&self) -> Control {
        Control {
            link: self.link,
            session: self.session,
            delivery_id: self.delivery_id,
            settled: self.settled,
        }
    }
}

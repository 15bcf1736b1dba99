//! Sender attach: while a fault rule is for the attach of senders, each waits until the broker has
//! said that no rule objects. (docs/faults.md)
//!
//! The link is known meanwhile, so changes of its entity and its rights end it, but its attach is
//! not answered. Without such a rule the broker hears nothing of senders.

use amqp::Attach;
use broker::{Command, RequestError, RequestId};
use endpoint::LinkId;
use store::EntityId;

use crate::client::Client;
use crate::errors;
use crate::links::link::{LinkKind, Sender, SenderDestination};
use crate::pending_requests::PendingRequest;

impl Client {
    /// The entity of a link that the broker is to be asked for.
    pub(super) fn entity_to_ask_for(&self, kind: &LinkKind) -> Option<EntityId> {
        let LinkKind::Sender(Sender { destination, .. }) = kind else {
            return None;
        };
        match destination {
            SenderDestination::Entity(entity) if self.asks_for_senders => Some(*entity),
            _ => None,
        }
    }

    /// Has a link wait for the broker.
    pub(super) fn ask_for_sender(&mut self, link: LinkId, reply: Attach, entity: EntityId) {
        let pending = PendingRequest::AttachSender(link, Box::new(reply));
        let request = self.register_request(pending, 0);
        self.command(Command::AttachSender { request, entity });
    }

    /// Handles what the broker says of a sender. If its link is gone, that is of no use.
    pub(crate) fn handle_sender_attached(
        &mut self,
        request: RequestId,
        result: Result<(), RequestError>,
    ) {
        let pending = self.pending_requests.remove(request.token);
        let Some(PendingRequest::AttachSender(link, reply)) = pending else {
            return;
        };
        if self.links.get(link).is_none() {
            return;
        }
        match result {
            Ok(()) => {
                self.connection.accept(link, *reply);
                self.give_sender_credit(link);
            }
            Err(error) => {
                let error = errors::request(&error, &self.entity_name(link));
                self.detach(link, error);
            }
        }
    }

    /// The first credit of a link that the client sends on, unless a fault rule withholds it.
    pub(super) fn give_sender_credit(&mut self, link: LinkId) {
        if !self.withholds_credit {
            let credit = self.settings.sender_credit;
            self.connection.set_credit(link, credit, false);
        }
    }
}

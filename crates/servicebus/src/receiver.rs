//! Receiver: a link on which the client receives messages of an entity.
//! (docs/spec/amqp.md#3.3, #5, #6)
//!
//! Credit goes to the broker; its deliveries come back and go to the client; a disposition ends a
//! lock. A delivery that arrives when the link has no credit is returned to the broker in peek-lock
//! mode. In receive-and-delete mode a return is impossible, so the delivery waits for credit.

pub(crate) mod disposition;

use amqp::{DeliveryState, Error};
use broker::{
    Command, Delivery, LockToken, Outcome, ReceiveMode, ReceiverId, RequestId, SettleError,
    Subqueue, SubqueueId, TransactionId,
};
use dialect::{ClockReading, CreditUpdate, Subject};
use endpoint::{LinkId, NoCredit, Outgoing};
use store::EntityId;

use crate::client::Client;
use crate::client::events::ReceivedDisposition;
use crate::errors;
use crate::links::link::LinkKind;
use crate::links::receiver_link::{DetachedReceiver, Receiver};
use crate::message::delivery::{self, Lock, LockedUntil, View};
use crate::pending_requests::PendingRequest;
use crate::receiver::disposition::{Decision, Settlement};
use crate::transactions::{self, enlist};

/// The cost of a settlement while it waits for its answer.
pub(crate) const SETTLEMENT: usize = 64;
/// Detached receivers that are remembered, so that late deliveries for them can be returned.
const MAX_DETACHED_RECEIVERS: usize = 64;

impl Client {
    /// The receiver of a link.
    pub(crate) fn receiver_id(&self, link: LinkId) -> ReceiverId {
        ReceiverId {
            connection: self.id,
            link: link.0,
        }
    }

    /// Handles changed credit of a link on which the broker sends.
    pub(crate) fn handle_any_credit(&mut self, link: LinkId, limit: u32, drain: bool) {
        match self.links.get(link).map(|link| &link.kind) {
            Some(LinkKind::Receiver(_)) => self.handle_credit(link, limit, drain),
            Some(LinkKind::Response(_)) => self.handle_response_credit(link, drain),
            Some(LinkKind::Sender(_) | LinkKind::Request(_) | LinkKind::Coordinator(_)) | None => {}
        }
    }

    /// Handles changed credit of a receiver: sends waiting deliveries, then updates the broker.
    fn handle_credit(&mut self, link: LinkId, limit: u32, drain: bool) {
        let Some(receiver) = self.links.receiver(link) else {
            return;
        };
        receiver.credit.grant(limit, drain);
        self.send_waiting(link);
        self.update_credit(link);
    }

    /// Handles the end of a drain by the broker.
    pub(crate) fn handle_drained(&mut self, receiver: ReceiverId) {
        let link = LinkId(receiver.link);
        let Some(state) = self.links.receiver(link) else {
            return;
        };
        let answered = state.credit.finish_drain();
        if answered {
            self.connection.drained(link);
        }
        self.return_waiting(link);
        if !answered {
            self.update_credit(link);
        }
    }

    /// Sends a delivery to the client, or returns it to the broker.
    pub(crate) fn handle_deliver(&mut self, receiver: ReceiverId, delivery: Box<Delivery>) {
        let link = LinkId(receiver.link);
        let Some(state) = self.links.receiver(link) else {
            return self.return_late(link, &delivery);
        };
        state.credit.handed();
        let settled = state.mode == ReceiveMode::ReceiveAndDelete;
        let must_wait = !state.waiting.is_empty();
        if must_wait || self.send_delivery(link, settled, &delivery).is_err() {
            self.hold_or_return(link, delivery);
        }
    }

    /// Encodes and sends one delivery. It counts as unreported until it is written.
    fn send_delivery(
        &mut self,
        link: LinkId,
        settled: bool,
        delivery: &Delivery,
    ) -> Result<(), NoCredit> {
        let browses = self.links.receiver(link).is_some_and(|it| it.browses);
        let lock = lock(delivery, self.now).filter(|_| !browses);
        let pieces = delivery::encode(&delivery.message, View::Link(lock), &mut self.head);
        let token = delivery::tag(delivery.token);
        // A message that is received and deleted cannot be settled later. (docs/spec/amqp.md#4.3)
        let tag: &[u8] = if settled { &[] } else { &token };
        let cookie = delivery.token.0;
        let outgoing = Outgoing {
            tag,
            message_format: 0,
            settled,
            cookie,
            state: None,
            owner: Some(&delivery.message.payload),
        };
        self.connection.send(link, &outgoing, &pieces)?;
        self.unreported_bytes = self.unreported_bytes.saturating_add(delivery.size());
        if let Some(receiver) = self.links.receiver(link) {
            receiver.credit.sent();
        }
        Ok(())
    }

    /// Sends waiting deliveries as far as credit goes.
    fn send_waiting(&mut self, link: LinkId) {
        while let Some(receiver) = self.links.receiver(link) {
            let settled = receiver.mode == ReceiveMode::ReceiveAndDelete;
            let Some(delivery) = receiver.waiting.pop_front() else {
                return;
            };
            if self.send_delivery(link, settled, &delivery).is_err() {
                if let Some(receiver) = self.links.receiver(link) {
                    receiver.waiting.push_front(delivery);
                }
                return;
            }
        }
    }

    fn hold_or_return(&mut self, link: LinkId, delivery: Box<Delivery>) {
        let Some(receiver) = self.links.receiver(link) else {
            return;
        };
        let holds = receiver.holds();
        receiver.waiting.push_back(delivery);
        if !holds {
            self.return_waiting(link);
        }
    }

    /// Returns locked deliveries to the broker. The broker is told first that there is no credit,
    /// else it would send them here again at once.
    fn return_waiting(&mut self, link: LinkId) {
        let Some(receiver) = self.links.receiver(link) else {
            return;
        };
        if receiver.waiting.is_empty() || receiver.holds() {
            return;
        }
        let (entity, subqueue) = (receiver.entity, receiver.subqueue);
        let waiting = std::mem::take(&mut receiver.waiting);
        let update = receiver.credit.stop(waiting.len());
        self.command_credit(link, update);
        for delivery in waiting {
            self.return_delivery(entity, subqueue, &delivery);
        }
    }

    fn update_credit(&mut self, link: LinkId) {
        let Some(receiver) = self.links.receiver(link) else {
            return;
        };
        if let Some(update) = receiver.credit.next_update(receiver.waiting.len()) {
            self.command_credit(link, update);
        }
    }

    fn command_credit(&mut self, link: LinkId, update: CreditUpdate) {
        let receiver = self.receiver_id(link);
        let CreditUpdate { limit, drain } = update;
        self.command(Command::Credit {
            receiver,
            limit,
            drain,
        });
    }

    /// Returns a delivery whose receiver is detached already. A message that was received and
    /// deleted is lost with its receiver, as that mode has it.
    fn return_late(&mut self, link: LinkId, delivery: &Delivery) {
        let departed = self
            .detached_receivers
            .iter()
            .find(|departed| departed.link == link);
        match departed.map(|departed| (departed.entity, departed.subqueue)) {
            Some((entity, subqueue)) if delivery.message.lock.is_some() => {
                self.return_delivery(entity, subqueue, delivery);
            }
            _ => self.report_written(delivery.size()),
        }
    }

    fn return_delivery(&mut self, entity: EntityId, subqueue: Subqueue, delivery: &Delivery) {
        let (token, outcome) = (delivery.token, Outcome::Undelivered);
        self.command(Command::Settle {
            request: None,
            subqueue: SubqueueId { entity, subqueue },
            session: None,
            token,
            outcome,
        });
        self.report_written(delivery.size());
    }

    /// Detaches a receiver at the broker, which then delivers nothing more to it.
    pub(crate) fn detach_receiver(&mut self, link: LinkId, receiver: &Receiver) {
        let gone = self.receiver_id(link);
        self.command(Command::Detach { receiver: gone });
        let Receiver {
            entity, subqueue, ..
        } = *receiver;
        if self.detached_receivers.len() == MAX_DETACHED_RECEIVERS {
            self.detached_receivers.pop_front();
        }
        self.detached_receivers.push_back(DetachedReceiver {
            link,
            entity,
            subqueue,
        });
        for delivery in &receiver.waiting {
            self.return_late(link, delivery);
        }
    }

    /// The receiver whose deliveries a disposition names; it may be detached.
    pub(crate) fn settling_receiver(&mut self, link: LinkId) -> Option<&mut Receiver> {
        match self.links.receiver(link) {
            Some(receiver) => Some(receiver),
            None => self.open_deliveries.receiver(link),
        }
    }

    /// Handles a disposition of the client.
    pub(crate) fn handle_disposed(&mut self, disposition: &ReceivedDisposition) {
        let token = LockToken(disposition.cookie);
        let enlisted_in = self.transactions.of(token);
        let named = transactions::of_state(disposition.state.as_ref());
        let Some(receiver) = self.settling_receiver(disposition.link) else {
            // One that is part of the transaction already is not missed there.
            if enlisted_in.is_none() || enlisted_in != named {
                self.handle_missed(disposition.state.as_ref());
            }
            return;
        };
        if disposition.settled && named.is_some() && enlisted_in == named {
            // Nothing new: the client forgets a delivery that it has put into the transaction. Any
            // other outcome applies if that is rolled back. (docs/spec/amqp.md#8.1)
            return;
        }
        let (state, transaction) = match &disposition.state {
            Some(DeliveryState::Transactional { txn_id, outcome }) => {
                (outcome.as_deref(), Some(transactions::parse_id(txn_id)))
            }
            state => (state.as_ref(), None),
        };
        let default = receiver.default_outcome.as_ref();
        let mut decision = disposition::decide(state, disposition.settled, default);
        // The broker has no answer to a settled one, so its refusal is foreseen.
        if disposition.settled
            && let Ok(Decision::Settle(outcome, _)) = &decision
            && let Err(error) = receiver.check(outcome)
        {
            decision = Err(errors::settle(&error));
        }
        match decision {
            Ok(Decision::Wait) => {}
            Ok(Decision::Settle(outcome, settlement)) => match transaction {
                None => self.settle(disposition, outcome, settlement),
                Some(transaction) => self.enlist(disposition, transaction, outcome, settlement),
            },
            Err(error) => self.refuse_disposition(disposition, transaction, error),
        }
    }

    fn settle(
        &mut self,
        disposition: &ReceivedDisposition,
        outcome: Outcome,
        settlement: Settlement,
    ) {
        let Some(receiver) = self.settling_receiver(disposition.link) else {
            return;
        };
        let (entity, subqueue) = (receiver.entity, receiver.subqueue);
        let session = receiver.held_session.clone();
        let pending = receiver.pending_disposition(disposition, settlement);
        let cost = SETTLEMENT + outcome.size();
        let request = (!disposition.settled)
            .then(|| self.register_request(PendingRequest::Settle(pending), cost));
        let token = LockToken(disposition.cookie);
        self.command(Command::Settle {
            request,
            subqueue: SubqueueId { entity, subqueue },
            session,
            token,
            outcome,
        });
    }

    /// Refuses a disposition before the broker saw it. The lock is kept, unless the client has
    /// settled the delivery: it has forgotten the message, which the default outcome of the link's
    /// source gives back at once. [AMQP 3.5.3]
    fn refuse_disposition(
        &mut self,
        disposition: &ReceivedDisposition,
        transaction: Option<TransactionId>,
        error: Error,
    ) {
        let Some(receiver) = self.settling_receiver(disposition.link) else {
            return;
        };
        let session = receiver.session;
        let (outcome, settlement) = receiver.default_settlement();
        let error = self.refused(Subject::Settlement, disposition.link, None, error);
        if !disposition.settled {
            let state = DeliveryState::Rejected(Some(error));
            self.connection
                .settle_sent(session, disposition.delivery_id, state, true);
            return;
        }
        if let Some(transaction) = transaction {
            if !self.transactions.is_open(transaction) {
                // The broker gives it back, and its answer detaches the link. Until then the rest
                // of the range can be given back too.
                return self.enlist(disposition, transaction, outcome, settlement);
            }
            self.command(Command::FailTransaction {
                connection: self.id,
                transaction,
                reason: error.condition.as_str().to_owned(),
            });
        }
        self.settle(disposition, outcome, settlement);
    }

    /// Handles the broker's answer to a settlement, by a disposition or through a management node.
    pub(crate) fn handle_settled(&mut self, request: RequestId, result: Result<(), SettleError>) {
        match self.pending_requests.remove(request.token) {
            Some(PendingRequest::Settle(pending)) => {
                let (state, settled) = match result {
                    Ok(()) => (pending.settlement.state(), true),
                    Err(error) => self.refused_settlement(pending.link, &error),
                };
                self.connection
                    .settle_sent(pending.session, pending.delivery_id, state, settled);
            }
            Some(PendingRequest::Enlist(enlisted)) => self.answer_enlisted(&enlisted, result),
            Some(PendingRequest::Manage(pending)) => self.answer_update(&pending, result),
            Some(
                PendingRequest::AttachSender(..)
                | PendingRequest::Send(_)
                | PendingRequest::Declare(_)
                | PendingRequest::Discharge(_)
                | PendingRequest::Jms(_),
            )
            | None => {}
        }
    }

    /// The state of a refused settlement, and whether it settles the delivery: not if it can be
    /// settled another time. One that names an ended transaction settles it.
    /// (docs/spec/amqp.md#8.1)
    pub(crate) fn refused_settlement(
        &mut self,
        link: LinkId,
        error: &SettleError,
    ) -> (DeliveryState, bool) {
        let again = match error {
            SettleError::Enlisted => true,
            SettleError::Transaction(_) => !enlist::is_about_transaction(error),
            _ => false,
        };
        let error = self.refused(Subject::Settlement, link, None, errors::settle(error));
        (DeliveryState::Rejected(Some(error)), !again)
    }
}

/// The lock of a delivery, by the machine's real clock, which clients compare it with.
pub(crate) fn lock(delivery: &Delivery, now: ClockReading) -> Option<Lock> {
    let time = delivery.message.lock?;
    Some(Lock {
        token: delivery.token,
        until: LockedUntil::of(Some(time), now.wall.0),
    })
}

//! Receiver: a link on which the client receives messages of an entity. (docs/spec/amqp.md#3.3, #5, #6)
//!
//! Credit goes to the broker, deliveries come back and go out; a disposition ends a lock. A
//! delivery that meets no credit any more is given back in peek-lock mode; a message that was
//! received and deleted can not be, so it is kept until there is credit.

use std::collections::VecDeque;

use amqp::{DeliveryState, Error};
use broker::{
    Command, Delivery, LockToken, Outcome, ReceiveMode, ReceiverId, RequestId, SettleError,
    Subqueue, SubqueueId, TransactionId,
};
use bytes::Bytes;
use endpoint::{LinkId, NoCredit, Outgoing, SessionId};
use store::EntityId;

use crate::client::Client;
use crate::credit::{Credit, Told};
use crate::delivery::{self, Lock, LockedUntil, View};
use crate::disposition::{self, Decision, Settlement};
use crate::link::Answer;
use crate::moment::Moment;
use crate::pending::Question;
use crate::refusal;
use crate::transactions;

/// What a settlement costs while it waits for its answer.
pub(crate) const SETTLEMENT: usize = 64;
/// Receivers that are gone whose late deliveries can still be given back.
const MAX_DEPARTED: usize = 64;

/// A receiver link's own state.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) session: SessionId,
    pub(crate) entity: EntityId,
    pub(crate) subqueue: Subqueue,
    pub(crate) mode: ReceiveMode,
    /// Whether messages are only shown to it: what it makes of them concerns nobody.
    pub(crate) browses: bool,
    /// The session that it holds.
    pub(crate) lent: Option<Bytes>,
    /// The outcome of deliveries that are settled without one. [AMQP 3.5.3]
    pub(crate) default_outcome: Option<DeliveryState>,
    pub(crate) credit: Credit,
    /// Deliveries that wait for credit: received and deleted, shown, or locked while the broker
    /// drains.
    pub(crate) kept: VecDeque<Box<Delivery>>,
}

impl Receiver {
    /// Where the answer to a disposition goes.
    pub(crate) fn answer(&self, disposed: &Disposed, settlement: Settlement) -> Answer {
        Answer {
            session: self.session,
            delivery_id: disposed.delivery_id,
            settlement,
        }
    }

    fn keeps(&self) -> bool {
        let takes_locks = self.mode == ReceiveMode::PeekLock && !self.browses;
        !takes_locks || self.credit.is_draining()
    }
}

/// What must be known of a receiver after its end to give its late deliveries back.
#[derive(Debug)]
pub(crate) struct Departed {
    link: LinkId,
    entity: EntityId,
    subqueue: Subqueue,
}

/// A disposition as the endpoint reports it.
pub(crate) struct Disposed {
    pub(crate) link: LinkId,
    pub(crate) cookie: u128,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
    pub(crate) state: Option<DeliveryState>,
}

impl Client {
    /// A receiver's credit changed: what was kept goes out, then the broker learns of it.
    pub(crate) fn handle_credit(&mut self, link: LinkId, limit: u32, drain: bool) {
        let Some(receiver) = self.links.receiver(link) else {
            return;
        };
        receiver.credit.grant(limit, drain);
        self.send_kept(link);
        self.tell_credit(link);
    }

    /// The broker has nothing more for a drain.
    pub(crate) fn handle_drained(&mut self, receiver: ReceiverId) {
        let link = LinkId(receiver.link);
        let Some(state) = self.links.receiver(link) else {
            return;
        };
        let answered = state.credit.finish_drain();
        if answered {
            self.connection.drained(link);
        }
        self.give_kept_back(link);
        if !answered {
            self.tell_credit(link);
        }
    }

    /// Sends a delivery out, or gives it back.
    pub(crate) fn handle_deliver(&mut self, receiver: ReceiverId, delivery: Box<Delivery>) {
        let link = LinkId(receiver.link);
        let Some(state) = self.links.receiver(link) else {
            return self.give_back_late(link, &delivery);
        };
        state.credit.handed();
        let settled = state.mode == ReceiveMode::ReceiveAndDelete;
        let waits = !state.kept.is_empty();
        if waits || self.send_delivery(link, settled, &delivery).is_err() {
            self.keep_or_give_back(link, delivery);
        }
    }

    /// Encodes and sends one delivery. It occupies the outlet until it is written.
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
        // What is received and deleted can not be named any more. (docs/spec/amqp.md#4.3)
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
        self.outlet = self.outlet.saturating_add(delivery.size());
        if let Some(receiver) = self.links.receiver(link) {
            receiver.credit.sent();
        }
        Ok(())
    }

    /// Sends what was kept, as far as credit goes.
    fn send_kept(&mut self, link: LinkId) {
        while let Some(receiver) = self.links.receiver(link) {
            let settled = receiver.mode == ReceiveMode::ReceiveAndDelete;
            let Some(delivery) = receiver.kept.pop_front() else {
                return;
            };
            if self.send_delivery(link, settled, &delivery).is_err() {
                if let Some(receiver) = self.links.receiver(link) {
                    receiver.kept.push_front(delivery);
                }
                return;
            }
        }
    }

    fn keep_or_give_back(&mut self, link: LinkId, delivery: Box<Delivery>) {
        let Some(receiver) = self.links.receiver(link) else {
            return;
        };
        let keeps = receiver.keeps();
        receiver.kept.push_back(delivery);
        if !keeps {
            self.give_kept_back(link);
        }
    }

    /// Gives locked deliveries back. The broker hears first that there is no credit, else it
    /// would send them here again at once.
    fn give_kept_back(&mut self, link: LinkId) {
        let Some(receiver) = self.links.receiver(link) else {
            return;
        };
        if receiver.kept.is_empty() || receiver.keeps() {
            return;
        }
        let (entity, subqueue) = (receiver.entity, receiver.subqueue);
        let kept = std::mem::take(&mut receiver.kept);
        let told = receiver.credit.stop(kept.len());
        self.command_credit(link, told);
        for delivery in kept {
            self.give_back(entity, subqueue, &delivery);
        }
    }

    fn tell_credit(&mut self, link: LinkId) {
        let Some(receiver) = self.links.receiver(link) else {
            return;
        };
        if let Some(told) = receiver.credit.tell(receiver.kept.len()) {
            self.command_credit(link, told);
        }
    }

    fn command_credit(&mut self, link: LinkId, told: Told) {
        let receiver = self.receiver_id(link);
        let Told { limit, drain } = told;
        self.command(Command::Credit {
            receiver,
            limit,
            drain,
        });
    }

    /// Gives back a delivery whose receiver is gone already. What was received and deleted is lost
    /// with its receiver, as that mode has it.
    fn give_back_late(&mut self, link: LinkId, delivery: &Delivery) {
        let departed = self.departed.iter().find(|departed| departed.link == link);
        match departed.map(|departed| (departed.entity, departed.subqueue)) {
            Some((entity, subqueue)) if delivery.message.lock.is_some() => {
                self.give_back(entity, subqueue, delivery);
            }
            _ => self.report_written(delivery.size()),
        }
    }

    fn give_back(&mut self, entity: EntityId, subqueue: Subqueue, delivery: &Delivery) {
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

    /// A receiver link is gone: the broker gives it nothing more.
    pub(crate) fn depart(&mut self, link: LinkId, receiver: &Receiver) {
        let gone = self.receiver_id(link);
        self.command(Command::Detach { receiver: gone });
        let Receiver {
            entity, subqueue, ..
        } = *receiver;
        if self.departed.len() == MAX_DEPARTED {
            self.departed.pop_front();
        }
        self.departed.push_back(Departed {
            link,
            entity,
            subqueue,
        });
        for delivery in &receiver.kept {
            self.give_back_late(link, delivery);
        }
    }

    /// The client disposed of a delivery.
    pub(crate) fn handle_disposed(&mut self, disposed: &Disposed) {
        let token = LockToken(disposed.cookie);
        let Some(receiver) = self.links.receiver(disposed.link) else {
            return;
        };
        if receiver.browses {
            return self.forget_shown(disposed);
        }
        if disposed.settled && self.transactions.has_enlisted(token) {
            // A client that does not wait for the commit forgets its delivery. (docs/spec/amqp.md#8)
            return;
        }
        let (state, transaction) = match &disposed.state {
            Some(DeliveryState::Transactional { txn_id, outcome }) => {
                (outcome.as_deref(), Some(transactions::named(txn_id)))
            }
            state => (state.as_ref(), None),
        };
        let default = receiver.default_outcome.as_ref();
        match disposition::decide(state, disposed.settled, default) {
            Ok(Decision::Wait) => {}
            Ok(Decision::Settle(outcome, settlement)) => match transaction {
                None => self.settle(disposed, outcome, settlement),
                Some(transaction) => self.enlist(disposed, transaction, outcome, settlement),
            },
            Err(error) => self.refuse_disposition(disposed, transaction, error),
        }
    }

    /// A browser is done with a copy: whatever it made of it is as it says.
    fn forget_shown(&mut self, disposed: &Disposed) {
        let Some(receiver) = self.links.receiver(disposed.link) else {
            return;
        };
        let session = receiver.session;
        let is_terminal = !matches!(disposed.state, None | Some(DeliveryState::Received { .. }));
        if let Some(state) = disposed.state.clone().filter(|_| is_terminal)
            && !disposed.settled
        {
            self.connection
                .settle_sent(session, disposed.delivery_id, state, true);
        }
    }

    fn settle(&mut self, disposed: &Disposed, outcome: Outcome, settlement: Settlement) {
        let Some(receiver) = self.links.receiver(disposed.link) else {
            return;
        };
        let (entity, subqueue) = (receiver.entity, receiver.subqueue);
        let session = receiver.lent.clone();
        let answer = receiver.answer(disposed, settlement);
        let cost = SETTLEMENT + outcome.size();
        let request = (!disposed.settled).then(|| self.ask(Question::Settle(answer), cost));
        let token = LockToken(disposed.cookie);
        self.command(Command::Settle {
            request,
            subqueue: SubqueueId { entity, subqueue },
            session,
            token,
            outcome,
        });
    }

    /// Refuses a disposition before the broker saw it; the lock is kept.
    fn refuse_disposition(
        &mut self,
        disposed: &Disposed,
        transaction: Option<TransactionId>,
        error: Error,
    ) {
        let Some(receiver) = self.links.receiver(disposed.link) else {
            return;
        };
        let session = receiver.session;
        if !disposed.settled {
            let state = DeliveryState::Rejected(Some(error));
            self.connection
                .settle_sent(session, disposed.delivery_id, state, true);
        } else if let Some(transaction) = transaction {
            self.command(Command::Doom {
                connection: self.id,
                transaction,
                reason: error.condition.as_str().to_owned(),
            });
        }
    }

    /// The broker has ended a lock, or has not: by a disposition or through a management node.
    pub(crate) fn handle_settled(&mut self, request: RequestId, result: Result<(), SettleError>) {
        match self.pending.answer(request.token) {
            Some(Question::Settle(answer)) => {
                let (state, settled) = match result {
                    Ok(()) => (answer.settlement.state(), true),
                    Err(error) => refused(&error),
                };
                self.connection
                    .settle_sent(answer.session, answer.delivery_id, state, settled);
            }
            Some(Question::Enlist(enlisted)) => self.answer_enlisted(&enlisted, result),
            Some(Question::Manage(asked)) => self.answer_update(&asked, result),
            Some(Question::Send(_) | Question::Declare(_) | Question::Discharge(_)) | None => {}
        }
    }
}

/// How a refusal is told, and whether the delivery is settled with it: not when it can be settled
/// another time.
pub(crate) fn refused(error: &SettleError) -> (DeliveryState, bool) {
    let again = matches!(error, SettleError::Enlisted | SettleError::Transaction(_));
    let state = DeliveryState::Rejected(Some(refusal::settle(error)));
    (state, !again)
}

/// The lock that goes with a delivery, by the machine's real clock, which clients compare it with.
pub(crate) fn lock(delivery: &Delivery, now: Moment) -> Option<Lock> {
    let time = delivery.message.lock?;
    Some(Lock {
        token: delivery.token,
        until: LockedUntil::of(Some(time), now.wall.0),
    })
}

//! Consumer: a link on which the client receives the messages of a queue.
//! (docs/spec/rabbitmq.md#10)
//!
//! A message stays locked until the client settles it or the link ends. What arrives without credit
//! goes back to the broker, unless it was taken for good; then it waits for credit.

use std::collections::{BTreeSet, VecDeque};

use amqp::{DeliveryState, Map, Value, encode};
use broker::{
    Command, Delivery, Eviction, LockToken, Outcome, ReceiveMode, RequestId, RetryTime,
    SettleError, Subqueue, SubqueueId,
};
use bytes::BytesMut;
use dialect::{Credit, CreditUpdate, LinkContext, owner_token};
use endpoint::{Event, LinkId, NoCredit, Outgoing, SessionId};

use crate::activity::Activity;
use crate::errors;
use crate::links::{LinkKind, Links, Pending, register};
use crate::message::delivery;

/// The property of a flow by which a client is told that its consumer is active, or not.
const ACTIVE: &str = "rabbitmq:active";

/// The cost of a settlement while it waits for its answer.
const SETTLEMENT: usize = 64;

/// A consumer's own state.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) place: SubqueueId,
    /// The name of the queue.
    pub(crate) path: String,
    mode: ReceiveMode,
    credit: Credit,
    /// Deliveries that wait for credit.
    waiting: VecDeque<Box<Delivery>>,
    /// Deliveries that it has held for too long. It gets nothing more until it settles them.
    timed_out: BTreeSet<LockToken>,
    activity: Activity,
    /// The buffer for the new sections of a delivery.
    head: BytesMut,
}

/// A disposition that waits for the broker.
#[derive(Debug)]
pub(crate) struct PendingSettle {
    pub(crate) link: LinkId,
    session: SessionId,
    delivery_id: u32,
    token: LockToken,
    state: DeliveryState,
}

impl Consumer {
    pub(crate) fn new(place: SubqueueId, path: String, mode: ReceiveMode) -> Self {
        Self {
            place,
            path,
            mode,
            credit: Credit::default(),
            waiting: VecDeque::new(),
            timed_out: BTreeSet::new(),
            activity: Activity::default(),
            head: BytesMut::new(),
        }
    }

    /// Whether it keeps a delivery that has no credit.
    fn holds(&self) -> bool {
        self.mode == ReceiveMode::ReceiveAndDelete || self.credit.is_draining()
    }

    /// The link is gone: the broker gives back what it holds.
    pub(crate) fn end(self, cx: &mut LinkContext<'_>, link: LinkId, with_session: bool) {
        let receiver = cx.receiver_id(link);
        cx.commands.push(match with_session {
            true => Command::LoseReceiver { receiver },
            false => Command::Detach { receiver },
        });
        for delivery in self.waiting {
            report_written(cx, delivery.size());
        }
    }

    fn send(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        delivery: &Delivery,
    ) -> Result<(), NoCredit> {
        let pieces = delivery::encode(&delivery.message, &self.path, &mut self.head);
        let outgoing = Outgoing {
            tag: &delivery.token.0.to_be_bytes(),
            message_format: 0,
            settled: self.mode == ReceiveMode::ReceiveAndDelete,
            cookie: delivery.token.0,
            state: None,
            owner: Some(&delivery.message.payload),
        };
        cx.connection.send(link, &outgoing, &pieces)?;
        *cx.unreported_bytes = cx.unreported_bytes.saturating_add(delivery.size());
        self.credit.sent();
        Ok(())
    }

    /// Sends what waits, as far as credit goes.
    fn send_waiting(&mut self, cx: &mut LinkContext<'_>, link: LinkId) {
        while let Some(delivery) = self.waiting.pop_front() {
            if self.send(cx, link, &delivery).is_err() {
                return self.waiting.push_front(delivery);
            }
        }
    }

    /// Takes out what waits and cannot be kept, to be given back. The broker is told first that
    /// there is no credit, else it would send it here again at once.
    fn take_waiting(&mut self, cx: &mut LinkContext<'_>, link: LinkId) -> VecDeque<Box<Delivery>> {
        if self.waiting.is_empty() || self.holds() {
            return VecDeque::new();
        }
        let update = self.credit.stop(self.waiting.len());
        command_credit(cx, link, update);
        std::mem::take(&mut self.waiting)
    }

    /// Tells the client what it does not know of its activity.
    fn tell_activity(&mut self, cx: &mut LinkContext<'_>, link: LinkId) {
        if let Some(active) = self.activity.news() {
            let active = (Value::Symbol(ACTIVE.into()), Value::Bool(active));
            cx.connection.send_link_properties(link, vec![active]);
        }
    }

    fn update_credit(&mut self, cx: &mut LinkContext<'_>, link: LinkId) {
        let held_back = match self.timed_out.is_empty() {
            true => self.waiting.len(),
            false => usize::MAX,
        };
        if let Some(update) = self.credit.next_update(held_back) {
            command_credit(cx, link, update);
        }
    }

    /// What a disposition does with its message; `None` if it says nothing yet.
    fn outcome(&self, state: Option<&DeliveryState>, settled: bool) -> Option<Outcome> {
        match state {
            Some(DeliveryState::Accepted) => Some(Outcome::Complete),
            Some(DeliveryState::Rejected(_)) => Some(self.reject()),
            Some(DeliveryState::Modified {
                delivery_failed,
                undeliverable_here,
                message_annotations,
            }) => {
                let outcome = match undeliverable_here {
                    true => self.reject(),
                    false => self.give_back(*delivery_failed, message_annotations.as_ref()),
                };
                Some(annotated(message_annotations.as_ref(), outcome))
            }
            Some(DeliveryState::Released) => Some(Outcome::Release),
            // The default outcome of the link.
            None | Some(DeliveryState::Received { .. }) => settled.then_some(Outcome::Release),
            Some(DeliveryState::Declared { .. } | DeliveryState::Transactional { .. }) => None,
        }
    }

    fn reject(&self) -> Outcome {
        match self.place.subqueue {
            Subqueue::Main => {
                let mut reason = BytesMut::new();
                encode::value(&mut reason, &Value::from(delivery::REJECTED));
                let change = (delivery::REASON.to_owned(), reason.freeze());
                Outcome::DeadLetter {
                    changes: vec![change],
                }
            }
            // A dead letter has no other place to go to: it is dropped.
            Subqueue::DeadLetter | Subqueue::TransferDeadLetter => Outcome::Complete,
        }
    }

    /// Returns a message to the queue, perhaps later. A dead letter does not wait, and a value that
    /// is no time is ignored.
    fn give_back(&self, failed: bool, annotations: Option<&Map>) -> Outcome {
        let annotations = annotations.filter(|_| self.place.subqueue == Subqueue::Main);
        let retry = annotations.and_then(|it| dialect::retry_time(it).ok());
        let retry = retry.unwrap_or_default();
        match (failed, retry) {
            (true, retry) => Outcome::Abandon {
                changes: Vec::new(),
                retry,
            },
            (false, RetryTime::Backoff) => Outcome::Release,
            (false, retry) => Outcome::ReleaseLater(retry),
        }
    }
}

/// An outcome with those annotations that are a client's to set.
fn annotated(annotations: Option<&Map>, outcome: Outcome) -> Outcome {
    let annotations = annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let key = key.as_text().filter(|key| key.starts_with("x-"))?;
            let mut encoded = BytesMut::new();
            encode::value(&mut encoded, value);
            Some((key.to_owned(), encoded.freeze()))
        });
    let annotations: Vec<_> = annotations.collect();
    match annotations.is_empty() {
        true => outcome,
        false => Outcome::Annotated {
            annotations,
            outcome: Box::new(outcome),
        },
    }
}

fn command_credit(cx: &mut LinkContext<'_>, link: LinkId, update: CreditUpdate) {
    let receiver = cx.receiver_id(link);
    cx.commands.push(Command::Credit {
        receiver,
        limit: update.limit,
        drain: update.drain,
    });
}

fn report_written(cx: &mut LinkContext<'_>, bytes: usize) {
    let connection = cx.id;
    cx.commands.push(Command::Written { connection, bytes });
}

impl Links {
    /// The client has changed a consumer's credit.
    pub(crate) fn handle_credit(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        limit: u32,
        drain: bool,
    ) {
        let Some(consumer) = self.consumer(link) else {
            return;
        };
        consumer.credit.grant(limit, drain);
        consumer.activity.credited();
        consumer.tell_activity(cx, link);
        consumer.send_waiting(cx, link);
        consumer.update_credit(cx, link);
    }

    /// The broker has finished a drain.
    pub(crate) fn handle_drained(&mut self, cx: &mut LinkContext<'_>, link: LinkId) {
        let Some(consumer) = self.consumer(link) else {
            return;
        };
        let is_answered = consumer.credit.finish_drain();
        if is_answered {
            cx.connection.drained(link);
        }
        self.return_waiting(cx, link);
        if !is_answered && let Some(consumer) = self.consumer(link) {
            consumer.update_credit(cx, link);
        }
    }

    /// Gives back what waits for credit and cannot be kept. The broker answers whether the credit
    /// of each delivery is there again.
    fn return_waiting(&mut self, cx: &mut LinkContext<'_>, link: LinkId) {
        let Some(consumer) = self.consumer(link) else {
            return;
        };
        let (subqueue, waiting) = (consumer.place, consumer.take_waiting(cx, link));
        for delivery in waiting {
            let pending = Pending::Return(link);
            let request = register(&mut self.pending, cx, pending, SETTLEMENT);
            cx.commands.push(Command::Settle {
                request: Some(request),
                subqueue,
                session: None,
                token: delivery.token,
                outcome: Outcome::Undelivered,
            });
            report_written(cx, delivery.size());
        }
    }

    /// The broker says whether a consumer is the one that gets messages.
    pub(crate) fn handle_activity(&mut self, cx: &mut LinkContext<'_>, link: LinkId, active: bool) {
        if let Some(consumer) = self.consumer(link) {
            consumer.activity.set(active);
            consumer.tell_activity(cx, link);
        }
    }

    /// The broker has a message for a consumer.
    pub(crate) fn handle_deliver(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        delivery: Box<Delivery>,
    ) {
        let Some(consumer) = self.consumer(link) else {
            return report_written(cx, delivery.size());
        };
        consumer.credit.handed();
        if !consumer.waiting.is_empty() || consumer.send(cx, link, &delivery).is_err() {
            consumer.waiting.push_back(delivery);
            self.return_waiting(cx, link);
        }
    }

    /// The broker has taken back a message that a consumer has held for too long. The client is
    /// told, and its own word on the message means nothing any more. (docs/spec/rabbitmq.md#10.6)
    pub(crate) fn handle_timed_out(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        token: LockToken,
    ) {
        let delivery = cx.connection.delivery_of(link, token.0);
        let Some(consumer) = self.consumer(link) else {
            return;
        };
        // The client may have settled it meanwhile, or it has never reached the client.
        if let Some((session, delivery_id)) = delivery {
            consumer.timed_out.insert(token);
            let released = DeliveryState::Released;
            cx.connection
                .settle_sent(session, delivery_id, released, false);
        }
        let place = consumer.waiting.iter().position(|it| it.token == token);
        if let Some(unsent) = place.and_then(|place| consumer.waiting.remove(place)) {
            report_written(cx, unsent.size());
        }
        consumer.update_credit(cx, link);
    }

    /// The broker has ended a consumer.
    pub(crate) fn handle_evicted(
        &mut self,
        cx: &mut LinkContext<'_>,
        link: LinkId,
        reason: Eviction,
    ) {
        let Some(LinkKind::Consumer(consumer)) = self.links.get(&link).map(|link| &link.kind)
        else {
            return;
        };
        let queue = self.virtual_host.queue(&consumer.path);
        let error = match reason {
            Eviction::NotFound => errors::queue_deleted(),
            Eviction::Exclusive => errors::locked(queue),
            Eviction::Injected(error) => errors::injected(error),
            other => errors::unusable(queue, &format!("is not readable: {other}")),
        };
        self.detach(cx, link, error);
    }

    /// The client settles a message.
    pub(crate) fn handle_disposed(&mut self, cx: &mut LinkContext<'_>, event: Event) {
        let Event::Disposed {
            link,
            cookie,
            delivery_id,
            settled,
            state,
        } = event
        else {
            return;
        };
        let Some(session) = self.links.get(&link).map(|link| link.session) else {
            return;
        };
        if matches!(
            state,
            Some(DeliveryState::Declared { .. } | DeliveryState::Transactional { .. })
        ) {
            let error = errors::not_implemented("a transactional state");
            return self.end_session_of(cx, link, error);
        }
        let Some(consumer) = self.consumer(link) else {
            return;
        };
        let Some(outcome) = consumer.outcome(state.as_ref(), settled) else {
            return;
        };
        if consumer.timed_out.remove(&LockToken(cookie)) {
            consumer.update_credit(cx, link);
            if let Some(state) = state.filter(|_| !settled) {
                cx.connection.settle_sent(session, delivery_id, state, true);
            }
            return;
        }
        let subqueue = consumer.place;
        let request = state.filter(|_| !settled).map(|state| {
            let pending = PendingSettle {
                link,
                session,
                delivery_id,
                token: LockToken(cookie),
                state,
            };
            register(&mut self.pending, cx, Pending::Settle(pending), SETTLEMENT)
        });
        cx.commands.push(Command::Settle {
            request,
            subqueue,
            session: None,
            token: LockToken(cookie),
            outcome,
        });
    }

    /// The broker has settled a message, or taken one back.
    pub(crate) fn handle_settled(
        &mut self,
        cx: &mut LinkContext<'_>,
        request: RequestId,
        result: &Result<(), SettleError>,
    ) {
        let token = owner_token(request);
        match token.and_then(|it| self.pending.remove(it)) {
            Some(Pending::Settle(pending)) => self.answer_settlement(cx, pending, result),
            // It was lost before it came back, so the broker still counts it as delivered.
            Some(Pending::Return(link)) if result.is_err() => {
                if let Some(consumer) = self.consumer(link) {
                    consumer.credit.handed();
                    consumer.update_credit(cx, link);
                }
            }
            _ => {}
        }
    }

    /// The client gets its own state back, whatever has become of the lock. A fault rule that
    /// refuses it has the link detached.
    fn answer_settlement(
        &mut self,
        cx: &mut LinkContext<'_>,
        pending: PendingSettle,
        result: &Result<(), SettleError>,
    ) {
        let PendingSettle {
            link,
            session,
            delivery_id,
            token,
            state,
        } = pending;
        if let Err(SettleError::Injected(error)) = *result {
            return self.detach(cx, link, errors::injected(error));
        }
        cx.connection.settle_sent(session, delivery_id, state, true);
        // The time may have ended while the client's word was on its way.
        if let Some(consumer) = self.consumer(link)
            && consumer.timed_out.remove(&token)
        {
            consumer.update_credit(cx, link);
        }
    }
}

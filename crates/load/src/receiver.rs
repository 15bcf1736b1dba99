//! Receiver: takes messages from one queue in peek-lock and completes each.
//!
//! A message counts when the broker has confirmed its completion. Railbus does that once it is
//! durable, for a receiver that asks to settle second. [AMQP 2.6.12] Others do it without saying
//! when, or not at all; there a message counts when its completion was sent, and the run goes on
//! until a drain that follows all of them is answered. [AMQP 2.6.7]

use std::time::Instant;

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Role, Source, Symbol, TargetTerminus, Value};
use endpoint::{Connection, LinkId, SessionId};

/// The default credit.
pub const CREDIT: u32 = 1_000;

/// How a broker wants a message to be completed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SettleMode {
    /// The receiver sends the outcome, the broker settles, and then the receiver.
    Second,
    /// The same, though the link says that the receiver settles first.
    Answered,
    /// The receiver settles, and there is no answer.
    First,
}

/// A receiving link and what it has settled.
pub struct Receiver {
    queue: String,
    session: Option<&'static str>,
    link: Option<LinkId>,
    settle_mode: SettleMode,
    credit: u32,
    /// How many are received, at most.
    limit: u64,
    granted: u64,
    received: u64,
    settled: u64,
    /// Whether a drain was asked for, and whether it was answered.
    draining: bool,
    drained: bool,
    last: Option<Instant>,
}

impl Receiver {
    /// A receiver from `queue` that has not started.
    pub fn new(queue: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            session: None,
            link: None,
            settle_mode: SettleMode::Second,
            credit: CREDIT,
            limit: u64::MAX,
            granted: 0,
            received: 0,
            settled: 0,
            draining: false,
            drained: false,
            last: None,
        }
    }

    /// A receiver from one session of `queue`.
    pub fn of_session(queue: &str, session: &'static str) -> Self {
        Self {
            session: Some(session),
            ..Self::new(queue)
        }
    }

    /// The same that keeps up another credit.
    #[must_use]
    pub fn with_credit(self, credit: u32) -> Self {
        Self { credit, ..self }
    }

    /// The same with a limit of received messages.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Asks for the link, to settle as the broker wants it.
    pub fn attach(&mut self, engine: &mut Connection, session: SessionId, settle_mode: SettleMode) {
        self.settle_mode = settle_mode;
        let source = Source {
            address: Some(Value::from(self.queue.as_str())),
            filter: self.session.map(|session| {
                let key = Symbol::new("com.microsoft:session-filter");
                vec![(Value::Symbol(key), Value::from(session))]
            }),
            ..Source::default()
        };
        let link = engine.attach(
            session,
            Attach {
                name: format!("bench-receive-{}", self.queue),
                handle: 0,
                role: Role::Receiver,
                snd_settle_mode: Some(SenderSettleMode::Unsettled),
                rcv_settle_mode: Some(match settle_mode {
                    SettleMode::Second => ReceiverSettleMode::Second,
                    SettleMode::Answered | SettleMode::First => ReceiverSettleMode::First,
                }),
                source: Some(Box::new(source)),
                target: Some(Box::new(TargetTerminus::Node(amqp::Target::default()))),
                unsettled: None,
                incomplete_unsettled: false,
                initial_delivery_count: None,
                max_message_size: None,
                offered_capabilities: Vec::new(),
                desired_capabilities: Vec::new(),
                properties: None,
            },
        );
        self.link = Some(link);
    }

    /// Its link, once asked for.
    pub fn link(&self) -> Option<LinkId> {
        self.link
    }

    /// Lets messages come.
    pub fn start(&mut self, engine: &mut Connection) {
        self.grant(engine);
    }

    /// Completes a message and keeps the credit up.
    pub fn settle(
        &mut self,
        now: Instant,
        session: SessionId,
        delivery_id: u32,
        engine: &mut Connection,
    ) {
        self.dispose(session, delivery_id, DeliveryState::Accepted, engine);
        if self.settle_mode == SettleMode::First {
            self.settled(now);
        }
    }

    /// Ends a message's lock and keeps the credit up.
    pub fn dispose(
        &mut self,
        session: SessionId,
        delivery_id: u32,
        state: DeliveryState,
        engine: &mut Connection,
    ) {
        self.received += 1;
        let settled = self.settle_mode == SettleMode::First;
        engine.dispose_received(session, delivery_id, state, settled);
        self.top_up_credit(engine);
    }

    /// Gives credit back when half of it is used up.
    pub fn top_up_credit(&mut self, engine: &mut Connection) {
        let is_low = |link| engine.credit_left(link) <= self.credit / 2;
        if !self.draining && self.link.is_some_and(is_low) {
            self.grant(engine);
        }
    }

    /// The engine may have received deliveries that it has not reported yet, so the granted credit
    /// counts.
    fn grant(&mut self, engine: &mut Connection) {
        let Some(link) = self.link else { return };
        let left = engine.credit_left(link);
        let more = self.missing_credit(left);
        if more > 0 {
            self.granted += u64::from(more);
            engine.set_credit(link, left + more, false);
        }
    }

    /// How much credit is to be given to a link that has some left.
    fn missing_credit(&self, left: u32) -> u32 {
        let allowed = self.limit.saturating_sub(self.granted);
        let allowed = u32::try_from(allowed).unwrap_or(u32::MAX);
        self.credit.saturating_sub(left).min(allowed)
    }

    /// Counts a confirmed completion.
    pub fn settled(&mut self, now: Instant) {
        self.settled += 1;
        self.last = Some(now);
    }

    /// Asks the broker for a drain, which it answers behind all completions.
    pub fn drain(&mut self, engine: &mut Connection) {
        if let Some(link) = self.link
            && !std::mem::replace(&mut self.draining, true)
        {
            engine.set_credit(link, self.credit, true);
        }
    }

    /// Asks for no more than what credit is left for, which comes now or not at all.
    pub fn finish(&mut self, engine: &mut Connection) {
        if let Some(link) = self.link
            && !std::mem::replace(&mut self.draining, true)
        {
            engine.set_credit(link, engine.credit_left(link), true);
        }
    }

    /// The broker has nothing more.
    pub fn drained(&mut self, now: Instant) {
        self.drained = true;
        if self.settle_mode == SettleMode::First {
            self.last = Some(now);
        }
    }

    /// Whether the broker has said so.
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    /// Messages that came.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Messages completed.
    pub fn count(&self) -> u64 {
        self.settled
    }

    /// How far it is, for an error.
    pub fn status(&self) -> String {
        let Self {
            received, settled, ..
        } = self;
        let drained = if self.drained { ", drained" } else { "" };
        format!("received {received}, settled {settled}{drained}")
    }

    /// When the newest completion was confirmed.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_credit_is_given_than_is_to_be_received() {
        let mut receiver = Receiver::new("q").with_credit(10).with_limit(25);
        assert_eq!(receiver.missing_credit(0), 10);
        receiver.granted = 20;
        assert_eq!(
            (receiver.missing_credit(5), receiver.missing_credit(8)),
            (5, 2)
        );
        receiver.granted = 25;
        assert_eq!(receiver.missing_credit(0), 0);
        assert_eq!(Receiver::new("q").missing_credit(400), CREDIT - 400);
    }

    #[test]
    fn without_answers_the_time_runs_until_the_drain_is_answered() {
        let start = Instant::now();
        let end = start + std::time::Duration::from_millis(5);
        for (settle_mode, last) in [(SettleMode::Second, start), (SettleMode::First, end)] {
            let mut receiver = Receiver::new("q");
            receiver.settle_mode = settle_mode;
            receiver.settled(start);
            receiver.drained(end);
            assert!(receiver.is_drained());
            assert_eq!(receiver.last(), Some(last));
        }
    }
}

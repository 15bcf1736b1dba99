//! Sender: durable sends to one queue, either as fast as a window of messages in flight allows, or
//! at a fixed rate.
//!
//! At a fixed rate a message counts from the moment when it was due, not when it could be sent, so
//! that a broker that stalls cannot hide the wait (coordinated omission).

use std::time::{Duration, Instant};

use amqp::performative::{ReceiverSettleMode, SenderSettleMode};
use amqp::{Attach, DeliveryState, Role, Target, TargetTerminus, Value};
use bytes::BytesMut;
use endpoint::{Connection, LinkId, Outgoing, SessionId};
use hdrhistogram::Histogram;

use crate::Stamp;
use crate::bodies::Bodies;
use crate::latency;
use crate::message_sections::MessageSections;

/// What to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The queue.
    pub queue: String,
    /// Bytes of each body.
    pub size: usize,
    /// How many messages.
    pub count: u64,
    /// Messages that may wait for their outcome.
    pub in_flight: u64,
    /// What comes before each body.
    pub sections: MessageSections,
    /// The time between two messages; `None` sends as fast as the window allows.
    pub every: Option<Duration>,
}

/// A sending link and what became of its messages.
pub struct Sender {
    plan: Plan,
    stamp: Option<Stamp>,
    bodies: Bodies,
    /// The sections before the body of the message that is being sent.
    sections: BytesMut,
    link: Option<LinkId>,
    start: Option<Instant>,
    sent: u64,
    accepted: u64,
    refused: u64,
    /// Why the first one was refused.
    refusal: Option<amqp::Error>,
    last: Option<Instant>,
    latencies: Histogram<u64>,
    /// When each tenth of the messages had its outcome.
    tenths: Vec<Instant>,
}

impl Sender {
    /// A sender that has not started.
    pub fn new(plan: Plan) -> Self {
        let bodies = Bodies::new(plan.size);
        let (link, start, last) = (None, None, None);
        Self {
            plan,
            stamp: None,
            bodies,
            sections: BytesMut::new(),
            link,
            start,
            sent: 0,
            accepted: 0,
            refused: 0,
            refusal: None,
            last,
            latencies: latency::histogram(),
            tenths: Vec::new(),
        }
    }

    /// The same whose bodies begin with a stamp; they must have room for it.
    pub fn stamped(plan: Plan, stamp: Stamp) -> Self {
        Self {
            stamp: Some(stamp),
            ..Self::new(plan)
        }
    }

    /// Asks for the link.
    pub fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        let target = Target {
            address: Some(Value::from(self.plan.queue.as_str())),
            ..Target::default()
        };
        self.link = Some(engine.attach(
            session,
            Attach {
                name: format!("bench-send-{}", self.plan.queue),
                handle: 0,
                role: Role::Sender,
                snd_settle_mode: Some(SenderSettleMode::Unsettled),
                rcv_settle_mode: Some(ReceiverSettleMode::First),
                source: Some(Box::default()),
                target: Some(Box::new(TargetTerminus::Node(target))),
                unsettled: None,
                incomplete_unsettled: false,
                initial_delivery_count: Some(0),
                max_message_size: None,
                offered_capabilities: Vec::new(),
                desired_capabilities: Vec::new(),
                properties: None,
            },
        ));
    }

    /// Its link, once asked for.
    pub fn link(&self) -> Option<LinkId> {
        self.link
    }

    /// Lets it send from `now` on.
    pub fn start(&mut self, now: Instant) {
        self.start = Some(now);
    }

    /// Leaves out what has not been sent.
    pub fn stop(&mut self) {
        self.plan.count = self.sent;
    }

    /// Sends as much as window, schedule and credit allow.
    pub fn send(&mut self, now: Instant, engine: &mut Connection) {
        let Some(link) = self.link else { return };
        while self.may_send(now) {
            let due = self.due_at(self.sent).unwrap_or(now);
            let tag = self.sent.to_be_bytes();
            let outgoing = Outgoing {
                tag: &tag,
                cookie: self.cookie(due),
                ..Outgoing::default()
            };
            self.plan.sections.write(self.sent, &mut self.sections);
            let [head, body] = self.bodies.section(self.sent);
            let stamp = self.stamp.map(|stamp| stamp.write(due));
            let stamp = stamp.as_ref().map_or(&[][..], |stamp| stamp);
            let body = body.get(stamp.len()..).unwrap_or_default();
            let header = self.plan.sections.header();
            let parts = [header, &self.sections, head, stamp, body];
            if engine.send(link, &outgoing, &parts).is_err() {
                return;
            }
            self.sent += 1;
        }
    }

    /// Counts an outcome.
    pub fn disposed(&mut self, now: Instant, cookie: u128, state: Option<&DeliveryState>) {
        match state {
            Some(DeliveryState::Accepted) => self.accept(now, cookie),
            _ => self.refuse(state),
        }
        self.last = Some(now);
        let tenth = (self.plan.count / 10).max(1);
        if (self.accepted + self.refused).is_multiple_of(tenth) {
            self.tenths.push(now);
        }
    }

    fn accept(&mut self, now: Instant, cookie: u128) {
        self.accepted += 1;
        if let (Some(start), Ok(due)) = (self.start, u64::try_from(cookie)) {
            let wait = now.saturating_duration_since(start + Duration::from_micros(due));
            self.latencies
                .saturating_record(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX));
        }
    }

    fn refuse(&mut self, state: Option<&DeliveryState>) {
        self.refused += 1;
        if let (None, Some(DeliveryState::Rejected(error))) = (&self.refusal, state) {
            self.refusal.clone_from(error);
        }
    }

    /// When the next message is due, at a fixed rate.
    pub fn due(&self) -> Option<Instant> {
        if self.sent == self.plan.count {
            None
        } else {
            self.due_at(self.sent)
        }
    }

    /// Whether every message has its outcome.
    pub fn is_done(&self) -> bool {
        self.accepted + self.refused == self.plan.count
    }

    /// Messages that the broker took.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Messages that it did not.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Why the first of them was refused, if the broker said so.
    pub fn refusal(&self) -> Option<&amqp::Error> {
        self.refusal.as_ref()
    }

    /// How far it is, for an error.
    pub fn status(&self) -> String {
        let Self {
            sent,
            accepted,
            refused,
            ..
        } = self;
        format!("sent {sent}, accepted {accepted}, refused {refused}")
    }

    /// When the newest outcome came.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }

    /// The rate of the last tenth of the messages as a part of the first one's.
    pub fn last_to_first_tenth(&self) -> Option<f64> {
        let [first, .., before, last] = self.tenths[..] else {
            return None;
        };
        let took = (last - before).as_secs_f64();
        Some((first - self.start?).as_secs_f64() / took.max(1e-9))
    }

    /// Microseconds from due to accepted.
    pub fn latencies(&self) -> &Histogram<u64> {
        &self.latencies
    }

    fn may_send(&self, now: Instant) -> bool {
        let started = self.start.is_some() && self.sent < self.plan.count;
        let room = self.sent - self.accepted - self.refused < self.plan.in_flight;
        started && room && self.due_at(self.sent).is_none_or(|due| due <= now)
    }

    fn due_at(&self, number: u64) -> Option<Instant> {
        let every = self.plan.every?;
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.start.map(|start| start + every * number)
    }

    /// Microseconds from the start to `due`.
    fn cookie(&self, due: Instant) -> u128 {
        self.start
            .map_or(0, |start| due.saturating_duration_since(start).as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paced(every: Duration) -> Sender {
        let queue = "q".to_owned();
        Sender::new(Plan {
            queue,
            size: 64,
            count: 10,
            in_flight: 10,
            sections: MessageSections::Plain,
            every: Some(every),
        })
    }

    #[test]
    fn a_wait_counts_from_when_the_message_was_due() {
        let start = Instant::now();
        let mut sender = paced(Duration::from_millis(1));
        sender.start(start);
        let due = sender.due_at(3).expect("there is a schedule");
        let cookie = sender.cookie(due);
        sender.disposed(
            start + Duration::from_millis(5),
            cookie,
            Some(&DeliveryState::Accepted),
        );
        assert_eq!(sender.accepted(), 1);
        assert!(sender.latencies().max().abs_diff(2_000) < 10);
    }

    #[test]
    fn a_refusal_keeps_its_first_reason_and_is_no_wait() {
        let start = Instant::now();
        let mut sender = paced(Duration::from_millis(1));
        sender.start(start);
        for reason in ["full", "fuller"] {
            let error = amqp::Error {
                condition: amqp::Symbol::new("amqp:resource-limit-exceeded"),
                description: Some(reason.into()),
                info: None,
            };
            let state = DeliveryState::Rejected(Some(error));
            sender.disposed(start, 0, Some(&state));
        }
        assert_eq!((sender.accepted(), sender.refused()), (0, 2));
        let refusal = sender.refusal().and_then(|why| why.description.as_deref());
        assert_eq!(refusal, Some("full"));
        assert!(sender.latencies().is_empty());
    }

    #[test]
    fn nothing_is_sent_before_it_is_due_and_nothing_skipped_after_a_stall() {
        let start = Instant::now();
        let mut sender = paced(Duration::from_millis(1));
        assert!(!sender.may_send(start));
        sender.start(start);
        assert!(sender.may_send(start));
        sender.sent = 1;
        assert!(!sender.may_send(start));
        assert!(sender.may_send(start + Duration::from_millis(100)));
        assert_eq!(sender.due(), Some(start + Duration::from_millis(1)));
    }
}

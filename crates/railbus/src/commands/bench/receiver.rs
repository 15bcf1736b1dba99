//! Receiver: receives and completes either all messages or only those that its own run has sent.
//!
//! In the second case messages of other senders are held until the end and then released, since an
//! earlier release would deliver them again at once. A release does not count as a failed
//! delivery. (docs/spec/amqp.md#5.4)

use std::time::Instant;

use amqp::DeliveryState;
use endpoint::{Connection, Event, LinkId, SessionId};
use hdrhistogram::Histogram;
use load::receiver::{Receiver, SettleMode};
use load::{Stamp, latency};

/// The most messages of other senders that are held; with more the queue cannot be used.
const MAX_FOREIGN: usize = 1_000;

/// A receiving link, and what came over it.
pub struct BenchReceiver {
    receiver: Receiver,
    credit: u32,
    own: Option<Stamp>,
    foreign: Vec<(SessionId, u32)>,
    /// During the check before the run: the number of foreign messages at its begin.
    probing: Option<usize>,
    releasing: bool,
    released: usize,
    /// Microseconds from due to arrived, of its own.
    latencies: Histogram<u64>,
    /// Of the messages that came, as they came.
    bytes: u64,
    newest: Option<Instant>,
}

impl BenchReceiver {
    /// Receives all messages, up to `limit`.
    pub fn of_all(queue: &str, credit: u32, limit: u64) -> Self {
        let receiver = Receiver::new(queue).with_credit(credit).with_limit(limit);
        Self {
            receiver,
            credit,
            own: None,
            foreign: Vec::new(),
            probing: None,
            releasing: false,
            released: 0,
            latencies: latency::histogram(),
            bytes: 0,
            newest: None,
        }
    }

    /// Receives the messages that have a stamp.
    pub fn of_own(queue: &str, credit: u32, stamp: Stamp) -> Self {
        Self {
            own: Some(stamp),
            ..Self::of_all(queue, credit, u64::MAX)
        }
    }

    /// Asks for the link.
    pub fn attach(&mut self, engine: &mut Connection, session: SessionId, settle_mode: SettleMode) {
        self.receiver.attach(engine, session, settle_mode);
    }

    /// Its link, once asked for.
    pub fn link(&self) -> Option<LinkId> {
        self.receiver.link()
    }

    /// Checks which messages are in the queue already.
    pub fn probe(&mut self, engine: &mut Connection) {
        self.probing = Some(self.foreign.len());
        if let Some(link) = self.link() {
            engine.set_credit(link, self.credit, true);
        }
    }

    /// Repeats the check while it uses up its credit.
    fn continue_probe(&mut self, before: usize, engine: &mut Connection) {
        let found = u32::try_from(self.foreign.len() - before).unwrap_or(u32::MAX);
        self.probing = None;
        if found >= self.credit && !self.has_too_many_foreign() {
            self.probe(engine);
        }
    }

    /// Whether the check is done.
    pub fn has_probed(&self) -> bool {
        self.probing.is_none()
    }

    /// Lets messages come.
    pub fn start(&mut self, engine: &mut Connection) {
        self.probing = None;
        self.receiver.start(engine);
    }

    /// Lets no more come than there is credit for.
    pub fn finish(&mut self, engine: &mut Connection) {
        self.receiver.finish(engine);
    }

    /// Releases the messages of other senders.
    pub fn release_foreign(&mut self, engine: &mut Connection) {
        self.releasing = true;
        for (session, delivery_id) in &self.foreign {
            engine.dispose_received(*session, *delivery_id, DeliveryState::Released, false);
        }
    }

    /// Takes what the broker did.
    pub fn handle(&mut self, now: Instant, event: &Event, engine: &mut Connection) {
        match event {
            Event::Delivery {
                session,
                delivery_id,
                payload,
                ..
            } => self.take(now, (*session, *delivery_id), payload, engine),
            Event::Updated {
                settled: true,
                delivery_id,
                ..
            } => self.settled(now, *delivery_id),
            Event::Drained { .. } => match self.probing {
                Some(before) => self.continue_probe(before, engine),
                None => self.receiver.drained(now),
            },
            _ => {}
        }
    }

    fn take(
        &mut self,
        now: Instant,
        (session, delivery_id): (SessionId, u32),
        payload: &[u8],
        engine: &mut Connection,
    ) {
        if let Some(own) = &self.own {
            let Some(due) = own.read(payload) else {
                self.foreign.push((session, delivery_id));
                if self.has_probed() {
                    self.receiver.top_up_credit(engine);
                }
                return;
            };
            let latency_us = now.saturating_duration_since(due).as_micros();
            self.latencies
                .saturating_record(u64::try_from(latency_us).unwrap_or(u64::MAX));
        }
        self.bytes += payload.len() as u64;
        self.newest = Some(now);
        self.receiver.settle(now, session, delivery_id, engine);
    }

    fn settled(&mut self, now: Instant, delivery_id: u32) {
        let is_foreign = |(_, other): &(SessionId, u32)| *other == delivery_id;
        if self.releasing && self.foreign.iter().any(is_foreign) {
            self.released += 1;
        } else {
            self.receiver.settled(now);
        }
    }

    /// Messages whose completion was confirmed.
    pub fn count(&self) -> u64 {
        self.receiver.count()
    }

    /// Bytes of the messages that came.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Messages of other senders that came.
    pub fn foreign(&self) -> usize {
        self.foreign.len()
    }

    /// Whether there are too many messages of other senders to reach its own.
    pub fn has_too_many_foreign(&self) -> bool {
        self.foreign.len() > MAX_FOREIGN
    }

    /// Whether everything that came is completed.
    pub fn is_settled(&self) -> bool {
        self.receiver.count() == self.receiver.received()
    }

    /// Whether nothing is on its way any more.
    pub fn is_finished(&self) -> bool {
        self.receiver.is_drained() && self.is_settled()
    }

    /// Whether all messages of other senders are released.
    pub fn has_released(&self) -> bool {
        self.released == self.foreign.len()
    }

    /// When the newest message came.
    pub fn newest(&self) -> Option<Instant> {
        self.newest
    }

    /// When the newest completion was confirmed.
    pub fn last(&self) -> Option<Instant> {
        self.receiver.last()
    }

    /// Microseconds from due to arrived.
    pub fn latencies(&self) -> &Histogram<u64> {
        &self.latencies
    }
}

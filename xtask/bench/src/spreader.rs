//! Spreader: sends to many queues in turn, each over a link of its own on one connection.

use std::time::Instant;

use amqp::performative::ReceiverSettleMode;
use amqp::{Attach, DeliveryState, Role, Source, Target, Value};
use anyhow::Result;
use endpoint::{Connection, Event, LinkId, Outgoing, SessionId};

use super::task::{Tally, Task};
use load::bodies::{Bodies, HEADER};
use load::request_client;

/// Sending links and what became of their messages.
pub struct Spreader {
    queues: Vec<String>,
    bodies: Bodies,
    links: Vec<LinkId>,
    started: bool,
    count: u64,
    in_flight: u64,
    sent: u64,
    accepted: u64,
    refused: u64,
    last: Option<Instant>,
}

impl Spreader {
    /// Sends `count` messages of 1 KiB to `queues` in turn, at most `in_flight` of them in flight.
    pub fn new(queues: Vec<String>, count: u64, in_flight: u64) -> Self {
        Self {
            queues,
            bodies: Bodies::new(1_024),
            links: Vec::new(),
            started: false,
            count,
            in_flight,
            sent: 0,
            accepted: 0,
            refused: 0,
            last: None,
        }
    }

    /// The link that is next.
    fn next(&self) -> Option<LinkId> {
        let answered = self.accepted + self.refused;
        let may = self.started && self.sent < self.count && self.sent - answered < self.in_flight;
        let links = u64::try_from(self.links.len()).ok()?;
        let at = usize::try_from(self.sent.checked_rem(links)?).ok()?;
        self.links.get(at).copied().filter(|_| may)
    }
}

impl Task for Spreader {
    fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        let links = self.queues.iter().map(|queue| {
            let target = Target {
                address: Some(Value::from(queue.as_str())),
                ..Target::default()
            };
            let name = format!("bench-send-{queue}");
            let link = request_client::link(&name, Role::Sender, Source::default(), target);
            let attach = Attach {
                rcv_settle_mode: Some(ReceiverSettleMode::First),
                ..link
            };
            engine.attach(session, attach)
        });
        self.links = links.collect();
    }

    fn links(&self) -> Vec<LinkId> {
        self.links.clone()
    }

    fn start(&mut self, _now: Instant, _engine: &mut Connection) {
        self.started = true;
    }

    fn stop(&mut self) {
        self.count = self.sent;
    }

    fn act(&mut self, _now: Instant, engine: &mut Connection) {
        while let Some(link) = self.next() {
            let tag = self.sent.to_be_bytes();
            let outgoing = Outgoing {
                tag: &tag,
                ..Outgoing::default()
            };
            let [head, body] = self.bodies.section(self.sent);
            if engine.send(link, &outgoing, &[HEADER, head, body]).is_err() {
                return;
            }
            self.sent += 1;
        }
    }

    fn handle(&mut self, now: Instant, event: &Event, _engine: &mut Connection) -> Result<bool> {
        let Event::Disposed { state, .. } = event else {
            return Ok(false);
        };
        match state {
            Some(DeliveryState::Accepted) => self.accepted += 1,
            _ => self.refused += 1,
        }
        self.last = Some(now);
        Ok(true)
    }

    fn tally(&self) -> Tally {
        Tally {
            is_answered: self.accepted + self.refused == self.count,
            accepted: self.accepted,
            refused: self.refused,
            taken: None,
            last: self.last,
        }
    }
}

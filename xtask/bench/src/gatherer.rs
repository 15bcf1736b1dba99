//! Gatherer: receives from many queues and settles, each over a link of its own on one connection.

use std::time::Instant;

use amqp::performative::ReceiverSettleMode;
use amqp::{Attach, DeliveryState, Role, Source, Target, Value};
use anyhow::Result;
use endpoint::{Connection, Event, LinkId, SessionId};

use super::task::{Taken, Tally, Task};
use load::request_client;

/// Credit that each link keeps up.
const CREDIT: u32 = 1_000;

/// Receiving links and what they have settled.
pub struct Gatherer {
    queues: Vec<String>,
    links: Vec<LinkId>,
    taken: Taken,
    last: Option<Instant>,
}

impl Gatherer {
    /// Receivers from `queues` that have not started.
    pub fn new(queues: Vec<String>) -> Self {
        Self {
            queues,
            links: Vec::new(),
            taken: Taken::default(),
            last: None,
        }
    }
}

impl Task for Gatherer {
    fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        let links = self.queues.iter().map(|queue| {
            let source = Source {
                address: Some(Value::from(queue.as_str())),
                ..Source::default()
            };
            let name = format!("bench-receive-{queue}");
            let link = request_client::link(&name, Role::Receiver, source, Target::default());
            let attach = Attach {
                rcv_settle_mode: Some(ReceiverSettleMode::Second),
                ..link
            };
            engine.attach(session, attach)
        });
        self.links = links.collect();
    }

    fn links(&self) -> Vec<LinkId> {
        self.links.clone()
    }

    fn start(&mut self, _now: Instant, engine: &mut Connection) {
        for link in &self.links {
            engine.set_credit(*link, CREDIT, false);
        }
    }

    fn handle(&mut self, now: Instant, event: &Event, engine: &mut Connection) -> Result<bool> {
        match event {
            Event::Delivery {
                link,
                session,
                delivery_id,
                ..
            } => {
                self.taken.received += 1;
                engine.dispose_received(*session, *delivery_id, DeliveryState::Accepted, false);
                if engine.credit_left(*link) <= CREDIT / 2 {
                    engine.set_credit(*link, CREDIT, false);
                }
            }
            Event::Updated { settled: true, .. } => {
                self.taken.settled += 1;
                self.last = Some(now);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn tally(&self) -> Tally {
        Tally {
            is_answered: true,
            taken: Some(self.taken),
            last: self.last,
            ..Tally::default()
        }
    }
}

//! Slow: a receiver that takes all it may, and completes hardly any of it or does not even read.

use std::time::{Duration, Instant};

use amqp::DeliveryState;
use anyhow::Result;
use endpoint::{Connection, Event, LinkId, SessionId};

use super::task::{Tally, Task};
use load::receiver::{Receiver, SettleMode};

/// Between two completions.
const PAUSE: Duration = Duration::from_millis(100);

/// A receiving link and what it keeps locked.
pub struct Slow {
    receiver: Receiver,
    credit: u32,
    locked: Vec<(SessionId, u32)>,
    next: Option<Instant>,
}

impl Slow {
    /// A receiver from `queue` that has not started and takes `credit` messages.
    pub fn new(queue: &str, credit: u32) -> Self {
        Self {
            receiver: Receiver::new(queue),
            credit,
            locked: Vec::new(),
            next: None,
        }
    }
}

impl Task for Slow {
    fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        self.receiver.attach(engine, session, SettleMode::Second);
    }

    fn links(&self) -> Vec<LinkId> {
        self.receiver.link().into_iter().collect()
    }

    fn start(&mut self, now: Instant, engine: &mut Connection) {
        self.next = Some(now + PAUSE);
        if let Some(link) = self.receiver.link() {
            engine.set_credit(link, self.credit, false);
        }
    }

    fn act(&mut self, now: Instant, engine: &mut Connection) {
        if self.next.is_some_and(|next| next <= now)
            && let Some((session, delivery_id)) = self.locked.pop()
        {
            engine.dispose_received(session, delivery_id, DeliveryState::Accepted, false);
            self.next = Some(now + PAUSE);
        }
    }

    fn handle(&mut self, _now: Instant, event: &Event, _engine: &mut Connection) -> Result<bool> {
        if let Event::Delivery {
            session,
            delivery_id,
            ..
        } = event
        {
            self.locked.push((*session, *delivery_id));
            return Ok(true);
        }
        Ok(false)
    }

    fn tally(&self) -> Tally {
        Tally {
            is_answered: true,
            ..Tally::default()
        }
    }
}

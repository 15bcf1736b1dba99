//! Taker: accepts the next session, receives its message, settles it, lets the session go, and
//! again.
//!
//! Several links of a connection do that at once. Each session has one message, and there are as
//! many turns as sessions, shared by all takers of a run, so none ever waits for a session to come.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use amqp::performative::ReceiverSettleMode;
use amqp::{Attach, DeliveryState, Role, Source, Symbol, Target, Value};
use anyhow::{Result, bail};
use endpoint::{Connection, Event, LinkId, SessionId};

use super::task::{Taken, Tally, Task};
use load::request_client;

/// Sessions that are still to be accepted, shared by all takers of a run.
pub type Turns = Rc<Cell<u64>>;

/// Links that take one session each.
pub struct Taker {
    queue: String,
    links: u32,
    turns: Turns,
    session: Option<SessionId>,
    begun: u64,
    ended: u64,
    taken: Taken,
    last: Option<Instant>,
}

impl Taker {
    /// Takes sessions of `queue`, `links` at a time, while there are `turns`.
    pub fn new(queue: &str, links: u32, turns: &Turns) -> Self {
        Self {
            queue: queue.to_owned(),
            links,
            turns: Rc::clone(turns),
            session: None,
            begun: 0,
            ended: 0,
            taken: Taken::default(),
            last: None,
        }
    }

    /// Asks for the next session, if one is left.
    fn accept_next(&mut self, engine: &mut Connection) {
        let (Some(session), Some(left)) = (self.session, self.turns.get().checked_sub(1)) else {
            return;
        };
        self.turns.set(left);
        let filter = Symbol::new("com.microsoft:session-filter");
        let source = Source {
            address: Some(Value::from(self.queue.as_str())),
            filter: Some(vec![(Value::Symbol(filter), Value::Null)]),
            ..Source::default()
        };
        let name = format!("bench-session-{}", self.begun);
        let link = request_client::link(&name, Role::Receiver, source, Target::default());
        let attach = Attach {
            rcv_settle_mode: Some(ReceiverSettleMode::Second),
            ..link
        };
        let link = engine.attach(session, attach);
        engine.set_credit(link, 1, false);
        self.begun += 1;
    }

    fn settled(&mut self, now: Instant, link: LinkId, engine: &mut Connection) {
        self.taken.settled += 1;
        self.last = Some(now);
        engine.detach(link, true, None);
    }
}

impl Task for Taker {
    fn attach(&mut self, _engine: &mut Connection, session: SessionId) {
        self.session = Some(session);
    }

    fn links(&self) -> Vec<LinkId> {
        Vec::new()
    }

    fn start(&mut self, _now: Instant, engine: &mut Connection) {
        for _ in 0..self.links {
            self.accept_next(engine);
        }
    }

    fn handle(&mut self, now: Instant, event: &Event, engine: &mut Connection) -> Result<bool> {
        match event {
            Event::Delivery {
                session,
                delivery_id,
                ..
            } => {
                self.taken.received += 1;
                engine.dispose_received(*session, *delivery_id, DeliveryState::Accepted, false);
            }
            Event::Updated {
                link,
                settled: true,
                ..
            } => self.settled(now, *link, engine),
            Event::Detached {
                error: Some(error), ..
            } => bail!("a session was not given: {error:?}"),
            Event::Detached { .. } => {
                self.ended += 1;
                self.last = Some(now);
                self.accept_next(engine);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn tally(&self) -> Tally {
        Tally {
            is_answered: self.begun == self.ended,
            taken: Some(self.taken),
            last: self.last,
            ..Tally::default()
        }
    }
}

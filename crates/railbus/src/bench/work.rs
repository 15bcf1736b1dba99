//! Work: what the connections of a bench are for.

use std::time::Instant;

use endpoint::{Connection, Event, LinkId, SessionId};
use load::dress::Dress;
use load::receiver::Settling;
use load::sender::{self, Sender};
use load::{Error, Stamp};

use super::plan::Plan;
use super::taker::Taker;
use crate::arguments::BenchMode;

/// What a connection is for.
pub enum Work {
    /// It sends.
    Send(Box<Sender>),
    /// It receives and settles.
    Take(Box<Taker>),
}

impl Work {
    /// The sender of that number.
    pub fn sender(plan: &Plan, number: u32, epoch: Instant) -> Self {
        let count = plan.messages.map(|all| plan.share(all, number));
        let sends = sender::Plan {
            queue: plan.entity.clone(),
            size: plan.size,
            count: count.unwrap_or(u64::MAX),
            in_flight: plan.share(plan.in_flight, number).max(1),
            dress: Dress::Plain,
            every: plan.every(),
        };
        Self::Send(Box::new(match plan.mode {
            BenchMode::Both => Sender::stamped(sends, Stamp::new(plan.run, epoch)),
            _ => Sender::new(sends),
        }))
    }

    /// The receiver of that number.
    pub fn taker(plan: &Plan, number: u32, epoch: Instant) -> Self {
        let own = Stamp::new(plan.run, epoch);
        let taker = match plan.mode {
            BenchMode::Both => Taker::of_own(&plan.entity, plan.credit, own),
            _ => {
                let limit = plan.messages.map(|all| plan.share(all, number));
                Taker::of_all(&plan.entity, plan.credit, limit.unwrap_or(u64::MAX))
            }
        };
        Self::Take(Box::new(taker))
    }

    /// It, if it sends.
    pub fn as_sender(&self) -> Option<&Sender> {
        match self {
            Self::Send(sender) => Some(sender),
            Self::Take(_) => None,
        }
    }

    /// It, if it receives.
    pub fn as_taker(&self) -> Option<&Taker> {
        match self {
            Self::Send(_) => None,
            Self::Take(taker) => Some(taker),
        }
    }
}

impl load::Work for Work {
    type Error = Error;

    fn attach(&mut self, engine: &mut Connection, session: SessionId, settling: Settling) {
        match self {
            Self::Send(sender) => sender.attach(engine, session),
            Self::Take(taker) => taker.attach(engine, session, settling),
        }
    }

    fn links(&self) -> Vec<LinkId> {
        let link = match self {
            Self::Send(sender) => sender.link(),
            Self::Take(taker) => taker.link(),
        };
        link.into_iter().collect()
    }

    fn start(&mut self, now: Instant, engine: &mut Connection) {
        match self {
            Self::Send(sender) => sender.start(now),
            Self::Take(taker) => taker.start(engine),
        }
    }

    fn stop_sending(&mut self) {
        if let Self::Send(sender) = self {
            sender.stop();
        }
    }

    fn drain(&mut self, engine: &mut Connection) {
        if let Self::Take(taker) = self {
            taker.finish(engine);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.as_sender().and_then(Sender::due)
    }

    fn act(&mut self, now: Instant, engine: &mut Connection) {
        if let Self::Send(sender) = self {
            sender.send(now, engine);
        }
    }

    fn handle(&mut self, now: Instant, event: Event, engine: &mut Connection) -> Result<(), Error> {
        match (self, event) {
            (_, Event::Detached { error, .. }) => return Err(Error::Detached(error)),
            (Self::Send(sender), Event::Disposed { cookie, state, .. }) => {
                sender.disposed(now, cookie, state.as_ref());
            }
            (Self::Take(taker), event) => taker.handle(now, &event, engine),
            _ => {}
        }
        Ok(())
    }
}

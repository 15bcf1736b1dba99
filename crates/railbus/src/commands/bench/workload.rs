//! Workload: the tasks of the connections of a bench.

use std::time::Instant;

use endpoint::{Connection, Event, LinkId, SessionId};
use load::message_sections::MessageSections;
use load::receiver::SettleMode;
use load::sender::{self, Sender};
use load::{Error, Stamp};

use super::plan::Plan;
use super::receiver::BenchReceiver;
use crate::arguments::BenchMode;

/// What a connection is for.
pub enum Workload {
    /// It sends.
    Send(Box<Sender>),
    /// It receives and settles.
    Receive(Box<BenchReceiver>),
}

impl Workload {
    /// The sender of that number.
    pub fn sender(plan: &Plan, number: u32, epoch: Instant) -> Self {
        let count = plan.messages.map(|all| plan.share(all, number));
        let sends = sender::Plan {
            queue: plan.entity.clone(),
            size: plan.size,
            count: count.unwrap_or(u64::MAX),
            in_flight: plan.share(plan.in_flight, number).max(1),
            sections: MessageSections::Plain,
            every: plan.every(),
        };
        Self::Send(Box::new(match plan.mode {
            BenchMode::Both => Sender::stamped(sends, Stamp::new(plan.run, epoch)),
            _ => Sender::new(sends),
        }))
    }

    /// The receiver of that number.
    pub fn receiver(plan: &Plan, number: u32, epoch: Instant) -> Self {
        let own = Stamp::new(plan.run, epoch);
        let receiver = match plan.mode {
            BenchMode::Both => BenchReceiver::of_own(&plan.entity, plan.credit, own),
            _ => {
                let limit = plan.messages.map(|all| plan.share(all, number));
                BenchReceiver::of_all(&plan.entity, plan.credit, limit.unwrap_or(u64::MAX))
            }
        };
        Self::Receive(Box::new(receiver))
    }

    /// It, if it sends.
    pub fn as_sender(&self) -> Option<&Sender> {
        match self {
            Self::Send(sender) => Some(sender),
            Self::Receive(_) => None,
        }
    }

    /// It, if it receives.
    pub fn as_receiver(&self) -> Option<&BenchReceiver> {
        match self {
            Self::Send(_) => None,
            Self::Receive(receiver) => Some(receiver),
        }
    }
}

impl load::Workload for Workload {
    type Error = Error;

    fn attach(&mut self, engine: &mut Connection, session: SessionId, settle_mode: SettleMode) {
        match self {
            Self::Send(sender) => sender.attach(engine, session),
            Self::Receive(receiver) => receiver.attach(engine, session, settle_mode),
        }
    }

    fn links(&self) -> Vec<LinkId> {
        let link = match self {
            Self::Send(sender) => sender.link(),
            Self::Receive(receiver) => receiver.link(),
        };
        link.into_iter().collect()
    }

    fn start(&mut self, now: Instant, engine: &mut Connection) {
        match self {
            Self::Send(sender) => sender.start(now),
            Self::Receive(receiver) => receiver.start(engine),
        }
    }

    fn stop_sending(&mut self) {
        if let Self::Send(sender) = self {
            sender.stop();
        }
    }

    fn drain(&mut self, engine: &mut Connection) {
        if let Self::Receive(receiver) = self {
            receiver.finish(engine);
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
            (Self::Receive(receiver), event) => receiver.handle(now, &event, engine),
            _ => {}
        }
        Ok(())
    }
}

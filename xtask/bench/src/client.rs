//! Client: one connection of the load generator, and what it is for in some row.

use std::time::Instant;

use amqp::DeliveryState;
use anyhow::Result;
use bytes::Bytes;
use endpoint::{Connection, Event, LinkId, SessionId};

use super::deferrer::Deferrer;
use super::deleter::Deleter;
use super::task::Task;
use super::transactor::Transactor;
use load::receiver::{Receiver, SettleMode};
use load::sender::Sender;

/// One connection.
pub type Client = load::Client<Workload>;

/// What a connection is for.
pub enum Workload {
    /// It is there, with a link without credit or with none.
    Idle(Option<Receiver>),
    /// It sends to a queue.
    Send(Box<Sender>),
    /// It receives from a queue and settles.
    Receive(Receiver),
    /// It sends to a queue within transactions.
    Transact(Box<Transactor>),
    /// It receives from a queue, defers, and fetches what is deferred.
    Defer(Box<Deferrer>),
    /// It purges a queue.
    Delete(Box<Deleter>),
    /// It does what its row alone needs.
    Task(Box<dyn Task>),
}

impl load::Workload for Workload {
    type Error = anyhow::Error;

    fn attach(&mut self, engine: &mut Connection, session: SessionId, settle_mode: SettleMode) {
        match self {
            Self::Idle(None) => {}
            Self::Idle(Some(receiver)) | Self::Receive(receiver) => {
                receiver.attach(engine, session, settle_mode);
            }
            Self::Send(sender) => sender.attach(engine, session),
            Self::Transact(transactor) => transactor.attach(engine, session),
            Self::Defer(deferrer) => deferrer.attach(engine, session),
            Self::Delete(deleter) => deleter.attach(engine, session),
            Self::Task(task) => task.attach(engine, session),
        }
    }

    fn links(&self) -> Vec<LinkId> {
        match self {
            Self::Idle(receiver) => receiver.iter().filter_map(Receiver::link).collect(),
            Self::Send(sender) => sender.link().into_iter().collect(),
            Self::Receive(receiver) => receiver.link().into_iter().collect(),
            Self::Transact(transactor) => transactor.links().collect(),
            Self::Defer(deferrer) => deferrer.links().collect(),
            Self::Delete(deleter) => deleter.links().collect(),
            Self::Task(task) => task.links(),
        }
    }

    fn status(&self) -> Option<String> {
        match self {
            Self::Send(sender) => Some(sender.status()),
            Self::Receive(receiver) => Some(receiver.status()),
            Self::Task(task) => Some(format!("{:?}", task.tally())),
            _ => None,
        }
    }

    fn start(&mut self, now: Instant, engine: &mut Connection) {
        match self {
            Self::Idle(_) => {}
            Self::Send(sender) => sender.start(now),
            Self::Receive(receiver) => receiver.start(engine),
            Self::Transact(transactor) => transactor.start(),
            Self::Defer(deferrer) => deferrer.start(engine),
            Self::Delete(deleter) => deleter.start(engine),
            Self::Task(task) => task.start(now, engine),
        }
    }

    fn stop_sending(&mut self) {
        match self {
            Self::Send(sender) => sender.stop(),
            Self::Transact(transactor) => transactor.stop(),
            Self::Task(task) => task.stop(),
            _ => {}
        }
    }

    fn drain(&mut self, engine: &mut Connection) {
        if let Self::Receive(receiver) = self {
            receiver.drain(engine);
        }
    }

    fn due(&self) -> Option<Instant> {
        match self {
            Self::Send(sender) => sender.due(),
            _ => None,
        }
    }

    fn act(&mut self, now: Instant, engine: &mut Connection) {
        match self {
            Self::Send(sender) => sender.send(now, engine),
            Self::Transact(transactor) => transactor.send(engine),
            Self::Defer(deferrer) => deferrer.send(engine),
            Self::Delete(deleter) => deleter.send(engine),
            Self::Task(task) => task.act(now, engine),
            Self::Idle(_) | Self::Receive(_) => {}
        }
    }

    fn handle(&mut self, now: Instant, event: Event, engine: &mut Connection) -> Result<()> {
        if let Self::Task(task) = self
            && task.handle(now, &event, engine)?
        {
            return Ok(());
        }
        match event {
            Event::Disposed { cookie, state, .. } => {
                return self.disposed(now, cookie, state.as_ref());
            }
            Event::Detached { error, .. } => return Err(load::Error::Detached(error).into()),
            Event::Drained { .. } => {
                if let Self::Receive(receiver) = self {
                    receiver.drained(now);
                }
            }
            Event::Delivery {
                link,
                session,
                delivery_id,
                payload,
                ..
            } => return self.delivered(now, link, (session, delivery_id), &payload, engine),
            Event::Updated {
                settled: true,
                delivery_id,
                ..
            } => match self {
                Self::Receive(receiver) => receiver.settled(now),
                Self::Defer(deferrer) => deferrer.settled(delivery_id),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_))
    }
}

impl Workload {
    fn delivered(
        &mut self,
        now: Instant,
        link: LinkId,
        delivery: (SessionId, u32),
        payload: &Bytes,
        engine: &mut Connection,
    ) -> Result<()> {
        match self {
            Self::Receive(receiver) => receiver.settle(now, delivery.0, delivery.1, engine),
            Self::Delete(deleter) => deleter.handle_response(delivery, payload, engine)?,
            Self::Defer(deferrer) => deferrer.delivered(now, link, delivery, payload, engine)?,
            Self::Idle(_) | Self::Send(_) | Self::Transact(_) | Self::Task(_) => {}
        }
        Ok(())
    }

    fn disposed(
        &mut self,
        now: Instant,
        cookie: u128,
        state: Option<&DeliveryState>,
    ) -> Result<()> {
        match self {
            Self::Send(sender) => sender.disposed(now, cookie, state),
            Self::Transact(transactor) => transactor.disposed(now, state)?,
            _ => {}
        }
        Ok(())
    }
}

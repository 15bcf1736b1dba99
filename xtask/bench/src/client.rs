//! Client: one connection of the load generator, a wire that never waits and the AMQP engine.
//!
//! It signs in and begins one session. What it does there is its [`Work`].

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use amqp::DeliveryState;
use anyhow::{Result, bail};
use bytes::{Buf, Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, SessionId, Side};

use super::deferrer::Deferrer;
use super::deleter::Deleter;
use super::place::Place;
use super::receiver::Receiver;
use super::sender::Sender;
use super::transactor::Transactor;
use super::wire::Wire;

/// Bytes read at once.
const READ: usize = 256 * 1024;

/// What a connection is for.
pub enum Work {
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
}

/// One connection.
pub struct Client {
    stream: Wire,
    engine: Connection,
    work: Work,
    input: BytesMut,
    scratch: Vec<u8>,
    began: Instant,
    opened: bool,
    begun: bool,
}

impl Client {
    /// Connects to `place` and asks for everything that `work` needs, without waiting.
    pub fn connect(place: &Place, mut work: Work) -> Result<Self> {
        let stream = Wire::connect(place.address, place.trust.as_ref())?;
        let mut engine = Connection::new(Side::Client, config(place), Mono(0));
        let session = engine.begin();
        match &mut work {
            Work::Idle(None) => {}
            Work::Idle(Some(receiver)) | Work::Receive(receiver) => {
                receiver.attach(&mut engine, session, place.settling);
            }
            Work::Send(sender) => sender.attach(&mut engine, session),
            Work::Transact(transactor) => transactor.attach(&mut engine, session),
            Work::Defer(deferrer) => deferrer.attach(&mut engine, session),
            Work::Delete(deleter) => deleter.attach(&mut engine, session),
        }
        let scratch = Vec::new();
        Ok(Self {
            stream,
            engine,
            work,
            input: BytesMut::new(),
            scratch,
            began: Instant::now(),
            opened: false,
            begun: false,
        })
    }

    /// The socket, to wait for it.
    pub fn stream(&self) -> &TcpStream {
        self.stream.socket()
    }

    /// What it does, and how far it is.
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// Whether the peer has opened the connection, begun the session and taken the links, if any.
    pub fn is_open(&self) -> bool {
        let links: Vec<LinkId> = match &self.work {
            Work::Idle(receiver) => receiver.iter().filter_map(Receiver::link).collect(),
            Work::Send(sender) => sender.link().into_iter().collect(),
            Work::Receive(receiver) => receiver.link().into_iter().collect(),
            Work::Transact(transactor) => transactor.links().collect(),
            Work::Defer(deferrer) => deferrer.links().collect(),
            Work::Delete(deleter) => deleter.links().collect(),
        };
        self.opened && self.begun && links.iter().all(|link| self.engine.is_attached(*link))
    }

    /// How far it is, for an error.
    pub fn stands(&self) -> Option<String> {
        let open = if self.is_open() { "" } else { "not open, " };
        match &self.work {
            Work::Send(sender) => Some(format!("{open}{}", sender.stands())),
            Work::Receive(receiver) => Some(format!("{open}{}", receiver.stands())),
            _ => None,
        }
    }

    /// Lets it do what it is there for.
    pub fn start(&mut self, now: Instant) {
        match &mut self.work {
            Work::Idle(_) => {}
            Work::Send(sender) => sender.start(now),
            Work::Receive(receiver) => receiver.start(&mut self.engine),
            Work::Transact(transactor) => transactor.start(),
            Work::Defer(deferrer) => deferrer.start(&mut self.engine),
            Work::Delete(deleter) => deleter.start(&mut self.engine),
        }
    }

    /// Sends nothing new from now on.
    pub fn stop_sending(&mut self) {
        match &mut self.work {
            Work::Send(sender) => sender.stop(),
            Work::Transact(transactor) => transactor.stop(),
            _ => {}
        }
    }

    /// Asks for the end of what is received, if anything is.
    pub fn drain(&mut self) {
        if let Work::Receive(receiver) = &mut self.work {
            receiver.drain(&mut self.engine);
        }
    }

    /// When it has something to do without being asked.
    pub fn due(&self) -> Option<Instant> {
        match &self.work {
            Work::Send(sender) => sender.due(),
            _ => None,
        }
    }

    /// Sends what it may and writes what waits. Says whether bytes are left that did not fit.
    pub fn act(&mut self, now: Instant) -> Result<bool> {
        let mono = self.mono(now);
        if self
            .engine
            .deadline()
            .is_some_and(|deadline| deadline <= mono)
        {
            self.engine.handle_timeout(mono);
        }
        match &mut self.work {
            Work::Send(sender) => sender.send(now, &mut self.engine),
            Work::Transact(transactor) => transactor.send(&mut self.engine),
            Work::Defer(deferrer) => deferrer.send(&mut self.engine),
            Work::Delete(deleter) => deleter.send(&mut self.engine),
            Work::Idle(_) | Work::Receive(_) => {}
        }
        self.write(mono)
    }

    /// Reads what is there and handles it.
    pub fn read(&mut self, now: Instant) -> Result<()> {
        while self.take(now)? && self.stream.holds_back() {}
        Ok(())
    }

    /// Reads once; says whether there was something.
    fn take(&mut self, now: Instant) -> Result<bool> {
        self.scratch.resize(READ, 0);
        match self.stream.read(&mut self.scratch) {
            Ok(0) => bail!("the broker closed the connection"),
            Ok(count) => self.input.extend_from_slice(&self.scratch[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let mono = self.mono(now);
        self.engine.handle_input(mono, &mut self.input);
        while let Some(event) = self.engine.poll_event() {
            self.handle(now, event)?;
        }
        if matches!(self.work, Work::Idle(_)) {
            // A thousand idle connections should not cost the generator 256 MiB.
            self.scratch = Vec::new();
        }
        Ok(true)
    }

    fn handle(&mut self, now: Instant, event: Event) -> Result<()> {
        match event {
            Event::Opened(_) => self.opened = true,
            Event::Begun { .. } => self.begun = true,
            Event::Ended { error, .. } => bail!("the session was ended: {error:?}"),
            Event::Closed { error } => bail!("the connection was closed: {error:?}"),
            Event::Detached { error, .. } => bail!("the link was detached: {error:?}"),
            Event::Disposed { cookie, state, .. } => {
                return self.disposed(now, cookie, state.as_ref());
            }
            Event::Drained { .. } => {
                if let Work::Receive(receiver) = &mut self.work {
                    receiver.drained(now);
                }
            }
            Event::Delivery {
                link,
                session,
                delivery_id,
                payload,
                ..
            } => return self.delivered(now, link, (session, delivery_id), &payload),
            Event::Updated {
                settled: true,
                delivery_id,
                ..
            } => match &mut self.work {
                Work::Receive(receiver) => receiver.settled(now),
                Work::Defer(deferrer) => deferrer.settled(delivery_id),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn delivered(
        &mut self,
        now: Instant,
        link: LinkId,
        delivery: (SessionId, u32),
        payload: &Bytes,
    ) -> Result<()> {
        let engine = &mut self.engine;
        match &mut self.work {
            Work::Receive(receiver) => receiver.settle(now, delivery.0, delivery.1, engine),
            Work::Delete(deleter) => deleter.answered(now, delivery, payload, engine)?,
            Work::Defer(deferrer) => deferrer.delivered(now, link, delivery, payload, engine)?,
            Work::Idle(_) | Work::Send(_) | Work::Transact(_) => {}
        }
        Ok(())
    }

    fn disposed(
        &mut self,
        now: Instant,
        cookie: u128,
        state: Option<&DeliveryState>,
    ) -> Result<()> {
        match &mut self.work {
            Work::Send(sender) => sender.disposed(now, cookie, state),
            Work::Transact(transactor) => transactor.disposed(now, state)?,
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, mono: Mono) -> Result<bool> {
        let output = self.engine.output(mono);
        while !output.is_empty() {
            match self.stream.write(output) {
                Ok(count) => output.advance(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        match self.stream.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
            flushed => Ok(flushed.map(|()| false)?),
        }
    }

    fn mono(&self, now: Instant) -> Mono {
        let elapsed: Duration = now.saturating_duration_since(self.began);
        Mono(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }
}

fn config(place: &Place) -> Config {
    Config {
        container_id: "railbus-bench".to_owned(),
        hostname: Some("localhost".to_owned()),
        client_sasl: Some(place.sasl.clone()),
        ..Config::default()
    }
}

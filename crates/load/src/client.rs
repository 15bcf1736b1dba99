//! Client: one connection of the load generator, a wire that never waits and the AMQP engine.
//!
//! It opens, begins one session and puts its token if it has one. Then it runs its [`Workload`].

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use amqp::{Attach, Role};
use bytes::{Buf, BytesMut};
use endpoint::{Connection, Event, Mono, SessionId, Side};

use crate::cbs_authorization::CbsAuthorization;
use crate::receiver::SettleMode;
use crate::wire::Wire;
use crate::{Error, Peer, Workload};

/// Bytes read at once.
const READ: usize = 256 * 1024;

/// One connection.
pub struct Client<W> {
    stream: Wire,
    engine: Connection,
    session: SessionId,
    settle_mode: SettleMode,
    authorization: Option<CbsAuthorization>,
    workload: W,
    input: BytesMut,
    scratch: Vec<u8>,
    began: Instant,
    opened: bool,
    begun: bool,
    /// Whether the broker answered an attach by none of its own, so that a detach follows. [AMQP
    /// 2.6.3]
    refused: bool,
    closing: bool,
    closed: bool,
}

impl<W: Workload> Client<W> {
    /// Connects to `peer` and asks for everything that `workload` needs, without waiting for the
    /// answers.
    pub fn connect(peer: impl Into<Peer>, mut workload: W) -> Result<Self, W::Error> {
        let peer = peer.into();
        let stream = Wire::connect(&peer.addresses, peer.trust.as_ref())?;
        let mut engine = Connection::new(Side::Client, peer.config(), Mono(0));
        let session = engine.begin();
        let authorization = peer
            .token
            .map(|token| CbsAuthorization::new(token, &mut engine, session));
        if authorization.is_none() {
            workload.attach(&mut engine, session, peer.settle_mode);
        }
        Ok(Self {
            stream,
            engine,
            session,
            settle_mode: peer.settle_mode,
            authorization,
            workload,
            input: BytesMut::new(),
            scratch: Vec::new(),
            began: Instant::now(),
            opened: false,
            begun: false,
            refused: false,
            closing: false,
            closed: false,
        })
    }

    /// The socket, to wait for it.
    pub fn stream(&self) -> &TcpStream {
        self.stream.socket()
    }

    /// What it does, and how far it is.
    pub fn workload(&self) -> &W {
        &self.workload
    }

    /// The same, mutably, with the engine.
    pub fn workload_mut(&mut self) -> (&mut W, &mut Connection) {
        (&mut self.workload, &mut self.engine)
    }

    /// Whether the peer has opened the connection, begun the session and taken the links, if any.
    pub fn is_open(&self) -> bool {
        let links = self.workload.links();
        let attached = links.iter().all(|link| self.engine.is_attached(*link));
        self.opened && self.begun && self.is_authorized() && attached && !self.refused
    }

    fn is_authorized(&self) -> bool {
        self.authorization
            .as_ref()
            .is_none_or(CbsAuthorization::is_granted)
    }

    /// How far it is, for an error.
    pub fn status(&self) -> Option<String> {
        let open = if self.is_open() { "" } else { "not open, " };
        let status = self.workload.status()?;
        Some(format!("{open}{status}"))
    }

    /// Lets it do what it is there for.
    pub fn start(&mut self, now: Instant) {
        self.workload.start(now, &mut self.engine);
    }

    /// Sends nothing new from now on.
    pub fn stop_sending(&mut self) {
        self.workload.stop_sending();
    }

    /// Asks for the end of what is received, if anything is.
    pub fn drain(&mut self) {
        self.workload.drain(&mut self.engine);
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.closing = true;
        self.engine.close(None);
    }

    /// Whether that was answered, in whatever way.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// When it has something to do without being asked.
    pub fn due(&self) -> Option<Instant> {
        self.workload.due()
    }

    /// Sends what it may and writes what waits. Says whether bytes are left that did not fit.
    pub fn act(&mut self, now: Instant) -> Result<bool, W::Error> {
        let mono = self.mono(now);
        if self
            .engine
            .deadline()
            .is_some_and(|deadline| deadline <= mono)
        {
            self.engine.handle_timeout(mono);
        }
        match &mut self.authorization {
            Some(authorization) if !authorization.is_granted() => {
                authorization.act(&mut self.engine);
            }
            _ if self.closing => {}
            _ => self.workload.act(now, &mut self.engine),
        }
        Ok(self.write(mono)?)
    }

    /// Reads what is there and handles it.
    pub fn read(&mut self, now: Instant) -> Result<(), W::Error> {
        while self.read_once(now)? && self.stream.has_unsent() {}
        Ok(())
    }

    /// Reads once; returns whether there was something.
    fn read_once(&mut self, now: Instant) -> Result<bool, W::Error> {
        self.scratch.resize(READ, 0);
        match self.stream.read(&mut self.scratch) {
            Ok(0) if self.closing => {
                self.closed = true;
                return Ok(false);
            }
            Ok(0) => return Err(Error::Gone.into()),
            Ok(count) => self.input.extend_from_slice(&self.scratch[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(Error::Lost(error).into()),
        }
        let mono = self.mono(now);
        self.engine.handle_input(mono, &mut self.input);
        while let Some(event) = self.engine.poll_event() {
            self.handle(now, event)?;
        }
        if self.workload.is_idle() {
            // A thousand idle connections should not cost the generator 256 MiB.
            self.scratch = Vec::new();
        }
        Ok(true)
    }

    fn handle(&mut self, now: Instant, event: Event) -> Result<(), W::Error> {
        match event {
            Event::Opened(_) => self.opened = true,
            Event::Begun { .. } => self.begun = true,
            Event::Closed { .. } if self.closing => self.closed = true,
            Event::Ended { error, .. } => return Err(Error::Ended(error).into()),
            Event::Closed { error, .. } => return Err(Error::Closed(error).into()),
            event if self.is_authorized() => {
                if let Event::Attached { attach, .. } = &event {
                    self.refused |= is_refused(attach);
                }
                self.workload.handle(now, event, &mut self.engine)?;
            }
            event => self.authorize(event)?,
        }
        Ok(())
    }

    /// Goes on with the links once the token was taken.
    fn authorize(&mut self, event: Event) -> Result<(), Error> {
        let Some(authorization) = &mut self.authorization else {
            return Ok(());
        };
        if let Event::Detached { error, .. } = event {
            return Err(Error::Detached(error));
        }
        authorization.handle(&event, &mut self.engine)?;
        if authorization.is_granted() {
            self.workload
                .attach(&mut self.engine, self.session, self.settle_mode);
        }
        Ok(())
    }

    fn write(&mut self, mono: Mono) -> Result<bool, Error> {
        let output = self.engine.output(mono);
        while !output.is_empty() {
            match self.stream.write(output.chunk()) {
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

/// Whether the peer does not give the link what it is asked for: messages from its source, or a
/// place for them. The other terminus is ours, and some do not repeat it. [AMQP 2.6.3]
fn is_refused(attach: &Attach) -> bool {
    match attach.role {
        Role::Sender => attach.source.is_none(),
        Role::Receiver => attach.target.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use amqp::{Source, Target};

    use super::*;
    use crate::request_client;

    #[test]
    fn a_link_is_refused_by_the_terminus_that_its_peer_has() {
        let attach = |role, source: bool, target: bool| {
            let mut attach = request_client::link("l", role, Source::default(), Target::default());
            attach.source = attach.source.filter(|_| source);
            attach.target = attach.target.filter(|_| target);
            attach
        };
        assert!(!is_refused(&attach(Role::Sender, true, false)));
        assert!(is_refused(&attach(Role::Sender, false, true)));
        assert!(!is_refused(&attach(Role::Receiver, false, true)));
        assert!(is_refused(&attach(Role::Receiver, true, false)));
    }
}

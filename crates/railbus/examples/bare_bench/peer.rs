//! Peer: one connection, its socket, its engine and its links.
//!
//! Received messages become writes, and so do settlements of delivered messages. The unsettled
//! messages of a link that is detached stay in the store, and are not delivered again.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use amqp::error::condition;
use amqp::sasl::Code;
use amqp::{Attach, DeliveryState, Error, Role, Symbol, TargetTerminus};
use bytes::{Buf, Bytes, BytesMut};
use endpoint::{Config, Connection, Event, LinkId, Mono, Outgoing, SessionId, Side};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

use crate::committer::{Delivery, Set, Write};
use crate::queue::{Queues, Taker};
use crate::row::Place;

/// Bytes read at once, and the room below which there is a new buffer.
const READ: usize = 64 << 10;
const LEAST_ROOM: usize = 8 << 10;
/// Messages that a sender may have on their way.
const CREDIT: u32 = 2_000;
/// Bytes that wait to be written before no more is given, and before nothing more is read.
const GIVEN: usize = 1 << 20;
const UNREAD: usize = 4 << 20;
/// Pieces that go out in one write, at most.
const PARTS: usize = 256;
/// The largest message, in bytes.
const MESSAGE: u64 = 1 << 20;

/// See the module.
pub struct Peer {
    number: u64,
    stream: TcpStream,
    engine: Connection,
    input: BytesMut,
    began: Instant,
    links: BTreeMap<LinkId, Link>,
    /// Nothing was read of it for what it has not read.
    held: bool,
    gone: bool,
}

struct Link {
    queue: u32,
    role: Role,
    session: SessionId,
    /// Whether the receiver wants to know when there is nothing more.
    drains: bool,
}

impl Peer {
    /// One that has just connected.
    pub fn new(number: u64, stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let config = Config {
            container_id: "bare".to_owned(),
            idle_time_out: None,
            sasl_mechanisms: vec![Symbol::new("PLAIN")],
            sasl_required: true,
            ..Config::default()
        };
        Ok(Self {
            number,
            stream,
            engine: Connection::new(Side::Server, config, Mono(0)),
            input: BytesMut::new(),
            began: Instant::now(),
            links: BTreeMap::new(),
            held: false,
            gone: false,
        })
    }

    /// Whether it may be read again that was not in this round.
    pub fn may_go_on(&self) -> bool {
        self.held && self.engine.buffered() <= UNREAD
    }

    /// Whether nothing more comes of it.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Reads once, and adds the resulting writes to `set`.
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        queues: &mut Queues,
        set: &mut Set,
    ) -> Poll<()> {
        self.held = !self.gone && self.engine.buffered() > UNREAD;
        if self.gone || self.held {
            return Poll::Pending;
        }
        if self.input.capacity() - self.input.len() < LEAST_ROOM {
            self.input.reserve(READ);
        }
        let read = pin!(self.stream.read_buf(&mut self.input));
        match ready!(read.poll(context)) {
            Ok(0) | Err(_) => self.gone = true,
            Ok(_) => {
                let now = self.mono();
                self.engine.handle_input(now, &mut self.input);
                while let Some(event) = self.engine.poll_event() {
                    self.handle(event, queues, set);
                }
            }
        }
        Poll::Ready(())
    }

    fn handle(&mut self, event: Event, queues: &mut Queues, set: &mut Set) {
        match event {
            Event::SaslInit { .. } => self.engine.finish_sasl(Code::Ok),
            Event::AttachRequested {
                link,
                session,
                attach,
            } => self.attach(link, session, &attach, queues),
            Event::Credit { link, drain, .. } => {
                if let Some(link) = self.links.get_mut(&link) {
                    link.drains = drain;
                }
            }
            Event::Delivery {
                link,
                session,
                delivery_id,
                payload,
                ..
            } => {
                if let Some(found) = self.links.get(&link) {
                    let place = queues.place(found.queue);
                    set.push(Write::Put(
                        place,
                        payload,
                        self.delivery(session, delivery_id),
                    ));
                }
            }
            Event::Disposed {
                link,
                cookie,
                delivery_id,
                state,
                ..
            } => self.settle(link, cookie, delivery_id, state.as_ref(), set),
            Event::Detached { link, .. } => self.detach(link, queues),
            Event::Closed { .. } => {
                let number = self.number;
                queues.detach(|taker| taker.peer == number);
                self.links.clear();
            }
            _ => {}
        }
    }

    fn attach(&mut self, link: LinkId, session: SessionId, asked: &Attach, queues: &mut Queues) {
        let Some(address) = address(asked) else {
            let error = Error::new(condition::NOT_FOUND, "there are queues only");
            return self.engine.refuse(link, error);
        };
        let queue = queues.find(address);
        self.engine.accept(link, reply(asked));
        let role = asked.role;
        let drains = false;
        let new = Link {
            queue,
            role,
            session,
            drains,
        };
        self.links.insert(link, new);
        match role {
            Role::Sender => self.engine.set_credit(link, CREDIT, false),
            Role::Receiver => {
                let peer = self.number;
                queues.attach(queue, Taker { peer, link });
            }
        }
    }

    fn detach(&mut self, link: LinkId, queues: &mut Queues) {
        self.links.remove(&link);
        let peer = self.number;
        queues.detach(|taker| *taker == Taker { peer, link });
    }

    fn settle(
        &mut self,
        link: LinkId,
        cookie: u128,
        delivery: u32,
        state: Option<&DeliveryState>,
        set: &mut Set,
    ) {
        if state != Some(&DeliveryState::Accepted) {
            let text = "messages can be accepted only";
            let error = Error::new(condition::NOT_IMPLEMENTED, text);
            return self.engine.close(Some(error));
        }
        if let (Some(link), Ok(number)) = (self.links.get(&link), u64::try_from(cookie)) {
            let queue = link.queue;
            let delivery = self.delivery(link.session, delivery);
            set.push(Write::Remove(Place { queue, number }, delivery));
        }
    }

    fn delivery(&self, session: SessionId, id: u32) -> Delivery {
        let peer = self.number;
        Delivery { peer, session, id }
    }

    /// What it has sent is durable.
    pub fn accept(&mut self, delivery: Delivery) {
        let Delivery { session, id, .. } = delivery;
        self.engine
            .dispose_received(session, id, DeliveryState::Accepted, true);
    }

    /// What it has settled is gone, durably.
    pub fn settled(&mut self, delivery: Delivery) {
        let Delivery { session, id, .. } = delivery;
        self.engine
            .settle_sent(session, id, DeliveryState::Accepted, true);
    }

    /// Gives it a message, if it takes one.
    pub fn give(&mut self, link: LinkId, place: Place, body: &Bytes) -> bool {
        let outgoing = Outgoing {
            tag: &place.number.to_be_bytes(),
            cookie: place.number.into(),
            owner: Some(body),
            ..Outgoing::default()
        };
        self.engine.buffered() < GIVEN && self.engine.send(link, &outgoing, &[body]).is_ok()
    }

    /// Renews the credit of senders, answers drains, and writes the output.
    pub fn poll_write(&mut self, context: &mut Context<'_>, queues: &Queues) {
        for (id, link) in &mut self.links {
            if link.role == Role::Sender {
                if self.engine.credit_left(*id) < CREDIT / 2 {
                    self.engine.set_credit(*id, CREDIT, false);
                }
            } else if link.drains && queues.is_empty(link.queue) {
                link.drains = false;
                self.engine.drained(*id);
            }
        }
        let now = self.mono();
        if self
            .engine
            .deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            self.engine.handle_timeout(now);
        }
        let output = self.engine.output(now);
        while !self.gone && !output.is_empty() {
            let mut parts = [IoSlice::new(&[]); PARTS];
            let count = output.chunks_vectored(&mut parts);
            match Pin::new(&mut self.stream).poll_write_vectored(context, &parts[..count]) {
                Poll::Ready(Ok(written)) => output.advance(written),
                Poll::Ready(Err(_)) => self.gone = true,
                Poll::Pending => return,
            }
        }
        self.gone |= self.engine.is_finished();
    }

    fn mono(&self) -> Mono {
        let elapsed = self.began.elapsed().as_millis();
        Mono(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}

/// The queue that a link is for.
fn address(attach: &Attach) -> Option<&str> {
    let address = match attach.role {
        Role::Sender => match attach.target.as_deref()? {
            TargetTerminus::Node(target) => target.address.as_ref()?,
            TargetTerminus::Coordinator(_) => return None,
        },
        Role::Receiver => attach.source.as_deref()?.address.as_ref()?,
    };
    address.as_text()
}

/// Says yes to all that was asked.
fn reply(asked: &Attach) -> Attach {
    let is_receiver = asked.role == Role::Receiver;
    Attach {
        initial_delivery_count: is_receiver.then_some(0),
        max_message_size: Some(MESSAGE),
        unsettled: None,
        ..asked.clone()
    }
}

//! Connection: one AMQP endpoint, from the protocol header to close.
//!
//! The owner feeds bytes and time, takes events and bytes, and calls the methods below to act.
//! This file is the whole outside; what each part does stands in the file of its name.
//! Invariant: after `Event::Closed` no more frames are written than the close that is owed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use amqp::sasl::Code;
use amqp::{Attach, DeliveryState, Error, Symbol};
use bytes::{Bytes, BytesMut};

use crate::bounds::Bounds;
use crate::config::{Config, Side};
use crate::detected_error::DetectedError;
use crate::error_counts::Scope;
use crate::event::Event;
use crate::handles::Handles;
use crate::handshake::Phase;
use crate::id::{LinkId, Mono, SessionId};
use crate::link::{DetachReason, End, Link, Stage};
use crate::outbox::Outbox;
use crate::output::Output;
use crate::session::Session;
use crate::slab::Slab;
use crate::timers::Timers;

/// Events that may wait before input waits for them, so that one frame can not make thousands of
/// events again and again.
const MAX_EVENTS: usize = 8_192;

/// A message to send on a link of ours.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields are those of a transfer")]
pub struct Outgoing<'a> {
    pub tag: &'a [u8],
    pub message_format: u32,
    pub settled: bool,
    /// Comes back in [`Event::Disposed`].
    pub cookie: u128,
    pub state: Option<DeliveryState>,
    /// Memory in which some pieces of the payload lie: long ones go out from there, without a copy.
    pub owner: Option<&'a Bytes>,
}

/// The link has no credit (or is gone), so nothing was sent.
///
/// Also the answer while the session can not remember another unsettled delivery; an
/// [`Event::Credit`] follows when there is room again.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the link has no credit")]
pub struct NoCredit;

/// One end of an AMQP connection.
pub struct Connection {
    pub(crate) side: Side,
    pub(crate) config: Config,
    /// What holds of the configuration at the moment.
    pub(crate) bounds: Bounds,
    pub(crate) phase: Phase,
    /// Whether `Closed` was told.
    pub(crate) over: bool,
    pub(crate) timers: Timers,
    pub(crate) outbox: Outbox,
    pub(crate) events: VecDeque<Event>,
    /// Errors that no owner gave and none has taken yet.
    pub(crate) detected_errors: Vec<DetectedError>,
    /// Input that waits for the owner: for its SASL decision, or for it to take events.
    pub(crate) stalled_input: BytesMut,
    pub(crate) peer_channel_max: u16,
    pub(crate) sessions: Slab<Session>,
    pub(crate) local_channels: Handles,
    pub(crate) remote_channels: Handles,
    /// Channels whose session is over, until the peer begins another one there.
    pub(crate) ended_channels: BTreeSet<u16>,
    pub(crate) links: Slab<Link>,
    /// Links by our role (true for sender) and name, while the name is taken.
    pub(crate) names: BTreeMap<(bool, String), u32>,
    /// Sessions with dispositions that are not written yet.
    pub(crate) unflushed: Vec<u32>,
    /// Bytes of deliveries that are unfinished or held, links of all sessions together.
    pub(crate) partial_bytes: usize,
    /// Bytes of deliveries that wait for session windows.
    pub(crate) waiting_bytes: usize,
}

impl Connection {
    /// A fresh endpoint; a client has its first bytes to send at once.
    #[must_use]
    pub fn new(side: Side, config: Config, now: Mono) -> Self {
        let mut connection = Self {
            side,
            phase: Phase::Header,
            over: false,
            timers: Timers::new(now, config.handshake_time_out),
            outbox: Outbox::new(),
            events: VecDeque::new(),
            detected_errors: Vec::new(),
            stalled_input: BytesMut::new(),
            peer_channel_max: u16::MAX,
            sessions: Slab::new(),
            local_channels: Handles::new(),
            remote_channels: Handles::new(),
            ended_channels: BTreeSet::new(),
            links: Slab::new(),
            names: BTreeMap::new(),
            unflushed: Vec::new(),
            partial_bytes: 0,
            waiting_bytes: 0,
            bounds: Bounds::of(&config),
            config,
        };
        connection.start();
        connection
    }

    /// Takes all whole frames off `input` (bytes of an unfinished one stay) and queues events.
    pub fn handle_input(&mut self, now: Mono, input: &mut BytesMut) {
        self.timers.received(now, input.len());
        if !self.stalled_input.is_empty() {
            self.stalled_input.extend_from_slice(input);
            std::mem::swap(&mut self.stalled_input, input);
            self.stalled_input.clear();
        }
        self.process(input);
        if self.is_stalled() {
            self.stall(input);
        }
        self.timers.left_over(input.len());
    }

    /// The peer is gone: queues `Closed` unless the connection is over already.
    pub fn handle_eof(&mut self) {
        self.report_closed(None);
        self.phase = Phase::Finished;
    }

    /// Does what is due at `now`: heartbeats, idle time-out, handshake time-out.
    pub fn handle_timeout(&mut self, now: Mono) {
        self.do_what_is_due(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called next.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        self.next_deadline()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() && !self.stalled_input.is_empty() {
            self.resume();
        }
        self.events.pop_front()
    }

    /// Bytes to write, pending dispositions included; the caller takes them out.
    pub fn output(&mut self, now: Mono) -> &mut Output {
        self.flush_dispositions();
        self.timers.sent(now, self.outbox.output.len());
        &mut self.outbox.output
    }

    /// Bytes that wait in [`output`](Self::output), pending dispositions aside.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.outbox.output.len()
    }

    /// Memory for what will be written, see [`Output::lend`].
    pub fn lend_buffer(&mut self, memory: &mut BytesMut) {
        self.outbox.output.lend_buffer(memory);
    }

    /// Bytes that wait, in the output or for the peer's session windows.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.outbox.len() + self.waiting_bytes
    }

    /// Holds the peer to `narrower` bounds as well as to the configuration; with `None` to the
    /// configuration alone, as it is at first.
    pub fn confine(&mut self, narrower: Option<Bounds>) {
        self.set_bounds(narrower);
    }

    /// Bytes of deliveries that are unfinished, or wait for an answer to their link's attach.
    #[must_use]
    pub fn partial_bytes(&self) -> usize {
        self.partial_bytes
    }

    /// Gives up unfinished deliveries, the largest first, until so many bytes are free: their
    /// links are detached with `amqp:resource-limit-exceeded`.
    pub fn shed_partials(&mut self, bytes: usize) {
        self.shed(bytes);
    }

    /// How often this end has told each condition since the last call, by what it ended.
    pub fn take_error_counts(&mut self) -> BTreeMap<(Scope, Symbol), u64> {
        self.outbox.error_counts.take()
    }

    /// The errors that this end found by itself since the last call.
    pub fn take_detected_errors(&mut self) -> Vec<DetectedError> {
        std::mem::take(&mut self.detected_errors)
    }

    /// Whether the socket may be closed once the output is written.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether the link's handshake is done and neither side has detached it.
    #[must_use]
    pub fn is_attached(&self, link: LinkId) -> bool {
        self.links
            .get(link.0)
            .is_some_and(|link| link.stage == Stage::Attached)
    }

    /// Server: ends the SASL exchange. Any code but `Ok` ends the connection after it is written.
    pub fn finish_sasl(&mut self, code: Code) {
        if self.phase == Phase::SaslDecision {
            self.decide_sasl(code);
            self.resume();
        }
    }

    /// Client: begins a session (may be called before the peer's open arrives: frames are pipelined).
    /// When there is no channel left, `ErrorScope` is the answer.
    pub fn begin(&mut self) -> SessionId {
        self.begin_session()
    }

    /// Ends a session.
    pub fn end(&mut self, session: SessionId, error: Option<Error>) {
        self.end_session(session.0, error);
    }

    /// Client: asks for a link. `attach.handle` is chosen here, whatever it says.
    /// When there is no handle left or the session is gone, `Detached` is the answer.
    pub fn attach(&mut self, session: SessionId, attach: Attach) -> LinkId {
        self.offer_link(session.0, attach)
    }

    /// Accepts the peer's link with `reply` (handle, name and role are filled in here), then handles
    /// what was remembered for it.
    pub fn accept(&mut self, link: LinkId, reply: Attach) {
        self.accept_link(link.0, reply);
    }

    /// Refuses the peer's link: attach with null termini, then detach with `error` (docs/spec/amqp.md#rule-8).
    pub fn refuse(&mut self, link: LinkId, error: Error) {
        self.refuse_link(link.0, error);
    }

    /// Detaches a link. Cookies of deliveries that were not settled come back in `Detached`.
    pub fn detach(&mut self, link: LinkId, closed: bool, error: Option<Error>) {
        self.detach_link(link.0, DetachReason { closed, error });
    }

    /// Closes the connection.
    pub fn close(&mut self, error: Option<Error>) {
        self.close_connection(error);
    }

    /// Sets our receiver link's credit, replacing what was left, and tells the sender.
    /// Does nothing before the link is accepted.
    pub fn set_credit(&mut self, link: LinkId, credit: u32, drain: bool) {
        self.grant(link.0, credit, drain);
    }

    /// Lets the deliveries of a receiver link repeat delivery-ids of their session, if each comes in
    /// one frame: each is a delivery of its own. (docs/spec/amqp.md#7.1)
    pub fn allow_repeated_ids(&mut self, link: LinkId) {
        if let Some(End::Receiver(receiver)) = self.links.get_mut(link.0).map(|link| &mut link.end)
        {
            receiver.repeats_ids = true;
        }
    }

    /// What is left of our receiver link's credit.
    #[must_use]
    pub fn credit_left(&self, link: LinkId) -> u32 {
        match self.links.get(link.0).map(|link| &link.end) {
            Some(End::Receiver(receiver)) => receiver.credit,
            _ => 0,
        }
    }

    /// Deliveries that [`send`](Self::send) would still take on our sender link, for its credit.
    #[must_use]
    pub fn send_credit(&self, link: LinkId) -> u32 {
        match self.links.get(link.0).map(|link| &link.end) {
            Some(End::Sender(sender)) => sender.usable(),
            _ => 0,
        }
    }

    /// Sends a message given in pieces that follow each other, split into frames as the peer needs.
    ///
    /// # Errors
    /// When the link has no credit or is not attached.
    pub fn send(
        &mut self,
        link: LinkId,
        outgoing: &Outgoing<'_>,
        payload: &[&[u8]],
    ) -> Result<(), NoCredit> {
        self.send_delivery(link.0, outgoing, payload)
    }

    /// Our sender link has no more to send: uses the credit up and answers the drain. [AMQP 2.6.7]
    pub fn drained(&mut self, link: LinkId) {
        self.set_drained(link.0);
    }

    /// Settles a delivery that we received (or, with `settled` false, only tells its state).
    /// Neighbours with the same state share one disposition. Does nothing once the sender has
    /// settled the delivery or its link is detached.
    pub fn dispose_received(
        &mut self,
        session: SessionId,
        delivery_id: u32,
        state: DeliveryState,
        settled: bool,
    ) {
        self.dispose_incoming(session.0, delivery_id, state, settled);
    }

    /// Settles a delivery that we sent, answering the receiver's disposition, and forgets it
    /// (with `settled` false the state is told and the delivery kept).
    /// Does nothing when the delivery is not known any more.
    pub fn settle_sent(
        &mut self,
        session: SessionId,
        delivery_id: u32,
        state: DeliveryState,
        settled: bool,
    ) {
        self.dispose_outgoing(session.0, delivery_id, state, settled);
    }

    /// The session of a link that has not been detached by both sides.
    #[must_use]
    pub fn session_of(&self, link: LinkId) -> Option<SessionId> {
        self.links.get(link.0).map(|link| SessionId(link.session))
    }

    fn process(&mut self, input: &mut BytesMut) {
        while !self.is_stalled() && self.step(input) {}
    }

    fn is_stalled(&self) -> bool {
        self.phase == Phase::SaslDecision || self.events.len() >= MAX_EVENTS
    }

    fn stall(&mut self, input: &mut BytesMut) {
        self.stalled_input = input.split();
        if self.phase == Phase::SaslDecision {
            self.check_stalled_handshake();
        }
    }

    /// Goes on with the input that waited.
    fn resume(&mut self) {
        let mut input = std::mem::take(&mut self.stalled_input);
        self.process(&mut input);
        self.stalled_input = input;
    }
}

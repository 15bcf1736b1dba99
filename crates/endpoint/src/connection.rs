//! Connection: one AMQP endpoint, from the protocol header to close.
//!
//! The owner passes in bytes and the time, takes events and bytes out, and calls methods to act.
//! This file has the input, the output and the state; a method that acts on a session, a link or a
//! delivery stands in the file of that part (`begin`, `attach`, `detach`, `flow`, `send`,
//! `dispose`). Invariant: after `Event::Closed` the endpoint writes no frame but the close that it
//! still owes.

pub mod closing;
pub mod dispatch;
pub mod fault;
pub mod handshake;
pub mod obstacle;
pub mod phase;
pub mod sasl;
pub mod shed;
pub mod time_outs;
pub mod timers;
pub mod waiting_frame;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use amqp::{DeliveryState, Error, Symbol};
use bytes::{Bytes, BytesMut};

use crate::bounds::Bounds;
use crate::config::{Config, Side};
use crate::connection::phase::Phase;
use crate::connection::timers::Timers;
use crate::connection::waiting_frame::WaitingFrame;
use crate::detected_error::{self, DetectedError, ErrorScope};
use crate::error_counts::Scope;
use crate::event::Event;
use crate::handles::Handles;
use crate::id::{LinkId, Mono, SessionId};
use crate::link::{End, Link, Stage};
use crate::output::Output;
use crate::output::outbox::Outbox;
use crate::session::Session;
use crate::slab::Slab;

/// Events that may wait before input waits for them, so that one frame cannot make thousands of
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
/// Also the answer while the session cannot remember another unsettled delivery; an
/// [`Event::Credit`] follows when there is room again.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the link has no credit")]
pub struct NoCredit;

/// One end of an AMQP connection.
///
/// There are four kinds of methods:
///
/// - **Input:** [`handle_input`](Self::handle_input) when bytes came,
///   [`handle_eof`](Self::handle_eof) when the peer is gone,
///   [`handle_timeout`](Self::handle_timeout) when [`deadline`](Self::deadline) is reached.
/// - **Poll:** [`poll_event`](Self::poll_event), [`output`](Self::output), `deadline`.
/// - **Action**, at any time: [`finish_sasl`](Self::finish_sasl) and [`close`](Self::close) for the
///   connection; [`begin`](Self::begin) and [`end`](Self::end) for a session;
///   [`attach`](Self::attach), [`accept`](Self::accept), [`refuse`](Self::refuse),
///   [`set_credit`](Self::set_credit), [`drained`](Self::drained) and [`detach`](Self::detach) for
///   a link; [`send`](Self::send), [`dispose_received`](Self::dispose_received) and
///   [`settle_sent`](Self::settle_sent) for a delivery. On what is gone an action does nothing.
/// - **Inspection**, which changes nothing: the methods that take `&self`.
///
/// After each input the owner calls `poll_event` until it returns `None` and acts on the events.
/// Then it takes `output`, which holds what all of this has queued, and last reads `deadline` for
/// its timer. An action outside such a round may queue events and bytes too, so a round follows it.
/// The socket may be closed once [`is_finished`](Self::is_finished) and the output is written.
pub struct Connection {
    pub(crate) side: Side,
    pub(crate) config: Config,
    /// What holds of the configuration at the moment.
    pub(crate) bounds: Bounds,
    pub(crate) phase: Phase,
    /// Whether `Closed` was reported.
    pub(crate) over: bool,
    pub(crate) timers: Timers,
    pub(crate) outbox: Outbox,
    pub(crate) events: VecDeque<Event>,
    /// Errors that no owner gave and none has taken yet.
    pub(crate) detected_errors: Vec<DetectedError>,
    /// Input that waits for the owner: for its SASL decision, for it to take events, or behind
    /// `waiting_frame`.
    pub(crate) stalled_input: BytesMut,
    /// A frame that waits for answers to what came before it.
    pub(crate) waiting_frame: Option<WaitingFrame>,
    /// The link that kept a delivery last until the answer to its attach.
    pub(crate) holding: Option<u32>,
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
    /// The peer's error, while our close waits.
    pub(crate) failure: Option<Error>,
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
            waiting_frame: None,
            holding: None,
            peer_channel_max: u16::MAX,
            sessions: Slab::new(),
            local_channels: Handles::new(),
            remote_channels: Handles::new(),
            ended_channels: BTreeSet::new(),
            links: Slab::new(),
            names: BTreeMap::new(),
            unflushed: Vec::new(),
            failure: None,
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

    /// Offers another SASL mechanism to a client that has not begun yet, after those of the
    /// configuration.
    pub fn offer_sasl(&mut self, mechanism: Symbol) {
        self.config.sasl_mechanisms.push(mechanism);
    }

    /// The peer is gone: queues `Closed` unless the connection is over already.
    pub fn handle_eof(&mut self) {
        self.take_held_input();
        self.report_closed(None, false);
        self.phase = Phase::Finished;
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty()
            && (!self.stalled_input.is_empty() || self.waiting_frame.is_some())
        {
            self.resume();
        }
        self.events.pop_front()
    }

    /// Bytes to write, pending dispositions included; the caller takes them out.
    pub fn output(&mut self, now: Mono) -> &mut Output {
        self.flush_dispositions();
        self.timers.sent(now, self.outbox.output.len());
        self.limit_wait();
        &mut self.outbox.output
    }

    /// Bytes that wait in [`output`](Self::output), pending dispositions aside.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.outbox.output.len()
    }

    /// Memory for what will be written, see [`Output::lend_buffer`].
    pub fn lend_buffer(&mut self, memory: &mut BytesMut) {
        self.outbox.output.lend_buffer(memory);
    }

    /// Bytes that wait, in the output or for the peer's session windows.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.outbox.len() + self.waiting_bytes
    }

    /// Bytes of deliveries that are unfinished, or wait for an answer to their link's attach.
    #[must_use]
    pub fn partial_bytes(&self) -> usize {
        self.partial_bytes
    }

    /// How often this end has sent each condition since the last call, by scope.
    pub fn take_error_counts(&mut self) -> BTreeMap<(Scope, Symbol), u64> {
        self.outbox.error_counts.take()
    }

    /// The errors that this end detected since the last call.
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

    /// Lets the deliveries of a receiver link repeat delivery-ids of their session, if each comes
    /// in one frame: each is a delivery of its own. (docs/spec/amqp.md#7.1)
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

    /// The session of a link that has not been detached by both sides.
    #[must_use]
    pub fn session_of(&self, link: LinkId) -> Option<SessionId> {
        self.links.get(link.0).map(|link| SessionId(link.session))
    }

    fn process(&mut self, input: &mut BytesMut) {
        while !self.is_stalled() && self.step(input) {}
    }

    fn is_stalled(&self) -> bool {
        self.phase == Phase::SaslDecision || self.events.len() >= MAX_EVENTS || self.holds_input()
    }

    fn stall(&mut self, input: &mut BytesMut) {
        self.stalled_input = input.split();
        if self.phase == Phase::SaslDecision {
            self.check_stalled_handshake();
        }
    }

    /// Goes on with the input that waited.
    pub(crate) fn resume(&mut self) {
        if !self.resume_waiting() {
            return;
        }
        let mut input = std::mem::take(&mut self.stalled_input);
        self.process(&mut input);
        self.stalled_input = input;
    }

    /// Holds the peer to `narrower` bounds as well as to the configuration; with `None` to the
    /// configuration alone, as it is at first.
    pub fn set_bounds(&mut self, narrower: Option<Bounds>) {
        let widest = Bounds::of(&self.config);
        self.bounds = narrower.map_or(widest, |bounds| widest.narrowed_to(bounds));
    }

    /// Keeps an error for the owner.
    pub(crate) fn record_error(&mut self, scope: ErrorScope, error: &Error) {
        if self.detected_errors.len() < detected_error::MAX {
            let error = error.clone();
            self.detected_errors.push(DetectedError { scope, error });
        }
    }

    /// The same of a link that is there.
    pub(crate) fn record_link_error(&mut self, key: u32, attached: bool, error: &Error) {
        let name = self.links.get(key).map(|link| &link.name);
        let name = name.map(|name| name.chars().take(detected_error::MAX_NAME).collect());
        let scope = ErrorScope::Link {
            link: LinkId(key),
            name: name.unwrap_or_default(),
            attached,
        };
        self.record_error(scope, error);
    }
}

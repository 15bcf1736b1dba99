//! Handshake: protocol headers and open, on either side. [AMQP 2.2, 2.4.1]
//!
//! Each layer starts with its header. Before SASL is done only SASL frames are valid, before open
//! only open is. A peer may send all of it in one burst; later parts wait for earlier ones.

use amqp::error::condition;
use amqp::frame::{self, FrameType, MIN_MAX_FRAME_SIZE, ProtocolHeader};
use amqp::sasl::SaslFrame;
use amqp::{Error, Open, Performative, Symbol};
use bytes::{Buf, BytesMut};

use crate::config::Side;
use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::connection::phase::Phase;
use crate::detected_error::ErrorScope;
use crate::event::Event;

/// The largest frame accepted before open is done.
const MAX_FRAME_SIZE_BEFORE_OPEN: u32 = 65_536;
/// Largest frame that we send, however large a frame the peer would take.
const MAX_FRAME_SIZE_SENT: u32 = 1 << 20;

impl Connection {
    /// A client speaks first.
    pub(crate) fn start(&mut self) {
        if self.side == Side::Client {
            if self.config.client_sasl.is_some() {
                self.outbox.header(ProtocolHeader::Sasl);
            } else {
                self.start_amqp();
            }
        }
    }

    /// Client: AMQP's header and, without waiting for the peer's, our open.
    pub(crate) fn start_amqp(&mut self) {
        self.outbox.header(ProtocolHeader::Amqp);
        self.send_open(None);
    }

    /// Takes one header or frame off `input`; false when it is not all there.
    pub(crate) fn step(&mut self, input: &mut BytesMut) -> bool {
        match self.phase {
            Phase::Header | Phase::AmqpHeader => self.step_header(input),
            Phase::SaslDecision => false,
            Phase::Failing | Phase::Draining | Phase::Finished => {
                input.clear();
                false
            }
            _ => self.step_frame(input),
        }
    }

    fn step_header(&mut self, input: &mut BytesMut) -> bool {
        let Some(&header) = input.first_chunk::<8>() else {
            return false;
        };
        input.advance(8);
        match (self.side, self.phase) {
            (Side::Server, Phase::Header) => self.answer_header(header),
            (Side::Server, _) => self.answer_amqp_header(header),
            (Side::Client, _) => self.check_header(header),
        }
        true
    }

    fn answer_header(&mut self, header: [u8; 8]) {
        if header == ProtocolHeader::Sasl.bytes() && !self.config.sasl_mechanisms.is_empty() {
            self.outbox.header(ProtocolHeader::Sasl);
            let offer = SaslFrame::Mechanisms(self.config.sasl_mechanisms.clone());
            self.outbox.sasl(&offer);
            self.phase = Phase::SaslInit;
        } else if self.config.sasl_required {
            self.refuse_header(ProtocolHeader::Sasl);
        } else {
            self.answer_amqp_header(header);
        }
    }

    fn answer_amqp_header(&mut self, header: [u8; 8]) {
        if header == ProtocolHeader::Amqp.bytes() {
            self.outbox.header(ProtocolHeader::Amqp);
            self.phase = Phase::Open;
        } else {
            self.refuse_header(ProtocolHeader::Amqp);
        }
    }

    /// Answers with the header that we would take, and ends. [AMQP 2.2]
    fn refuse_header(&mut self, expected: ProtocolHeader) {
        self.outbox.header(expected);
        self.fail_without_close(Error::new(
            condition::NOT_IMPLEMENTED,
            "the protocol header is not supported",
        ));
    }

    fn check_header(&mut self, header: [u8; 8]) {
        let sasl = self.phase == Phase::Header && self.config.client_sasl.is_some();
        let (expected, next) = if sasl {
            (ProtocolHeader::Sasl, Phase::SaslMechanisms)
        } else {
            (ProtocolHeader::Amqp, Phase::Open)
        };
        if header == expected.bytes() {
            self.phase = next;
        } else {
            self.fail_without_close(Error::new(
                condition::NOT_IMPLEMENTED,
                "the peer answered with another protocol header",
            ));
        }
    }

    fn step_frame(&mut self, input: &mut BytesMut) -> bool {
        let frame = match frame::split(input, self.max_frame_size()) {
            Ok(Some(frame)) => frame,
            Ok(None) => return false,
            Err(error) => {
                self.fail(Error::new(condition::FRAMING_ERROR, error.to_string()));
                if self.phase != Phase::Failing {
                    self.discard_input();
                }
                return true;
            }
        };
        match (frame.frame_type, self.phase.is_before_amqp()) {
            (FrameType::Sasl, true) => self.handle_sasl(&frame.body),
            (FrameType::Amqp, false) => self.handle_frame(frame.channel, frame.body),
            _ => {
                let text = "a frame of this type is not expected now";
                self.fail(Error::new(condition::FRAMING_ERROR, text));
            }
        }
        true
    }

    fn max_frame_size(&self) -> u32 {
        let configured = self.config.max_frame_size.max(MIN_MAX_FRAME_SIZE);
        if self.phase.is_handshake() {
            configured.min(MAX_FRAME_SIZE_BEFORE_OPEN)
        } else {
            configured
        }
    }

    /// Offers those of `desired` that there are.
    pub(crate) fn send_open(&mut self, peer: Option<&Open>) {
        if self.outbox.is_open_sent() {
            return;
        }
        let open = Performative::Open(Box::new(Open {
            container_id: self.config.container_id.clone(),
            hostname: self.config.hostname.clone(),
            max_frame_size: self.config.max_frame_size.max(MIN_MAX_FRAME_SIZE),
            channel_max: self.channel_max(),
            idle_time_out: self.config.idle_time_out,
            outgoing_locales: Vec::new(),
            incoming_locales: Vec::new(),
            offered_capabilities: self.offered_to(peer),
            desired_capabilities: self.config.desired_capabilities.clone(),
            properties: self.config.properties.clone(),
        }));
        self.outbox.open(&open);
    }

    fn offered_to(&self, peer: Option<&Open>) -> Vec<Symbol> {
        let mut offered = self.config.offered_capabilities.clone();
        if let Some(peer) = peer {
            let desired = &peer.desired_capabilities;
            let available = self.config.available_capabilities.iter();
            let wanted = available.filter(|it| desired.contains(it) && !offered.contains(it));
            let wanted: Vec<_> = wanted.cloned().collect();
            offered.extend(wanted);
            offered.retain(|it| !(self.config.withholds)(peer, it));
        }
        offered
    }

    /// The largest channel that the peer may use.
    pub(crate) fn channel_max(&self) -> u16 {
        let sessions = u16::try_from(self.config.max_sessions).unwrap_or(u16::MAX);
        self.config.channel_max.min(sessions.saturating_sub(1))
    }

    pub(crate) fn handle_open(&mut self, channel: u16, open: Box<Open>) -> Result<(), Fault> {
        if channel != 0 {
            let text = "an open must be on channel 0";
            return Err(Fault::connection(condition::NOT_ALLOWED, text));
        }
        if open.max_frame_size < MIN_MAX_FRAME_SIZE {
            let size = open.max_frame_size;
            let text =
                format!("max-frame-size {size} is below the minimum of {MIN_MAX_FRAME_SIZE}");
            return Err(Fault::connection(condition::INVALID_FIELD, text));
        }
        self.send_open(Some(&open));
        self.phase = Phase::Opened;
        let cap = self.config.max_frame_size.max(MAX_FRAME_SIZE_SENT);
        self.outbox.set_max_frame_size(open.max_frame_size.min(cap));
        self.peer_channel_max = open.channel_max;
        self.timers.set_peer_idle_time_out(open.idle_time_out);
        self.events.push_back(Event::Opened(open));
        Ok(())
    }

    /// Ends the connection where no close can be sent: silently, or after what is written.
    pub(crate) fn fail_without_close(&mut self, error: Error) {
        self.record_error(ErrorScope::Connection, &error);
        self.end_without_close(error);
    }

    /// The same for an error that the owner knows.
    pub(crate) fn end_without_close(&mut self, error: Error) {
        self.report_closed(Some(error), false);
        self.discard_input();
    }

    /// Whether a close frame makes sense to the peer.
    /// Whether the peer's open has come, and nothing has ended the connection since.
    #[must_use]
    pub fn is_opened(&self) -> bool {
        self.phase == Phase::Opened
    }

    pub(crate) fn can_close(&self) -> bool {
        !self.phase.is_before_amqp()
    }
}

//! Outbox: frames on their way to the peer, encoded straight into one output.
//!
//! Frames written before our open may go out (a client pipelines them) wait in a buffer of their
//! own. Invariant: once open, no frame is larger than the peer's max-frame-size.

use amqp::frame::{self, FrameType, HEADER_SIZE, MIN_MAX_FRAME_SIZE, ProtocolHeader};
use amqp::sasl::SaslFrame;
use amqp::{DeliveryState, Error, Performative, Transfer};
use bytes::{Bytes, BytesMut};

use crate::error_counts::ErrorCounts;
use crate::output::Output;
use crate::output::payload::Payload;

/// Until the peer's open says otherwise; only transfers could be split, and none come that early.
const BEFORE_OPEN: usize = 65_536;

pub(crate) struct Outbox {
    pub(crate) output: Output,
    early: BytesMut,
    open_sent: bool,
    max_frame_size: usize,
    tags: BytesMut,
    pub(crate) error_counts: ErrorCounts,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            output: Output::default(),
            early: BytesMut::new(),
            open_sent: false,
            max_frame_size: BEFORE_OPEN,
            tags: BytesMut::new(),
            error_counts: ErrorCounts::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.output.len() + self.early.len()
    }

    pub(crate) fn is_open_sent(&self) -> bool {
        self.open_sent
    }

    pub(crate) fn set_max_frame_size(&mut self, max_frame_size: u32) {
        self.max_frame_size = max_frame_size.max(MIN_MAX_FRAME_SIZE) as usize;
    }

    pub(crate) fn header(&mut self, header: ProtocolHeader) {
        self.output.copied.extend_from_slice(&header.bytes());
    }

    pub(crate) fn sasl(&mut self, body: &SaslFrame) {
        let start = frame::begin(&mut self.output.copied, FrameType::Sasl, 0);
        body.encode(&mut self.output.copied);
        frame::finish(&mut self.output.copied, start);
    }

    pub(crate) fn heartbeat(&mut self) {
        let start = frame::begin(&mut self.output.copied, FrameType::Amqp, 0);
        frame::finish(&mut self.output.copied, start);
    }

    /// Writes our open and lets go what waited for it.
    pub(crate) fn open(&mut self, open: &Performative) {
        self.open_sent = true;
        append(&mut self.output.copied, 0, open);
        let early = std::mem::take(&mut self.early);
        self.output.copied.extend_from_slice(&early);
    }

    /// Writes a performative that fits any peer, once an error's text or a state's details are
    /// gone.
    pub(crate) fn write(&mut self, channel: u16, performative: &Performative) {
        self.error_counts.count(performative);
        if !self.try_write(channel, performative) {
            let terse = without_details(performative.clone());
            let written = self.try_write(channel, &terse);
            debug_assert!(written, "all but attach fit into 512 bytes without details");
        }
    }

    /// Writes a performative unless it is too large for the peer.
    #[must_use]
    pub(crate) fn try_write(&mut self, channel: u16, performative: &Performative) -> bool {
        let max_frame_size = self.max_frame_size;
        let out = self.frames();
        let start = append(out, channel, performative);
        let fits = out.len() - start <= max_frame_size;
        if !fits {
            out.truncate(start);
        }
        fits
    }

    /// Writes one transfer frame with as much of `payload` as fits, and takes that off it.
    /// `transfer.more` is set here.
    pub(crate) fn transfer(&mut self, channel: u16, transfer: Transfer, payload: &mut Payload<'_>) {
        debug_assert!(self.open_sent, "there are no links before the open");
        let max_frame_size = self.max_frame_size;
        let out = &mut self.output.copied;
        let start = frame::begin(out, FrameType::Amqp, channel);
        let performative = Performative::Transfer(transfer);
        performative.encode(out);
        let header = out.len() - start;
        if header >= max_frame_size {
            // Only a state can be that large; what it says is known already or can be told later.
            out.truncate(start);
            self.transfer(channel, without_state(performative), payload);
            return;
        }
        if header + payload.remaining() > max_frame_size {
            out.truncate(start + HEADER_SIZE);
            with_more(performative).encode(out);
        }
        let before = self.output.shared_bytes();
        payload.move_into(&mut self.output, max_frame_size - header);
        let shared = self.output.shared_bytes() - before;
        frame::finish_longer(&mut self.output.copied, start, shared);
    }

    /// A delivery-tag as the codec wants it; the buffer behind it is used again and again.
    pub(crate) fn tag(&mut self, tag: &[u8]) -> Bytes {
        if self.tags.capacity() < tag.len() {
            self.tags.reserve(tag.len().max(1024));
        }
        self.tags.extend_from_slice(tag);
        self.tags.split().freeze()
    }

    fn frames(&mut self) -> &mut BytesMut {
        if self.open_sent {
            &mut self.output.copied
        } else {
            &mut self.early
        }
    }
}

fn append(out: &mut BytesMut, channel: u16, performative: &Performative) -> usize {
    let start = frame::begin(out, FrameType::Amqp, channel);
    performative.encode(out);
    frame::finish(out, start);
    start
}

fn with_more(mut performative: Performative) -> Performative {
    if let Performative::Transfer(transfer) = &mut performative {
        transfer.more = true;
    }
    performative
}

fn without_state(performative: Performative) -> Transfer {
    match performative {
        Performative::Transfer(transfer) => Transfer {
            state: None,
            ..transfer
        },
        _ => Transfer::default(),
    }
}

fn without_details(mut performative: Performative) -> Performative {
    match &mut performative {
        Performative::Detach(detach) => strip(&mut detach.error),
        Performative::End(end) => strip(&mut end.error),
        Performative::Close(close) => strip(&mut close.error),
        Performative::Disposition(disposition) => strip_state(&mut disposition.state),
        _ => {}
    }
    performative
}

/// Only the condition stays, and no condition of ours is long.
fn strip(error: &mut Option<Error>) {
    if let Some(error) = error {
        error.description = None;
        error.info = None;
    }
}

fn strip_state(state: &mut Option<DeliveryState>) {
    match state {
        Some(DeliveryState::Rejected(error)) => strip(error),
        Some(DeliveryState::Modified {
            message_annotations,
            ..
        }) => *message_annotations = None,
        _ => *state = None,
    }
}

//! Receiver: our end of a link that we receive on: its credit and the delivery in progress.
//!
//! Frames of one delivery follow each other on a link, so there is at most one unfinished
//! delivery. [AMQP 2.6.14] A peer that overruns its credit is not refused
//! (docs/spec/amqp.md#rule-19); the session bounds the overrun.

use amqp::performative::Role;
use amqp::{Attach, DeliveryState, Flow, Transfer, Value};
use bytes::{Bytes, BytesMut};

use crate::event::Event;
use crate::serial;

/// What an unfinished or held delivery costs besides its bytes.
pub(crate) const OVERHEAD: usize = 256;

pub(crate) struct Receiver {
    /// `None` until the peer's attach says where it starts.
    pub(crate) delivery_count: Option<u32>,
    pub(crate) credit: u32,
    pub(crate) drain: bool,
    pub(crate) max_message_size: Option<u64>,
    pub(crate) partial: Option<Partial>,
    /// Whether deliveries may repeat ids of the session.
    pub(crate) repeats_ids: bool,
    /// Deliveries that came before the owner's answer.
    pub(crate) held: Vec<Event>,
    pub(crate) held_bytes: usize,
}

/// A delivery whose last frame has not come. [AMQP 2.6.14]
pub(crate) struct Partial {
    pub(crate) delivery_id: u32,
    pub(crate) tag: Bytes,
    /// What its first frame says, if it does.
    pub(crate) message_format: Option<u32>,
    pub(crate) settled: bool,
    /// It waits for settlement in its session: it did not come settled.
    pub(crate) waits: bool,
    pub(crate) state: Option<DeliveryState>,
    /// What `state` costs, at most.
    pub(crate) state_cost: usize,
    pub(crate) payload: BytesMut,
    /// It has outgrown its link and was refused: the rest is dropped as it comes.
    pub(crate) refused: bool,
}

impl Receiver {
    /// For the peer's attach; a missing initial-delivery-count is 0 (docs/spec/amqp.md#3.2).
    pub(crate) fn requested(attach: &Attach) -> Self {
        let mut receiver = Self::new(None);
        receiver.start_from(attach);
        receiver
    }

    /// For an attach of ours.
    pub(crate) fn offered(attach: &Attach) -> Self {
        Self::new(attach.max_message_size)
    }

    fn new(max_message_size: Option<u64>) -> Self {
        Self {
            delivery_count: None,
            credit: 0,
            drain: false,
            max_message_size: limit(max_message_size),
            partial: None,
            repeats_ids: false,
            held: Vec::new(),
            held_bytes: 0,
        }
    }

    /// The peer's attach says where its delivery-count starts.
    pub(crate) fn start_from(&mut self, attach: &Attach) {
        debug_assert_eq!(attach.role, Role::Sender);
        self.delivery_count = Some(attach.initial_delivery_count.unwrap_or(0));
    }

    /// Our reply says how large a message may be.
    pub(crate) fn set_max_message_size(&mut self, max_message_size: Option<u64>) {
        self.max_message_size = limit(max_message_size);
    }

    /// Whether a message of `size` bytes is too large.
    pub(crate) fn is_too_large(&self, size: usize) -> bool {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        self.max_message_size.is_some_and(|limit| size > limit)
    }

    /// Counts a delivery as received, whether there was credit for it or not.
    pub(crate) fn count(&mut self) {
        self.delivery_count = self.delivery_count.map(|count| count.wrapping_add(1));
        self.credit = self.credit.saturating_sub(1);
    }

    /// Takes the sender's view in; true when that ends our drain. A sender's credit is its
    /// own guess and is ignored (docs/spec/amqp.md#6.2).
    pub(crate) fn handle_flow(&mut self, flow: &Flow) -> bool {
        if let (Some(ours), Some(theirs)) = (self.delivery_count, flow.delivery_count)
            && let Some(skipped) = serial::distance(ours, theirs)
        {
            self.delivery_count = Some(theirs);
            self.credit = self.credit.saturating_sub(skipped);
        }
        self.ends_drain()
    }

    /// Whether a drain of ours is over now, because no credit is left.
    pub(crate) fn ends_drain(&mut self) -> bool {
        let over = self.drain && self.credit == 0;
        if over {
            self.drain = false;
        }
        over
    }
}

impl Partial {
    pub(crate) fn new(delivery_id: u32, tag: Bytes, transfer: &mut Transfer) -> Self {
        let state = transfer.state.take();
        Self {
            delivery_id,
            // A slice of the input would keep the whole buffer for as long as the rest takes.
            tag: if transfer.more {
                Bytes::copy_from_slice(&tag)
            } else {
                tag
            },
            message_format: transfer.message_format,
            settled: transfer.settled.unwrap_or(false),
            waits: transfer.settled != Some(true) && !transfer.aborted,
            state_cost: state.as_ref().map_or(0, state_cost),
            state,
            payload: BytesMut::new(),
            refused: false,
        }
    }

    /// Takes in what a later frame says: any frame may settle, and the last state counts.
    pub(crate) fn continue_with(&mut self, transfer: &mut Transfer) {
        self.settled |= transfer.settled.unwrap_or(false);
        if let Some(state) = transfer.state.take() {
            self.state_cost = state_cost(&state);
            self.state = Some(state);
        }
    }

    /// What it costs to keep.
    pub(crate) fn cost(&self) -> usize {
        self.payload.len() + self.state_cost + OVERHEAD
    }
}

/// What a state costs at most: each byte of it may have become a value of its own.
fn state_cost(state: &DeliveryState) -> usize {
    state.encoded_len().saturating_mul(size_of::<Value>())
}

/// Zero means no limit, as null does. [AMQP 2.7.3]
fn limit(max_message_size: Option<u64>) -> Option<u64> {
    max_message_size.filter(|&size| size > 0)
}

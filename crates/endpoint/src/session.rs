//! Session: the windows, handles and unsettled deliveries of one session. [AMQP 2.5]
//!
//! It is `Offered` after our begin alone, `Active` after both, `Ending` after our end alone.
//! Transfers count against windows in both directions; deliveries that the peer has no window
//! for wait in `waiting`, in order.

pub mod begin;
pub mod dispose;
pub mod disposition_range;
pub mod flow;
pub mod forgotten;
pub mod unsettled;

use std::collections::VecDeque;

use amqp::performative::Role;
use amqp::{Begin, DeliveryState, Flow};
use bytes::Bytes;

use crate::config::Config;
use crate::handles::Handles;
use crate::link::detached_handles::DetachedHandles;
use crate::serial;
use crate::session::disposition_range::DispositionRange;
use crate::session::forgotten::Forgotten;
use crate::session::unsettled::Unsettled;

/// Our first transfer-id (docs/spec/amqp.md#1.5).
const FIRST_OUTGOING_ID: u32 = 1;
/// Deliveries that may wait for the peer's window.
const MAX_WAITING: usize = 4_096;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    Offered,
    Active,
    Ending,
}

pub(crate) struct Session {
    pub(crate) local_channel: u16,
    pub(crate) remote_channel: Option<u16>,
    pub(crate) stage: Stage,
    /// Whether the owner knows that the session is over.
    pub(crate) reported: bool,
    pub(crate) links: Vec<u32>,
    pub(crate) local_handles: Handles,
    pub(crate) remote_handles: Handles,
    /// Handles of the peer that it may detach once more than needed.
    pub(crate) detached_handles: DetachedHandles,
    pub(crate) peer_handle_max: u32,
    pub(crate) window: Window,
    pub(crate) next_delivery_id: u32,
    /// The id of the newest delivery that came in.
    pub(crate) newest_incoming: Option<u32>,
    pub(crate) outgoing: Unsettled<u128>,
    pub(crate) forgotten: Forgotten,
    pub(crate) incoming: Unsettled<()>,
    /// Deliveries that repeated an id, on links that may: the id and the link's key.
    pub(crate) repeated: Vec<(u32, u32)>,
    pub(crate) waiting: VecDeque<Delivery>,
    pub(crate) waiting_bytes: usize,
    /// Unsettled deliveries among those that wait.
    pub(crate) waiting_unsettled: usize,
    /// Dispositions not yet written, as sender and as receiver.
    pub(crate) runs: [Option<DispositionRange>; 2],
    /// Whether the session is in the connection's list of those with runs.
    pub(crate) unflushed: bool,
    /// Whether a sender got less credit than there is, for want of room for unsettled deliveries.
    pub(crate) starved: bool,
}

/// A session's flow state. [AMQP 2.5.6]
pub(crate) struct Window {
    size: u32,
    pub(crate) next_incoming_id: Option<u32>,
    incoming: u32,
    pub(crate) next_outgoing_id: u32,
    pub(crate) remote_incoming: u32,
}

/// A delivery of ours that is not written, or not all of it, for want of the peer's window.
pub(crate) struct Delivery {
    pub(crate) link: u32,
    pub(crate) cookie: u128,
    pub(crate) settled: bool,
    pub(crate) progress: SendProgress,
    pub(crate) payload: Bytes,
}

/// How much of a delivery is on the wire.
pub(crate) enum SendProgress {
    /// Nothing; this is what its first frame will say.
    Unsent {
        tag: Bytes,
        message_format: u32,
        state: Option<DeliveryState>,
    },
    /// The first frame at least.
    Begun,
}

impl Session {
    pub(crate) fn new(local_channel: u16, remote_channel: Option<u16>, config: &Config) -> Self {
        Self {
            local_channel,
            remote_channel,
            stage: Stage::Offered,
            reported: false,
            links: Vec::new(),
            local_handles: Handles::new(),
            remote_handles: Handles::new(),
            detached_handles: DetachedHandles::default(),
            peer_handle_max: u32::MAX,
            window: Window::new(config.incoming_window.max(1)),
            next_delivery_id: 0,
            newest_incoming: None,
            outgoing: Unsettled::new(),
            forgotten: Forgotten::default(),
            incoming: Unsettled::new(),
            repeated: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            waiting_unsettled: 0,
            runs: [None, None],
            unflushed: false,
            starved: false,
        }
    }

    /// Takes the peer's begin in.
    pub(crate) fn join(&mut self, remote_channel: u16, begin: &Begin) {
        self.remote_channel = Some(remote_channel);
        self.peer_handle_max = begin.handle_max;
        self.window.next_incoming_id = Some(begin.next_outgoing_id);
        self.window.remote_incoming = begin.incoming_window;
        if self.stage == Stage::Offered {
            self.stage = Stage::Active;
        }
    }

    pub(crate) fn disposition_range(&mut self, role: Role) -> &mut Option<DispositionRange> {
        match role {
            Role::Sender => &mut self.runs[0],
            Role::Receiver => &mut self.runs[1],
        }
    }

    /// How many more deliveries may be sent, for the room to remember them and to let them wait.
    pub(crate) fn room(&self, max_unsettled: usize) -> u32 {
        let unsettled = self.outgoing.len() + self.waiting_unsettled;
        let window = self.window.remote_incoming as usize;
        let queue = MAX_WAITING.saturating_sub(self.waiting.len());
        let room = max_unsettled
            .saturating_sub(unsettled)
            .min(window.saturating_add(queue));
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    /// Whether another delivery may be sent or queued.
    pub(crate) fn can_take(&self, settled: bool, max_unsettled: usize) -> bool {
        let unsettled = self.outgoing.len() + self.waiting_unsettled;
        self.waiting.len() < MAX_WAITING
            && (settled || unsettled < max_unsettled)
            && self.outgoing.accepts(self.next_delivery_id)
    }

    /// Whether enough room is back to speak of credit again.
    pub(crate) fn has_recovered(&self, max_unsettled: usize) -> bool {
        let unsettled = self.outgoing.len() + self.waiting_unsettled;
        unsettled <= max_unsettled - max_unsettled.div_ceil(4) && self.room(max_unsettled) > 0
    }

    /// Checks and notes the id of a delivery that begins; ids only rise. [AMQP 2.6.12]
    pub(crate) fn note_incoming(&mut self, delivery_id: u32) -> bool {
        let follows = match self.newest_incoming {
            None => true,
            Some(newest) => serial::distance(newest, delivery_id).is_some_and(|steps| steps > 0),
        };
        if follows {
            self.newest_incoming = Some(delivery_id);
        }
        follows && self.incoming.accepts(delivery_id)
    }

    /// How many deliveries of the peer wait for settlement.
    pub(crate) fn incoming_len(&self) -> usize {
        self.incoming.len() + self.repeated.len()
    }

    /// Whether a delivery of the peer waits for settlement.
    pub(crate) fn has_incoming(&self, delivery_id: u32) -> bool {
        self.incoming.get(delivery_id).is_some()
            || self.repeated.iter().any(|(id, _)| *id == delivery_id)
    }

    /// Forgets a delivery of the peer that is settled, one of those that share its id. Returns
    /// whether there was one.
    pub(crate) fn settle_incoming(&mut self, delivery_id: u32) -> bool {
        if self.incoming.remove(delivery_id).is_some() {
            return true;
        }
        let place = self.repeated.iter().position(|(id, _)| *id == delivery_id);
        place
            .map(|place| self.repeated.swap_remove(place))
            .is_some()
    }

    /// Lets `delivery` wait for the peer's window.
    pub(crate) fn queue(&mut self, delivery: Delivery) {
        self.waiting_bytes += delivery.payload.len();
        self.waiting_unsettled += delivery.unsettled_count();
        self.waiting.push_back(delivery);
    }

    /// Takes a delivery out of the queue, to write some of it.
    pub(crate) fn unqueue(&mut self, index: usize) -> Option<Delivery> {
        let delivery = self.waiting.remove(index)?;
        self.waiting_bytes -= delivery.payload.len();
        self.waiting_unsettled -= delivery.unsettled_count();
        Some(delivery)
    }

    /// Puts a delivery back where it was, with less left to write.
    pub(crate) fn requeue(&mut self, index: usize, delivery: Delivery) {
        self.waiting_bytes += delivery.payload.len();
        self.waiting_unsettled += delivery.unsettled_count();
        self.waiting.insert(index, delivery);
    }

    /// Forgets what waits for `link`; the cookies of what was never begun come back.
    pub(crate) fn unqueue_link(&mut self, link: u32) -> Vec<u128> {
        let mut cookies = Vec::new();
        let mut bytes = 0;
        self.waiting.retain(|delivery| {
            if delivery.link != link {
                return true;
            }
            bytes += delivery.payload.len();
            if delivery.unsettled_count() == 1 {
                cookies.push(delivery.cookie);
            }
            false
        });
        self.waiting_bytes -= bytes;
        self.waiting_unsettled -= cookies.len();
        cookies
    }
}

impl Delivery {
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self.progress, SendProgress::Unsent { .. })
    }

    /// One if it will be unsettled and is not yet known as such.
    fn unsettled_count(&self) -> usize {
        usize::from(self.is_unsent() && !self.settled)
    }
}

impl Window {
    fn new(size: u32) -> Self {
        Self {
            size,
            next_incoming_id: None,
            incoming: size,
            next_outgoing_id: FIRST_OUTGOING_ID,
            remote_incoming: 0,
        }
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Counts a transfer frame of the peer; false when it had no window for it.
    #[must_use]
    pub(crate) fn take_incoming(&mut self) -> bool {
        let Some(left) = self.incoming.checked_sub(1) else {
            return false;
        };
        self.incoming = left;
        self.next_incoming_id = self.next_incoming_id.map(|id| id.wrapping_add(1));
        true
    }

    /// Whether the peer should get our window before it runs out.
    pub(crate) fn is_low(&self) -> bool {
        self.incoming <= self.size / 2
    }

    /// Counts a transfer frame of ours.
    pub(crate) fn take_outgoing(&mut self) {
        self.next_outgoing_id = self.next_outgoing_id.wrapping_add(1);
        self.remote_incoming = self.remote_incoming.saturating_sub(1);
    }

    /// Takes the session part of the peer's flow in; false when it has seen what was never sent.
    #[must_use]
    pub(crate) fn handle_flow(&mut self, flow: &Flow) -> bool {
        // Null until the peer has seen our begin. [AMQP 2.7.4]
        let seen = flow.next_incoming_id.unwrap_or(FIRST_OUTGOING_ID);
        let Some(on_their_way) = serial::distance(seen, self.next_outgoing_id) else {
            return false;
        };
        self.remote_incoming = flow.incoming_window.saturating_sub(on_their_way);
        self.next_incoming_id = Some(flow.next_outgoing_id);
        true
    }

    /// The session part of a flow of ours, which opens our window anew.
    pub(crate) fn flow(&mut self) -> Flow {
        self.incoming = self.size;
        Flow {
            next_incoming_id: self.next_incoming_id,
            incoming_window: self.incoming,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: self.size,
            ..Flow::default()
        }
    }
}

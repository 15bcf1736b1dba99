//! Link: one end of a link, from the attach that asks for it to the last detach. [AMQP 2.6]
//!
//! A handle is bound in each direction by that direction's attach and free again after its detach;
//! the link is gone when both directions are detached.

pub mod attach;
pub mod detach;
pub mod detached_handles;
pub mod link_state;
pub mod receive;
pub mod receiver;
pub mod send;
pub mod sender;

use amqp::performative::{ReceiverSettleMode, Role, SenderSettleMode};
use amqp::{Attach, Error, Flow};

use crate::link::receiver::Receiver;
use crate::link::sender::Sender;

/// How far a link's handshake is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    /// The peer attached; the owner has not answered.
    Requested,
    /// We attached; the peer has not answered.
    Offered,
    Attached,
    /// We detached; the peer has not answered.
    Detaching,
    /// The peer closed the link; the owner, which wants to answer itself, has not.
    Closing,
}

pub(crate) enum End {
    Sender(Sender),
    Receiver(Receiver),
}

pub(crate) struct Link {
    pub(crate) session: u32,
    pub(crate) name: String,
    pub(crate) local_handle: Option<u32>,
    pub(crate) remote_handle: Option<u32>,
    pub(crate) stage: Stage,
    pub(crate) end: End,
    /// Whether the owner knows that the link is over.
    pub(crate) reported: bool,
    /// Whether the owner answers the peer's close.
    pub(crate) holds_close: bool,
    /// The last flow that came before the owner's answer.
    pub(crate) held_flow: Option<Flow>,
    /// Frames that came after our detach and were dropped.
    pub(crate) dropped: u32,
    /// Whether our detach leaves the deliveries in their session.
    pub(crate) keeps_deliveries: bool,
    /// Cookies of deliveries that the link's end kept from being sent.
    pub(crate) unsent: Vec<u128>,
    snd_settle_mode: Option<SenderSettleMode>,
    rcv_settle_mode: Option<ReceiverSettleMode>,
}

impl Link {
    /// The link that the peer's `attach` asks for.
    pub(crate) fn requested(session: u32, attach: &Attach) -> Self {
        let end = match attach.role {
            Role::Receiver => End::Sender(Sender::new(0)),
            Role::Sender => End::Receiver(Receiver::requested(attach)),
        };
        Self {
            remote_handle: Some(attach.handle),
            stage: Stage::Requested,
            ..Self::new(session, attach, end)
        }
    }

    /// The link that our `attach` asks for.
    pub(crate) fn offered(session: u32, attach: &Attach) -> Self {
        let end = match attach.role {
            Role::Sender => End::Sender(Sender::new(attach.initial_delivery_count.unwrap_or(0))),
            Role::Receiver => End::Receiver(Receiver::offered(attach)),
        };
        Self {
            local_handle: Some(attach.handle),
            ..Self::new(session, attach, end)
        }
    }

    fn new(session: u32, attach: &Attach, end: End) -> Self {
        Self {
            session,
            name: attach.name.clone(),
            local_handle: None,
            remote_handle: None,
            stage: Stage::Offered,
            end,
            reported: false,
            holds_close: false,
            held_flow: None,
            dropped: 0,
            keeps_deliveries: false,
            unsent: Vec::new(),
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
        }
    }

    /// Our role.
    pub(crate) fn role(&self) -> Role {
        match self.end {
            End::Sender(_) => Role::Sender,
            End::Receiver(_) => Role::Receiver,
        }
    }

    /// Whether the attach says that receivers settle first; nothing if it leaves that open.
    pub(crate) fn settles_first(&self) -> bool {
        self.rcv_settle_mode == Some(ReceiverSettleMode::First)
    }

    /// Whether a detach leaves the link's deliveries in their session. [AMQP 2.6.4]
    pub(crate) fn keeps_deliveries(&self, reason: &DetachReason) -> bool {
        let lasts = !reason.closed && reason.error.is_none();
        lasts && (self.stage == Stage::Attached || self.keeps_deliveries)
    }

    /// Whether the peer has still to attach, answering an attach of ours.
    pub(crate) fn awaits_attach(&self) -> bool {
        self.remote_handle.is_none()
    }

    /// An attach that refuses: both termini are null. [AMQP 2.6.3]
    pub(crate) fn refusal(&self, handle: u32) -> Attach {
        let initial_delivery_count = match self.end {
            End::Sender(_) => Some(0),
            End::Receiver(_) => None,
        };
        Attach {
            name: self.name.clone(),
            handle,
            role: self.role(),
            snd_settle_mode: self.snd_settle_mode,
            rcv_settle_mode: self.rcv_settle_mode,
            source: None,
            target: None,
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count,
            max_message_size: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }

    /// Remembers `flow` until the owner answers; what an earlier one asked for stays asked for.
    pub(crate) fn hold_flow(&mut self, mut flow: Flow) {
        if let Some(earlier) = &self.held_flow {
            flow.echo |= earlier.echo;
        }
        self.held_flow = Some(flow);
    }
}

/// Why and how a link is detached.
pub(crate) struct DetachReason {
    pub(crate) closed: bool,
    pub(crate) error: Option<Error>,
    /// Whether the link goes with its session.
    pub(crate) with_session: bool,
}

impl DetachReason {
    pub(crate) fn with(error: Error) -> Self {
        Self {
            with_session: false,
            closed: true,
            error: Some(error),
        }
    }
}

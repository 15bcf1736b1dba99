//! Receive: the peer's deliveries, assembled from their frames. [AMQP 2.6.12-14]
//!
//! A delivery in one frame is a slice of the input. A peer that overruns its credit is not refused
//! (docs/spec/amqp.md#rule-19); windows, unsettled deliveries and memory are enforced.

use std::collections::VecDeque;

use amqp::Transfer;
use amqp::error::condition;
use amqp::performative::ReceiverSettleMode;
use bytes::{Bytes, BytesMut};

use crate::connection::Connection;
use crate::connection::fault::Fault;
use crate::event::Event;
use crate::id::{LinkId, SessionId};
use crate::link::detach::unattached;
use crate::link::receiver::{OVERHEAD, Partial, Receiver};
use crate::link::{End, Stage};
use crate::session::{self, Session};

/// The received bytes from which a delivery is large. An unauthenticated peer never gets there.
const LARGE: usize = 1 << 20;
/// A large delivery reserves this many times its received bytes, though no more than its link
/// takes. Reserved memory is used only once it is written: the bound on memory, times this, bounds
/// addresses.
const GROWTH: usize = 128;
/// Frames that may still come for a link after our detach.
const MAX_DROPPED: u32 = 65_536;

impl Connection {
    pub(crate) fn handle_transfer(
        &mut self,
        channel: u16,
        transfer: Transfer,
        payload: Bytes,
    ) -> Result<(), Fault> {
        let session_key = self.session_on(channel)?;
        let Some(session) = self.sessions.get_mut(session_key) else {
            return Ok(());
        };
        if session.stage == session::Stage::Ending {
            return Ok(());
        }
        if !session.window.take_incoming() {
            let text = "a transfer exceeds the incoming-window of the session";
            return Err(Fault::session(condition::WINDOW_VIOLATION, text));
        }
        let is_low = session.window.is_low();
        let link = session.remote_handles.get(transfer.handle);
        let link = link.ok_or_else(|| unattached(transfer.handle))?;
        if is_low {
            self.write_session_flow(session_key);
        }
        self.handle_link_transfer(session_key, link, transfer, payload)
    }

    fn handle_link_transfer(
        &mut self,
        session_key: u32,
        key: u32,
        transfer: Transfer,
        payload: Bytes,
    ) -> Result<(), Fault> {
        let (Some(session), Some(link)) =
            (self.sessions.get_mut(session_key), self.links.get_mut(key))
        else {
            return Ok(());
        };
        if matches!(link.stage, Stage::Detaching | Stage::Closing) {
            link.dropped += 1;
            return check_dropped(link.dropped);
        }
        let is_settled_first = link.settles_first();
        let End::Receiver(receiver) = &mut link.end else {
            let text = "a transfer arrived on a link on which the peer is the receiver";
            return Err(Fault::link(key, condition::NOT_ALLOWED, text));
        };
        let mut incoming = IncomingTransfer {
            link: key,
            session_key,
            session,
            receiver,
            answered: link.stage != Stage::Requested,
            is_settled_first,
            max_unsettled: self.config.max_unsettled,
            max_partial_bytes: self.bounds.partial_bytes,
            events: &mut self.events,
            holding: &mut self.holding,
            partial_bytes: &mut self.partial_bytes,
        };
        incoming.receive(transfer, payload)
    }

    /// Tells the owner the deliveries that came before its answer.
    pub(crate) fn deliver_held(&mut self, key: u32) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(link.session) else {
            return;
        };
        let End::Receiver(receiver) = &mut link.end else {
            return;
        };
        self.partial_bytes -= std::mem::take(&mut receiver.held_bytes);
        for mut event in std::mem::take(&mut receiver.held) {
            if let Event::Delivery {
                delivery_id,
                settled,
                payload,
                state,
                ..
            } = &mut event
            {
                *settled |= !session.has_incoming(*delivery_id);
                if receiver.is_too_large(payload.len()) {
                    self.events.push_back(Event::TooLarge {
                        link: LinkId(key),
                        session: SessionId(link.session),
                        delivery_id: *delivery_id,
                        settled: *settled,
                        state: state.take(),
                        limit: receiver.max_message_size.unwrap_or(u64::MAX),
                    });
                    continue;
                }
            }
            self.events.push_back(event);
        }
    }
}

/// A transfer on its way to a receiver, and all that it touches.
struct IncomingTransfer<'a> {
    link: u32,
    session_key: u32,
    session: &'a mut Session,
    receiver: &'a mut Receiver,
    /// Whether the owner has accepted the link.
    answered: bool,
    /// Whether the peer's attach says that receivers settle first.
    is_settled_first: bool,
    max_unsettled: usize,
    max_partial_bytes: usize,
    events: &'a mut VecDeque<Event>,
    holding: &'a mut Option<u32>,
    partial_bytes: &'a mut usize,
}

impl IncomingTransfer<'_> {
    fn receive(&mut self, mut transfer: Transfer, payload: Bytes) -> Result<(), Fault> {
        if transfer.resume {
            let text = "resuming a delivery is not supported";
            return Err(Fault::link(self.link, condition::NOT_IMPLEMENTED, text));
        }
        if self.is_settled_first && settles_second(&transfer) {
            let text = "a transfer asks to be settled second on a link that settles first";
            return Err(Fault::link(self.link, condition::INVALID_FIELD, text));
        }
        let partial = match self.receiver.partial.take() {
            Some(mut partial) => {
                *self.partial_bytes -= partial.cost();
                if let Err(fault) = check_later_frame(self.link, &partial, &transfer) {
                    self.forget(&partial);
                    return Err(fault);
                }
                partial.continue_with(&mut transfer);
                partial
            }
            None => self.start(&mut transfer)?,
        };
        if partial.refused {
            return self.drop_rest(partial, transfer.more && !transfer.aborted);
        }
        if transfer.aborted {
            self.abort(&partial);
            return Ok(());
        }
        let size = partial.payload.len() + payload.len();
        if self.receiver.is_too_large(size) {
            return self.refuse(partial, transfer.more);
        }
        if transfer.more {
            self.collect(partial, &payload)
        } else {
            self.finish(partial, payload)
        }
    }

    /// The first frame of a delivery.
    fn start(&mut self, transfer: &mut Transfer) -> Result<Partial, Fault> {
        let (Some(id), Some(tag)) = (transfer.delivery_id, transfer.delivery_tag.take()) else {
            let text =
                "the first transfer of a delivery must have a delivery-id and a delivery-tag";
            return Err(Fault::link(self.link, condition::INVALID_FIELD, text));
        };
        let follows = self.session.note_incoming(id);
        let may_repeat = self.receiver.repeats_ids && !transfer.more;
        if !follows && !may_repeat {
            let text = format!("delivery-id {id} is not the next delivery-id of the session");
            return Err(Fault::session(condition::INVALID_FIELD, text));
        }
        let settled = transfer.settled == Some(true) || transfer.aborted;
        if !settled {
            if self.session.incoming_len() >= self.max_unsettled {
                let limit = self.max_unsettled;
                let text = format!("the session has the maximum of {limit} unsettled deliveries");
                let condition = condition::TRANSFER_LIMIT_EXCEEDED;
                return Err(Fault::link(self.link, condition, text));
            }
            if follows {
                self.session.incoming.push(id, self.link, ());
            } else {
                self.session.repeated.push((id, self.link));
            }
        }
        Ok(Partial::new(id, tag, transfer))
    }

    /// A delivery has become too large: the owner refuses it at once, and the rest of it is dropped
    /// as it comes. (docs/spec/amqp.md#5.5)
    fn refuse(&mut self, mut partial: Partial, more: bool) -> Result<(), Fault> {
        let settled = is_settled(self.session, &partial);
        self.events.push_back(Event::TooLarge {
            link: LinkId(self.link),
            session: SessionId(self.session_key),
            delivery_id: partial.delivery_id,
            settled,
            state: partial.state.take(),
            limit: self.receiver.max_message_size.unwrap_or(u64::MAX),
        });
        self.receiver.count();
        self.report_drained();
        partial.payload = BytesMut::new();
        partial.refused = true;
        self.drop_rest(partial, more)
    }

    /// Goes on dropping a delivery that was refused, until its last frame has come.
    fn drop_rest(&mut self, mut partial: Partial, more: bool) -> Result<(), Fault> {
        if !more {
            return Ok(());
        }
        partial.state = None;
        partial.state_cost = 0;
        *self.partial_bytes += partial.cost();
        self.receiver.partial = Some(partial);
        self.check_partial_bytes()
    }

    /// Aborted deliveries count, and count as settled. [AMQP 2.7.5]
    fn abort(&mut self, partial: &Partial) {
        self.forget(partial);
        self.receiver.count();
        self.report_drained();
    }

    /// A delivery will not become whole, so no answer to it is owed.
    fn forget(&mut self, partial: &Partial) {
        if partial.waits {
            self.session.settle_incoming(partial.delivery_id);
        }
    }

    /// Keeps a frame's payload until the delivery is whole.
    fn collect(&mut self, mut partial: Partial, payload: &[u8]) -> Result<(), Fault> {
        make_room(
            &mut partial.payload,
            payload.len(),
            self.receiver.max_message_size,
        );
        partial.payload.extend_from_slice(payload);
        *self.partial_bytes += partial.cost();
        self.receiver.partial = Some(partial);
        self.check_partial_bytes()
    }

    fn finish(&mut self, mut partial: Partial, last: Bytes) -> Result<(), Fault> {
        let settled = is_settled(self.session, &partial);
        let state_cost = partial.state_cost;
        self.receiver.count();
        let delivery = Event::Delivery {
            link: LinkId(self.link),
            session: SessionId(self.session_key),
            delivery_id: partial.delivery_id,
            tag: partial.tag,
            message_format: partial.message_format.unwrap_or(0),
            settled,
            state: partial.state,
            payload: join(&mut partial.payload, last),
        };
        if !self.answered {
            *self.holding = Some(self.link);
            *self.partial_bytes += hold(self.receiver, delivery, state_cost);
            return self.check_partial_bytes();
        }
        self.events.push_back(delivery);
        self.report_drained();
        Ok(())
    }

    fn report_drained(&mut self) {
        if self.receiver.ends_drain() {
            let link = LinkId(self.link);
            self.events.push_back(Event::Drained { link });
        }
    }

    fn check_partial_bytes(&self) -> Result<(), Fault> {
        if *self.partial_bytes <= self.max_partial_bytes {
            return Ok(());
        }
        let limit = self.max_partial_bytes;
        let text = format!("the unfinished deliveries of the connection exceed {limit} bytes");
        let condition = condition::RESOURCE_LIMIT_EXCEEDED;
        Err(Fault::link(self.link, condition, text))
    }
}

/// A later frame, which may repeat what the first one said but not contradict it. [AMQP 2.7.5]
fn check_later_frame(key: u32, partial: &Partial, transfer: &Transfer) -> Result<(), Fault> {
    let other_id = transfer
        .delivery_id
        .is_some_and(|id| id != partial.delivery_id);
    let other_tag = transfer
        .delivery_tag
        .as_ref()
        .is_some_and(|tag| *tag != partial.tag);
    if other_id || other_tag {
        let text =
            "a transfer of another delivery arrived before the end of the delivery in progress";
        return Err(Fault::link(key, condition::INVALID_FIELD, text));
    }
    let formats = partial.message_format.zip(transfer.message_format);
    if formats.is_some_and(|(first, later)| first != later) {
        let text = "a later transfer of a delivery has another message-format than the first";
        return Err(Fault::link(key, condition::INVALID_FIELD, text));
    }
    Ok(())
}

/// Whether an unsettled transfer asks for more than its link may have agreed on. [AMQP 2.7.5]
fn settles_second(transfer: &Transfer) -> bool {
    let is_second = transfer.rcv_settle_mode == Some(ReceiverSettleMode::Second);
    is_second && transfer.settled != Some(true)
}

/// Whether the delivery arrives settled: by a frame of it, or by a disposition meanwhile.
fn is_settled(session: &mut Session, partial: &Partial) -> bool {
    if partial.settled && partial.waits {
        session.settle_incoming(partial.delivery_id);
    }
    partial.settled || !session.has_incoming(partial.delivery_id)
}

/// Makes room for `more` bytes of a delivery. One of some size gets at once what it may still need,
/// though no more than is in proportion to what has come: each further step would copy all of it.
fn make_room(collected: &mut BytesMut, more: usize, most: Option<u64>) {
    let len = collected.len();
    if len < LARGE || collected.capacity() - len >= more {
        return;
    }
    let most = most.and_then(|most| usize::try_from(most).ok());
    let room = most.unwrap_or(usize::MAX).min(len.saturating_mul(GROWTH));
    collected.reserve(room.saturating_sub(len).max(more));
}

/// The whole message; not copied if it came in one frame.
fn join(collected: &mut BytesMut, last: Bytes) -> Bytes {
    if collected.is_empty() {
        return last;
    }
    collected.extend_from_slice(&last);
    let whole = std::mem::take(collected);
    if whole.capacity() / 2 <= whole.len() {
        return whole.freeze();
    }
    // It got more room than it has needed, and may be kept for long.
    let mut whole = Vec::from(whole);
    whole.shrink_to_fit();
    Bytes::from(whole)
}

/// Keeps a delivery until the owner answers; returns what it costs.
fn hold(receiver: &mut Receiver, mut delivery: Event, state_cost: usize) -> usize {
    let mut cost = OVERHEAD + state_cost;
    if let Event::Delivery { tag, payload, .. } = &mut delivery {
        // A slice would keep the whole input buffer.
        *tag = Bytes::copy_from_slice(tag);
        *payload = Bytes::copy_from_slice(payload);
        cost += payload.len();
    }
    receiver.held_bytes += cost;
    receiver.held.push(delivery);
    cost
}

/// A peer that goes on sending on a link that we detached long ago is not listening. [AMQP 2.8.17]
fn check_dropped(dropped: u32) -> Result<(), Fault> {
    if dropped <= MAX_DROPPED {
        return Ok(());
    }
    let text = format!("more than {MAX_DROPPED} transfers arrived on a link that was detached");
    Err(Fault::session(condition::ERRANT_LINK, text))
}

//! Dispatch: hands available messages to receivers with credit, one each in turn.
//!
//! A message is handed out only when its body is in memory, never past its deadline, in order of
//! number, and to one receiver only. In receive-and-delete mode its removal is decided only then.
//! A drain is answered when nothing more can come, after the last delivery.

use bytes::Bytes;
use store::{MessageRow, Part, SequenceNumber};

use crate::clients::{Readiness, ReceiverSlot, Standing};
use crate::command::ReceiveMode;
use crate::id::{LockToken, ReceiverId, Subqueue};
use crate::lock::{Holder, Lock, Origin};
use crate::output::{Browsed, Delivery, MessageState, Output};
use crate::patch::Patch;
use crate::queue::{Message, Queue};
use crate::shared::Context;
use crate::time::{Mono, Wall};
use crate::window::Entry;

/// A receiver whose turn it is.
#[derive(Clone, Copy, Debug)]
struct Taker {
    slot: ReceiverSlot,
    id: ReceiverId,
    mode: ReceiveMode,
}

impl Queue {
    /// Hands out what can be handed out now.
    pub(crate) fn dispatch(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) {
        if subqueue == Subqueue::Main && self.sessions.is_some() {
            return self.dispatch_sessions(cx);
        }
        while let Some(taker) = self.next_taker(subqueue, cx) {
            if !self.hand_out_next(subqueue, taker, cx) {
                break;
            }
        }
        self.answer_drains(subqueue, cx);
    }

    /// Whose turn it is. Who can not take anything now leaves the ring.
    fn next_taker(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) -> Option<Taker> {
        let outlet_bytes = cx.shared.settings.outlet_bytes;
        let clients = &mut cx.shared.clients;
        let takers = &mut self.sub_mut(subqueue).takers;
        loop {
            let slot = *takers.front()?;
            let readiness = clients.readiness(slot, outlet_bytes);
            match clients.get_mut(slot) {
                Some(receiver) if readiness == Readiness::Ready => {
                    let (id, mode) = (receiver.id, receiver.mode);
                    return Some(Taker { slot, id, mode });
                }
                Some(_) if readiness == Readiness::OutletFull => clients.block(slot),
                Some(receiver) => receiver.standing = Standing::Idle,
                None => {}
            }
            takers.pop_front();
        }
    }

    /// Deals with the next message. Returns whether it is worth going on.
    fn hand_out_next(&mut self, subqueue: Subqueue, taker: Taker, cx: &mut Context<'_>) -> bool {
        let sub = &self.subs[subqueue as usize];
        let full = sub.is_full_of_locks(&cx.shared.settings);
        let Some((number, entry)) = sub.window.first().filter(|_| !full) else {
            self.refill(subqueue, cx);
            return false;
        };
        let entry = *entry;
        let expired = Self::is_expired(subqueue, &entry.row, cx.now.wall);
        if expired && self.can_expire_at_once(&entry, cx) {
            return self.expire_first(number, &entry, cx);
        }
        let Some(body) = cx.shared.bodies.take(entry.body) else {
            self.fetch(subqueue, cx);
            return false;
        };
        let sub = self.sub_mut(subqueue);
        sub.window.take_first();
        sub.takers.rotate_left(1);
        let message = Message::available(subqueue.part(), number, &entry, body.patch);
        self.hand_out(subqueue, taker, message, body.payload, cx);
        self.refill(subqueue, cx);
        true
    }

    /// Expiring is background work: past the turn's budget it goes on in the next one.
    fn expire_first(
        &mut self,
        number: SequenceNumber,
        entry: &Entry,
        cx: &mut Context<'_>,
    ) -> bool {
        if !cx.take_work() {
            self.sub_mut(Subqueue::Main).stirred = true;
            return false;
        }
        self.expire_available(number, entry, cx);
        true
    }

    fn hand_out(
        &mut self,
        subqueue: Subqueue,
        taker: Taker,
        message: Message,
        payload: Bytes,
        cx: &mut Context<'_>,
    ) {
        self.note_access(cx);
        let receiver = taker.id;
        let token = cx.shared.tokens.next(message.number);
        let shown = message.shown(MessageState::Active, payload);
        let lock_ms = match taker.mode {
            ReceiveMode::PeekLock => {
                let holder = Some(Holder {
                    connection: receiver.connection,
                    link: Some(receiver.link),
                });
                Some(self.lock(subqueue, message, token, holder, Origin::Available, cx))
            }
            ReceiveMode::ReceiveAndDelete => {
                let patched = message.patch.is_some();
                self.erase(&message, patched, cx);
                None
            }
        };
        let delivery = Box::new(Delivery {
            message: shown,
            token,
            lock_ms,
        });
        cx.shared
            .clients
            .count_delivery(taker.slot, delivery.size());
        cx.say(Output::Deliver { receiver, delivery });
    }

    /// Lends a message for the queue's lock duration, which is returned.
    pub(crate) fn lock(
        &mut self,
        subqueue: Subqueue,
        message: Message,
        token: LockToken,
        holder: Option<Holder>,
        origin: Origin,
        cx: &Context<'_>,
    ) -> u64 {
        let duration = self.settings.lock_duration;
        let lock = Lock {
            token,
            until: Mono(cx.now.mono.0.saturating_add(duration)),
            row: message.row,
            delivery_count: message.delivery_count,
            patch: message.patch,
            holder,
            origin,
            session: None,
            enlisted: false,
        };
        let locks = &mut self.sub_mut(subqueue).locks;
        locks.insert(message.number, lock, duration);
        duration
    }

    fn answer_drains(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) {
        if self.sub(subqueue).draining.is_empty() {
            return;
        }
        let exhausted = self.is_exhausted(subqueue, cx);
        let Context {
            shared, effects, ..
        } = cx;
        self.sub_mut(subqueue).draining.retain(|slot| {
            let Some(receiver) = shared.clients.get_mut(*slot) else {
                return false;
            };
            let done = exhausted || receiver.credit() == 0;
            if done {
                receiver.finish_drain();
                effects.outputs.push(Output::Drained {
                    receiver: receiver.id,
                });
            }
            !done
        });
    }

    /// Whether nothing is available, nor will be when the reads under way have come back.
    fn is_exhausted(&self, subqueue: Subqueue, cx: &Context<'_>) -> bool {
        let sub = self.sub(subqueue);
        let read_all = !sub.window.is_refilling() && sub.window.end() >= self.head.next_number;
        let empty = sub.window.len() == 0 && (read_all || self.beyond(subqueue) == 0);
        let full = sub.is_full_of_locks(&cx.shared.settings);
        empty || full || sub.retry_at.is_some()
    }
}

impl Message {
    /// An available message.
    pub(crate) fn available(
        part: Part,
        number: SequenceNumber,
        entry: &Entry,
        patch: Option<Box<Patch>>,
    ) -> Self {
        Self {
            number,
            part,
            row: entry.row,
            delivery_count: entry.delivery_count,
            patch,
        }
    }

    /// As a receiver or browser sees it.
    pub(crate) fn shown(&self, state: MessageState, payload: Bytes) -> Browsed {
        let MessageRow {
            enqueued_ms,
            ttl_ms,
            expires_ms,
            enqueued_number,
            ..
        } = self.row;
        Browsed {
            number: self.number,
            enqueued_number: match enqueued_number {
                0 => self.number,
                first => SequenceNumber(first),
            },
            enqueued: Wall(enqueued_ms),
            ttl_ms: (ttl_ms != u64::MAX).then_some(ttl_ms),
            expires: (expires_ms != u64::MAX).then_some(Wall(expires_ms)),
            delivery_count: self.delivery_count,
            state,
            payload,
            changes: match &self.patch {
                Some(patch) => patch.changes().clone(),
                None => Vec::new(),
            },
            dead_letter_source: self
                .patch
                .as_ref()
                .and_then(|patch| patch.source())
                .map(str::to_owned),
        }
    }
}

//! Dispatch: hands available messages to receivers with credit, one each in turn.
//!
//! A message is handed out only when its body is in memory, never past its deadline, in order of
//! number, and to one receiver only. In receive-and-delete mode its removal is decided only then.
//! A drain is answered when nothing more can come, after the last delivery.

use std::collections::VecDeque;

use bytes::Bytes;
use store::{CommitId, SequenceNumber};

use crate::api::command::ReceiveMode;
use crate::api::id::{LockToken, ReceiverId, Subqueue};
use crate::api::output::{Delivery, LockTime, MessageState, Output};
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::clients::{Choice, Readiness, ReceiverSlot, ReceiverState};
use crate::message::Message;
use crate::message::entry::Entry;
use crate::queue::Queue;
use crate::subqueue::Sub;
use crate::subqueue::lock::{Holder, Lock, Origin};

/// A receiver whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    slot: ReceiverSlot,
    id: ReceiverId,
    mode: ReceiveMode,
}

/// The receiver whose turn it is in a ring. A receiver that cannot take a message now leaves the
/// ring.
pub(crate) fn next_taker(
    takers: &mut VecDeque<ReceiverSlot>,
    cx: &mut Context<'_>,
) -> Option<Taker> {
    let output_buffer_bytes = cx.shared.settings.output_buffer_bytes;
    let clients = &mut cx.shared.clients;
    loop {
        let slot = *takers.front()?;
        match clients.readiness(slot, output_buffer_bytes) {
            Readiness::Ready => {
                let receiver = clients.get(slot);
                let (id, mode) = (receiver.id, receiver.mode);
                return Some(Taker { slot, id, mode });
            }
            Readiness::OutputFull => clients.block(slot),
            Readiness::NoCredit => clients.get_mut(slot).state = ReceiverState::Idle,
        }
        takers.pop_front();
    }
}

impl Queue {
    /// Hands out what can be handed out now.
    pub(crate) fn dispatch(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) {
        self.show_to_browsers(subqueue, cx);
        if subqueue == Subqueue::Main && self.sessions.is_some() {
            self.dispatch_sessions(cx);
        } else {
            while self.hand_out_one(subqueue, cx) {}
        }
        self.answer_drains(subqueue, cx);
    }

    /// Gives one message to one receiver. Those with selectors and the others take turns.
    fn hand_out_one(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) -> bool {
        let had_turn = self.sub(subqueue).selections.had_turn;
        for with_selector in [!had_turn, had_turn] {
            let given = if with_selector {
                self.hand_out_selected(subqueue, cx)
            } else {
                let taker = next_taker(&mut self.sub_mut(subqueue).takers, cx);
                taker.is_some_and(|taker| self.hand_out_next(subqueue, taker, cx))
            };
            if given {
                self.sub_mut(subqueue).selections.had_turn = with_selector;
                return true;
            }
        }
        false
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
        let taken = sub.window.take_first().map(|(number, _)| number);
        assert_eq!(
            taken,
            Some(number),
            "the window has the same first message as before"
        );
        sub.takers.rotate_left(1);
        let message = Message::available(subqueue.part(), number, &entry, body.patch);
        self.hand_out(subqueue, taker, message, body.payload, entry.rests_on, cx);
        self.refill(subqueue, cx);
        self.read_ahead(subqueue, number, cx);
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
            self.sub_mut(Subqueue::Main).needs_pump = true;
            return false;
        }
        self.expire_available(number, entry, cx);
        true
    }

    /// Gives a receiver a message, which is on the disk with the commit that it `rests_on`.
    pub(crate) fn hand_out(
        &mut self,
        subqueue: Subqueue,
        taker: Taker,
        message: Message,
        payload: Bytes,
        mut rests_on: CommitId,
        cx: &mut Context<'_>,
    ) {
        self.note_access(cx);
        let receiver = taker.id;
        let token = cx.shared.tokens.next(message.number);
        let mut shown = message.shown(MessageState::Active, payload);
        shown.lock = match taker.mode {
            ReceiveMode::PeekLock => {
                let holder = Some(Holder {
                    connection: receiver.connection,
                    link: Some(receiver.link),
                });
                let lock = self.lock(subqueue, message, token, holder, Origin::Available, cx);
                Some(LockTime::Own(lock))
            }
            ReceiveMode::ReceiveAndDelete => {
                self.traffic.complete();
                let patched = message.patch.is_some();
                self.erase(&message, patched, cx);
                rests_on = cx.commit();
                None
            }
        };
        self.traffic.deliver();
        let delivery = Box::new(Delivery {
            entity: self.id,
            message: shown,
            token,
            rests_on,
        });
        cx.shared
            .clients
            .count_delivery(taker.slot, delivery.size());
        cx.emit(Output::Deliver { receiver, delivery });
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
        assert!(
            subqueue != Subqueue::Main || self.sessions.is_none(),
            "messages of a session are locked with it"
        );
        debug_assert!(
            self.is_apart(message.number),
            "a message leaves its place before it is locked"
        );
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
        let sub = self.sub_mut(subqueue);
        sub.locks.insert(message.number, lock, duration);
        sub.selections.gone(message.number);
        duration
    }

    fn answer_drains(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) {
        if self.sub(subqueue).draining.is_empty() {
            return;
        }
        let exhausted = self.is_exhausted(subqueue, cx);
        let (end, stopped) = (self.head.next_number, self.is_stopped(subqueue, cx));
        let unreadable = self.sub(subqueue).retry_at.is_some();
        let Context {
            shared, effects, ..
        } = cx;
        let Sub {
            draining,
            selections,
            browsers,
            ..
        } = self.sub_mut(subqueue);
        draining.retain(|slot| {
            let receiver = shared.clients.get_mut(*slot);
            let done = match receiver.choice {
                _ if receiver.credit() == 0 => true,
                Choice::Next => exhausted,
                Choice::Selected(id) => stopped || selections.is_exhausted(id, end),
                Choice::Shown => unreadable || browsers.is_exhausted(*slot, end),
            };
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
        empty || self.is_stopped(subqueue, cx)
    }

    /// Whether nothing is handed out for now, be it available or not.
    fn is_stopped(&self, subqueue: Subqueue, cx: &Context<'_>) -> bool {
        let sub = self.sub(subqueue);
        sub.is_full_of_locks(&cx.shared.settings) || sub.retry_at.is_some()
    }
}

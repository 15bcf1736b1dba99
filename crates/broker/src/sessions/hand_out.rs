//! Hand out: gives a held session's messages to its holder, in order.
//!
//! As in a queue without sessions, a message is handed out only when its body is in memory, never
//! past its deadline, and a drain is answered after the last delivery. Only the holder is given a
//! session's messages.

use store::CommitId;

use crate::api::command::ReceiveMode;
use crate::api::id::{LockToken, Subqueue};
use crate::api::output::{Delivery, LockTime, MessageState, Output};
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::context::clients::Readiness;
use crate::message::Message;
use crate::queue::Queue;
use crate::subqueue::lock::{Holder, Lock, Origin};

/// Whether it is worth going on with a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Progress {
    Made,
    Stopped,
    /// The turn's budget is used up.
    Interrupted,
}

impl Queue {
    /// Does what can be done now: learns of sessions, lends them, hands out their messages.
    pub(crate) fn dispatch_sessions(&mut self, cx: &mut Context<'_>) {
        self.survey_sessions(cx);
        self.expire_whole_sessions(cx);
        self.serve_waiters(cx);
        self.learn_age(cx);
        while let Some(sessions) = &mut self.sessions
            && let Some(id) = sessions.pending.pop_first()
        {
            let progress = self.hand_out_session(id, cx);
            self.answer_session_drain(id, cx);
            if progress == Progress::Interrupted {
                self.require_sessions_mut().mark_pending(id);
                self.sub_mut(Subqueue::Main).needs_pump = true;
                return;
            }
        }
    }

    fn hand_out_session(&mut self, id: HoldId, cx: &mut Context<'_>) -> Progress {
        loop {
            match self.hand_out_of(id, cx) {
                Some(Progress::Made) => {}
                Some(stopped) => return stopped,
                None => return Progress::Stopped,
            }
        }
    }

    /// Deals with the next message of a session, if its holder can take one.
    fn hand_out_of(&mut self, id: HoldId, cx: &mut Context<'_>) -> Option<Progress> {
        let settings = &cx.shared.settings;
        let full = self.sub(Subqueue::Main).is_full_of_locks(settings);
        let output_buffer_bytes = settings.output_buffer_bytes;
        let hold = self.require_sessions().existing_hold(id);
        if full || !hold.has_room() || !hold.is_live(cx.now.mono) {
            return None;
        }
        match cx.shared.clients.readiness(hold.slot, output_buffer_bytes) {
            Readiness::NoCredit => return None,
            Readiness::OutputFull => {
                cx.shared.clients.block(hold.slot);
                return None;
            }
            Readiness::Ready => {}
        }
        let Some((number, entry)) = hold.window.first() else {
            self.load_session(id, cx);
            return None;
        };
        let entry = *entry;
        let expired = Self::is_expired(Subqueue::Main, &entry.row, cx.now.wall);
        if expired && self.can_expire_at_once(&entry, cx) {
            if !cx.take_work() {
                return Some(Progress::Interrupted);
            }
            self.expire_available(number, &entry, cx);
            return Some(Progress::Made);
        }
        let Some(body) = cx.shared.bodies.take(entry.body) else {
            self.fetch_bodies(id, cx);
            return None;
        };
        let window = &mut self.require_sessions_mut().existing_hold_mut(id).window;
        let taken = window.take_first().map(|(number, _)| number);
        assert_eq!(
            taken,
            Some(number),
            "the window has the same first message as before"
        );
        let message = Message::available(Subqueue::Main.part(), number, &entry, body.patch);
        self.hand_over_of(id, message, body.payload, entry.rests_on, cx);
        self.load_session(id, cx);
        Some(Progress::Made)
    }

    fn hand_over_of(
        &mut self,
        id: HoldId,
        message: Message,
        payload: bytes::Bytes,
        mut rests_on: CommitId,
        cx: &mut Context<'_>,
    ) {
        let hold = self.require_sessions().existing_hold(id);
        let (receiver, slot, mode) = (hold.receiver, hold.slot, hold.mode);
        self.note_access(cx);
        let token = cx.shared.tokens.next(message.number);
        let mut shown = message.shown(MessageState::Active, payload);
        shown.lock = match mode {
            ReceiveMode::PeekLock => {
                let holder = Holder {
                    connection: receiver.connection,
                    link: Some(receiver.link),
                };
                Some(self.lock_of(id, message, token, Some(holder), Origin::Available, cx))
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
        cx.shared.clients.count_delivery(slot, delivery.size());
        cx.emit(Output::Deliver { receiver, delivery });
    }

    /// Lends a message for as long as its session is lent: the time left is returned.
    pub(crate) fn lock_of(
        &mut self,
        id: HoldId,
        message: Message,
        token: LockToken,
        holder: Option<Holder>,
        origin: Origin,
        cx: &Context<'_>,
    ) -> LockTime {
        debug_assert!(
            self.is_apart(message.number),
            "a message leaves its place before it is locked"
        );
        let lock = Lock {
            token,
            until: Mono(u64::MAX),
            row: message.row,
            delivery_count: message.delivery_count,
            patch: message.patch,
            holder,
            origin,
            session: Some(id),
            enlisted: false,
        };
        self.sub_mut(Subqueue::Main)
            .locks
            .insert_lasting(message.number, lock);
        let hold = self.require_sessions_mut().existing_hold_mut(id);
        debug_assert!(
            hold.window.get(message.number).is_none(),
            "a message leaves its place before it is locked"
        );
        hold.locked.insert(message.number);
        LockTime::WithSession(hold.left_ms(cx.now.mono))
    }

    /// A lock within a session has ended.
    pub(crate) fn unlocked_of(&mut self, id: HoldId, number: store::SequenceNumber) {
        let sessions = self.require_sessions_mut();
        let hold = sessions.existing_hold_mut(id);
        let was_full = !hold.has_room();
        hold.locked.remove(&number);
        if was_full {
            sessions.mark_pending(id);
            self.sub_mut(Subqueue::Main).needs_pump = true;
        }
    }

    fn answer_session_drain(&mut self, id: HoldId, cx: &mut Context<'_>) {
        let full = self
            .sub(Subqueue::Main)
            .is_full_of_locks(&cx.shared.settings);
        let hold = self.require_sessions().existing_hold(id);
        let is_over = !hold.is_live(cx.now.mono);
        let exhausted = hold.is_exhausted() || full || !hold.has_room() || is_over;
        let receiver = cx.shared.clients.get_mut(hold.slot);
        if receiver.draining && (exhausted || receiver.credit() == 0) {
            receiver.finish_drain();
            let receiver = receiver.id;
            cx.emit(Output::Drained { receiver });
        }
    }
}

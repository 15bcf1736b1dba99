//! Lend: a held session's messages are given to its holder, in order.
//!
//! Only the holder is given a session's messages, and for as long as it holds the session. As in a
//! queue without sessions, a drain is answered after the last delivery.

use store::SequenceNumber;

use crate::api::error::Eviction;
use crate::api::output::{LockTime, Output};
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::sessions::{Parts, Sessions};
use crate::subqueue::lock::Lock;
use crate::subqueue::taker::Taker;

impl Sessions {
    /// Learns of sessions, lends them, and lets them expire.
    pub(crate) fn prepare(&mut self, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        self.survey_sessions(parts, cx);
        self.expire_whole_sessions(parts, cx);
        self.serve_waiters(parts, cx);
        self.learn_age(parts, cx);
    }

    /// The next hold to which something has happened.
    pub(crate) fn next_pending(&mut self) -> Option<HoldId> {
        self.pending.pop_first()
    }

    /// The holder of a session, if it can be given a message now.
    pub(crate) fn ready_holder(
        &self,
        id: HoldId,
        parts: &Parts<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Taker> {
        let settings = &cx.shared.settings;
        let hold = self.existing_hold(id);
        let full = parts.main.is_full_of_locks(settings) || !hold.has_room();
        if full || !hold.is_live(cx.now.mono) {
            return None;
        }
        let output_buffer_bytes = settings.output_buffer_bytes;
        let ready = cx.shared.clients.make_ready(hold.slot, output_buffer_bytes);
        ready.then_some(Taker {
            slot: hold.slot,
            id: hold.receiver,
            mode: hold.mode,
            consumer_timeout: None,
        })
    }

    /// Lends a message for as long as its session is lent: the time left is returned.
    pub(crate) fn lock(
        &mut self,
        id: HoldId,
        number: SequenceNumber,
        mut lock: Lock,
        parts: &mut Parts<'_>,
        now: Mono,
    ) -> LockTime {
        debug_assert!(
            !parts.main.knows(number),
            "a message leaves its place before it is locked"
        );
        lock.session = Some(id);
        parts.main.locks.insert_lasting(number, lock);
        let hold = self.existing_hold_mut(id);
        debug_assert!(
            hold.window.get(number).is_none(),
            "a message leaves its place before it is locked"
        );
        let is_new = hold.locked.insert(number);
        assert!(is_new, "message {number} is lent once at a time");
        LockTime::WithSession(hold.left_ms(now))
    }

    /// A lock within a session has ended.
    pub(crate) fn unlocked(&mut self, id: HoldId, number: SequenceNumber, parts: &mut Parts<'_>) {
        let hold = self.existing_hold_mut(id);
        let was_full = !hold.has_room();
        hold.locked.remove(&number);
        if was_full {
            self.wake_hold(id, parts);
        }
    }

    /// Answers the drain of a holder, if that is over. Returns why the holder is evicted instead.
    pub(crate) fn answer_drain(
        &self,
        id: HoldId,
        parts: &Parts<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Eviction> {
        let full = parts.main.is_full_of_locks(&cx.shared.settings);
        let hold = self.existing_hold(id);
        let is_over = !hold.is_live(cx.now.mono);
        let exhausted = hold.is_exhausted() || full || !hold.has_room() || is_over;
        let receiver = cx.shared.clients.get_mut(hold.slot);
        let is_told = receiver.draining || hold.is_news;
        if hold.is_exhausted() && is_told && receiver.credit() > 0 && hold.damage.is_some() {
            return hold.damage;
        }
        if receiver.draining && (exhausted || receiver.credit() == 0) {
            receiver.finish_drain();
            let receiver = receiver.id;
            cx.emit(Output::Drained { receiver });
        }
        None
    }
}

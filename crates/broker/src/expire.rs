//! Expire: what time does to locks and messages; scheduled ones have a file of their own.
//!
//! Locks end by the monotonic clock, messages leave by the wall clock. Both are done in bounded
//! pieces: what a turn's budget does not allow goes on with the next tick.

pub(crate) mod index;
pub(crate) mod sweep;

use crate::api::settings::Expiry;
use crate::sessions;
use store::SequenceNumber;

use crate::api::id::Subqueue;
use crate::context::Context;
use crate::delete;
use crate::entities::directory::Directory;
use crate::entities::remove;
use crate::entities::tombstone::Tombstone;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::patch::Patch;
use crate::queue::Queue;
use crate::queue::idle;
use crate::queue::kind::Kind;
use crate::transaction;

/// Time has passed: every entity whose alarm is due does what is due, within the budget.
pub(crate) fn tick(directory: &mut Directory, cx: &mut Context<'_>) {
    transaction::time_out_due(directory, cx);
    delete::go_on(directory, cx);
    while cx.shared.work_left > 0
        && let Some(entity) = cx.shared.alarms.next_due(cx.now)
    {
        let work_left = cx.shared.work_left;
        let Some(queue) = directory.get_mut(entity) else {
            directory.advance_tombstone(entity, Tombstone::advance, cx);
            cx.take_work();
            continue;
        };
        let topic = matches!(queue.kind, Kind::Topic(_)).then_some(entity);
        if let Some(topic) = topic {
            idle::note_uses_below(directory, topic);
        }
        let queue = directory
            .get_mut(entity)
            .expect("it was found in this step");
        if queue.is_idle_for_too_long(cx) {
            remove::end(directory, entity, cx);
        } else {
            queue.tick(cx);
        }
        if cx.shared.work_left == work_left {
            // Looking in vain costs something too, so that a tick ends.
            cx.take_work();
        }
    }
}

impl Queue {
    /// The wall clock went back, which must freeze nothing.
    pub(crate) fn clock_went_back(&mut self, cx: &mut Context<'_>) {
        self.expiry.clock_went_back();
        self.schedule_went_back();
        for sub in &mut self.subs {
            sub.clock_went_back();
        }
        self.run(cx);
    }

    fn tick(&mut self, cx: &mut Context<'_>) {
        for subqueue in Subqueue::ALL {
            self.expire_locks(subqueue, cx);
            self.sub_mut(subqueue).tick(cx.now.mono);
        }
        self.activate(cx);
        sessions::release::tick(self, cx);
        self.sweep(cx);
        self.duplicates
            .sweep_history(&mut self.rows, &self.settings, cx);
        self.run(cx);
    }

    fn expire_locks(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) {
        while cx.shared.work_left > 0 {
            let Some(number) = self.sub_mut(subqueue).locks.next_expired(cx.now.mono) else {
                break;
            };
            cx.take_work();
            self.expire_lock(subqueue, number, cx);
        }
    }

    /// Whether all is known that expiring a message of the main queue takes. Only a message that
    /// was abandoned or forwarded can have a patch, and only dead-lettering has to know it.
    pub(crate) fn can_expire_at_once(&self, entry: &Entry, cx: &Context<'_>) -> bool {
        !entry.may_have_patch()
            || !self.settings.dead_lettering_on_message_expiration
            || cx.shared.bodies.is_resident(entry.body)
    }

    /// Expires an available message of the main queue for which
    /// [`can_expire_at_once`](Self::can_expire_at_once).
    pub(crate) fn expire_available(
        &mut self,
        number: SequenceNumber,
        entry: &Entry,
        cx: &mut Context<'_>,
    ) {
        debug_assert!(self.can_expire_at_once(entry, cx), "its patch is known");
        // The window knows neither messages of sessions nor those that are on disk only.
        self.sub_mut(Subqueue::Main).window.take(number);
        let body = cx.shared.bodies.take(entry.body);
        let patch = body.and_then(|body| body.patch);
        let message = Message::available(Subqueue::Main.part(), number, entry, patch);
        self.expire(&message, entry.may_have_patch(), cx);
    }

    /// A message past its deadline leaves the queue. `patched` tells whether it may have a patch
    /// besides the one it comes with.
    pub(crate) fn expire(&mut self, message: &Message, patched: bool, cx: &mut Context<'_>) {
        assert_eq!(
            message.part,
            Subqueue::Main.part(),
            "only available messages of the main queue expire"
        );
        self.rows.traffic.expire();
        let expiry = self.settings.expiry.unwrap_or(cx.shared.settings.expiry);
        if expiry == Expiry::Cloud
            && let Some((sessions, mut parts)) = self.by_session()
        {
            sessions.expire_with(message, &mut parts);
        }
        if self.settings.dead_lettering_on_message_expiration {
            let description = "The message expired and was dead lettered.";
            let old = message.patch.as_deref();
            let patch = Patch::with_reason(old, "TTLExpiredException", description);
            self.dead_letter(message, &patch, cx);
        } else {
            self.erase(message, patched || message.patch.is_some(), cx);
        }
    }
}

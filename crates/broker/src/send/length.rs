//! Length: how many available messages a queue may hold, and how many bytes of them.
//!
//! Locked, deferred, scheduled and dead messages do not count. A queue that drops its head
//! dead-letters the oldest messages once its receivers have taken what they could. A queue that
//! rejects refuses what would be too much before anything is written, or makes dead letters of it;
//! what becomes available otherwise (a lock ends, a schedule is due) may exceed the limit. Queues
//! with sessions reject whatever they are set to, since their oldest message is not known;
//! subscriptions have no sender to reject to. (docs/spec/rabbitmq.md#12.4)

use store::SequenceNumber;

use crate::api::error::SendError;
use crate::api::id::Subqueue;
use crate::api::incoming::Incoming;
use crate::api::time::Wall;
use crate::context::Context;
use crate::expire;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::patch::Patch;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::settle::dead_letter;

pub(super) const REASON: &str = "MaxLengthExceeded";
pub(super) const DESCRIPTION: &str = "The queue exceeded its maximum length.";

impl Queue {
    /// Whether it has a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.settings.max_length.is_some() || self.settings.max_length_bytes.is_some()
    }

    /// Whether new messages are refused at the limit.
    fn rejects(&self) -> bool {
        match self.kind {
            Kind::Queue => self.settings.rejects_at_length(),
            Kind::Topic(_) | Kind::Subscription(_) | Kind::Transfer { .. } => false,
        }
    }

    /// The limit that is exceeded with `count` messages of `bytes` more.
    fn exceeded(&self, count: u64, bytes: u64) -> Option<(&'static str, u64)> {
        let locks = &self.sub(Subqueue::Main).locks;
        let part = self.rows.head.part(Subqueue::Main.part());
        let ready = part.count.saturating_sub(locks.on_available() as u64);
        let bytes = self.available_bytes().saturating_add(bytes);
        self.settings
            .exceeded_length(ready.saturating_add(count), bytes)
    }

    /// Bytes of its available messages.
    pub(crate) fn available_bytes(&self) -> u64 {
        let locks = &self.sub(Subqueue::Main).locks;
        let part = self.rows.head.part(Subqueue::Main.part());
        part.bytes.saturating_sub(locks.bytes_on_available())
    }
}

/// How many of `messages` become available at once, and their bytes.
pub(crate) fn arriving(messages: &[Incoming], now: Wall) -> (u64, u64) {
    let messages = messages.iter().filter(|message| !message.is_later(now));
    messages.fold((0, 0), |(count, bytes): (u64, u64), message| {
        let size = message.payload.len() as u64;
        (count + 1, bytes.saturating_add(size))
    })
}

/// Whether a queue that rejects has room for `count` messages of `bytes` together.
pub(crate) fn check(queue: &Queue, count: u64, bytes: u64) -> Result<(), SendError> {
    if count == 0 || !queue.is_limited() || !queue.rejects() {
        return Ok(());
    }
    match queue.exceeded(count, bytes) {
        Some((property, limit)) => Err(SendError::LengthExceeded { property, limit }),
        None => Ok(()),
    }
}

/// Dead-letters the oldest available messages beyond the limit, as far as the turn's budget goes.
pub(crate) fn drop_head(queue: &mut Queue, cx: &mut Context<'_>) {
    let drops = queue.is_limited() && !queue.rejects();
    if !drops || queue.sessions.is_some() || queue.forwards(Subqueue::Main) {
        return;
    }
    while queue.exceeded(0, 0).is_some() {
        let main = Subqueue::Main as usize;
        let Some((number, entry)) = queue.subs[main].window.first() else {
            return queue.subs[main].refill(&queue.rows, cx);
        };
        let entry = *entry;
        // A dead letter keeps what has been changed of the message.
        if queue.may_have_patch(&entry) && !cx.shared.bodies.is_resident(entry.body) {
            return queue.subs[main].fetch_for_pump(cx);
        }
        if !cx.take_work() {
            queue.subs[main].needs_dispatch = true;
            return;
        }
        drop_first(queue, number, &entry, cx);
    }
}

fn drop_first(queue: &mut Queue, number: SequenceNumber, entry: &Entry, cx: &mut Context<'_>) {
    queue.sub_mut(Subqueue::Main).take_available(number);
    let body = cx.shared.bodies.take(entry.body);
    let message = Message::available(
        Subqueue::Main.part(),
        number,
        entry,
        body.and_then(|body| body.patch),
    );
    if expire::is_due(queue, &message, cx) {
        expire::expire(queue, &message, queue.may_have_patch(entry), cx);
        return;
    }
    let patch = Patch::with_reason(message.patch.as_deref(), REASON, DESCRIPTION);
    dead_letter::dead_letter(queue, &message, patch, cx);
}

//! Expire: messages whose time to live is over leave the main queue.
//!
//! They leave by the wall clock, when a receiver would be given them or when their block is looked
//! through. What time does to locks is in `settle`.

pub(crate) mod index;
pub(crate) mod sweep;
pub(crate) mod sweep_blocks;

use store::SequenceNumber;

use crate::api::id::Subqueue;
use crate::api::lineage::MessageEvent;
use crate::api::settings::Expiry;
use crate::context::Context;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::patch::Patch;
use crate::queue::Queue;
use crate::settle::dead_letter;

/// Whether all is known that expiring a message of the main queue takes. Only a message that
/// was abandoned or forwarded can have a patch, and only dead-lettering has to know it.
pub(crate) fn can_expire_at_once(queue: &Queue, entry: &Entry, cx: &Context<'_>) -> bool {
    !queue.may_have_patch(entry)
        || !queue.settings.dead_lettering_on_message_expiration
        || cx.shared.bodies.is_resident(entry.body)
}

/// Expires an available message of the main queue for which
/// [`can_expire_at_once`].
pub(crate) fn expire_available(
    queue: &mut Queue,
    number: SequenceNumber,
    entry: &Entry,
    cx: &mut Context<'_>,
) {
    debug_assert!(can_expire_at_once(queue, entry, cx), "its patch is known");
    // The window knows neither messages of sessions nor those that are on disk only.
    queue.sub_mut(Subqueue::Main).window.take(number);
    let body = cx.shared.bodies.take(entry.body);
    let patch = body.and_then(|body| body.patch);
    let message = Message::available(Subqueue::Main.part(), number, entry, patch);
    expire(queue, &message, queue.may_have_patch(entry), cx);
}

/// Whether an available message of the main queue is to leave it for its age.
pub(crate) fn is_due(queue: &Queue, message: &Message, cx: &Context<'_>) -> bool {
    let main = queue.sub(Subqueue::Main);
    main.is_expired(message.number, &message.row, cx.now.wall) && queue.may_expire(cx)
}

/// The receivers have taken what they could: what came in this step for now or never expires.
/// Messages that the window does not know are the sweep's.
pub(crate) fn expire_untaken(queue: &mut Queue, cx: &mut Context<'_>) {
    let numbers = std::mem::take(&mut queue.sub_mut(Subqueue::Main).now_or_never);
    if !queue.may_expire(cx) {
        return;
    }
    for number in numbers {
        let entry = queue.sub(Subqueue::Main).window.get(number).copied();
        if let Some(entry) = entry
            && can_expire_at_once(queue, &entry, cx)
        {
            expire_available(queue, number, &entry, cx);
        }
    }
}

/// A message past its deadline leaves the queue. `patched` tells whether it may have a patch
/// besides the one it comes with. Returns the patch of a message that is a dead letter now.
pub(crate) fn expire(
    queue: &mut Queue,
    message: &Message,
    patched: bool,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    assert_eq!(
        message.part,
        Subqueue::Main.part(),
        "only available messages of the main queue expire"
    );
    queue.rows.traffic.expire();
    queue.record(message.number, || MessageEvent::Expired, cx);
    let expiry = queue.settings.expiry.unwrap_or(cx.shared.settings.expiry);
    if expiry == Expiry::Cloud
        && let Some((sessions, mut parts)) = queue.by_session()
    {
        sessions.expire_with(message, &mut parts);
    }
    if queue.settings.dead_lettering_on_message_expiration {
        let description = "The message expired and was dead lettered.";
        let old = message.patch.as_deref();
        let patch = Patch::with_reason(old, "TTLExpiredException", description);
        // The setting asks for the message, whether or not the queue keeps other dead letters.
        dead_letter::dead_letter_to(queue, Subqueue::DeadLetter, message, &patch, cx);
        Some(patch)
    } else {
        queue.erase(message, patched || message.patch.is_some(), cx);
        None
    }
}

/// A message past its deadline expires as its lock ends. Returns the patch of a message that is a
/// dead letter now.
pub(crate) fn expire_unlocked(
    queue: &mut Queue,
    message: &Message,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    if queue.settings.dead_lettering_on_message_expiration {
        queue
            .rows
            .put_delivery_count(message.number, message.delivery_count, cx);
    }
    let patched = message.patch.is_some();
    expire(queue, message, patched, cx)
}

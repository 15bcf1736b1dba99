//! Refused messages that become dead letters: those for which a queue is too long, if its overflow
//! says so.
//!
//! Such a message is numbered and stored as one that arrives, but enters the dead-letter subqueue
//! at once; its sender is told that it was refused. Nothing else of a refusal is kept: a message
//! that is too large, or for which there is no space, leaves no trace.
//! (docs/spec/rabbitmq.md#12.4)

use store::Write;

use crate::api::error::SendError;
use crate::api::id::Subqueue;
use crate::api::incoming::Incoming;
use crate::api::settings::Overflow;
use crate::context::Context;
use crate::message::entry::Entry;
use crate::message::patch::Patch;
use crate::queue::Queue;
use crate::send::enqueue;
use crate::send::length::{DESCRIPTION, REASON};

/// Whether what was refused for this reason is a dead letter of the queue, which keeps such.
pub(crate) fn becomes_dead_letter(queue: &Queue, error: &SendError, cx: &Context<'_>) -> bool {
    let drops = queue.settings.drops_dead_letters() && !cx.shared.settings.keep_undead_lettered;
    matches!(error, SendError::LengthExceeded { .. })
        && queue.settings.overflow == Overflow::RejectPublishDlx
        && queue.sessions.is_none()
        && !drops
}

/// Makes dead letters of messages that are no duplicates.
pub(crate) fn dead_letter(queue: &mut Queue, messages: &[&Incoming], cx: &mut Context<'_>) {
    let enqueued = queue.rows.take_enqueued_time(cx);
    for message in messages {
        let number = queue.rows.take_number(message.priority);
        queue.record_acceptance(number, message, cx);
        let row = enqueue::row_of(queue, message, number, enqueued);
        cx.write(Write::PutBody {
            pointer: row.body,
            body: message.payload.clone(),
        });
        let patch = Patch::with_reason(None, REASON, DESCRIPTION);
        queue.record_dead_letter(number, Subqueue::DeadLetter, &patch, cx);
        queue.rows.put_patch(number, &patch, cx);
        let entry = Entry::written(row, 0, cx.commit());
        queue.enter(Subqueue::DeadLetter, number, entry, cx);
    }
}

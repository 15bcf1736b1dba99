//! Dead-lettering: what becomes of messages that cannot be had, and the reasons given for it.
//!
//! Reasons and other changes go into the message's patch. Changes that outgrow what a patch may
//! hold dead-letter the message themselves. (docs/spec/entities.md#8.2)

use std::ops::ControlFlow;

use store::{Part, SequenceNumber};

use crate::api::id::Subqueue;
use crate::api::lineage::{DropReason, MessageEvent};
use crate::context::Context;
use crate::entities::definition;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::patch::{Changes, Patch, TooLarge};
use crate::queue::Queue;
use crate::subqueue::lock::Lock;

/// Properties that tell why a message is a dead letter. (docs/spec/entities.md#8.2)
pub(super) const REASONS: [&str; 2] = ["DeadLetterReason", "DeadLetterErrorDescription"];

/// Moves a message to the dead-letter subqueue, or drops it where the queue has none in effect.
/// Returns the patch of a message that was moved.
pub(crate) fn dead_letter(
    queue: &mut Queue,
    message: &Message,
    patch: Patch,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    if queue.settings.drops_dead_letters() && !cx.shared.settings.keep_undead_lettered {
        let event = || MessageEvent::Dropped {
            why: DropReason::NoDeadLetterRouter,
        };
        queue.record(message.number, event, cx);
        queue.erase(message, true, cx);
        return None;
    }
    dead_letter_to(queue, Subqueue::DeadLetter, message, &patch, cx);
    Some(patch)
}

/// Moves a message to one of the dead-letter subqueues, its body left where it is.
pub(crate) fn dead_letter_to(
    queue: &mut Queue,
    to: Subqueue,
    message: &Message,
    patch: &Patch,
    cx: &mut Context<'_>,
) {
    assert!(
        match message.part {
            Part::Active | Part::Deferred => to != Subqueue::Main,
            // It was to be forwarded from there. (docs/spec/entities.md#14.3)
            Part::DeadLetter => to == Subqueue::TransferDeadLetter,
            _ => false,
        },
        "messages of the main queue are dead-lettered, and dead letters that cannot be forwarded"
    );
    queue.record_dead_letter(message.number, to, patch, cx);
    queue.remove_row(message.part, message.number, &message.row, cx);
    queue.rows.put_patch(message.number, patch, cx);
    let entry = Entry::written(message.row, message.delivery_count, cx.commit());
    queue.enter(to, message.number, entry, cx);
}

/// Merges changes into a message whose lock is ending. Changes that do not fit dead-letter
/// it, or are ignored if it is a dead letter already. Breaks off with what [`dead_letter`] returns.
pub(crate) fn change(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: &mut Lock,
    changes: Changes,
    cx: &mut Context<'_>,
) -> ControlFlow<Option<Patch>> {
    if changes.is_empty() {
        return ControlFlow::Continue(());
    }
    let merged = Patch::merged(lock.patch.as_deref(), changes);
    put_changed(queue, subqueue, number, lock, merged, cx)
}

/// The same for message annotations.
pub(crate) fn annotate(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: &mut Lock,
    annotations: Changes,
    cx: &mut Context<'_>,
) -> ControlFlow<Option<Patch>> {
    if annotations.is_empty() {
        return ControlFlow::Continue(());
    }
    definition::note_annotations(queue, cx);
    let merged = Patch::annotated(lock.patch.as_deref(), annotations);
    put_changed(queue, subqueue, number, lock, merged, cx)
}

fn put_changed(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: &mut Lock,
    merged: Result<Patch, TooLarge>,
    cx: &mut Context<'_>,
) -> ControlFlow<Option<Patch>> {
    match merged {
        Ok(patch) => {
            queue.rows.put_patch(number, &patch, cx);
            lock.patch = Some(Box::new(patch));
            ControlFlow::Continue(())
        }
        Err(_) if subqueue != Subqueue::Main => ControlFlow::Continue(()),
        Err(_) => {
            let message = lock.message(subqueue, number);
            queue
                .rows
                .put_delivery_count(number, message.delivery_count, cx);
            ControlFlow::Break(dead_letter_outgrown(queue, &message, cx))
        }
    }
}

/// Dead-letters a message because its receiver says so.
pub(crate) fn reject(
    queue: &mut Queue,
    message: &Message,
    changes: Changes,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    // The reason of an earlier death is not that of this one.
    let died = message
        .patch
        .clone()
        .filter(|patch| patch.deaths().is_some());
    let without = died.map(|patch| Box::new(patch.without(&REASONS)));
    let old = without.or_else(|| message.patch.clone());
    match Patch::merged(old.as_deref(), changes) {
        Ok(patch) => dead_letter(queue, message, patch, cx),
        Err(_) => dead_letter_outgrown(queue, message, cx),
    }
}

fn dead_letter_outgrown(
    queue: &mut Queue,
    message: &Message,
    cx: &mut Context<'_>,
) -> Option<Patch> {
    let description = "The size quota for this stream has been exceeded.";
    let old = message.patch.as_deref();
    let patch = Patch::with_reason(old, "HeaderSizeExceeded", description);
    dead_letter(queue, message, patch, cx)
}

/// Dead-letters a message that was delivered too often.
pub(crate) fn give_up(queue: &mut Queue, message: &Message, cx: &mut Context<'_>) -> Option<Patch> {
    let most = queue.settings.max_delivery_count.max(1);
    let description = format!("Message could not be consumed after {most} delivery attempts.");
    let old = message.patch.as_deref();
    let patch = Patch::with_reason(old, "MaxDeliveryCountExceeded", &description);
    queue
        .rows
        .put_delivery_count(message.number, message.delivery_count, cx);
    dead_letter(queue, message, patch, cx)
}

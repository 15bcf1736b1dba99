//! Activate: scheduled messages whose time has come are enqueued, as if they were sent now.
//! Abandoned messages that waited return to their place.
//!
//! That goes strictly by due time, then by the number that a message was given before.

use bytes::Bytes;
use store::{MessageRow, Part, SequenceNumber};

use crate::api::id::Subqueue;
use crate::api::lineage::MessageEvent;
use crate::context::Context;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::row;
use crate::queue::Queue;
use crate::send::enqueue::deadline;
use crate::send::schedule::remove_entry;
use crate::send::timetable::{Due, Planned};
use crate::settle::retry;

/// A queue has this part of a turn's work before it is another's turn.
const SHARE: usize = 4;

/// Activates what is due, as far as its share of the turn's work goes.
pub(crate) fn activate(queue: &mut Queue, cx: &mut Context<'_>) {
    let now = cx.now.wall;
    let share = (cx.shared.settings.turn_work / SHARE).max(1);
    for _ in 0..share {
        if !queue.schedule.is_something_due(now) || !cx.take_work() {
            break;
        }
        let Some((due, planned)) = queue.schedule.take_due(now) else {
            break;
        };
        activate_one(queue, due, &planned, cx);
        queue.schedule.rest(Some(now));
    }
    if !queue.schedule.is_something_due(now) {
        queue.schedule.rest(None);
    }
    queue.schedule.look_ahead(&queue.rows, cx);
}

fn activate_one(queue: &mut Queue, due: Due, planned: &Planned, cx: &mut Context<'_>) {
    assert!(due.at <= cx.now.wall.0, "its time has come");
    queue.note_access(cx);
    let row = planned.row(due.at, queue.rows.scheduled_pointer(due.number));
    queue.remove_row(Part::Scheduled, due.number, &row, cx);
    remove_entry(due, &queue.rows, cx);
    if let Some(waiting) = &planned.waiting {
        return retry::resume(queue, due.number, waiting, cx);
    }
    let number = queue.rows.take_number(row::priority(&row));
    let enqueued_ms = queue.rows.take_enqueued_time(cx);
    // It is enqueued now, under the settings of now. (docs/spec/entities.md#7.1)
    let ttl_ms = row.ttl_ms.min(queue.settings.default_message_time_to_live);
    let row = MessageRow {
        enqueued_ms,
        ttl_ms,
        expires_ms: deadline(queue, enqueued_ms, ttl_ms),
        flags: row::activated(&row),
        ..row
    };
    let from = queue.place_of(due.number);
    queue.record(number, || MessageEvent::Activated { from }, cx);
    queue.note_deadline(number, &row, cx);
    let entry = Entry::written(row, 0, cx.commit());
    let session = planned.session.as_deref().map(Bytes::copy_from_slice);
    queue.enter_active(session.as_ref(), number, entry, cx);
}

/// Removes a scheduled message whose row was read.
pub(crate) fn erase_scheduled(
    queue: &mut Queue,
    number: SequenceNumber,
    row: MessageRow,
    cx: &mut Context<'_>,
) {
    assert!(
        !row::is_waiting(&row),
        "a message that waits for its next delivery is not cancelled"
    );
    let due = Due {
        at: row.enqueued_ms,
        number,
    };
    queue.schedule.forget(due, &queue.rows, cx);
    queue.sub_mut(Subqueue::Main).unreadable.forget(number);
    queue.record(number, || MessageEvent::Cancelled, cx);
    let message = Message {
        number,
        part: Part::Scheduled,
        row,
        delivery_count: 0,
        patch: None,
    };
    queue.erase(&message, false, cx);
}

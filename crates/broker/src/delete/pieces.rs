//! Pieces: a queue's deletions, one after the other, a bounded piece at a time.
//!
//! A deletion takes from the window as a receiver would: what is on disk only comes to it by
//! refills, which begin where the last one ended, so that it never walks over what was deleted
//! before, and whose late answers are the window's business. A queue with sessions has no such
//! window (`sessions/delete.rs`), and waits for the answer to a read after each piece.

use store::SequenceNumber;

use crate::api::error::RequestError;
use crate::api::id::Subqueue;
use crate::api::lineage::MessageEvent;
use crate::api::output::Output;
use crate::context::Context;
use crate::delete::deletion::{Deletion, Progress};
use crate::expire;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::queue::Queue;

/// Something has changed: deletes what can be deleted now, or lines up for it.
pub(crate) fn go_on_deleting(queue: &mut Queue, cx: &mut Context<'_>) {
    match queue.deletions.first() {
        None => {}
        Some(next) if queue.sub(next.subqueue).by_session => delete_share(queue, cx),
        Some(_) => queue.deletions.line_up(queue.id, cx),
    }
}

/// Deletes as much as is to be deleted before it is another queue's turn.
pub(super) fn delete_share(queue: &mut Queue, cx: &mut Context<'_>) {
    let mut share = cx.shared.deletion_scheduler.share();
    while let Some(mut deletion) = queue.deletions.take_first() {
        let progress = delete_piece(queue, &mut deletion, &mut share, cx);
        match progress {
            Progress::Interrupted => {
                queue.deletions.put_back(deletion);
                return queue.deletions.line_up(queue.id, cx);
            }
            Progress::Waiting => return queue.deletions.put_back(deletion),
            Progress::Finished | Progress::Failed(_) => {}
        }
        cx.emit(Output::Deleted {
            request: deletion.request,
            result: deletion.result(progress),
        });
    }
}

/// The queue is gone: every deletion that waits is answered with an error.
pub(crate) fn refuse_deletions(queue: &mut Queue, cx: &mut Context<'_>) {
    while let Some(deletion) = queue.deletions.take_first() {
        cx.emit(Output::Deleted {
            request: deletion.request,
            result: Err(RequestError::NotFound),
        });
    }
}

fn delete_piece(
    queue: &mut Queue,
    deletion: &mut Deletion,
    share: &mut usize,
    cx: &mut Context<'_>,
) -> Progress {
    let subqueue = deletion.subqueue;
    if queue.sub(subqueue).by_session {
        let (sessions, mut parts) = queue.sessions_mut();
        return sessions.delete_piece(deletion, &mut parts, cx);
    }
    while deletion.left > 0 {
        let Some((number, entry)) = next_to_delete(queue, deletion) else {
            return wait_for_window(queue, deletion, cx);
        };
        if entry.row.enqueued_ms >= deletion.before.0 {
            if !queue.rows.has_levels() {
                break;
            }
            // Older ones may stand behind it, on a lower level.
            deletion.cursor = number.next();
            continue;
        }
        if *share == 0 || cx.shared.work_left == 0 || !cx.shared.deletion_scheduler.take() {
            return Progress::Interrupted;
        }
        *share -= 1;
        cx.take_work();
        deletion.cursor = number.next();
        delete_available(queue, deletion, number, &entry, cx);
    }
    if deletion.deleted > 0 {
        // A client that purges a queue will soon ask again.
        queue.subs[subqueue as usize].refill(&queue.rows, cx);
    }
    Progress::Finished
}

fn next_to_delete(queue: &Queue, deletion: &Deletion) -> Option<(SequenceNumber, Entry)> {
    let window = &queue.sub(deletion.subqueue).window;
    if window.has_stragglers() {
        // What a restart knows by number only comes before all else.
        return None;
    }
    let mut next = window.range(deletion.cursor..deletion.until);
    let next = next.find(|(number, _)| number.arrival() < deletion.before_arrival);
    next.map(|(number, entry)| (number, *entry))
}

/// The window knows no more that could be deleted; perhaps there is more on disk.
fn wait_for_window(queue: &mut Queue, deletion: &Deletion, cx: &mut Context<'_>) -> Progress {
    let subqueue = deletion.subqueue;
    let window = &queue.sub(subqueue).window;
    let all = !window.has_stragglers() && queue.sub(subqueue).beyond(&queue.rows) == 0;
    if all || window.covers(deletion.until) {
        return Progress::Finished;
    }
    queue.subs[subqueue as usize].refill(&queue.rows, cx);
    let sub = queue.sub(subqueue);
    if sub.window.is_refilling() {
        Progress::Waiting
    } else if sub.retry_at.is_some() {
        Progress::Failed("the store cannot be read".to_owned())
    } else if queue.rows.has_levels() {
        // What has arrived since, on higher levels, leaves no room for what is to go.
        let sub = &mut queue.subs[subqueue as usize];
        sub.window.widen(sub.window.len() + 1);
        sub.refill(&queue.rows, cx);
        Progress::Waiting
    } else {
        Progress::Finished
    }
}

fn delete_available(
    queue: &mut Queue,
    deletion: &mut Deletion,
    number: SequenceNumber,
    entry: &Entry,
    cx: &mut Context<'_>,
) {
    let subqueue = deletion.subqueue;
    queue.sub_mut(subqueue).needs_dispatch = true;
    let sub = queue.sub(subqueue);
    if sub.is_expired(number, &entry.row, cx.now.wall) && queue.may_expire(cx) {
        // It has expired, although no receiver has noticed. One that cannot be dead-lettered at
        // once is left to the sweep, which is due.
        if expire::can_expire_at_once(queue, entry, cx) {
            expire::expire_available(queue, number, entry, cx);
        }
        return;
    }
    queue.sub_mut(subqueue).take_available(number);
    drop(cx.shared.bodies.take(entry.body));
    let message = Message::available(subqueue.part(), number, entry, None);
    // A dead letter tells why it is one, whether or not it was ever delivered.
    let patched = subqueue != Subqueue::Main || queue.may_have_patch(entry);
    queue.record(number, || MessageEvent::Purged, cx);
    queue.erase(&message, patched, cx);
    deletion.count_one();
}

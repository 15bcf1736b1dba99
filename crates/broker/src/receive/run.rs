//! Run: what a queue does at the end of a step.
//!
//! It deletes and hands out what can be deleted and handed out now.

use crate::api::id::Subqueue;
use crate::context::Context;
use crate::delete::pieces;
use crate::expire;
use crate::queue::Queue;
use crate::receive::{dispatch, evict};
use crate::send::length;

/// The end of a step: delivers what can be delivered. The alarm is set at the end of the turn.
pub(crate) fn run(queue: &mut Queue, cx: &mut Context<'_>) {
    pieces::go_on_deleting(queue, cx);
    run_on(queue, cx);
}

/// The same, less what is deleted.
pub(crate) fn run_on(queue: &mut Queue, cx: &mut Context<'_>) {
    // Ascending: the main queue may add to the dead-letter queue, never the reverse.
    for subqueue in Subqueue::ALL {
        evict::evict_for_news(queue, subqueue, cx);
        if std::mem::take(&mut queue.sub_mut(subqueue).needs_dispatch) {
            dispatch::dispatch(queue, subqueue, cx);
            if subqueue == Subqueue::Main {
                expire::expire_untaken(queue, cx);
                length::drop_head(queue, cx);
            }
            if queue.forwards(subqueue) {
                cx.shared.pumps.insert(queue.sub(subqueue).place);
            }
        }
    }
    queue.note_alarm(cx);
}

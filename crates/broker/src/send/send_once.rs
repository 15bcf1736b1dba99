//! Send once: sends to an entity that detects duplicates.
//!
//! A send whose ids have to be looked up waits for the answer, and those behind it wait for their
//! turn.

use store::{Entry, StoreError};

use crate::api::error::SendError;
use crate::api::id::{ReadId, RequestId};
use crate::api::incoming::Incoming;
use crate::context::Context;
use crate::queue::Queue;
use crate::send::duplicates::ReadySend;
use crate::send::enqueue;
use crate::send::enqueue::answer_refusal;

/// Enqueues messages that were not accepted before, once that is known, and answers.
pub(crate) fn send_once(
    queue: &mut Queue,
    request: RequestId,
    messages: Vec<Incoming>,
    cx: &mut Context<'_>,
) {
    let Queue {
        duplicates, rows, ..
    } = queue;
    if let Some(ready) = duplicates.take_up(request, messages, rows, cx) {
        admit(queue, ready, cx);
    }
}

/// Ids were looked up: sends go on in the order in which they came.
pub(crate) fn looked_up(
    queue: &mut Queue,
    read: ReadId,
    found: Result<Vec<Entry>, StoreError>,
    cx: &mut Context<'_>,
) {
    queue.duplicates.looked_up(read, found);
    while let Some(ready) = queue.duplicates.next_ready() {
        admit(queue, ready, cx);
    }
}

fn admit(queue: &mut Queue, ready: ReadySend, cx: &mut Context<'_>) {
    let Ok(known) = ready.known else {
        return answer_refusal(ready.request, Err(SendError::Unreadable), cx);
    };
    let sent = enqueue::send(queue, ready.request, ready.messages, &known, cx);
    answer_refusal(ready.request, sent, cx);
    queue.duplicates.trim_recent(cx);
}

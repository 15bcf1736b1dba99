//! Send: a client's messages enter an entity, all or none.
//!
//! Those with a time set by their sender wait for it. An entity that detects duplicates takes a
//! message only if it has not seen its id before.

pub(crate) mod activate;
pub(crate) mod cancel;
pub(crate) mod cancellation;
pub(crate) mod duplicates;
pub(crate) mod enqueue;
pub(crate) mod length;
pub(crate) mod refused;
pub(crate) mod schedule;
pub(crate) mod send_once;
pub(crate) mod timetable;

use store::EntityId;

use crate::api::error::SendError;
use crate::api::id::RequestId;
use crate::api::incoming::Incoming;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::forward::transfer_queue;
use crate::send::duplicates::known::Known;
use crate::send::enqueue::answer_refusal;

/// Enqueues `messages` and answers.
pub(crate) fn send(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    messages: Vec<Incoming>,
    cx: &mut Context<'_>,
) {
    let entity = match transfer_queue::route(directory, entity, &messages, cx) {
        Ok(entity) => entity,
        Err(error) => return answer_refusal(request, Err(error), cx),
    };
    match directory.get_mut(entity) {
        Some(queue) if queue.settings.requires_duplicate_detection => {
            send_once::send_once(queue, request, messages, cx);
        }
        Some(queue) => {
            let sent = enqueue::send(queue, request, messages, &Known::default(), cx);
            answer_refusal(request, sent, cx);
        }
        None => answer_refusal(request, Err(SendError::NotFound), cx),
    }
}

//! Redrive: a dead letter goes back to the queue or subscription that it came from.
//!
//! The client that redrives holds the dead letter's lock and sends its payload back, which the
//! broker does not keep with a lock. In one write set the dead letter goes and the message arrives,
//! as new: under a number of its own, with its time to live begun anew, undelivered, and without
//! the reason why it was dead-lettered. Other properties that were changed stay changed. It is not
//! looked for among duplicates, since it is one, and nothing is asked of the entity's status and
//! size: an administrator says so, and the message counted already. An edited message takes the
//! place of the dead letter in the same way, with a subscription too, whose rules are not asked
//! again.

use bytes::Bytes;
use store::{MessageRow, SequenceNumber};

use crate::api::command::RedrivenMessage;
use crate::api::error::SettleError;
use crate::api::id::{ConnectionId, LockToken, RequestId, Subqueue, SubqueueId};
use crate::api::lineage::MessageEvent;
use crate::api::output::Output;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::message::Message;
use crate::message::bodies::Body;
use crate::message::properties::Properties;
use crate::message::row;
use crate::queue::Queue;
use crate::receive::run::run;
use crate::send::enqueue;
use crate::settle::dead_letter::REASONS;
use crate::settle::end_lock;
use crate::settle::end_lock::Asker;

/// Redrives the dead letter whose lock a token names.
pub(crate) fn redrive(
    directory: &mut Directory,
    request: RequestId,
    place: SubqueueId,
    token: LockToken,
    message: RedrivenMessage,
    cx: &mut Context<'_>,
) {
    let asker = Asker::new(place, Some(request), None);
    let Some(queue) = directory.get_mut(place.entity) else {
        let result = Err(SettleError::LockLost);
        return cx.emit(Output::Settled { request, result });
    };
    let result = redrive_one(queue, &asker, request.connection, token, message, cx);
    cx.emit(Output::Settled { request, result });
    run(queue, cx);
}

fn redrive_one(
    queue: &mut Queue,
    asker: &Asker,
    by: ConnectionId,
    token: LockToken,
    edited: RedrivenMessage,
    cx: &mut Context<'_>,
) -> Result<(), SettleError> {
    let (subqueue, number) = end_lock::find_free_lock(queue, token, asker, cx)?;
    if subqueue == Subqueue::Main {
        return Err(SettleError::NotDead);
    }
    let session = match &edited {
        RedrivenMessage::Unchanged(payload) => Properties::of(payload).session_id,
        RedrivenMessage::Edited(message) => message.session_id.clone(),
    };
    let session = session.as_ref();
    if queue.settings.requires_session && session.is_none() {
        return Err(SettleError::NoSession);
    }
    queue.note_access(cx);
    let lock = end_lock::take_lock(queue, subqueue, number, cx);
    let message = lock.into_message(subqueue, number);
    queue.erase(&message, message.patch.is_some(), cx);
    let arriving = queue.rows.take_number(row::priority(&message.row));
    let from = queue.place_of(number);
    queue.record(arriving, || MessageEvent::Redriven { from, by }, cx);
    let (row, body) = match edited {
        RedrivenMessage::Unchanged(payload) => unchanged(queue, message, payload, arriving, cx),
        RedrivenMessage::Edited(edited) => {
            let enqueued = queue.rows.take_enqueued_time(cx);
            let row = MessageRow {
                flags: row::redriven(&message.row, false),
                ..enqueue::row_of(queue, &edited, arriving, enqueued)
            };
            (row, Body::received(edited.payload))
        }
    };
    enqueue::insert_with_body(queue, Subqueue::Main, session, arriving, row, body, cx);
    Ok(())
}

/// A message under its new number, without what made it a dead letter.
fn unchanged(
    queue: &mut Queue,
    message: Message,
    payload: Bytes,
    arriving: SequenceNumber,
    cx: &mut Context<'_>,
) -> (MessageRow, Body) {
    let session = Properties::of(&payload).session_id;
    let enqueued = queue.rows.take_enqueued_time(cx);
    let mut row = enqueue::arriving_row(queue, &message.row, message.number, arriving, enqueued);
    row.enqueued_number = 0;
    row.session_hash = queue.rows.session_hash(session.as_ref());
    let patch = message.patch.map(|patch| patch.without(&REASONS));
    let patch = patch.filter(|patch| !patch.is_empty());
    row.flags = row::redriven(&message.row, patch.is_some());
    if let Some(patch) = &patch {
        queue.rows.put_patch(arriving, patch, cx);
    }
    let body = Body {
        patch: patch.map(Box::new),
        ..Body::received(payload)
    };
    (row, body)
}

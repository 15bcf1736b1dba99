//! Delete: the oldest messages of a subqueue go at once, without being received.
//!
//! Locked, deferred and scheduled messages stay, and so does what arrives after the request. A
//! queue's deletions are done one after the other, at a rate set by the deletion scheduler; the
//! answer tells how many went. (docs/spec/entities.md#20)

pub(crate) mod deletion;
pub(crate) mod deletions;
pub(crate) mod pieces;

use bytes::Bytes;
use store::SequenceNumber;

use crate::api::error::RequestError;
use crate::api::id::{RequestId, SubqueueId};
use crate::api::output::Output;
use crate::api::time::Wall;
use crate::context::Context;
use crate::delete::deletion::Deletion;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::receive::run::{run, run_on};

/// What is to be deleted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub place: SubqueueId,
    /// Only messages of this session.
    pub session: Option<Bytes>,
    /// Only what was enqueued before.
    pub before: Wall,
    /// The most messages to delete.
    pub count: usize,
}

/// Deletes messages.
pub(crate) fn delete(
    directory: &mut Directory,
    request: RequestId,
    wanted: &Wanted,
    cx: &mut Context<'_>,
) {
    let started = match directory.open_to(wanted.place.entity, request.connection) {
        Ok(queue) => start_deletion(queue, request, wanted, cx),
        Err(error) => Err(error),
    };
    if let Err(error) = started {
        cx.emit(Output::Deleted {
            request,
            result: Err(error),
        });
    }
}

/// Lets the queues in line delete as much as one turn may.
pub(crate) fn go_on(directory: &mut Directory, cx: &mut Context<'_>) {
    while cx.shared.work_left > 0
        && let Some(entity) = cx.shared.deletion_scheduler.next()
    {
        // An entity may have gone while it stood in line.
        if let Some(queue) = directory.get_mut(entity) {
            cx.enter(queue.namespace);
            queue.deletions.leave_line();
            pieces::delete_share(queue, cx);
            run_on(queue, cx);
        }
    }
}

fn start_deletion(
    queue: &mut Queue,
    request: RequestId,
    wanted: &Wanted,
    cx: &mut Context<'_>,
) -> Result<(), RequestError> {
    let subqueue = wanted.place.subqueue;
    if wanted.session.is_some() && !queue.sub(subqueue).by_session {
        // Without them it would take the messages of all.
        return Err(RequestError::SessionsNotSupported);
    }
    queue.deletions.add(Deletion {
        request,
        subqueue,
        session: wanted
            .session
            .as_ref()
            .zip(queue.rows.session_ids)
            .map(|(id, ids)| ids.key(id)),
        before: wanted.before,
        left: wanted.count,
        deleted: 0,
        cursor: SequenceNumber(0),
        until: queue.rows.end(),
        before_arrival: queue.rows.next_arrival(),
        asked: None,
    });
    run(queue, cx);
    Ok(())
}

//! Renew: sets locks to a full lock duration from now, all or none. (docs/spec/entities.md#9)

use store::EntityId;

use crate::api::error::RequestError;
use crate::api::id::{ConnectionId, LockToken, RequestId, Subqueue};
use crate::api::lineage::MessageEvent;
use crate::api::output::Output;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::receive::run::run;
use crate::settle::end_lock;

/// Renews the locks that `tokens` name.
pub(crate) fn renew(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    tokens: &[LockToken],
    cx: &mut Context<'_>,
) {
    let result = match directory.get_mut(entity) {
        Some(queue) => renew_all(queue, request.connection, tokens, cx),
        None => Err(RequestError::NotFound),
    };
    cx.emit(Output::Renewed { request, result });
}

fn renew_all(
    queue: &mut Queue,
    connection: ConnectionId,
    tokens: &[LockToken],
    cx: &mut Context<'_>,
) -> Result<u64, RequestError> {
    let held = tokens
        .iter()
        .map(|token| end_lock::find_lock(queue, *token, cx));
    let held: Option<Vec<_>> = held.collect();
    let held = held.ok_or(RequestError::LockLost)?;
    let locks = |subqueue| &queue.sub(subqueue).locks;
    if held.iter().any(|(sub, number)| locks(*sub).lasts(*number)) {
        return Err(RequestError::LockedWithSession);
    }
    // It has no time that could be renewed. (docs/spec/rabbitmq.md#10.5)
    let lasts = |(sub, number): &(Subqueue, _)| locks(*sub).lasts_with_link(*number);
    if held.iter().any(lasts) {
        return Err(RequestError::LockLost);
    }
    let duration = queue.settings.lock_duration;
    let until = cx.now.mono.after(duration);
    for (subqueue, number) in held {
        queue
            .sub_mut(subqueue)
            .locks
            .extend(number, until, duration);
        queue.record(number, || MessageEvent::Renewed { connection }, cx);
    }
    run(queue, cx);
    Ok(duration)
}

//! Renew: sets locks to a full lock duration from now, all or none. (docs/spec/entities.md#9)

use store::EntityId;

use crate::api::id::{LockToken, RequestId};
use crate::api::output::{Output, RequestError};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::Queue;

/// Renews the locks that `tokens` name.
pub(crate) fn renew(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    tokens: &[LockToken],
    cx: &mut Context<'_>,
) {
    let result = match directory.get_mut(entity) {
        Some(queue) => queue.renew(tokens, cx),
        None => Err(RequestError::NotFound),
    };
    cx.emit(Output::Renewed { request, result });
}

impl Queue {
    fn renew(&mut self, tokens: &[LockToken], cx: &mut Context<'_>) -> Result<u64, RequestError> {
        let held = tokens.iter().map(|token| self.find_lock(*token, cx));
        let held: Option<Vec<_>> = held.collect();
        let held = held.ok_or(RequestError::LockLost)?;
        let locks = |subqueue| &self.sub(subqueue).locks;
        if held.iter().any(|(sub, number)| locks(*sub).lasts(*number)) {
            return Err(RequestError::LockedWithSession);
        }
        let duration = self.settings.lock_duration;
        let until = cx.now.mono.after(duration);
        for (subqueue, number) in held {
            let locks = &mut self.sub_mut(subqueue).locks;
            locks.extend(number, until, duration);
        }
        self.run(cx);
        Ok(duration)
    }
}

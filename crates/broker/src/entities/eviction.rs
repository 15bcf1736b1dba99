//! Eviction: receivers that an entity does not let in, or does not keep when its settings change.
//!
//! An evicted receiver is told the reason and is given no more messages. Its locks stay, as when it
//! detaches by itself. (docs/spec/entities.md#3, #14.1)

use store::EntityId;

use crate::api::id::{Subqueue, SubqueueId};
use crate::api::output::{Eviction, Output, RequestError};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::receive::attach;

impl Queue {
    /// Why no receiver is allowed on a subqueue, if so.
    pub(crate) fn objection(&self, subqueue: Subqueue) -> Option<Eviction> {
        if !self.settings.status.allows_receive() {
            return Some(Eviction::Disabled);
        }
        self.forwards(subqueue).then_some(Eviction::Forwarding)
    }
}

impl Directory {
    /// The queue of a place where a receiver would be let in.
    pub(crate) fn admit(&mut self, place: SubqueueId) -> Result<&mut Queue, Eviction> {
        let queue = self.get_mut(place.entity).ok_or(Eviction::NotFound)?;
        match queue.objection(place.subqueue) {
            Some(reason) => Err(reason),
            None => Ok(queue),
        }
    }

    /// A queue whose messages may be looked at or taken by request.
    pub(crate) fn receivable(&mut self, entity: EntityId) -> Result<&mut Queue, RequestError> {
        let queue = self.get_mut(entity).ok_or(RequestError::NotFound)?;
        if queue.settings.status.allows_receive() {
            Ok(queue)
        } else {
            Err(RequestError::Disabled)
        }
    }
}

/// The settings of an entity have changed: receivers that would not be let in now have to go.
pub(crate) fn enforce(directory: &mut Directory, entity: EntityId, cx: &mut Context<'_>) {
    let queue = directory.get(entity);
    let queue = queue.expect("its settings have just been changed");
    let clients = &cx.shared.clients;
    let receivers = clients.receivers_at(entity).map(|slot| clients.get(slot));
    let evicted = receivers.filter_map(|receiver| {
        let reason = queue.objection(receiver.place.subqueue)?;
        Some((receiver, reason))
    });
    let mut evicted: Vec<_> = evicted
        .map(|(receiver, reason)| (receiver.holds_session(), receiver.id, reason))
        .collect();
    // Holders last, or others would be given what they leave.
    evicted.sort_by_key(|(holds, ..)| *holds);
    for (_, receiver, reason) in evicted {
        attach::detach(directory, receiver, cx);
        cx.emit(Output::Evicted { receiver, reason });
    }
}

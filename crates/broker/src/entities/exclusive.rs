//! Exclusive: queues that belong to the connection that made them. (docs/spec/rabbitmq.md#7)
//!
//! Only that connection receives from such a queue, and the queue goes with it, whatever is in it.
//! After a restart no connection is there, so its lease is over at once (`queue/lease.rs`).
//! Invariant: an entity is in the list of a connection exactly if that is its owner.

use store::EntityId;

use crate::api::error::RequestError;
use crate::api::id::ConnectionId;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::entities::remove;
use crate::queue::Queue;

impl Directory {
    /// A queue that was made belongs to a connection, if it is exclusive.
    pub(crate) fn claim(
        &mut self,
        entity: EntityId,
        connection: ConnectionId,
        cx: &mut Context<'_>,
    ) {
        if let Some(queue) = self.get_mut(entity)
            && queue.settings.exclusive
        {
            queue.owner = Some(connection);
            queue.set_alarm(cx);
            self.exclusive.insert((connection, entity));
        }
    }

    /// A queue whose messages a connection may take by request.
    pub(crate) fn open_to(
        &mut self,
        entity: EntityId,
        connection: ConnectionId,
    ) -> Result<&mut Queue, RequestError> {
        let queue = self.receivable(entity)?;
        match queue.is_open_to(connection) {
            true => Ok(queue),
            false => Err(RequestError::Exclusive),
        }
    }

    /// An entity goes.
    pub(super) fn disclaim(&mut self, queue: &Queue) {
        if let Some(owner) = queue.owner {
            self.exclusive.remove(&(owner, queue.id));
        }
    }
}

impl Queue {
    /// Whether a connection may receive from it.
    pub(crate) fn is_open_to(&self, connection: ConnectionId) -> bool {
        !self.settings.exclusive || self.owner == Some(connection)
    }
}

/// A connection is gone, and all queues with it that belong to it.
pub(crate) fn end_of(directory: &mut Directory, connection: ConnectionId, cx: &mut Context<'_>) {
    let all = (connection, EntityId(0))..=(connection, EntityId(u64::MAX));
    let owned: Vec<_> = directory.exclusive.range(all).map(|(_, id)| *id).collect();
    for entity in owned {
        if let Some(queue) = directory.get(entity) {
            cx.enter(queue.namespace);
        }
        remove::end(directory, entity, cx);
    }
}

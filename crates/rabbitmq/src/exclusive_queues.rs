//! Exclusive queues: those that this connection has declared for itself.
//! (docs/spec/rabbitmq.md#6.1, #7)
//!
//! An exclusive queue that is not here belongs to another connection. Such a queue is neither
//! declared, deleted, purged, bound nor consumed; it can be published to and shown.

use std::collections::BTreeMap;

use access::Directory;
use store::EntityId;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveQueues {
    own: BTreeMap<String, EntityId>,
}

impl ExclusiveQueues {
    /// This connection has made one.
    pub(crate) fn declared(&mut self, name: String, id: EntityId) {
        self.own.insert(name, id);
    }

    /// Whether this connection has made a queue for itself.
    pub(crate) fn is_own(&self, name: &str, id: EntityId) -> bool {
        self.own.get(name) == Some(&id)
    }

    /// Whether the queue of a name is there and belongs to another connection.
    pub(crate) fn is_locked(&self, directory: &Directory, name: &str) -> bool {
        let queue = directory.get(name).filter(|it| it.settings.exclusive);
        queue.is_some_and(|queue| !self.is_own(&queue.path, queue.id))
    }

    /// Entities have changed: those that are gone are forgotten.
    pub(crate) fn retain(&mut self, directory: &Directory) {
        self.own.retain(|name, id| {
            let queue = directory.get(name);
            queue.is_some_and(|queue| queue.id == *id)
        });
    }
}

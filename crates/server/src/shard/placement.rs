//! Placement: which shard owns a namespace.
//!
//! All of a namespace lies on one shard, and nothing that a client does crosses a namespace; so a
//! connection, once it has its namespace, speaks to one shard alone. [`Placement::of`] is the one
//! place that decides which. Today there is one shard, which owns all of them, be they there or
//! not. A connection begins in the default namespace, so its shard is where it is registered.

use store::NamespaceId;

use crate::shard::Inbox;

/// The shards of a server.
#[derive(Clone, Debug)]
pub struct Placement {
    only: Inbox,
}

impl Placement {
    /// One shard that owns every namespace.
    pub fn on_one(shard: Inbox) -> Self {
        Self { only: shard }
    }

    /// The shard that owns a namespace.
    pub fn of(&self, _namespace: NamespaceId) -> &Inbox {
        &self.only
    }

    /// The shard that has the figures and the clock of the whole broker.
    pub fn of_broker(&self) -> &Inbox {
        self.of(NamespaceId::default())
    }
}

//! Namespace sizes: what the entities of each namespace hold that has a limit of bytes.
//!
//! Each row that is put or removed is weighed here, each state of a session, and each entity that
//! comes or goes with what is in it; so a send knows the sum without looking at the entities.
//! Namespaces without a limit are not weighed. Dynamic nodes have a limit of their own, and what
//! snapshots keep is no part of it.

use std::collections::BTreeMap;

use store::NamespaceId;

use crate::api::error::SendError;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct NamespaceSizes(BTreeMap<NamespaceId, Limited>);

#[derive(Clone, Copy, Debug)]
struct Limited {
    bytes: u64,
    limit: u64,
}

impl NamespaceSizes {
    /// A namespace has this limit from now on, or none. What it holds is asked for if it was not
    /// weighed before.
    pub(crate) fn set_limit(
        &mut self,
        namespace: NamespaceId,
        limit: Option<u64>,
        bytes: impl FnOnce() -> u64,
    ) {
        let Some(limit) = limit else {
            self.0.remove(&namespace);
            return;
        };
        let weighed = self.0.entry(namespace).or_insert_with(|| Limited {
            bytes: bytes(),
            limit,
        });
        weighed.limit = limit;
    }

    /// An entity of a namespace has grown, or shrunk.
    pub(crate) fn weigh(&mut self, namespace: NamespaceId, bytes: i64) {
        if let Some(limited) = self.0.get_mut(&namespace) {
            limited.bytes = limited.bytes.saturating_add_signed(bytes);
        }
    }

    /// Whether a namespace has room for a number of bytes more.
    pub(crate) fn check(&self, namespace: NamespaceId, more: u64) -> Result<(), SendError> {
        match self.0.get(&namespace) {
            Some(Limited { bytes, limit }) if bytes.saturating_add(more) > *limit => {
                let (size, limit) = (*bytes, *limit);
                Err(SendError::NamespaceFull { size, limit })
            }
            _ => Ok(()),
        }
    }
}

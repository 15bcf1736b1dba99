//! Stager: writes large bodies to the disk before their messages are decided.
//!
//! It does not keep the store open. A body that cannot be staged (the disk is nearly full, say) is
//! returned as it came; its commit then writes it, or fails with the reason.

use std::io;
use std::sync::Weak;

use bytes::Bytes;
use journal::STAGED_FROM;
use store::Stager;

use crate::disk_space::free_bytes;
use crate::open_store::OpenStore;

/// Stages bodies for one store, from any thread.
pub(crate) struct RocksStager {
    pub open_store: Weak<OpenStore>,
    /// Free space that is left to settlements.
    pub reserve: u64,
}

impl Stager for RocksStager {
    fn min_size(&self) -> usize {
        STAGED_FROM
    }

    fn stage(&self, body: Bytes) -> Bytes {
        let Some(open_store) = self.open_store.upgrade() else {
            return body;
        };
        match self.try_stage(&open_store, &body) {
            Ok(staged) => staged,
            Err(error) => {
                tracing::warn!(%error, bytes = body.len(), "a large body goes the way of small ones");
                body
            }
        }
    }
}

impl RocksStager {
    fn try_stage(&self, open_store: &OpenStore, body: &Bytes) -> io::Result<Bytes> {
        open_store.files.remove_abandoned()?;
        let free = free_bytes(open_store.directory.layout().root())?;
        if free < self.reserve.saturating_add(body.len() as u64) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        open_store.files.stage(body)
    }
}

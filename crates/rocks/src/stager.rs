//! Stager: has large bodies on the disk before anybody decides about their messages.
//!
//! It does not keep the store open. A body that can not be staged (the disk is nearly full, say) is
//! handed back as it came; its commit then writes it, or says why it can not.

use std::io;
use std::sync::Weak;

use bytes::Bytes;
use store::Stager;

use crate::journal::STAGED_FROM;
use crate::opened::Opened;
use crate::space::free_bytes;

/// Stages bodies for one store, from any thread.
pub(crate) struct RocksStager {
    pub opened: Weak<Opened>,
    /// Free space that is left to settlements.
    pub reserve: u64,
}

impl Stager for RocksStager {
    fn min_size(&self) -> usize {
        STAGED_FROM
    }

    fn stage(&self, body: Bytes) -> Bytes {
        let Some(opened) = self.opened.upgrade() else {
            return body;
        };
        match self.try_stage(&opened, &body) {
            Ok(staged) => staged,
            Err(error) => {
                tracing::warn!(%error, bytes = body.len(), "a large body goes the way of small ones");
                body
            }
        }
    }
}

impl RocksStager {
    fn try_stage(&self, opened: &Opened, body: &Bytes) -> io::Result<Bytes> {
        opened.files.remove_abandoned()?;
        let free = free_bytes(opened.directory.layout().root())?;
        if free < self.reserve.saturating_add(body.len() as u64) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        opened.files.stage(body)
    }
}

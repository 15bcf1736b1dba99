//! Commit log: the only way to write to the database.
//!
//! One call is one record in RocksDB's log, there whole or not at all. The first error is final:
//! after a failed sync nobody knows what is on the disk, and asking again may even succeed
//! without it being there, so nothing is ever retried.

use std::sync::Arc;

use rocksdb::{WriteBatch, WriteOptions};
use store::StoreError;

use crate::database::{Database, refused};

/// When a record has to be on stable storage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sync {
    /// Before the call returns, with everything before it.
    Now,
    /// With the next record that is synced.
    Later,
}

/// Writes batches, until the first failure.
pub(crate) struct CommitLog {
    database: Arc<Database>,
    synced: WriteOptions,
    relaxed: WriteOptions,
    broken: Option<StoreError>,
    #[cfg(test)]
    pub hooks: Arc<crate::hooks::Hooks>,
}

impl CommitLog {
    pub fn new(database: Arc<Database>) -> Self {
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Self {
            database,
            synced,
            relaxed: WriteOptions::default(),
            broken: None,
            #[cfg(test)]
            hooks: Arc::default(),
        }
    }

    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Writes `batch` as one record.
    pub fn append(&mut self, batch: WriteBatch, sync: Sync) -> Result<(), StoreError> {
        self.attempt(sync, |log| {
            let options = match sync {
                Sync::Now => &log.synced,
                Sync::Later => &log.relaxed,
            };
            log.database.db.write_opt(batch, options).map_err(refused)
        })
    }

    /// Makes everything appended so far durable.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.attempt(Sync::Now, |log| {
            log.database.db.flush_wal(true).map_err(refused)
        })
    }

    fn attempt(
        &mut self,
        sync: Sync,
        write: impl FnOnce(&Self) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if let Some(error) = &self.broken {
            return Err(StoreError::Poisoned(error.to_string()));
        }
        let outcome = self.pass_hooks(sync).and_then(|()| write(self));
        if let Err(error) = &outcome {
            self.broken = Some(error.clone());
        }
        outcome
    }

    #[cfg(test)]
    fn pass_hooks(&self, sync: Sync) -> Result<(), StoreError> {
        self.hooks.pass(sync)
    }

    #[cfg(not(test))]
    #[allow(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "as its twin in tests"
    )]
    fn pass_hooks(&self, _sync: Sync) -> Result<(), StoreError> {
        Ok(())
    }
}

//! Commit log: the journal's, which tests can stop or make fail.
//!
//! See [`journal::log`]: it is the only way to write to the journal, and its first error is final.

use std::sync::Arc;

use journal::log::CommitLog as JournalLog;
pub(crate) use journal::log::Sync;
use journal::{AppendedRecord, Moves, SealedSegment, Writer};
use store::{StoreError, WriteSet};

use crate::hooks::Hooks;

/// Writes records, until the first failure.
pub(crate) struct CommitLog {
    log: JournalLog,
    pub hooks: Arc<Hooks>,
}

impl CommitLog {
    pub fn new(journal: Writer) -> Self {
        Self {
            log: JournalLog::new(journal),
            hooks: Arc::default(),
        }
    }

    /// As [`JournalLog::append`].
    pub fn append(
        &mut self,
        position: u64,
        sets: &mut [WriteSet],
        moves: &mut Moves,
        sync: Sync,
    ) -> Result<AppendedRecord, StoreError> {
        self.pass_hooks(sync)?;
        self.log.append(position, sets, moves, sync)
    }

    /// As [`JournalLog::sync`].
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.pass_hooks(Sync::Now)?;
        self.log.sync()
    }

    /// As [`JournalLog::seal`].
    pub fn seal(&mut self) -> Option<SealedSegment> {
        self.log.seal()
    }

    fn pass_hooks(&mut self, sync: Sync) -> Result<(), StoreError> {
        let passed = self.hooks.pass(sync);
        if let Err(error) = &passed {
            self.log.break_with(error.clone());
        }
        passed
    }
}

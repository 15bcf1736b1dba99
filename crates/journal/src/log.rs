//! Commit log: the only way to write to the journal.
//!
//! The first error is final. After a failed sync the content of the disk is unknown, and a second
//! sync may succeed without the data being there, so nothing is ever retried.

use std::io;
use std::time::Instant;

use store::{StoreError, WriteSet};

use crate::journal_location::Moves;
use crate::segment::SealedSegment;
use crate::writer::{AppendedRecord, Writer};

/// When a record has to be on stable storage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sync {
    /// Before the call returns, with everything before it.
    Now,
    /// With the next record that is synced.
    Later,
}

/// Writes records, until the first failure.
pub struct CommitLog {
    journal: Writer,
    broken: Option<StoreError>,
}

impl CommitLog {
    pub fn new(journal: Writer) -> Self {
        Self {
            journal,
            broken: None,
        }
    }

    /// Writes `sets` and `moves` as the record `position`; see [`Writer::append`].
    pub fn append(
        &mut self,
        position: u64,
        sets: &mut [WriteSet],
        moves: &mut Moves,
        sync: Sync,
    ) -> Result<AppendedRecord, StoreError> {
        self.attempt(|journal| {
            let mut appended = journal.append(position, sets, moves)?;
            if sync == Sync::Now {
                let began = Instant::now();
                journal.sync()?;
                appended.sync = Some(began.elapsed());
            }
            Ok(appended)
        })
    }

    /// Makes everything appended so far durable.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.attempt(Writer::sync)
    }

    /// Ends the newest segment, so that nothing is added to what a copy links to.
    pub fn seal(&mut self) -> Option<SealedSegment> {
        self.journal.seal()
    }

    /// Has every later write refused because of `error`.
    pub fn break_with(&mut self, error: StoreError) {
        self.broken.get_or_insert(error);
    }

    fn attempt<T>(
        &mut self,
        write: impl FnOnce(&mut Writer) -> io::Result<T>,
    ) -> Result<T, StoreError> {
        if let Some(error) = &self.broken {
            return Err(StoreError::Poisoned(error.to_string()));
        }
        let failed = |error: io::Error| StoreError::Io(format!("writing the journal: {error}"));
        let outcome = write(&mut self.journal).map_err(failed);
        if let Err(error) = &outcome {
            self.broken = Some(error.clone());
        }
        outcome
    }
}

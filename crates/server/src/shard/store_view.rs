//! Store view: reads of the store beside the shard, from a commit on.

use std::fmt;
use std::sync::Arc;

use store::{CommitId, Found, Query, Reader, StoreError};

/// A reader that sees everything that was answered before it was asked for.
pub struct StoreView {
    reader: Arc<dyn Reader>,
    after: CommitId,
}

impl StoreView {
    /// The view of a store in which everything up to `after` is durable.
    pub fn new(reader: Arc<dyn Reader>, after: CommitId) -> Self {
        Self { reader, after }
    }

    /// Answers a query, which blocks.
    ///
    /// # Errors
    /// When the disk fails or what is read is damaged.
    pub fn read(&self, query: &Query) -> Result<Found, StoreError> {
        self.reader.read(self.after, query)
    }
}

impl fmt::Debug for StoreView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StoreView");
        shown.field("after", &self.after).finish_non_exhaustive()
    }
}

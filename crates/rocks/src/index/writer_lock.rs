//! Writer lock: the exclusive lock on files, taken so that readers go first for a while.
//!
//! Readers hold the lock shared and follow each other, so a busy store is hardly ever without one.
//! Files are removed in a moment without readers, if there is one. After a while the lock also
//! makes new readers wait, each time for at most an eighth of the time that the removal has
//! waited. So a reader that takes long does not block all others.

use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockWriteGuard};

/// The part of the waited time that new readers wait, and the longest.
const WAIT_FRACTION: u32 = 8;
const MAX_WAIT: Duration = Duration::from_secs(2);

/// A thread that removes files.
pub(crate) struct WriterLock {
    /// The time of the first attempt that readers prevented.
    waiting_since: Option<Instant>,
    reader_priority: Duration,
}

impl WriterLock {
    /// A lock that lets readers go first for `reader_priority`.
    pub fn new(reader_priority: Duration) -> Self {
        let waiting_since = None;
        Self {
            waiting_since,
            reader_priority,
        }
    }

    /// Locks `files` exclusively; `None` if readers hold it.
    pub fn try_acquire<'a>(&mut self, files: &'a RwLock<()>) -> Option<RwLockWriteGuard<'a, ()>> {
        let waited = self
            .waiting_since
            .get_or_insert_with(Instant::now)
            .elapsed();
        let alone = files.try_write().or_else(|| {
            let is_over = waited >= self.reader_priority;
            let wait = (waited / WAIT_FRACTION).min(MAX_WAIT);
            is_over.then(|| files.try_write_for(wait))?
        });
        if alone.is_some() {
            self.waiting_since = None;
        }
        alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_go_first_for_a_while_and_a_lock_without_readers_is_immediate() {
        let files = RwLock::new(());
        let mut writer_lock = WriterLock::new(Duration::MAX);
        assert!(writer_lock.try_acquire(&files).is_some());
        let reader = files.read();
        assert!(writer_lock.try_acquire(&files).is_none());
        assert!(writer_lock.waiting_since.is_some());
        drop(reader);
        assert!(writer_lock.try_acquire(&files).is_some());
        assert!(writer_lock.waiting_since.is_none());
    }

    #[test]
    fn readers_that_always_have_a_follower_make_way_in_the_end() {
        let files = RwLock::new(());
        let mut writer_lock = WriterLock::new(Duration::ZERO);
        let mut reader = files.read();
        std::thread::scope(|scope| {
            let dropping = scope.spawn(|| while writer_lock.try_acquire(&files).is_none() {});
            while !dropping.is_finished() {
                if let Some(next) = files.try_read() {
                    reader = next;
                } else {
                    // The lock waits, and so do new readers.
                    drop(reader);
                    reader = files.read();
                }
            }
        });
    }

    #[test]
    fn a_reader_that_stays_is_never_blocked() {
        let files = RwLock::new(());
        let _reader = files.read();
        let mut writer_lock = WriterLock::new(Duration::ZERO);
        for _ in 0..10 {
            assert!(writer_lock.try_acquire(&files).is_none());
        }
        assert!(files.try_read().is_some());
    }
}

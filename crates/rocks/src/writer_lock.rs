//! Patience: how long whoever drops files lets readers go first.
//!
//! Readers hold the database's lock on files together and come one after the other, so on a busy
//! store there is hardly a moment without one. Files go in such a moment if there is any. After a
//! while readers who come wait too, each time for an eighth of the time that this has gone on at most,
//! so that one who reads for long does not keep all others waiting.

use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockWriteGuard};

/// Of the time that readers have been in the way they wait this part, and no longer than this.
const WAIT_FRACTION: u32 = 8;
const MAX_WAIT: Duration = Duration::from_secs(2);

/// One who drops files.
pub(crate) struct WriterLock {
    /// Since when readers have been in the way.
    waiting_since: Option<Instant>,
    reader_priority: Duration,
}

impl WriterLock {
    /// For somebody who lets readers go first for so long.
    pub fn new(reader_priority: Duration) -> Self {
        let waiting_since = None;
        Self {
            waiting_since,
            reader_priority,
        }
    }

    /// Has `files` alone, or nothing if readers are in the way.
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
    fn readers_go_first_for_a_while_and_nobody_waits_for_none() {
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
    fn readers_who_always_have_a_follower_make_way_in_the_end() {
        let files = RwLock::new(());
        let mut writer_lock = WriterLock::new(Duration::ZERO);
        let mut reader = files.read();
        std::thread::scope(|scope| {
            let dropping = scope.spawn(|| while writer_lock.try_acquire(&files).is_none() {});
            while !dropping.is_finished() {
                if let Some(next) = files.try_read() {
                    reader = next;
                } else {
                    // It waits, and those who come now do too.
                    drop(reader);
                    reader = files.read();
                }
            }
        });
    }

    #[test]
    fn a_reader_who_stays_is_left_alone() {
        let files = RwLock::new(());
        let _reader = files.read();
        let mut writer_lock = WriterLock::new(Duration::ZERO);
        for _ in 0..10 {
            assert!(writer_lock.try_acquire(&files).is_none());
        }
        assert!(files.try_read().is_some());
    }
}

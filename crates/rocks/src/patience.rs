//! Patience: how long whoever drops files lets readers go first.
//!
//! Readers hold the database's lock on files together and come one after the other, so on a busy
//! store there is hardly a moment without one. Files go in such a moment if there is any, and after
//! a while readers wait.

use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// One who drops files.
pub(crate) struct Patience {
    /// Since when readers have been in the way.
    since: Option<Instant>,
    at_most: Duration,
}

impl Patience {
    /// For somebody who lets readers go first for so long.
    pub fn new(at_most: Duration) -> Self {
        let since = None;
        Self { since, at_most }
    }

    /// Has `files` alone, or nothing if there are readers and it can wait.
    pub fn alone<'a>(&mut self, files: &'a RwLock<()>) -> Option<RwLockWriteGuard<'a, ()>> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let alone = match files.try_write() {
            Ok(alone) => alone,
            Err(_) if since.elapsed() < self.at_most => return None,
            Err(_) => files.write().unwrap_or_else(PoisonError::into_inner),
        };
        self.since = None;
        Some(alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_go_first_for_a_while_and_nobody_waits_for_none() {
        let files = RwLock::new(());
        let mut patience = Patience::new(Duration::MAX);
        assert!(patience.alone(&files).is_some());
        let reader = files.read().expect("no panic");
        assert!(patience.alone(&files).is_none());
        assert!(patience.since.is_some());
        drop(reader);
        assert!(patience.alone(&files).is_some());
        assert!(patience.since.is_none());
    }

    #[test]
    fn a_reader_who_always_has_a_follower_is_waited_for() {
        let files = RwLock::new(());
        let reader = files.read().expect("no panic");
        let mut patience = Patience::new(Duration::ZERO);
        std::thread::scope(|scope| {
            let alone = scope.spawn(|| patience.alone(&files).is_some());
            // From when it waits nobody new comes in.
            while files.try_read().is_ok() {
                std::thread::yield_now();
            }
            drop(reader);
            assert!(alone.join().expect("no panic"));
        });
    }
}

//! Scrubber: reads all that is at rest, at a bounded pace, so that damage is found before what it
//! affects is needed.
//!
//! One thread reads piece by piece and rests after each as long as the pace demands. A pass begins
//! a minute after the start, and an hour after the last pass ended.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use store::StoreError;

use crate::damage::damage_log::DamageLog;
use crate::damage::walk::Walk;
use crate::open_store::OpenStore;
use crate::statistics::Statistics;

const FIRST: Duration = Duration::from_secs(60);
const BETWEEN: Duration = Duration::from_secs(3_600);

/// Tells the thread that the store is being closed.
#[derive(Default)]
pub(crate) struct StopScrub {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopScrub {
    pub fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for `time`, and returns whether the store is being closed.
    fn wait(&self, time: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(stopped, time, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Everything the thread owns.
pub(crate) struct Scrubber {
    pub open_store: Arc<OpenStore>,
    pub damage: Arc<DamageLog>,
    pub statistics: Arc<Statistics>,
    pub stop: Arc<StopScrub>,
    /// Bytes in a second; above 0.
    pub pace: u64,
}

impl Scrubber {
    /// Works until the store is closed.
    pub fn run(self) {
        let mut rest = FIRST;
        while !self.stop.wait(rest) {
            if let Err(error) = self.pass() {
                tracing::warn!(%error, "the scrubber could not read the store to its end");
            }
            rest = BETWEEN;
        }
    }

    /// Reads everything once.
    pub fn pass(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        let (mut rows, mut bytes) = (0, 0);
        let mut walk = Walk::new(&self.open_store.database, &self.open_store.files);
        while let Some(piece) = walk.next()? {
            for damage in &piece.damage {
                self.damage.note(damage.error());
            }
            rows += piece.rows;
            bytes += piece.bytes;
            self.statistics.count_scrubbed(piece.bytes);
            if self.stop.wait(self.rest(piece.bytes)) {
                return Ok(());
            }
        }
        tracing::debug!(rows, bytes, took = ?began.elapsed(), "read everything at rest");
        Ok(())
    }

    /// How long `bytes` take at the pace.
    fn rest(&self, bytes: u64) -> Duration {
        let us = bytes.saturating_mul(1_000_000) / self.pace.max(1);
        Duration::from_micros(us)
    }
}

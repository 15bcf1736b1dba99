//! Lock reports: what the core says of the locks whose ends have spans.
//!
//! A settlement that its client waits for ends with its answer, and the report before it is kept
//! until then. One without an answer ends with its report. What is kept is bounded: beyond it the
//! reports before are forgotten, and spans that still wait end without theirs.

use broker::{DeadLettering, LockToken, SettleError};
use rustc_hash::FxHashMap;

use super::span::Span;

/// Reports and spans that are kept.
const MOST: usize = 4_096;

/// What the core reports of a lock.
pub type LockReport = Result<Option<Box<DeadLettering>>, SettleError>;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct LockReports {
    /// Settlements without an answer.
    waiting: FxHashMap<LockToken, Span>,
    /// Messages that are dead letters now, by the locks that they had.
    dead_letters: FxHashMap<LockToken, DeadLettering>,
}

impl LockReports {
    /// Keeps the span of a settlement without an answer. Returns those that have waited too long.
    pub fn wait_for(&mut self, lock: LockToken, span: Span) -> Vec<Span> {
        let forgotten = match self.waiting.len() < MOST {
            true => Vec::new(),
            false => self.forget_waiting(),
        };
        self.waiting.insert(lock, span);
        forgotten
    }

    /// Takes out all spans that wait.
    pub fn forget_waiting(&mut self) -> Vec<Span> {
        self.waiting.drain().map(|(_, span)| span).collect()
    }

    /// Handles a report. Returns the span that ends with it.
    pub fn handle(&mut self, lock: LockToken, report: &LockReport) -> Option<Span> {
        if let Ok(Some(dead_letter)) = report {
            if self.dead_letters.len() >= MOST {
                self.dead_letters.clear();
            }
            self.dead_letters.insert(lock, (**dead_letter).clone());
        }
        self.waiting.remove(&lock)
    }

    /// Takes the report of a lock, if its message is a dead letter now.
    pub fn take(&mut self, lock: LockToken) -> Option<DeadLettering> {
        self.dead_letters.remove(&lock)
    }
}

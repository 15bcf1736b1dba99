//! Retries: abandoned messages that wait for their next delivery, and return to their place. (I6,
//! I10)
//!
//! A message waits as long as its receiver or its entity's retry-backoff says, and until its
//! deadline at the latest. It keeps its number and its row.

use broker::{LockToken, RetryTime};
use store::{CommitId, EntityId, Part};

use super::entry::Waited;
use super::{Ask, Ledger};
use crate::books::{Move, Place};
use crate::violation::Violation;

/// When a receiver wants a message to be delivered again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    entity: EntityId,
    at: u64,
    /// Its lock was certainly held.
    sure: bool,
}

impl Ledger {
    /// Messages are abandoned until a time.
    pub(super) fn note_retry(
        &mut self,
        entity: EntityId,
        tokens: &[LockToken],
        retry: RetryTime,
        sure: bool,
    ) {
        let at = match retry {
            RetryTime::Backoff => return,
            RetryTime::After(delay_ms) => self.turn.now.wall.0.saturating_add(delay_ms),
            RetryTime::At(at) => at.0,
        };
        let ids = tokens.iter().filter_map(|token| self.tokens.get(token));
        let retries = ids.map(|id| (*id, Retry { entity, at, sure }));
        self.turn.retries.extend(retries);
    }

    /// What was abandoned for later is not available now.
    pub(super) fn check_retries(&self) -> Result<(), Violation> {
        let now = self.turn.now.wall.0;
        let later = |retry: &Retry| retry.sure && retry.at > now;
        for (id, retry) in self.turn.retries.iter().filter(|(_, retry)| later(retry)) {
            let place = self.books.place(*id);
            let place = place.map(|place| (place.entity, place.part));
            if place == Some((retry.entity, Part::Active)) {
                let what = format!("message {id} does not wait: {retry:?}");
                return Err(Violation::new("I10", what));
            }
        }
        Ok(())
    }

    /// An available message begins to wait, since its lock ended without success.
    pub(super) fn explain_wait(
        &mut self,
        moved: &Move,
        from: Place,
        to: Place,
        commit: CommitId,
    ) -> Result<(), Violation> {
        let now = self.turn.now.wall.0;
        let asked = self.ended(moved.id, Ask::Abandon, commit)?;
        let count = self.books.count(to);
        let (_, queue) = self.entry_at(moved.id, from)?;
        let backoff = queue.retry_backoff;
        let backoff = backoff.map(|it| now.saturating_add(it.delay(count)));
        let told = self.turn.retries.get(&moved.id).map(|retry| retry.at);
        let expires = moved.old_row.map_or(u64::MAX, |row| row.expires_ms);
        let due = moved.row.enqueued_ms;
        let mut wanted = told.into_iter().chain(backoff);
        if due <= now || !wanted.any(|at| at.min(expires) == due) {
            let what = format!(
                "message {} waits until {due}, not {told:?} or {backoff:?}",
                moved.id
            );
            return Err(Violation::new("I10", what));
        }
        if !asked {
            self.check_not_locked(moved.id, "made to wait")?;
        }
        self.report.waited += 1;
        let epoch = self.epoch;
        if let Some(entry) = self.entries.get_mut(&moved.id) {
            entry.waited = moved.old_row.map(|row| Waited { row, epoch });
        }
        Ok(())
    }

    /// A message that waited is available again, as it was.
    pub(super) fn explain_return(&mut self, moved: &Move, from: Place) -> Result<(), Violation> {
        let (entry, _) = self.entry_at(moved.id, from)?;
        let waited = entry.waited;
        let due = moved.old_row.map(|row| row.enqueued_ms);
        let what = if due.is_none_or(|due| due > self.turn.now.wall.0) {
            "returned before its time"
        } else if waited.is_none_or(|waited| waited.row != moved.row) {
            "returned with another row"
        } else {
            let epoch = waited.map_or(self.epoch, |waited| waited.epoch);
            self.report.waited_over_crash += u64::from(self.epoch > epoch);
            let turn = self.turn.index;
            if let Some(entry) = self.entries.get_mut(&moved.id) {
                entry.freed = turn;
            }
            return Ok(());
        };
        let what = format!("message {} {what}: {:?}", moved.id, moved.row);
        Err(Violation::new("I10", what))
    }
}

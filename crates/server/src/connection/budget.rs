//! Budget: bytes that all connections together may make the server keep.
//!
//! There are two kinds. Unanswered bytes are with the broker, which answers in time whatever the
//! peer does, so a connection with unanswered bytes may stay unread while the budget is used up.
//! Partial bytes belong to unfinished messages. Only their peer can finish them, so waiting does
//! not help, and a connection drops them instead. Partial bytes may fill half of the budget, those
//! of connections without a right an eighth, so neither slow nor unauthenticated peers stop the
//! others.
//!
//! Each connection keeps its own share up to date. Invariant: the totals are the sums of the
//! shares of all open connections.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Partial bytes that there is room for however small the budget is: some messages of usual size.
const LEAST_PARTIAL: usize = 1 << 20;

/// What all connections share.
#[derive(Debug)]
pub struct Budget {
    total: AtomicUsize,
    partial: AtomicUsize,
    limit: AtomicUsize,
}

impl Budget {
    /// An unused budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            total: AtomicUsize::new(0),
            partial: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
        }
    }

    /// Replaces the limit. What is in use already counts on.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Unanswered and partial bytes together.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Bytes of unfinished messages.
    pub fn partial(&self) -> usize {
        self.partial.load(Ordering::Relaxed)
    }

    fn partial_limit(&self, is_unauthenticated: bool) -> usize {
        let half = (self.limit() / 2).max(LEAST_PARTIAL);
        if is_unauthenticated { half / 4 } else { half }
    }
}

/// One connection's share of a [`Budget`]; given back on drop.
#[derive(Debug)]
pub struct BudgetShare {
    budget: Arc<Budget>,
    unanswered: usize,
    partial: usize,
}

impl BudgetShare {
    /// An empty share.
    pub fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            unanswered: 0,
            partial: 0,
        }
    }

    /// Says what the share is now.
    pub fn set(&mut self, unanswered: usize, partial: usize) {
        let before = self.unanswered + self.partial;
        adjust(&self.budget.total, before, unanswered + partial);
        adjust(&self.budget.partial, self.partial, partial);
        self.unanswered = unanswered;
        self.partial = partial;
    }

    /// The share's unanswered bytes.
    pub fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// The share's partial bytes.
    pub fn partial(&self) -> usize {
        self.partial
    }

    /// Whether this share has to shrink before it may grow. One with nothing unanswered may always
    /// grow, so that settlements are never stuck behind the sends of other connections, and since
    /// nothing would make it shrink.
    pub fn is_exhausted(&self) -> bool {
        self.unanswered > 0 && self.budget.total.load(Ordering::Relaxed) >= self.budget.limit()
    }

    /// Partial bytes of this share beyond its limit, given those of all other shares.
    pub fn excess(&self, is_unauthenticated: bool) -> usize {
        let limit = self.budget.partial_limit(is_unauthenticated);
        let partial = self.budget.partial.load(Ordering::Relaxed);
        partial.saturating_sub(limit).min(self.partial)
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.set(0, 0);
    }
}

/// Replaces one share in a total.
fn adjust(total: &AtomicUsize, before: usize, after: usize) {
    // Statistics, not synchronisation: the limit may be passed by what one read brings.
    match after.cmp(&before) {
        Greater => _ = total.fetch_add(after - before, Ordering::Relaxed),
        Less => _ = total.fetch_sub(before - after, Ordering::Relaxed),
        Equal => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 8 << 20;

    fn share(budget: &Arc<Budget>, unanswered: usize, partial: usize) -> BudgetShare {
        let mut share = BudgetShare::new(Arc::clone(budget));
        share.set(unanswered, partial);
        share
    }

    #[test]
    fn a_share_is_exhausted_when_the_total_is_used_up_and_a_part_of_it_is_its_own() {
        let budget = Arc::new(Budget::new(100));
        let sender = share(&budget, 60, 0);
        let mut other = share(&budget, 39, 0);
        let receiver = BudgetShare::new(Arc::clone(&budget));
        assert!(!sender.is_exhausted());
        other.set(40, 0);
        assert!(sender.is_exhausted());
        assert!(other.is_exhausted());
        assert!(!receiver.is_exhausted());
    }

    #[test]
    fn a_dropped_share_returns_its_bytes() {
        let budget = Arc::new(Budget::new(LIMIT));
        let sender = share(&budget, 1, 0);
        let dawdler = share(&budget, 0, 1);
        let other = share(&budget, LIMIT, LIMIT);
        assert!(sender.is_exhausted());
        assert_eq!(dawdler.excess(false), 1);
        drop(other);
        assert!(!sender.is_exhausted());
        assert_eq!(dawdler.excess(false), 0);
    }

    #[test]
    fn partial_bytes_use_the_budget_up_too() {
        let budget = Arc::new(Budget::new(100));
        let sender = share(&budget, 60, 0);
        let _dawdler = share(&budget, 0, 40);
        assert!(sender.is_exhausted());
    }

    #[test]
    fn a_share_of_partial_bytes_alone_is_read_on_however_large_it_is() {
        let budget = Arc::new(Budget::new(LIMIT));
        let dawdler = share(&budget, 0, 2 * LIMIT);
        assert!(!dawdler.is_exhausted());
        assert_eq!(dawdler.excess(false), 2 * LIMIT - LIMIT / 2);
    }

    #[test]
    fn partial_bytes_beyond_half_the_budget_are_an_excess_of_the_share_that_grows() {
        let budget = Arc::new(Budget::new(LIMIT));
        let mut first = share(&budget, 0, LIMIT / 4);
        let second = share(&budget, LIMIT, LIMIT / 4);
        assert_eq!(first.excess(false), 0);
        first.set(0, LIMIT / 4 + 10);
        assert_eq!(first.excess(false), 10);
        let small = share(&budget, 0, 3);
        assert_eq!(small.excess(false), 3, "never more than its own");
        drop(second);
        assert_eq!(small.excess(false), 0);
    }

    #[test]
    fn unauthenticated_peers_have_an_eighth_of_the_budget_for_partial_bytes() {
        let budget = Arc::new(Budget::new(LIMIT));
        let stranger = share(&budget, 0, LIMIT / 8 + 1);
        assert_eq!(stranger.excess(true), 1);
        assert_eq!(stranger.excess(false), 0);
    }

    #[test]
    fn a_small_budget_has_room_for_a_message_of_usual_size() {
        let budget = Arc::new(Budget::new(100));
        assert_eq!(share(&budget, 0, 256 << 10).excess(false), 0);
    }
}

//! Budget: bytes that all connections together may have given to the broker without an answer.
//!
//! Each connection keeps its own share up to date. Invariant: the total is the sum of the shares
//! of all connections that live.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all connections share.
#[derive(Debug)]
pub struct Budget {
    total: AtomicUsize,
    limit: usize,
}

impl Budget {
    /// An unused budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            total: AtomicUsize::new(0),
            limit,
        }
    }
}

/// One connection's share of a [`Budget`]; given back on drop.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// An empty share.
    pub fn new(budget: Arc<Budget>) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Says what the share is now.
    pub fn set(&mut self, bytes: usize) {
        // Statistics, not synchronisation: the limit may be passed by what one read brings.
        match bytes.cmp(&self.bytes) {
            std::cmp::Ordering::Greater => {
                self.budget
                    .total
                    .fetch_add(bytes - self.bytes, Ordering::Relaxed);
            }
            std::cmp::Ordering::Less => {
                self.budget
                    .total
                    .fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            }
            std::cmp::Ordering::Equal => {}
        }
        self.bytes = bytes;
    }

    /// What the share is.
    pub fn get(&self) -> usize {
        self.bytes
    }

    /// Whether this share has to shrink before it may grow. One that is empty may always grow, so
    /// that settlements are never stuck behind the sends of others.
    pub fn is_exhausted(&self) -> bool {
        self.bytes > 0 && self.budget.total.load(Ordering::Relaxed) >= self.budget.limit
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_exhausted_when_the_total_is_used_up_and_a_part_of_it_is_its_own() {
        let budget = Arc::new(Budget::new(100));
        let mut sender = Share::new(Arc::clone(&budget));
        let mut other = Share::new(Arc::clone(&budget));
        let receiver = Share::new(budget);
        sender.set(60);
        other.set(39);
        assert!(!sender.is_exhausted());
        other.set(40);
        assert!(sender.is_exhausted());
        assert!(other.is_exhausted());
        assert!(!receiver.is_exhausted());
    }

    #[test]
    fn a_dropped_share_is_given_back() {
        let budget = Arc::new(Budget::new(100));
        let mut sender = Share::new(Arc::clone(&budget));
        sender.set(1);
        let mut other = Share::new(budget);
        other.set(100);
        assert!(sender.is_exhausted());
        drop(other);
        assert!(!sender.is_exhausted());
    }
}

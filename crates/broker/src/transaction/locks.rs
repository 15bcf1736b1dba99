//! Locks within a transaction: marked while it is open, ended by its commit or left to their
//! holder.
//!
//! A mark belongs to the transaction that holds the token: a token is given once, and a marked
//! lock cannot be enlisted again. Renewal works; a lock that runs out is gone, mark and all.

use crate::api::command::Outcome;
use crate::api::id::LockToken;
use crate::api::output::SettleError;
use crate::context::Context;
use crate::queue::Queue;
use crate::settle::{Asker, check_allowed};

impl Queue {
    /// Marks the locks that `tokens` name, each once: all of them or none.
    pub(super) fn enlist_locks(
        &mut self,
        asker: &Asker,
        tokens: &[LockToken],
        outcome: &Outcome,
        cx: &Context<'_>,
    ) -> Result<(), SettleError> {
        let mut found = Vec::with_capacity(tokens.len());
        for &token in tokens {
            let (subqueue, number) = self.find_free_lock(token, asker, cx)?;
            check_allowed(subqueue, outcome)?;
            found.push((subqueue, number));
        }
        for (subqueue, number) in found {
            self.sub_mut(subqueue).locks.enlist(number, true);
        }
        Ok(())
    }

    /// Takes the marks back. A lock that has run out may belong to another receiver by now.
    pub(super) fn release_locks(&mut self, tokens: &[LockToken], cx: &Context<'_>) {
        for &token in tokens {
            if let Some((subqueue, number)) = self.find_lock(token, cx) {
                self.sub_mut(subqueue).locks.enlist(number, false);
            }
        }
    }

    /// Whether all these locks still hold.
    pub(super) fn holds_locks(&self, tokens: &[LockToken], cx: &Context<'_>) -> bool {
        tokens
            .iter()
            .all(|token| self.find_lock(*token, cx).is_some())
    }

    /// Ends marked locks, which hold.
    pub(super) fn end_locks(
        &mut self,
        tokens: &[LockToken],
        outcome: &Outcome,
        cx: &mut Context<'_>,
    ) {
        self.note_access(cx);
        for &token in tokens {
            let found = self.find_lock(token, cx);
            let (subqueue, number) = found.expect("the commit has seen that all locks hold");
            let lock = self.take_lock(subqueue, number, cx);
            assert!(lock.enlisted, "it was marked for this transaction");
            self.end_lock(subqueue, number, lock, outcome.clone(), cx);
        }
    }
}

//! Locks: whether those that tokens name can be settled, as far as the ledger knows. (I3)
//!
//! A lock is certainly held until its time is up or a request may have ended it, and certainly over
//! once its time is up or its end was said. In between it is not known.

use broker::LockToken;

use super::Ledger;
use super::answers::LockState;

impl Ledger {
    /// Whether all these locks can be settled, or none of them can, or it is not known.
    pub(super) fn lock_state(&self, tokens: &[LockToken]) -> LockState {
        let lock = |token: &LockToken| self.entries.get(self.tokens.get(token)?)?.lock;
        let locks = tokens.iter().filter_map(lock);
        let taken = locks.filter_map(|lock| Some(self.is_taken(lock.enlisted?)));
        match (self.lasting(tokens), taken.max()) {
            (LockState::Lost, _) | (_, Some(LockState::Lost)) => LockState::Lost,
            (_, Some(_)) => LockState::Unknown,
            (lasting, None) => lasting,
        }
    }

    /// Whether all these locks are held, or one of them is over, or it is not known.
    pub(super) fn lasting(&self, tokens: &[LockToken]) -> LockState {
        let now = self.turn.now.mono;
        let mut going = false;
        let mut of = |token: &LockToken| {
            let id = self.tokens.get(token)?;
            let entry = self
                .entries
                .get(id)
                .filter(|entry| !entry.removed_with_entity)?;
            going |= self.queues[entry.queue].going;
            let lock = entry.lock?;
            Some(lock).filter(|lock| lock.token == *token && !lock.is_over(now))
        };
        let locks: Option<Vec<_>> = tokens.iter().map(&mut of).collect();
        match locks {
            None => LockState::Lost,
            Some(locks) if !going && locks.iter().all(|lock| lock.excludes(now)) => LockState::Held,
            Some(_) => LockState::Unknown,
        }
    }
}

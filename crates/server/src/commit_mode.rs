//! Crowd: whether somebody is alone with the shard, so that the task may wait for the disk itself.
//!
//! Who sends one message after the other is answered sooner so: two wake-ups of threads are saved. Where
//! several do, what the others bring should be decided during a sync. That shows by what comes meanwhile;
//! then the task leaves waiting to the store for a while.

use store::Caller;

/// Who brings more in one batch does not wait for each, and more of it may follow.
const FEW_COMMANDS: usize = 4;
/// So many turns pass before it tries again after somebody else has come.
const TURNS: u32 = 32;

/// What the last turns have shown.
#[derive(Debug, Default)]
pub struct CommitMode {
    /// Turns that are to pass.
    left: u32,
}

impl CommitMode {
    /// Whether a turn of so many commands in so many batches is alone, and whether the inbox is empty then.
    pub fn choose(&mut self, batches: usize, commands: usize, inbox_is_empty: bool) -> Caller {
        if batches > 1 || !inbox_is_empty {
            self.left = TURNS;
        }
        if self.left == 0 && commands <= FEW_COMMANDS {
            return Caller::Alone;
        }
        self.left = self.left.saturating_sub(1);
        Caller::Busy
    }

    /// Whether the inbox is empty after such a turn.
    pub fn observe(&mut self, caller: Caller, inbox_is_empty: bool) {
        if caller == Caller::Alone && !inbox_is_empty {
            self.left = TURNS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_is_alone() {
        let mut mode = CommitMode::default();
        for batches in [1, 0, 1, 1] {
            let caller = mode.choose(batches, 1, true);
            assert_eq!(caller, Caller::Alone);
            mode.observe(caller, true);
        }
    }

    #[test]
    fn who_brings_much_at_once_does_not_wait_for_each() {
        let mut mode = CommitMode::default();
        assert_eq!(mode.choose(1, FEW_COMMANDS + 1, true), Caller::Busy);
        assert_eq!(mode.choose(1, FEW_COMMANDS, true), Caller::Alone);
    }

    #[test]
    fn who_meets_somebody_is_not_alone_for_a_while() {
        let meetings: [fn(&mut CommitMode); 3] = [
            |mode| assert_eq!(mode.choose(2, 1, true), Caller::Busy),
            |mode| assert_eq!(mode.choose(1, 1, false), Caller::Busy),
            |mode| {
                let caller = mode.choose(1, 1, true);
                mode.observe(caller, false);
            },
        ];
        for meet in meetings {
            let mut mode = CommitMode::default();
            meet(&mut mode);
            let busy = (0..100).take_while(|_| mode.choose(1, 1, true) == Caller::Busy);
            assert!(busy.count() >= 31);
        }
    }
}

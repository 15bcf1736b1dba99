//! Commit mode: whether the shard task commits a turn itself and waits for the disk.
//!
//! A client that sends one message at a time is answered sooner that way, since two wake-ups of
//! threads are saved. With several clients, the commands that arrive during a sync should be
//! decided meanwhile. If commands arrive while the task commits alone, it leaves commits to the
//! store for a number of turns.

use store::CallerLoad;

/// A client that sends more commands in one batch does not wait for each, and may send more.
const FEW_COMMANDS: usize = 4;
/// Turns to wait before the shard commits alone again after another client appeared.
const WAIT_TURNS: u32 = 32;

/// Chooses how a turn is committed, by the turns before it.
#[derive(Debug, Default)]
pub struct CommitMode {
    /// Turns that are left to wait.
    left: u32,
}

impl CommitMode {
    /// The caller of the next turn, which has `commands` in `batches`; `inbox_is_empty` says
    /// whether no more messages wait.
    pub fn choose(&mut self, batches: usize, commands: usize, inbox_is_empty: bool) -> CallerLoad {
        if batches > 1 || !inbox_is_empty {
            self.left = WAIT_TURNS;
        }
        if self.left == 0 && commands <= FEW_COMMANDS {
            return CallerLoad::Idle;
        }
        self.left = self.left.saturating_sub(1);
        CallerLoad::Busy
    }

    /// Notes whether the inbox is empty after a turn by `caller`.
    pub fn observe(&mut self, caller: CallerLoad, inbox_is_empty: bool) {
        if caller == CallerLoad::Idle && !inbox_is_empty {
            self.left = WAIT_TURNS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_one_after_the_other_are_alone() {
        let mut mode = CommitMode::default();
        for batches in [1, 0, 1, 1] {
            let caller = mode.choose(batches, 1, true);
            assert_eq!(caller, CallerLoad::Idle);
            mode.observe(caller, true);
        }
    }

    #[test]
    fn a_client_with_many_commands_at_once_does_not_wait_for_each() {
        let mut mode = CommitMode::default();
        assert_eq!(mode.choose(1, FEW_COMMANDS + 1, true), CallerLoad::Busy);
        assert_eq!(mode.choose(1, FEW_COMMANDS, true), CallerLoad::Idle);
    }

    #[test]
    fn a_client_that_meets_another_is_not_alone_for_a_while() {
        let meetings: [fn(&mut CommitMode); 3] = [
            |mode| assert_eq!(mode.choose(2, 1, true), CallerLoad::Busy),
            |mode| assert_eq!(mode.choose(1, 1, false), CallerLoad::Busy),
            |mode| {
                let caller = mode.choose(1, 1, true);
                mode.observe(caller, false);
            },
        ];
        for meet in meetings {
            let mut mode = CommitMode::default();
            meet(&mut mode);
            let busy = (0..100).take_while(|_| mode.choose(1, 1, true) == CallerLoad::Busy);
            assert!(busy.count() >= 31);
        }
    }
}

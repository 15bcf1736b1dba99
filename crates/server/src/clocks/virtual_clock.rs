//! Virtual clock: the offset between real time and the broker's, which users move so that their
//! tests need not sleep.
//!
//! It holds for all namespaces; `namespace_clocks` advances a single one, and `broker_clock` adds
//! the offset to the real time of `clock`. An advance moves the offset from one deadline of the
//! broker to the next, only when nothing is due or under way, so everything happens in order and at
//! its own time. Real time is passed in: this is a table of states. Invariant: one change at a
//! time, in the order of the requests; both clocks move by the same amount, and never back.

use std::collections::VecDeque;
use std::time::Duration;

use broker::{Deadline, Mono, Now, Wall};
use store::CommitId;
use tokio::sync::oneshot;

/// How far virtual time may be ahead, in milliseconds: 100 years.
pub const MOST: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;

/// What can be asked of a clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClockRequest {
    /// What time is it?
    Show,
    /// Let this much time pass, and let everything happen that is due by then.
    Advance(Duration),
    /// Stop virtual time, or let it run on.
    Freeze(bool),
}

/// What a clock shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClockReading {
    pub wall: Wall,
    /// Virtual less real time, in milliseconds. A clock that was frozen may be behind.
    pub offset: i64,
    pub frozen: bool,
}

/// Why a clock does not do what it is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ClockError {
    #[error(
        "this broker's clock is real; start it with --virtual-clock to have one that can be moved"
    )]
    NotVirtual,
    #[error("the clock can be at most 100 years ahead of real time")]
    TooFar,
    #[error("the namespace does not exist any more")]
    NamespaceGone,
    #[error(
        "the clock of a namespace can be advanced but not frozen; /$railbus/clock freezes that of \
         the broker"
    )]
    NotAlone,
}

/// Takes an answer. The client may be gone by then; its request is carried out all the same.
pub type ReplySender = oneshot::Sender<Result<ClockReading, ClockError>>;

/// What the shard has to do and has done, after a turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShardProgress {
    pub deadline: Option<Deadline>,
    /// Reads that have not come back, and deletions that wait for a commit.
    pub reads: usize,
    pub submitted: CommitId,
    /// The newest commit whose outputs have all been sent.
    pub released: CommitId,
}

/// Virtual time and what is to be done to it.
#[derive(Debug, Default)]
pub struct VirtualClock {
    /// Virtual less real time while it runs.
    offset: Offset,
    /// Where it stands while it does not run.
    held: Option<Now>,
    advance: Option<Advance>,
    waiting: VecDeque<(ClockRequest, ReplySender)>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Offset {
    wall: i64,
    mono: i64,
}

/// An advance under way.
#[derive(Debug)]
struct Advance {
    amount: u64,
    /// How much of it has not passed yet.
    left: u64,
    was_frozen: bool,
    /// Set when all has passed: what is submitted up to here has to be durable.
    last: Option<CommitId>,
    answer: ReplySender,
}

impl VirtualClock {
    /// Virtual time when it is `real`.
    pub fn now(&self, real: Now) -> Now {
        self.held.unwrap_or(Now {
            wall: Wall(real.wall.0.saturating_add_signed(self.offset.wall)),
            mono: Mono(real.mono.0.saturating_add_signed(self.offset.mono)),
        })
    }

    /// Whether time stands still, so that nothing becomes due by waiting.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// The real time of a virtual `deadline`, while time runs.
    pub fn real(&self, deadline: Deadline) -> Deadline {
        let back = |at: u64, offset: i64| at.saturating_add_signed(offset.saturating_neg());
        Deadline {
            mono: deadline.mono.map(|at| Mono(back(at.0, self.offset.mono))),
            wall: deadline.wall.map(|at| Wall(back(at.0, self.offset.wall))),
        }
    }

    /// Takes a request, to be answered when it is done.
    pub fn ask(&mut self, request: ClockRequest, answer: ReplySender, real: Now) {
        if request == ClockRequest::Show {
            // Not in turn, so that one can see where a long advance is.
            return self.reply(answer, real);
        }
        self.waiting.push_back((request, answer));
        self.begin(real);
    }

    /// The shard has made a turn. Moves an advance on, by one deadline at most: what has become
    /// due comes first.
    pub fn advance_to_deadline(&mut self, real: Now, progress: ShardProgress) {
        let (Some(now), Some(advance)) = (self.held, &mut self.advance) else {
            return;
        };
        if advance.last.is_none() {
            if progress.reads > 0 || is_due(progress.deadline, now) {
                return;
            }
            if advance.left > 0 {
                let step = until(progress.deadline, now).min(advance.left);
                advance.left -= step;
                self.held = Some(later(now, step));
                return;
            }
        }
        let last = *advance.last.get_or_insert(progress.submitted);
        if last <= progress.released {
            self.finish(real);
        }
    }

    /// Whether the shard should make a turn although nothing arrived.
    pub fn wants_turn(&self, real: Now, deadline: Option<Deadline>, reads: usize) -> bool {
        let moves = |advance: &Advance| advance.last.is_none() && reads == 0;
        is_due(deadline, self.now(real)) || self.advance.as_ref().is_some_and(moves)
    }

    /// Starts what is next, and does at once what takes no time.
    fn begin(&mut self, real: Now) {
        while self.advance.is_none()
            && let Some((request, answer)) = self.waiting.pop_front()
        {
            match request {
                ClockRequest::Show => self.reply(answer, real),
                ClockRequest::Advance(amount) => self.start_advance(amount, answer, real),
                ClockRequest::Freeze(frozen) => {
                    self.freeze(frozen, real);
                    self.reply(answer, real);
                }
            }
        }
    }

    fn start_advance(&mut self, amount: Duration, answer: ReplySender, real: Now) {
        let amount = millis(amount);
        let ahead = u64::try_from(self.reading(real).offset).unwrap_or(0);
        if ahead.saturating_add(amount) > MOST {
            // The client may be gone.
            let _ = answer.send(Err(ClockError::TooFar));
            return;
        }
        let was_frozen = self.is_held();
        self.held = Some(self.now(real));
        self.advance = Some(Advance {
            amount,
            left: amount,
            was_frozen,
            last: None,
            answer,
        });
    }

    fn finish(&mut self, real: Now) {
        let Some(advance) = self.advance.take() else {
            return;
        };
        if !advance.was_frozen {
            // The time that the advance itself took passes too.
            let amount = i64::try_from(advance.amount).unwrap_or(i64::MAX);
            self.offset.wall = self.offset.wall.saturating_add(amount);
            self.offset.mono = self.offset.mono.saturating_add(amount);
            self.held = None;
        }
        self.reply(advance.answer, real);
        self.begin(real);
    }

    fn freeze(&mut self, frozen: bool, real: Now) {
        match (self.held, frozen) {
            (None, true) => self.held = Some(self.now(real)),
            (Some(now), false) => {
                self.offset = Offset {
                    wall: difference(now.wall.0, real.wall.0),
                    mono: difference(now.mono.0, real.mono.0),
                };
                self.held = None;
            }
            (Some(_), true) | (None, false) => {}
        }
    }

    fn reply(&self, answer: ReplySender, real: Now) {
        // The client may be gone.
        let _ = answer.send(Ok(self.reading(real)));
    }

    /// What it shows.
    pub fn reading(&self, real: Now) -> ClockReading {
        let wall = self.now(real).wall;
        let frozen = match &self.advance {
            Some(advance) => advance.was_frozen,
            None => self.is_held(),
        };
        ClockReading {
            wall,
            offset: difference(wall.0, real.wall.0),
            frozen,
        }
    }
}

fn is_due(deadline: Option<Deadline>, now: Now) -> bool {
    until(deadline, now) == 0
}

/// Milliseconds until the first of the two clocks reaches its deadline.
pub fn until(deadline: Option<Deadline>, now: Now) -> u64 {
    let deadline = deadline.unwrap_or_default();
    let mono = deadline.mono.map(|at| at.0.saturating_sub(now.mono.0));
    let wall = deadline.wall.map(|at| at.0.saturating_sub(now.wall.0));
    mono.into_iter().chain(wall).min().unwrap_or(u64::MAX)
}

/// An amount of time in milliseconds.
pub fn millis(amount: Duration) -> u64 {
    u64::try_from(amount.as_millis()).unwrap_or(u64::MAX)
}

fn later(now: Now, step: u64) -> Now {
    Now {
        wall: Wall(now.wall.0.saturating_add(step)),
        mono: Mono(now.mono.0.saturating_add(step)),
    }
}

fn difference(left: u64, right: u64) -> i64 {
    let difference = i128::from(left) - i128::from(right);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
#[path = "virtual_clock_tests.rs"]
mod tests;

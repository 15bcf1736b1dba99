//! Namespace clocks: the advances of the clocks of single namespaces that are under way.
//!
//! The offsets themselves are in the core (`context/clocks.rs` of `broker`); `virtual_clock` moves
//! the time of all namespaces. An advance moves the clock of its namespace from one deadline of
//! that namespace to the next, only when nothing there is due or under way, so everything happens
//! in order and at its own time. Meanwhile the broker's time runs on. Invariant: in a namespace
//! there is one advance at a time, in the order of the requests; those of other namespaces do not
//! wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use broker::{Command, Now, Shard, Wall};
use store::{CommitId, NamespaceId};

use crate::clocks::virtual_clock::{
    ClockError, ClockReading, ClockRequest, MOST, ReplySender, millis, until,
};

/// The advances that are not over, by namespace.
#[derive(Debug, Default)]
pub struct NamespaceClocks(BTreeMap<NamespaceId, VecDeque<Advance>>);

#[derive(Debug)]
struct Advance {
    /// How much of it has not passed yet.
    left: u64,
    /// Set when all has passed: what is submitted up to here has to be durable.
    last: Option<CommitId>,
    answer: ReplySender,
}

impl NamespaceClocks {
    /// Takes a request, to be answered when it is done. The broker's own clock shows `reading`.
    pub fn ask(
        &mut self,
        namespace: NamespaceId,
        request: ClockRequest,
        answer: ReplySender,
        reading: ClockReading,
        shard: &Shard,
    ) {
        let own = shard.broker.ahead(namespace);
        let own = own.map(|ahead| later(reading, ahead));
        let refusal = match (own, request) {
            (None, _) => Err(ClockError::NamespaceGone),
            (Some(_), ClockRequest::Freeze(_)) => Err(ClockError::NotAlone),
            (Some(own), ClockRequest::Show) => Ok(own),
            (Some(own), ClockRequest::Advance(amount)) => {
                match self.add(namespace, amount, answer, own) {
                    Ok(()) => return,
                    Err(answer) => return reply(answer, Err(ClockError::TooFar)),
                }
            }
        };
        reply(answer, refusal);
    }

    /// Returns the sender of what would be too far.
    fn add(
        &mut self,
        namespace: NamespaceId,
        amount: Duration,
        answer: ReplySender,
        own: ClockReading,
    ) -> Result<(), ReplySender> {
        let waiting = self.0.get(&namespace).into_iter().flatten();
        let left = millis(amount);
        let ahead = u64::try_from(own.offset).unwrap_or(0);
        let all = waiting.fold(ahead.saturating_add(left), |sum, advance| {
            sum.saturating_add(advance.left)
        });
        if all > MOST {
            return Err(answer);
        }
        let last = None;
        let advance = Advance { left, last, answer };
        self.0.entry(namespace).or_default().push_back(advance);
        Ok(())
    }

    /// The shard has made a turn. Moves each advance on, by one deadline of its namespace at most,
    /// with the commands of the next turn.
    pub fn advance_to_deadlines(
        &mut self,
        now: Now,
        reading: ClockReading,
        shard: &Shard,
        commands: &mut Vec<Command>,
    ) {
        self.0.retain(|namespace, advances| {
            let Some(ahead) = shard.broker.ahead(*namespace) else {
                for advance in advances.drain(..) {
                    reply(advance.answer, Err(ClockError::NamespaceGone));
                }
                return false;
            };
            let done = advances.pop_front_if(|advance| {
                if let Some(ms) = advance.next_step(*namespace, now, shard) {
                    let namespace = *namespace;
                    commands.push(Command::AdvanceClock { namespace, ms });
                }
                advance.last.is_some_and(|last| last <= shard.released())
            });
            if let Some(advance) = done {
                reply(advance.answer, Ok(later(reading, ahead)));
            }
            !advances.is_empty()
        });
    }

    /// Whether the shard should make a turn although nothing arrived.
    pub fn want_turn(&self, shard: &Shard) -> bool {
        let mut firsts = self.0.iter().filter_map(|(namespace, advances)| {
            let first = advances.front()?;
            first.last.is_none().then_some(*namespace)
        });
        firsts.any(|namespace| !shard.broker.is_under_way_in(namespace))
    }
}

impl Advance {
    /// How much time is to pass at once, if any may pass now.
    fn next_step(&mut self, namespace: NamespaceId, now: Now, shard: &Shard) -> Option<u64> {
        if self.last.is_some() || shard.broker.is_under_way_in(namespace) {
            return None;
        }
        let free = until(Some(shard.broker.deadline_in(namespace)), now);
        if free > 0 && self.left == 0 {
            self.last = Some(shard.submitted());
        }
        let step = free.min(self.left);
        self.left -= step;
        (step > 0).then_some(step)
    }
}

/// What a clock shows that is `ahead` milliseconds ahead of one that shows `reading`.
fn later(reading: ClockReading, ahead: u64) -> ClockReading {
    ClockReading {
        wall: Wall(reading.wall.0.saturating_add(ahead)),
        offset: reading.offset.saturating_add_unsigned(ahead),
        frozen: reading.frozen,
    }
}

fn reply(answer: ReplySender, result: Result<ClockReading, ClockError>) {
    // The client may be gone.
    let _ = answer.send(result);
}

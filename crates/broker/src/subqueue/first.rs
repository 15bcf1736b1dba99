//! First: from where a restart finds a subqueue's messages.
//!
//! That is its least live number, unless a few messages lag far behind the others (locked for long,
//! say): then these are named as stragglers, so that a restart does not walk over everything that
//! was deleted behind them.

use store::{Head, SequenceNumber};

use crate::queue::rows::Rows;
use crate::subqueue::SubqueueState;
use crate::subqueue::lock::Origin;

/// How many locks are looked at for the least live numbers.
const LOOK_AT: usize = 64;

impl SubqueueState {
    /// From where its messages are found, and the few before that. It has some.
    pub(crate) fn place_of_first(&self, rows: &Rows) -> (SequenceNumber, Vec<SequenceNumber>) {
        let mut least: Vec<SequenceNumber> = Vec::with_capacity(LOOK_AT);
        let mut bound = if self.beyond(rows) > 0 {
            self.window.end()
        } else {
            rows.end()
        };
        for (looked_at, (number, lock)) in self.locks.range(..).enumerate() {
            if looked_at == LOOK_AT {
                bound = bound.min(number);
                break;
            }
            if lock.origin != Origin::Deferred {
                least.push(number);
            }
        }
        let known = self.window.known_from(SequenceNumber(0));
        least.extend(
            known
                .map(|(number, _)| number)
                .take(Head::MAX_STRAGGLERS + 1),
        );
        least.retain(|number| *number < bound);
        least.push(bound);
        least.sort_unstable();
        least.truncate(Head::MAX_STRAGGLERS + 1);
        split_at_gap(least)
    }
}

/// Splits the least live numbers before the widest gap, if it is wide.
fn split_at_gap(mut least: Vec<SequenceNumber>) -> (SequenceNumber, Vec<SequenceNumber>) {
    /// Fewer deleted numbers are not worth a straggler.
    const WIDE: u64 = 1_024;
    let gap = |index: &usize| least[*index].0 - least[*index - 1].0;
    let widest = (1..least.len()).max_by_key(gap);
    match widest.filter(|index| gap(index) > WIDE) {
        Some(index) => {
            let resume = least[index];
            least.truncate(index);
            (resume, least)
        }
        None => (least[0], Vec::new()),
    }
}

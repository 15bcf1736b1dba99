//! Heads: what a restart will know of an entity, written once per touched entity and turn.
//!
//! A part's `resume` is its least live number, unless a few messages lag far behind the others
//! (locked for long, say): then these are named as stragglers, so that a restart does not walk
//! over everything that was deleted behind them.

use store::{Head, Part, PartHead, SequenceNumber, Write};

use crate::api::id::Subqueue;
use crate::context::Context;
use crate::queue::Queue;
use crate::subqueue::lock::Origin;

/// How many locks are looked at for the least live numbers.
const LOOK_AT: usize = 64;

impl Queue {
    /// Writes the head.
    pub(crate) fn write_head(&mut self, cx: &mut Context<'_>) {
        self.touched = false;
        self.access_is_written();
        self.write_session_expiries(cx);
        for subqueue in Subqueue::ALL {
            let sub = self.sub(subqueue);
            debug_assert!(
                (sub.window.len() + sub.locks.on_available()) as u64
                    <= self.head.part(subqueue.part()).count,
                "a part counts all that memory knows of it"
            );
            let (resume, stragglers) = self.place_of_first(subqueue);
            let part = self.head.part_mut(subqueue.part());
            part.resume = resume.0;
            part.stragglers = stragglers;
        }
        for subqueue in Subqueue::ALL {
            let next = self.head.next_number;
            let part = self.head.part_mut(subqueue.deferred_part());
            raise_when_empty(part, next);
        }
        let next = self.head.next_number;
        raise_when_empty(self.head.part_mut(Part::Scheduled), next);
        self.head.schedule_from = self.schedule_start();
        self.head.session_state_bytes = self.sessions.as_ref().map_or(0, |s| s.state_bytes);
        cx.write(Write::PutHead {
            entity: self.id,
            head: self.head.clone(),
        });
    }

    /// From where a subqueue's messages are found, and the few before that.
    pub(crate) fn place_of_first(
        &self,
        subqueue: Subqueue,
    ) -> (SequenceNumber, Vec<SequenceNumber>) {
        if self.head.part(subqueue.part()).count == 0 {
            return (self.head.next_number, Vec::new());
        }
        if let Some(sessions) = self
            .sessions
            .as_ref()
            .filter(|_| subqueue == Subqueue::Main)
        {
            let resume = SequenceNumber(self.head.part(subqueue.part()).resume);
            return (sessions.least().unwrap_or(resume), Vec::new());
        }
        let sub = self.sub(subqueue);
        let mut least: Vec<SequenceNumber> = Vec::with_capacity(LOOK_AT);
        let mut bound = if self.beyond(subqueue) > 0 {
            sub.window.end()
        } else {
            self.head.next_number
        };
        for (looked_at, (number, lock)) in sub.locks.range(..).enumerate() {
            if looked_at == LOOK_AT {
                bound = bound.min(number);
                break;
            }
            if lock.origin != Origin::Deferred {
                least.push(number);
            }
        }
        let known = sub.window.known_from(SequenceNumber(0));
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

fn raise_when_empty(part: &mut PartHead, next: SequenceNumber) {
    if part.count == 0 {
        part.resume = next.0;
    }
}

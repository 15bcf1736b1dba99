//! Sweep: a block of 1,024 numbers that is looked through for messages past their deadline.
//!
//! It notes the least deadline of what stays, and when to look again after what could not leave
//! now: locked messages, and those whose patches cannot be read.

use store::SequenceNumber;

use crate::api::id::ReadId;
use crate::api::time::Wall;
use crate::context::Context;
use crate::expire::index::{self, bounds_of};
use crate::subqueue::SubqueueState;
use crate::subqueue::lock::Origin;

/// When to look again after messages that were due and locked.
const LOOK_AGAIN_MS: u64 = 60_000;
/// A block that is being looked through.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(super) block: u64,
    /// Everything below has been looked at.
    pub(super) cursor: SequenceNumber,
    pub(super) found: index::Outcome,
    pub(super) waiting: Option<ReadId>,
    /// Up to where the read under way looks for the next block that is to be rechecked.
    pub(crate) reach: Option<SequenceNumber>,
    /// The most rows that the next read asks for.
    pub(super) limit: usize,
    /// Due, but their patches have to be read first.
    pub(super) unpatched: Vec<SequenceNumber>,
    pub(super) unpatched_bytes: usize,
    /// Some of these are damaged, so that each is read by itself, the last one next.
    pub(super) one_by_one: Vec<SequenceNumber>,
}

impl Sweep {
    pub(super) fn new(block: u64) -> Self {
        Self {
            block,
            cursor: bounds_of(block).0,
            found: index::Outcome {
                remaining: u64::MAX,
                again: None,
            },
            waiting: None,
            reach: None,
            limit: usize::MAX,
            unpatched: Vec::new(),
            unpatched_bytes: 0,
            one_by_one: Vec::new(),
        }
    }

    /// Whether a read is under way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub(super) fn end(&self) -> SequenceNumber {
        bounds_of(self.block).1
    }

    /// The messages whose patches are to be read next, if any.
    pub(super) fn next_unpatched(&mut self) -> Vec<SequenceNumber> {
        if let Some(number) = self.one_by_one.pop() {
            return vec![number];
        }
        self.unpatched_bytes = 0;
        std::mem::take(&mut self.unpatched)
    }

    pub(super) fn keep(&mut self, expires: u64) {
        self.found.remaining = self.found.remaining.min(expires);
    }

    pub(super) fn look_again(&mut self, cx: &Context<'_>) {
        let again = cx.now.wall.0.saturating_add(LOOK_AGAIN_MS);
        self.found.again = Some(again);
    }

    /// What was found, as it is to be noted now.
    pub(super) fn outcome(&self, now: Wall) -> index::Outcome {
        // The clock may have gone back since the sweep began.
        let soonest = now.0.saturating_add(LOOK_AGAIN_MS);
        index::Outcome {
            again: self.found.again.map(|again| again.min(soonest)),
            ..self.found
        }
    }

    /// Locked messages from the cursor to `until` are only noted.
    pub(super) fn look_at_locks(
        &mut self,
        main: &SubqueueState,
        until: SequenceNumber,
        cx: &Context<'_>,
    ) {
        for (number, lock) in main.locks.range(self.cursor..until) {
            if lock.origin == Origin::Deferred {
                continue;
            }
            if main.is_expired(number, &lock.row, cx.now.wall) {
                self.look_again(cx);
            } else {
                self.keep(main.ceilings.expires_ms(number, &lock.row));
            }
        }
    }

    /// The read that it has waited for came back.
    pub(super) fn stop_waiting(&mut self, read: ReadId) {
        let waited = self.waiting.take();
        assert_eq!(waited, Some(read), "a sweep waits for one read at a time");
    }
}

//! History: what a message was before it was forwarded or redriven, so that a crash can undo it.

use broker::Wall;
use store::SequenceNumber;

use super::{Entry, Hold};

/// What a message was before it went on.
#[derive(Clone, Copy, Debug)]
pub(in crate::ledger) struct Hop {
    queue: usize,
    source: Option<&'static str>,
    ttl: u64,
    due: u64,
    asked_wall: Wall,
}

/// What a redrive has put an end to.
#[derive(Clone, Copy, Debug)]
pub(in crate::ledger) struct Redriven {
    /// How often it had been forwarded.
    hops: usize,
    enqueued: Option<SequenceNumber>,
    /// The number that it got.
    next: SequenceNumber,
}

impl Entry {
    /// It goes on to another queue.
    pub(in crate::ledger) fn record_forward(
        &mut self,
        to: usize,
        source: Option<&'static str>,
        ttl: u64,
        now: Wall,
    ) {
        self.hops.push(Hop {
            queue: self.queue,
            source: self.source,
            ttl: self.ttl,
            due: self.due,
            asked_wall: self.asked_wall,
        });
        self.queue = to;
        self.source = source;
        self.ttl = ttl;
        // By the time at which it was due the clock may have gone back.
        self.due = 0;
        self.asked_wall = now;
        self.last_count = 0;
        self.changed |= source.is_some();
        if let Some(lock) = &mut self.lock {
            lock.hold = Hold::Ended;
        }
    }

    /// A crash has left it where it was before.
    pub(in crate::ledger) fn undo_forwards(&mut self, queue: usize) {
        while self.queue != queue
            && let Some(before) = self.hops.pop()
        {
            self.queue = before.queue;
            self.source = before.source;
            self.ttl = before.ttl;
            self.due = before.due;
            self.asked_wall = before.asked_wall.min(self.asked_wall);
        }
    }

    /// It is redriven under that number.
    pub(in crate::ledger) fn record_redrive(&mut self, number: SequenceNumber) {
        self.redrives.push(Redriven {
            hops: self.hops.len(),
            enqueued: self.enqueued,
            next: number,
        });
        self.number = Some(number);
        self.enqueued = Some(number);
        self.dead_lettered = None;
        self.last_count = 0;
    }

    /// A crash has left it where it has that number: redrives that were lost did not happen.
    pub(in crate::ledger) fn undo_redrives(&mut self, number: SequenceNumber) {
        let hops = self.hops.len();
        let is_lost = |earlier: &Redriven| {
            earlier.hops > hops
                || (earlier.hops == hops && number.arrival() < earlier.next.arrival())
        };
        while let Some(earlier) = self.redrives.pop_if(|earlier| is_lost(earlier)) {
            self.enqueued = earlier.enqueued;
        }
    }
}

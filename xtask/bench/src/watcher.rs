//! Watcher: receives what a sender sends at a fixed rate, and tells how long each message took.
//!
//! A queue without sessions hands out its messages in order, so the number of a message says when
//! it was due. It counts from then, not from when it could be sent.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use endpoint::{Connection, Event, LinkId, SessionId};
use hdrhistogram::Histogram;

use super::task::{Taken, Tally, Task};
use load::receiver::{Receiver, SettleMode};

/// Microseconds, shared with the caller that reads them at the end.
pub type Waits = Rc<RefCell<Histogram<u64>>>;

/// A receiving link and what was waited for.
pub struct Watcher {
    receiver: Receiver,
    every: Duration,
    start: Option<Instant>,
    waits: Waits,
}

/// Nothing waited for yet: one microsecond to one minute, three digits.
pub fn waits() -> Waits {
    let waits = Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in order");
    Rc::new(RefCell::new(waits))
}

impl Watcher {
    /// Watches what comes to `queue`, where a message is due `every` so often.
    pub fn new(queue: &str, every: Duration, waits: &Waits) -> Self {
        Self {
            receiver: Receiver::new(queue),
            every,
            start: None,
            waits: Rc::clone(waits),
        }
    }

    /// The next message has come.
    fn arrived(&self, now: Instant) {
        let Some(start) = self.start else { return };
        let number = u32::try_from(self.receiver.received()).unwrap_or(u32::MAX);
        let wait = now.saturating_duration_since(start + self.every * number);
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.waits.borrow_mut().saturating_record(micros);
    }
}

impl Task for Watcher {
    fn attach(&mut self, engine: &mut Connection, session: SessionId) {
        self.receiver.attach(engine, session, SettleMode::Second);
    }

    fn links(&self) -> Vec<LinkId> {
        self.receiver.link().into_iter().collect()
    }

    fn start(&mut self, now: Instant, engine: &mut Connection) {
        self.start = Some(now);
        self.receiver.start(engine);
    }

    fn handle(&mut self, now: Instant, event: &Event, engine: &mut Connection) -> Result<bool> {
        match event {
            Event::Delivery {
                session,
                delivery_id,
                ..
            } => {
                self.arrived(now);
                self.receiver.settle(now, *session, *delivery_id, engine);
            }
            Event::Updated { settled: true, .. } => self.receiver.settled(now),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn tally(&self) -> Tally {
        Tally {
            is_answered: true,
            taken: Some(Taken {
                received: self.receiver.received(),
                settled: self.receiver.count(),
            }),
            last: self.receiver.last(),
            ..Tally::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_from_when_it_was_due() {
        let (start, waits) = (Instant::now(), waits());
        let mut watcher = Watcher::new("q", Duration::from_millis(1), &waits);
        watcher.arrived(start);
        assert_eq!(waits.borrow().len(), 0, "it has not started");
        watcher.start = Some(start);
        watcher.arrived(start + Duration::from_millis(5));
        assert_eq!(waits.borrow().len(), 1);
        assert!(waits.borrow().max().abs_diff(5_000) < 10);
    }
}

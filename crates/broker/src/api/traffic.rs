//! Traffic: what has come and gone at an entity since the process began, for metrics.

use store::Part;

use crate::api::latency::Latency;

/// Counters that only rise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// By [`Part`] number: how many messages came into it.
    pub arrived: [u64; Part::ALL.len()],
    /// By [`Part`] number: how many messages left it.
    pub departed: [u64; Part::ALL.len()],
    /// Messages handed to receivers, again and again those that come back.
    pub delivered: u64,
    /// Messages that receivers were done with, those taken in receive-and-delete mode among them.
    pub completed: u64,
    /// Messages whose time to live was over.
    pub expired: u64,
    /// From the enqueued time of messages to their first delivery.
    pub delivery_time: Latency,
    /// From the enqueued time of messages to the settlement that ended their stay: completed, or
    /// dead-lettered by their receiver.
    pub settlement_time: Latency,
}

impl Traffic {
    /// How many messages came into a part, from wherever. One whose lock ends has not left it.
    #[must_use]
    pub fn arrived(&self, part: Part) -> u64 {
        self.arrived[part as usize]
    }

    /// How many messages left a part, to wherever.
    #[must_use]
    pub fn departed(&self, part: Part) -> u64 {
        self.departed[part as usize]
    }

    pub(crate) fn arrive(&mut self, part: Part) {
        add_one(&mut self.arrived[part as usize]);
    }

    pub(crate) fn depart(&mut self, part: Part) {
        add_one(&mut self.departed[part as usize]);
    }

    /// Counts a delivery. `waited_ms` is the time since the message was enqueued, if this is its
    /// first.
    pub(crate) fn deliver(&mut self, waited_ms: Option<u64>) {
        add_one(&mut self.delivered);
        if let Some(waited_ms) = waited_ms {
            self.delivery_time.add(waited_ms);
        }
    }

    /// Counts a completion; see [`Self::settle`].
    pub(crate) fn complete(&mut self, took_ms: Option<u64>) {
        add_one(&mut self.completed);
        self.settle(took_ms);
    }

    /// Counts a final settlement. `took_ms` is the time since the message was enqueued, unless it
    /// was a dead letter.
    pub(crate) fn settle(&mut self, took_ms: Option<u64>) {
        if let Some(took_ms) = took_ms {
            self.settlement_time.add(took_ms);
        }
    }

    pub(crate) fn expire(&mut self) {
        add_one(&mut self.expired);
    }
}

fn add_one(counter: &mut u64) {
    *counter = counter.wrapping_add(1);
}

//! Sub: one subqueue's window, locks, takers and browsers.

pub(crate) mod browse;
pub(crate) mod fetch;
pub(crate) mod lock;
pub(crate) mod number_map;
pub(crate) mod read_ahead;
pub(crate) mod refill;
pub(crate) mod selections;
pub(crate) mod window;

use std::collections::VecDeque;

use store::{PartHead, SequenceNumber};

use crate::api::settings::BrokerSettings;
use crate::api::time::Mono;
use crate::context::clients::ReceiverSlot;
use crate::forward::Pump;
use crate::subqueue::browse::Browsers;
use crate::subqueue::fetch::Fetch;
use crate::subqueue::lock::Locks;
use crate::subqueue::read_ahead::ReadAhead;
use crate::subqueue::selections::Selections;
use crate::subqueue::window::Window;

/// Reads of a subqueue's bodies at a time: two ahead of their turn as a rule, and those that a
/// receiver waits for.
const MOST_FETCHES: usize = 4;

#[derive(Debug)]
pub(crate) struct Sub {
    pub window: Window,
    pub locks: Locks,
    /// Receivers with credit, in the order of their turns.
    pub takers: VecDeque<ReceiverSlot>,
    pub selections: Selections,
    pub browsers: Browsers,
    /// Receivers that wait for what is available, and then for the end of their drain.
    pub draining: Vec<ReceiverSlot>,
    /// How many receivers there are.
    pub attached: usize,
    /// The bodies that are being read.
    pub fetch: Fetch,
    pub read_ahead: ReadAhead,
    /// After a read that met a damaged body: one at a time, to find it.
    pub cautious: bool,
    /// After a read that failed: not again before this moment.
    pub retry_at: Option<Mono>,
    /// When judging goes on that a turn's budget has stopped.
    pub resume_at: Option<Mono>,
    /// What keeps messages that go on by themselves.
    pub pump: Pump,
    /// A message has become available, or a receiver waits for one.
    pub needs_pump: bool,
}

impl Sub {
    pub(crate) fn new(window: usize, head: &PartHead) -> Self {
        let resume = SequenceNumber(head.resume);
        Self {
            window: Window::new(window, resume, head.stragglers.clone()),
            locks: Locks::default(),
            takers: VecDeque::new(),
            selections: Selections::default(),
            browsers: Browsers::default(),
            draining: Vec::new(),
            attached: 0,
            fetch: Fetch::default(),
            read_ahead: ReadAhead::default(),
            cautious: false,
            retry_at: None,
            resume_at: None,
            pump: Pump::default(),
            needs_pump: false,
        }
    }

    /// Whether no more messages can be lent before some come back.
    pub(crate) fn is_full_of_locks(&self, settings: &BrokerSettings) -> bool {
        self.locks
            .is_full(settings.max_locked, settings.locked_bytes)
    }

    /// Whether more bodies may be asked for.
    pub(crate) fn can_fetch(&self) -> bool {
        self.fetch.count() < MOST_FETCHES && self.retry_at.is_none()
    }

    /// When it wants a tick; it may be too early.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        let earliest = self.locks.earliest();
        let waits = [self.retry_at, self.resume_at, self.pump.deadline()];
        let waits = waits.into_iter().flatten();
        earliest.into_iter().chain(waits).min()
    }
}

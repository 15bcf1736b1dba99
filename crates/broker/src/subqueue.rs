//! Subqueue: one subqueue's window, locks, takers and browsers.
//!
//! It knows which of its messages are available, to which receiver each of the others is lent, and
//! whose turn it is. What becomes of a message that leaves it is the queue's to decide. Invariant:
//! a message is available or locked, never both; a part's count is what its window accounts for,
//! plus its locks, plus what is on disk only.

mod browse;
pub(crate) mod browsers;
pub(crate) mod ceilings;
mod drain;
pub(crate) mod fetch;
mod fetch_bodies;
mod first;
pub(crate) mod lock;
pub(crate) mod missing_bodies;
pub(crate) mod number_map;
pub(crate) mod pump;
pub(crate) mod read_ahead;
pub(crate) mod refill;
pub(crate) mod selections;
pub(crate) mod taker;
pub(crate) mod unreadable;
pub(crate) mod window;

use std::collections::VecDeque;

use store::{EntityId, MessageRow, Part, PartHead, SequenceNumber};

use crate::api::id::{Subqueue, SubqueueId};
use crate::api::settings::BrokerSettings;
use crate::api::time::{Mono, Wall};
use crate::context::Context;
use crate::context::clients::{Choice, Receiver, ReceiverSlot, ReceiverState};
use crate::message::Message;
use crate::message::entry::Entry;
use crate::queue::rows::Rows;
use crate::subqueue::browsers::Browsers;
use crate::subqueue::ceilings::Ceilings;
use crate::subqueue::fetch::Fetch;
use crate::subqueue::lock::{Lock, Locks, Origin};
use crate::subqueue::pump::Pump;
use crate::subqueue::read_ahead::ReadAhead;
use crate::subqueue::selections::Selections;
use crate::subqueue::unreadable::Unreadable;
use crate::subqueue::window::Window;

/// Reads of a subqueue's bodies at a time: two ahead of their turn as a rule, and those that a
/// receiver waits for.
const MOST_FETCHES: usize = 4;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct SubqueueState {
    pub place: SubqueueId,
    /// Whether its messages are known by sessions, and not by its window.
    pub by_session: bool,
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
    /// How many of them have a priority.
    pub prioritized: usize,
    /// The one receiver that is given messages, where only one is at a time.
    pub active: Option<ReceiverSlot>,
    /// The bodies that are being read.
    pub fetch: Fetch,
    pub read_ahead: ReadAhead,
    /// After a read that met a damaged body: one at a time, to find it.
    pub cautious: bool,
    /// After a refill that met damaged rows: how many can be read before the first of them.
    pub intact_rows: Option<usize>,
    /// What the store has and cannot read.
    pub unreadable: Unreadable,
    /// After a read that failed: not again before this moment.
    pub retry_at: Option<Mono>,
    /// When evaluating goes on that a turn's budget has stopped.
    pub resume_at: Option<Mono>,
    /// What keeps messages that go on by themselves.
    pub pump: Pump,
    /// The destination that its pump found full, and since when it has been.
    pub full_since: Option<(EntityId, Mono)>,
    pub ceilings: Ceilings,
    /// Messages without any time to live that came in this step, in order: only receivers that
    /// wait for them now get them. (docs/spec/rabbitmq.md#12.2)
    pub now_or_never: Vec<SequenceNumber>,
    /// A message has become available, or a receiver waits for one.
    pub needs_dispatch: bool,
}

impl SubqueueState {
    /// A subqueue as its head says. A window that is told of nothing knows no message.
    pub(crate) fn new(window: usize, place: SubqueueId, by_session: bool, head: &PartHead) -> Self {
        let nothing = PartHead::default();
        let head = if by_session { &nothing } else { head };
        let resume = SequenceNumber(head.resume);
        Self {
            place,
            by_session,
            window: Window::new(window, resume, head.stragglers.clone()),
            locks: Locks::default(),
            takers: VecDeque::new(),
            selections: Selections::default(),
            browsers: Browsers::default(),
            draining: Vec::new(),
            attached: 0,
            prioritized: 0,
            active: None,
            fetch: Fetch::default(),
            read_ahead: ReadAhead::default(),
            cautious: false,
            intact_rows: None,
            unreadable: Unreadable::default(),
            retry_at: None,
            resume_at: None,
            pump: Pump::default(),
            full_since: None,
            ceilings: Ceilings::default(),
            now_or_never: Vec::new(),
            needs_dispatch: false,
        }
    }

    /// Where available and locked messages stand.
    pub(crate) fn part(&self) -> Part {
        self.place.subqueue.part()
    }

    fn entity(&self) -> EntityId {
        self.place.entity
    }

    /// How many of its messages the window does not account for.
    pub(crate) fn beyond(&self, rows: &Rows) -> u64 {
        let count = rows.count(self.part());
        if self.by_session {
            return count;
        }
        let known = self.window.len() + self.locks.on_available();
        count.saturating_sub(known as u64)
    }

    /// Whether a message is available or locked, as far as memory knows.
    pub(crate) fn knows(&self, number: SequenceNumber) -> bool {
        self.window.get(number).is_some() || self.locks.contains(number)
    }

    /// Whether a message is past its deadline. In a dead-letter queue nothing expires.
    /// (docs/spec/entities.md#7.2)
    pub(crate) fn is_expired(&self, number: SequenceNumber, row: &MessageRow, now: Wall) -> bool {
        self.place.subqueue == Subqueue::Main && self.ceilings.expires_ms(number, row) <= now.0
    }

    /// Whether an available message is, and no receiver may have it for its moment either.
    pub(crate) fn is_past(&self, number: SequenceNumber, row: &MessageRow, now: Wall) -> bool {
        self.is_expired(number, row, now) && !self.now_or_never.contains(&number)
    }

    /// A message becomes available, with `beyond` others that the window does not account for.
    pub(crate) fn offer(
        &mut self,
        number: SequenceNumber,
        entry: Entry,
        beyond: u64,
        cx: &mut Context<'_>,
    ) {
        self.needs_dispatch = true;
        self.selections.available(number, entry);
        if let Some(spilled) = self.window.insert(number, entry, beyond) {
            drop(cx.shared.bodies.take(spilled.body));
        }
    }

    /// An available message leaves its place in the window, which knows it.
    pub(crate) fn take_available(&mut self, number: SequenceNumber) {
        let taken = self.window.take(number);
        assert!(taken.is_some(), "message {number} is not available");
    }

    /// The row of a message has gone.
    pub(crate) fn forget(&mut self, number: SequenceNumber) {
        self.window.forget(number);
        self.unreadable.forget(number);
        self.selections.gone(number);
    }

    /// Lends a message for a time of its own.
    pub(crate) fn lock(&mut self, number: SequenceNumber, mut lock: Lock, ms: u64, now: Mono) {
        self.assert_lockable(number);
        lock.until = now.after(ms);
        self.locks.insert(number, lock, ms);
        self.selections.gone(number);
    }

    /// Lends a message for as long as its receiver is attached.
    pub(crate) fn lock_lasting(&mut self, number: SequenceNumber, lock: Lock) {
        self.assert_lockable(number);
        self.locks.insert_lasting(number, lock);
        self.selections.gone(number);
    }

    fn assert_lockable(&self, number: SequenceNumber) {
        assert!(!self.by_session, "messages of a session are locked with it");
        debug_assert!(
            !self.knows(number),
            "a message leaves its place before it is locked"
        );
    }

    /// Locks messages that cannot be read for `ms` milliseconds, without a holder.
    pub(crate) fn lock_unreadable(
        &mut self,
        numbers: &[SequenceNumber],
        ms: u64,
        cx: &mut Context<'_>,
    ) {
        for &number in numbers {
            // The message may have gone, or been lent, while it was being read.
            if self.set_aside(number, ms, cx) {
                self.unreadable.note_message(number);
            }
        }
    }

    /// Locks a message for `ms` milliseconds, without a holder. Returns whether it was available.
    pub(crate) fn set_aside(
        &mut self,
        number: SequenceNumber,
        ms: u64,
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(entry) = self.window.take(number) else {
            return false;
        };
        let message = Message::available(self.part(), number, &entry, None);
        let token = cx.shared.tokens.next(number);
        let lock = Lock::new(message, token, None, Origin::SetAside);
        self.lock(number, lock, ms, cx.now.mono);
        true
    }

    /// Puts a receiver into its ring if it has credit and is nowhere yet.
    pub(crate) fn invite(&mut self, slot: ReceiverSlot, cx: &mut Context<'_>) {
        self.needs_dispatch = true;
        let receiver = cx.shared.clients.get_mut(slot);
        if receiver.state == ReceiverState::Idle && receiver.credit() > 0 {
            receiver.state = ReceiverState::Taking;
            match receiver.choice {
                Choice::Next => self.takers.push_back(slot),
                Choice::Selected(id) => self.selections.invite(id, slot),
                Choice::Shown => self.browsers.invite(slot),
            }
        }
    }

    /// A receiver that takes from here has gone.
    pub(crate) fn leave(&mut self, slot: ReceiverSlot, receiver: &Receiver) {
        let left = self.attached.checked_sub(1);
        self.attached = left.expect("a receiver is attached until it leaves");
        let left = self
            .prioritized
            .checked_sub(usize::from(receiver.priority != 0));
        self.prioritized = left.expect("a receiver keeps its priority until it leaves");
        match receiver.choice {
            Choice::Next => self.takers.retain(|other| *other != slot),
            Choice::Selected(id) => self.selections.leave(id, slot),
            Choice::Shown => self.browsers.leave(slot),
        }
        self.draining.retain(|other| *other != slot);
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

    /// Time has passed: what rested may go on.
    pub(crate) fn tick(&mut self, now: Mono) {
        let retry = self.retry_at.take_if(|at| *at <= now);
        let resumed = self.resume_at.take_if(|at| *at <= now);
        if resumed.is_some() {
            self.selections.resume();
        }
        let again = retry.is_some() || resumed.is_some();
        self.needs_dispatch |= again || self.pump.is_due(now);
    }

    /// The wall clock went back: what has been evaluated by it is evaluated again.
    pub(crate) fn clock_went_back(&mut self) {
        self.selections.start_over();
        self.needs_dispatch = true;
    }
}

//! Fetch of bodies: brings the bodies of the window's first messages into memory, and of those
//! behind them ahead of their turn.
//!
//! A message whose body is damaged is locked for a lock's time, so that those behind it are
//! delivered.

use std::collections::BTreeSet;

use store::{Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::ReadId;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::stored::{ReadRows, take_body};
use crate::subqueue::SubqueueState;
use crate::subqueue::missing_bodies::MissingBodies;
use crate::subqueue::read_ahead::ReadAhead;

/// Most messages that are fetched at once, which is also what can be read back in the time of a
/// commit if they have just arrived.
const FETCH_MESSAGES: usize = 1_024;
/// Most bytes of bodies at once: this part of their budget, and not less than a mebibyte.
const FETCH_SHARE: usize = 4;
const FETCH_BYTES: usize = 1 << 20;
/// The same ahead of their turn, when there may be a few such reads.
const AHEAD_SHARE: usize = 8;
/// Factor by which more messages are looked at, since some of them may be in memory.
const LOOK: usize = 2;
/// The most reads ahead at a time, over all queues: reads that a receiver waits for need readers
/// too.
const MOST_AHEAD: usize = 4;

impl SubqueueState {
    /// Asks for those bodies of the first messages that the takers want and are not in memory.
    pub(crate) fn fetch_for_takers(&mut self, cx: &mut Context<'_>) {
        if self.can_fetch() {
            let wanted = self.wanted(cx);
            self.fetch(wanted, cx);
        }
    }

    /// The same for messages that go on by themselves.
    pub(crate) fn fetch_for_pump(&mut self, cx: &mut Context<'_>) {
        if self.can_fetch() {
            self.fetch(FETCH_MESSAGES, cx);
        }
    }

    fn fetch(&mut self, wanted: usize, cx: &mut Context<'_>) {
        let most = if self.cautious { 1 } else { wanted };
        let is_asked = |number| self.fetch.is_asked(number);
        let first = self.window.first();
        if first.is_some_and(|(number, _)| is_asked(number)) {
            return;
        }
        let bodies = &cx.shared.bodies;
        let first = self.window.range(SequenceNumber(0)..SequenceNumber::MAX);
        let first = first
            .take(most)
            .filter(|(number, entry)| !is_asked(*number) && !bodies.is_resident(entry.body));
        let missing = MissingBodies::of(first, most_bytes(FETCH_SHARE, cx));
        self.read_ahead.waited_for(&missing.numbers);
        self.ask_for_bodies(missing, false, cx);
    }

    /// Asks for the bodies behind those that were asked for, if it is time when `handed_out` is.
    pub(crate) fn read_ahead(&mut self, handed_out: SequenceNumber, cx: &mut Context<'_>) {
        let due = self.read_ahead.due(handed_out);
        let Some(most) = due.filter(|_| self.can_fetch() && !self.cautious) else {
            return;
        };
        let half = cx.shared.settings.body_bytes / 2;
        let has_room = cx.shared.ahead_bytes < half && cx.shared.ahead_reads < MOST_AHEAD;
        let most = if has_room { most } else { 0 };
        let bodies = &cx.shared.bodies;
        let next = self
            .window
            .range(self.read_ahead.next()..SequenceNumber::MAX);
        let next = next.take_while(|(_, entry)| entry.row.size as usize <= half);
        let missing = next
            .take(LOOK * most)
            .filter(|(_, entry)| !bodies.is_resident(entry.body));
        let missing = MissingBodies::of(missing.take(most), most_bytes(AHEAD_SHARE, cx));
        let ahead = &mut self.read_ahead;
        if missing.numbers.is_empty() {
            return ahead.rest(handed_out, most);
        }
        ahead.read_ahead(&missing.numbers, FETCH_MESSAGES);
        self.ask_for_bodies(missing, true, cx);
    }

    fn ask_for_bodies(&mut self, missing: MissingBodies, ahead: bool, cx: &mut Context<'_>) {
        let place = self.place;
        let ahead = ahead.then_some(missing.bytes);
        let query = Query::Bodies {
            entity: self.entity(),
            part: self.part(),
            known: missing.known,
        };
        let purpose = Purpose::Fetch(place, missing.numbers.clone(), ahead);
        let read = cx.ask_after(missing.rest_on, query, purpose);
        if let Some(bytes) = ahead {
            cx.shared.ahead_reads += 1;
            cx.shared.ahead_bytes += bytes;
        }
        self.fetch.begin(read, missing.numbers);
    }

    /// How many messages the takers would take, within bounds.
    fn wanted(&self, cx: &Context<'_>) -> usize {
        let mut wanted = 0_usize;
        for slot in &self.takers {
            let credit = cx.shared.clients.get(*slot).credit();
            wanted = wanted.saturating_add(credit as usize);
            if wanted >= FETCH_MESSAGES {
                return FETCH_MESSAGES;
            }
        }
        wanted.max(1)
    }

    /// Bodies came back.
    pub(crate) fn fetched(
        &mut self,
        read: ReadId,
        numbers: &[SequenceNumber],
        rows: ReadRows,
        lock_duration: u64,
        cx: &mut Context<'_>,
    ) {
        let returned = self.fetch.finish(read);
        self.needs_dispatch = true;
        match rows {
            Ok(rows) => {
                self.cautious = false;
                self.take_bodies(numbers, rows, &returned, lock_duration, cx);
            }
            Err(StoreError::Corrupt { .. }) if numbers.len() > 1 => {
                self.cautious = true;
                self.read_ahead = ReadAhead::default();
            }
            Err(StoreError::Corrupt { .. }) => self.lock_unreadable(numbers, lock_duration, cx),
            Err(_) => self.retry_at = Some(cx.retry_at()),
        }
    }

    /// Takes what came of the bodies of `numbers`, but not of those that have `returned` meanwhile.
    fn take_bodies(
        &mut self,
        numbers: &[SequenceNumber],
        rows: Vec<StoredMessage>,
        returned: &BTreeSet<SequenceNumber>,
        lock_duration: u64,
        cx: &mut Context<'_>,
    ) {
        let entity = self.entity();
        let window = &mut self.window;
        let mut taken = 0;
        let rows = rows.into_iter();
        for mut stored in rows.filter(|row| !returned.contains(&row.number)) {
            if let Some(entry) = window.get_mut(stored.number)
                && let Some(body) = take_body(&mut stored)
            {
                drop(cx.shared.bodies.take(entry.body));
                entry.body = cx.shared.bodies.put(entity, body);
                self.unreadable.forget(stored.number);
                taken += 1;
            }
        }
        if taken >= numbers.len() {
            return;
        }
        let missing: Vec<_> = numbers
            .iter()
            .copied()
            .filter(|number| !returned.contains(number))
            .filter(|number| {
                let entry = window.get(*number);
                entry.is_some_and(|entry| !cx.shared.bodies.is_resident(entry.body))
            })
            .collect();
        self.lock_unreadable(&missing, lock_duration, cx);
    }
}

/// How many bytes are fetched at once: this part of what bodies may take.
fn most_bytes(share: usize, cx: &Context<'_>) -> usize {
    FETCH_BYTES.max(cx.shared.settings.body_bytes / share)
}

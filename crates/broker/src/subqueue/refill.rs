//! Refill: brings the window's next messages, and bodies for its first ones, into memory.
//!
//! Both are read only while a receiver waits for messages. A read that failed is tried again after
//! a second; a message whose body is damaged is locked for a lock's time, so that those behind it
//! are delivered.

use crate::context::RETRY_MS;
use std::collections::BTreeSet;

use store::{CommitId, KnownMessage, Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::{ReadId, Subqueue, SubqueueId};
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::stored::{Rows, entry_of, known_of, take_body};
use crate::queue::Queue;
use crate::subqueue::lock::Origin;
use crate::subqueue::read_ahead::ReadAhead;
use crate::subqueue::window::Ask;

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
/// Messages whose bodies are to be asked for.
#[derive(Debug, Default)]
struct Missing {
    /// Ascending.
    numbers: Vec<SequenceNumber>,
    /// What is known of each.
    known: Vec<KnownMessage>,
    /// Of all their bodies.
    bytes: usize,
    /// The newest commit that one of them rests on.
    rest_on: CommitId,
}

impl Missing {
    /// As many of `entries` as fit the limit in bytes, but one at least.
    fn of<'a>(
        entries: impl Iterator<Item = (SequenceNumber, &'a Entry)>,
        most_bytes: usize,
    ) -> Self {
        let mut missing = Self::default();
        for (number, entry) in entries {
            let bytes = missing.bytes.saturating_add(entry.row.size as usize);
            if bytes > most_bytes && !missing.numbers.is_empty() {
                break;
            }
            missing.bytes = bytes;
            missing.numbers.push(number);
            missing.known.push(known_of(number, entry));
            missing.rest_on = missing.rest_on.max(entry.rests_on);
        }
        missing
    }
}

impl Queue {
    /// Asks for more messages if the window runs low.
    pub(crate) fn refill(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) {
        let next_number = self.head.next_number;
        let beyond = self.beyond(subqueue);
        let place = self.place(subqueue);
        let sub = self.sub_mut(subqueue);
        if sub.retry_at.is_some() {
            return;
        }
        let Some(ask) = sub.window.wants(beyond, next_number) else {
            return;
        };
        let query = query_for(place, &ask, next_number);
        let read = cx.ask(query, Purpose::Refill(place, cx.commit()));
        sub.window.asked(read, ask, next_number);
    }

    /// A refill came back, which holds that commit.
    pub(crate) fn refilled(
        &mut self,
        subqueue: Subqueue,
        read: ReadId,
        after: CommitId,
        rows: Rows,
        cx: &mut Context<'_>,
    ) {
        let sub = self.sub_mut(subqueue);
        sub.needs_pump = true;
        match rows {
            Ok(rows) => {
                // What has changed since is known to the window.
                let rows = rows.iter();
                let rows = rows.map(|row| (row.number, entry_of(row, after))).collect();
                let locks = &sub.locks;
                let spilled = sub
                    .window
                    .loaded(read, rows, |number| locks.contains(number));
                for entry in spilled {
                    drop(cx.shared.bodies.take(entry.body));
                }
            }
            Err(_) => {
                sub.window.failed(read);
                sub.retry_at = Some(later(cx.now.mono));
            }
        }
    }

    /// Asks for those bodies of the first messages that are wanted and not in memory.
    pub(crate) fn fetch(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) {
        let sub = &self.subs[subqueue as usize];
        if !sub.can_fetch() {
            return;
        }
        let most = if sub.cautious {
            1
        } else {
            self.wanted(subqueue, cx)
        };
        let is_asked = |number| sub.fetch.is_asked(number);
        let first = sub.window.first();
        if first.is_some_and(|(number, _)| is_asked(number)) {
            return;
        }
        let bodies = &cx.shared.bodies;
        let first = sub.window.range(SequenceNumber(0)..SequenceNumber::MAX);
        let first = first
            .take(most)
            .filter(|(number, entry)| !is_asked(*number) && !bodies.is_resident(entry.body));
        let missing = Missing::of(first, most_bytes(FETCH_SHARE, cx));
        self.sub_mut(subqueue)
            .read_ahead
            .waited_for(&missing.numbers);
        self.ask_for_bodies(subqueue, missing, false, cx);
    }

    /// Asks for the bodies behind those that were asked for, if it is time when `handed_out` is.
    pub(crate) fn read_ahead(
        &mut self,
        subqueue: Subqueue,
        handed_out: SequenceNumber,
        cx: &mut Context<'_>,
    ) {
        let sub = &self.subs[subqueue as usize];
        let due = sub.read_ahead.due(handed_out);
        let Some(most) = due.filter(|_| sub.can_fetch() && !sub.cautious) else {
            return;
        };
        let half = cx.shared.settings.body_bytes / 2;
        let has_room = cx.shared.ahead_bytes < half && cx.shared.ahead_reads < MOST_AHEAD;
        let most = if has_room { most } else { 0 };
        let bodies = &cx.shared.bodies;
        let next = sub.window.range(sub.read_ahead.next()..SequenceNumber::MAX);
        let next = next.take_while(|(_, entry)| entry.row.size as usize <= half);
        let missing = next
            .take(LOOK * most)
            .filter(|(_, entry)| !bodies.is_resident(entry.body));
        let missing = Missing::of(missing.take(most), most_bytes(AHEAD_SHARE, cx));
        let ahead = &mut self.sub_mut(subqueue).read_ahead;
        if missing.numbers.is_empty() {
            return ahead.rest(handed_out, most);
        }
        ahead.read_ahead(&missing.numbers, FETCH_MESSAGES);
        self.ask_for_bodies(subqueue, missing, true, cx);
    }

    fn ask_for_bodies(
        &mut self,
        subqueue: Subqueue,
        missing: Missing,
        ahead: bool,
        cx: &mut Context<'_>,
    ) {
        let place = self.place(subqueue);
        let ahead = ahead.then_some(missing.bytes);
        let query = Query::Bodies {
            entity: self.id,
            part: subqueue.part(),
            known: missing.known,
        };
        let purpose = Purpose::Fetch(place, missing.numbers.clone(), ahead);
        let read = cx.ask_after(missing.rest_on, query, purpose);
        if let Some(bytes) = ahead {
            cx.shared.ahead_reads += 1;
            cx.shared.ahead_bytes += bytes;
        }
        self.sub_mut(subqueue).fetch.begin(read, missing.numbers);
    }

    /// How many messages the takers would take, within bounds.
    fn wanted(&self, subqueue: Subqueue, cx: &Context<'_>) -> usize {
        if self.forwards(subqueue) {
            return FETCH_MESSAGES;
        }
        let mut wanted = 0_usize;
        for slot in &self.sub(subqueue).takers {
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
        subqueue: Subqueue,
        read: ReadId,
        numbers: &[SequenceNumber],
        rows: Rows,
        cx: &mut Context<'_>,
    ) {
        let sub = self.sub_mut(subqueue);
        let returned = sub.fetch.finish(read);
        sub.needs_pump = true;
        match rows {
            Ok(rows) => {
                sub.cautious = false;
                self.take_bodies(subqueue, numbers, rows, &returned, cx);
            }
            Err(StoreError::Corrupt { .. }) if numbers.len() > 1 => {
                sub.cautious = true;
                sub.read_ahead = ReadAhead::default();
            }
            Err(StoreError::Corrupt { .. }) => self.lock_unreadable(subqueue, numbers, cx),
            Err(_) => sub.retry_at = Some(later(cx.now.mono)),
        }
    }

    /// Takes what came of the bodies of `numbers`, but not of those that have `returned` meanwhile.
    fn take_bodies(
        &mut self,
        subqueue: Subqueue,
        numbers: &[SequenceNumber],
        rows: Vec<StoredMessage>,
        returned: &BTreeSet<SequenceNumber>,
        cx: &mut Context<'_>,
    ) {
        let entity = self.id;
        let window = &mut self.sub_mut(subqueue).window;
        let mut taken = 0;
        let rows = rows.into_iter();
        for mut stored in rows.filter(|row| !returned.contains(&row.number)) {
            if let Some(entry) = window.get_mut(stored.number)
                && let Some(body) = take_body(&mut stored)
            {
                drop(cx.shared.bodies.take(entry.body));
                entry.body = cx.shared.bodies.put(entity, body);
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
        self.lock_unreadable(subqueue, &missing, cx);
    }

    /// Locks messages that cannot be read, without a holder.
    pub(crate) fn lock_unreadable(
        &mut self,
        subqueue: Subqueue,
        numbers: &[SequenceNumber],
        cx: &mut Context<'_>,
    ) {
        for &number in numbers {
            // The message may have gone, or been lent, while it was being read.
            let Some(entry) = self.sub_mut(subqueue).window.take(number) else {
                continue;
            };
            let message = Message::available(subqueue.part(), number, &entry, None);
            let token = cx.shared.tokens.next(number);
            self.lock(subqueue, message, token, None, Origin::Unreadable, cx);
        }
    }
}

/// How many bytes are fetched at once: this part of what bodies may take.
fn most_bytes(share: usize, cx: &Context<'_>) -> usize {
    FETCH_BYTES.max(cx.shared.settings.body_bytes / share)
}

fn later(now: Mono) -> Mono {
    Mono(now.0.saturating_add(RETRY_MS))
}

fn query_for(place: SubqueueId, ask: &Ask, until: SequenceNumber) -> Query {
    let entity = place.entity;
    let part = place.subqueue.part();
    match ask {
        Ask::Stragglers(numbers) => Query::Points {
            entity,
            part,
            numbers: numbers.clone(),
            bodies: false,
            max_bytes: usize::MAX,
        },
        Ask::From(from, limit) => Query::Range {
            entity,
            part,
            from: *from,
            until,
            limit: *limit,
            bodies: false,
            max_bytes: 0,
        },
    }
}

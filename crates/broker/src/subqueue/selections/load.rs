//! Load: reads messages for selections, one read of a subqueue at a time.
//!
//! An answer may be old: what became of a message since it was asked for is noted meanwhile. A
//! body that is damaged is found by reading one at a time, and passed over.

use std::collections::BTreeMap;

use store::{Query, SequenceNumber, StoreError, StoredMessage};

use super::Selections;
use super::page::Page;
use super::reading::{Ask, PAGE_BYTES, Reading};
use crate::api::id::{ReadId, SubqueueId};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::stored::{ReadRows, body_of, entry_of};
use crate::queue::rows::Rows;
use crate::subqueue::SubqueueState;

/// Most messages of a page.
const PAGE_MESSAGES: usize = 256;

impl SubqueueState {
    /// Asks for messages, unless something is being read already.
    pub(super) fn read_for_selections(&mut self, ask: Ask, rows: &Rows, cx: &mut Context<'_>) {
        if self.selections.reading.is_some() || self.retry_at.is_some() {
            return;
        }
        // What the window can hold is evaluated there as it arrives.
        self.refill(rows, cx);
        let selections = &mut self.selections;
        let bodies = selections.cautious == 0 || matches!(ask, Ask::Points(_));
        selections.cautious -= usize::from(selections.cautious > 0 && bodies);
        let (place, until) = (self.place, rows.end());
        let limit = selections.most_rows.take().unwrap_or(PAGE_MESSAGES);
        let query = query_for(place, &ask, until, limit, bodies);
        let read = cx.ask(query, Purpose::Select(place));
        self.selections.reading = Some(Reading {
            read,
            ask,
            until,
            limit,
            bodies,
            changed: BTreeMap::new(),
        });
    }

    /// A page, or some messages of it, came back.
    pub(crate) fn selections_loaded(&mut self, read: ReadId, rows: ReadRows, cx: &mut Context<'_>) {
        let reading = &mut self.selections.reading;
        // All receivers may have gone since.
        let Some(reading) = reading.take_if(|reading| reading.read == read) else {
            return;
        };
        self.needs_dispatch = true;
        self.selections.resume();
        match rows {
            Ok(rows) => self.take_page(&reading, &rows, cx),
            Err(StoreError::UnreadableRows { intact, until, .. }) => {
                self.pass_damaged_rows(reading, intact, until, cx);
            }
            Err(StoreError::Corrupt { .. }) if reading.bodies => {
                self.selections.look_for_damage(&reading.ask);
            }
            Err(_) => self.retry_at = Some(cx.retry_at()),
        }
    }

    /// The next page ends before damaged rows, or this one has nothing up to their end.
    fn pass_damaged_rows(
        &mut self,
        mut reading: Reading,
        intact: usize,
        until: SequenceNumber,
        cx: &mut Context<'_>,
    ) {
        let Ask::From(from) = reading.ask else {
            unreachable!("only what reads on meets damaged rows");
        };
        if intact > 0 {
            self.selections.most_rows = Some(intact);
            return;
        }
        self.selections.most_rows = None;
        reading.until = until.clamp(from.next(), reading.until);
        self.unreadable.note_rows(from..reading.until);
        self.take_page(&reading, &[], cx);
    }

    fn take_page(&mut self, reading: &Reading, rows: &[StoredMessage], cx: &mut Context<'_>) {
        self.turn_page(reading, rows, cx);
        for stored in rows {
            let number = stored.number;
            let is_locked = self.locks.contains(number);
            if !is_locked && !reading.changed.contains_key(&number) {
                self.take_row(stored, reading.bodies, cx);
            }
        }
        let page = &mut self.selections.page;
        for (number, entry) in &reading.changed {
            if let Some(entry) = entry {
                page.note_available(*number, *entry);
            }
        }
        if let Ask::Points(numbers) = &reading.ask {
            page.miss(numbers, reading, rows);
        }
    }

    /// Makes room for what was read.
    fn turn_page(&mut self, reading: &Reading, rows: &[StoredMessage], cx: &mut Context<'_>) {
        let Ask::From(from) = reading.ask else {
            return self.selections.page.drop_strays();
        };
        for (number, entry) in self.selections.page.entries() {
            if self.window.get(number).is_none() {
                drop(cx.shared.bodies.take(entry.body));
            }
        }
        self.selections.page = Page::new(from, reading.covered(rows));
    }

    fn take_row(&mut self, stored: &StoredMessage, bodies: bool, cx: &mut Context<'_>) {
        let entity = self.entity();
        let mut entry = entry_of(stored, cx.effects.submitted);
        match body_of(stored) {
            Some(body) => entry.body = cx.shared.bodies.put(entity, body),
            None if bodies => self.selections.page.set_unreadable(stored.number),
            None => {}
        }
        let has_body = cx.shared.bodies.is_resident(entry.body);
        if let Some(known) = self.window.get_mut(stored.number).filter(|_| has_body) {
            drop(cx.shared.bodies.take(known.body));
            known.body = entry.body;
        }
        let is_unreadable = self.selections.page.is_unreadable(stored.number);
        self.selections.page.put(stored.number, entry);
        if is_unreadable {
            self.selections.page.set_unreadable(stored.number);
        }
    }
}

impl Page {
    /// Messages that were asked for and are not there, though nothing has happened to them, are
    /// passed over.
    fn miss(&mut self, numbers: &[SequenceNumber], reading: &Reading, rows: &[StoredMessage]) {
        let bytes = rows.iter().filter_map(|row| row.body.as_ref());
        let bytes: usize = bytes.map(bytes::Bytes::len).sum();
        // Where it was cut off the others are still to be read.
        let last = rows.last().filter(|_| bytes >= PAGE_BYTES);
        for number in numbers {
            let is_there = rows.iter().any(|row| row.number == *number);
            let is_cut_off = last.is_some_and(|last| *number > last.number);
            if !is_there && !is_cut_off && !reading.changed.contains_key(number) {
                self.set_unreadable(*number);
            }
        }
    }
}

impl Selections {
    fn look_for_damage(&mut self, ask: &Ask) {
        match ask {
            Ask::Points(numbers) if numbers.len() == 1 => {
                self.cautious = 0;
                self.page.drop_strays();
                self.page.set_unreadable(numbers[0]);
            }
            _ => self.cautious = PAGE_MESSAGES,
        }
    }
}

fn query_for(
    place: SubqueueId,
    ask: &Ask,
    until: SequenceNumber,
    limit: usize,
    bodies: bool,
) -> Query {
    let entity = place.entity;
    let part = place.subqueue.part();
    match ask {
        Ask::From(from) => Query::Range {
            entity,
            part,
            from: *from,
            until,
            limit,
            bodies,
            max_bytes: PAGE_BYTES,
        },
        Ask::Points(numbers) => Query::Points {
            entity,
            part,
            numbers: numbers.clone(),
            bodies,
            max_bytes: PAGE_BYTES,
        },
    }
}

//! Browse: receivers that are shown messages and take none. [AMQP 3.5.3, distribution mode "copy"]
//!
//! A browser is shown what stands in its subqueue from the first message to the last, locked ones
//! too, then whatever arrives; deferred and scheduled messages stand elsewhere. Nothing is locked
//! or counted for it, and no receiver waits for it. It is read from the store as its credit goes,
//! so a browser keeps a number in memory and nothing else. Dead letters keep their numbers: one
//! that arrives behind the number that the browser has come to is shown then.

use crate::queue::rows::Rows;
use crate::subqueue::Sub;
use crate::subqueue::is_expired;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filter::Selector;
use store::{Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::{ReadId, SubqueueId};
use crate::api::output::{Delivery, MessageState, Output};
use crate::context::Context;
use crate::context::clients::ReceiverSlot;
use crate::context::read::Purpose;
use crate::message::stored::{ReadRows, body_of};
use crate::message::stored::{shown_of, size_of_body};
use crate::subqueue::selections::REST_MS;
use crate::subqueue::selections::judge::judge;

/// Most messages and bytes of bodies that are read at once.
const MOST: u32 = 256;
const BYTES: usize = 1 << 20;
/// As many are read for a selector at least; more while nothing is selected.
const LEAST_FOR_SELECTOR: u32 = 32;
/// Most messages that are asked for by number at once.
const POINTS: usize = 64;
/// As many of an answer are judged though the turn's budget is used up, so that each browser gets
/// on.
const LEAST_JUDGED: usize = 64;
/// Most numbers that are kept of those that arrived behind a cursor; more are not shown.
const MOST_LATE: usize = 4_096;

/// Why there is a browser.
const ATTACHED: &str = "a browser is here until it is detached";

/// How a browser reads on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Stride {
    #[default]
    Many,
    /// After a read that met a damaged body: one at a time, to find it.
    One,
    /// The next one is damaged: only its number is read.
    Over,
}

/// What a browser has asked for.
#[derive(Debug)]
struct Asked {
    read: ReadId,
    /// By number; all from the cursor on otherwise.
    points: Option<Vec<SequenceNumber>>,
    limit: usize,
    until: SequenceNumber,
}

#[derive(Debug)]
struct Browser {
    selector: Option<Arc<Selector>>,
    /// What is below has been shown.
    cursor: SequenceNumber,
    /// Except for these.
    late: BTreeSet<SequenceNumber>,
    asked: Option<Asked>,
    stride: Stride,
    /// As many are read for its selector at least.
    reach: u32,
}

/// The browsers of a subqueue.
#[derive(Debug, Default)]
pub(crate) struct Browsers {
    all: BTreeMap<ReceiverSlot, Browser>,
    /// Those with credit.
    hungry: BTreeSet<ReceiverSlot>,
}

impl Browsers {
    /// A browser comes, without credit.
    pub(crate) fn join(&mut self, slot: ReceiverSlot, selector: Option<Arc<Selector>>) {
        let browser = Browser {
            selector,
            cursor: SequenceNumber(0),
            late: BTreeSet::new(),
            asked: None,
            stride: Stride::Many,
            reach: LEAST_FOR_SELECTOR,
        };
        self.all.insert(slot, browser);
    }

    /// A browser is gone.
    pub(crate) fn leave(&mut self, slot: ReceiverSlot) {
        self.all.remove(&slot);
        self.hungry.remove(&slot);
    }

    /// A browser has credit.
    pub(crate) fn invite(&mut self, slot: ReceiverSlot) {
        self.hungry.insert(slot);
    }

    /// A message has come to stand in the subqueue.
    pub(crate) fn entered(&mut self, number: SequenceNumber) {
        for browser in self.all.values_mut() {
            let asked = browser.asked.as_ref();
            let seen = asked.map_or(browser.cursor, |asked| asked.until.max(browser.cursor));
            if number < seen && browser.late.len() < MOST_LATE {
                browser.late.insert(number);
            }
        }
    }

    /// Whether a browser has credit.
    pub(crate) fn are_hungry(&self) -> bool {
        !self.hungry.is_empty()
    }

    /// Whether a browser has been shown everything below `end`.
    pub(crate) fn is_exhausted(&self, slot: ReceiverSlot, end: SequenceNumber) -> bool {
        let is_done = |b: &Browser| b.asked.is_none() && b.late.is_empty() && b.cursor >= end;
        is_done(self.all.get(&slot).expect(ATTACHED))
    }

    /// A browser that has not left.
    fn get_mut(&mut self, slot: ReceiverSlot) -> &mut Browser {
        self.all.get_mut(&slot).expect(ATTACHED)
    }
}

impl Browser {
    /// What of `rows` was asked for and is not there any more needs no asking again.
    fn note_missing(&mut self, points: &[SequenceNumber], rows: &[StoredMessage]) {
        let bytes: usize = rows.iter().map(size_of_body).sum();
        let last = rows.last().filter(|_| bytes >= BYTES);
        for number in points {
            let is_there = rows.iter().any(|row| row.number == *number);
            if !is_there && last.is_none_or(|last| *number < last.number) {
                self.late.remove(number);
            }
        }
    }

    /// What has gone is not walked over: a few messages may be left of all before the others.
    fn skip_to(&mut self, (first, stragglers): &(SequenceNumber, Vec<SequenceNumber>)) {
        if self.asked.is_none() && self.cursor < *first {
            let cursor = std::mem::replace(&mut self.cursor, *first);
            self.late
                .extend(stragglers.iter().filter(|number| **number >= cursor));
        }
    }

    /// A message needs no more looking at.
    fn pass(&mut self, number: SequenceNumber) {
        self.late.remove(&number);
        self.cursor = self.cursor.max(number.next());
    }

    fn meet_damage(&mut self, points: Option<&Vec<SequenceNumber>>) {
        self.stride = match (self.stride, points) {
            (Stride::Many, _) => Stride::One,
            (_, Some(points)) => {
                self.late.retain(|number| !points.contains(number));
                Stride::Many
            }
            (_, None) => Stride::Over,
        };
    }
}

impl Sub {
    /// Reads on for the browsers that have room for more. The subqueue's messages are found from
    /// `first` on.
    pub(crate) fn show_to_browsers(
        &mut self,
        first: &(SequenceNumber, Vec<SequenceNumber>),
        rows: &Rows,
        cx: &mut Context<'_>,
    ) {
        let hungry: Vec<_> = self.browsers.hungry.iter().copied().collect();
        for slot in hungry {
            if self.has_room(slot, cx) {
                self.browse_on(slot, first, rows, cx);
            }
        }
    }

    /// Whether a browser can be shown something now. One that cannot waits until it can.
    fn has_room(&mut self, slot: ReceiverSlot, cx: &mut Context<'_>) -> bool {
        let output_buffer_bytes = cx.shared.settings.output_buffer_bytes;
        let has_room = cx.shared.clients.make_ready(slot, output_buffer_bytes);
        if !has_room {
            self.browsers.hungry.remove(&slot);
        }
        has_room
    }

    /// Asks for what a browser is to be shown next.
    fn browse_on(
        &mut self,
        slot: ReceiverSlot,
        first: &(SequenceNumber, Vec<SequenceNumber>),
        rows: &Rows,
        cx: &mut Context<'_>,
    ) {
        let (end, place) = (rows.end(), self.place);
        let empty = rows.count(self.part()) == 0;
        let credit = cx.shared.clients.get(slot).credit();
        if self.retry_at.is_some() {
            return;
        }
        let browser = self.browsers.get_mut(slot);
        if empty && browser.asked.is_none() {
            browser.late.clear();
            browser.cursor = end;
        }
        browser.skip_to(first);
        if browser.asked.is_some() || (browser.late.is_empty() && browser.cursor >= end) {
            return;
        }
        let limit = match (browser.stride, &browser.selector) {
            (Stride::Many, None) => credit.min(MOST),
            (Stride::Many, Some(_)) => credit.clamp(browser.reach, MOST),
            (Stride::One | Stride::Over, _) => 1,
        } as usize;
        let query = browser.query(place, limit, end);
        let points = match &query {
            Query::Points { numbers, .. } => Some(numbers.clone()),
            _ => None,
        };
        let read = cx.ask(query, Purpose::Show(place, slot));
        browser.asked = Some(Asked {
            read,
            points,
            limit,
            until: end,
        });
    }

    /// What a browser is to be shown came back. Returns whether it was shown any of it.
    pub(crate) fn show_loaded(
        &mut self,
        slot: ReceiverSlot,
        read: ReadId,
        rows: ReadRows,
        cx: &mut Context<'_>,
    ) -> bool {
        // The browser may have gone since, and another may have its slot.
        let Some(browser) = self.browsers.all.get_mut(&slot) else {
            return false;
        };
        let Some(asked) = browser.asked.take_if(|asked| asked.read == read) else {
            return false;
        };
        self.needs_pump = true;
        match rows {
            Ok(rows) if browser.stride == Stride::Over && asked.points.is_none() => {
                browser.stride = Stride::Many;
                browser.cursor = rows.last().map_or(asked.until, |row| row.number.next());
            }
            Ok(rows) => return self.show(slot, &asked, &rows, cx),
            Err(StoreError::Corrupt { .. }) => browser.meet_damage(asked.points.as_ref()),
            Err(_) => self.retry_at = Some(cx.retry_at()),
        }
        false
    }

    /// Shows what was read, as far as there is room for it. Returns whether that was any.
    fn show(
        &mut self,
        slot: ReceiverSlot,
        asked: &Asked,
        rows: &[StoredMessage],
        cx: &mut Context<'_>,
    ) -> bool {
        let browser = self.browsers.get_mut(slot);
        browser.stride = Stride::Many;
        browser.reach = browser.reach.saturating_mul(2).min(MOST);
        if let Some(points) = &asked.points {
            browser.note_missing(points, rows);
        }
        let mut grace = LEAST_JUDGED;
        let mut was_shown = false;
        for stored in rows {
            if !self.has_room(slot, cx) {
                return was_shown;
            }
            match self.is_to_be_shown(slot, stored, &mut grace, cx) {
                Some(true) => was_shown |= self.show_one(slot, stored, cx),
                Some(false) => {}
                None => {
                    // It is read again then.
                    self.resume_at = Some(cx.now.mono.after(REST_MS));
                    return was_shown;
                }
            }
        }
        let browser = self.browsers.get_mut(slot);
        if asked.points.is_none() {
            let bytes: usize = rows.iter().map(size_of_body).sum();
            let is_cut_off = rows.len() >= asked.limit || bytes >= BYTES;
            if !is_cut_off || rows.is_empty() {
                browser.cursor = browser.cursor.max(asked.until);
            }
        }
        was_shown
    }

    /// Whether a message is one that the browser wants to see; it is passed then. `None` if that
    /// cannot be found out in this turn.
    fn is_to_be_shown(
        &mut self,
        slot: ReceiverSlot,
        stored: &StoredMessage,
        grace: &mut usize,
        cx: &mut Context<'_>,
    ) -> Option<bool> {
        let now = cx.now.wall;
        let browser = self.browsers.get_mut(slot);
        if browser.selector.is_some() && !cx.take_judging() {
            *grace = grace.checked_sub(1)?;
        }
        browser.pass(stored.number);
        if is_expired(self.place.subqueue, &stored.row, now) {
            return Some(false);
        }
        let (Some(selector), Some(body)) = (&browser.selector, body_of(stored)) else {
            return Some(browser.selector.is_none());
        };
        let (row, count) = (&stored.row, stored.delivery_count);
        let (is_selected, units) = judge(selector, stored.number, row, count, &body);
        if is_selected {
            browser.reach = LEAST_FOR_SELECTOR;
        }
        cx.pay_judging(units);
        Some(is_selected)
    }

    fn show_one(&self, slot: ReceiverSlot, stored: &StoredMessage, cx: &mut Context<'_>) -> bool {
        let receiver = cx.shared.clients.get(slot).id;
        // What cannot be read cannot be shown.
        let Some(message) = shown_of(stored, MessageState::Active) else {
            return false;
        };
        let delivery = Box::new(Delivery {
            entity: self.place.entity,
            token: cx.shared.tokens.next(message.number),
            message,
            rests_on: cx.commit(),
        });
        cx.shared.clients.count_delivery(slot, delivery.size());
        cx.emit(Output::Deliver { receiver, delivery });
        true
    }
}

impl Browser {
    fn query(&self, place: SubqueueId, limit: usize, until: SequenceNumber) -> Query {
        let (entity, part) = (place.entity, place.subqueue.part());
        if !self.late.is_empty() {
            let most = limit.min(POINTS);
            return Query::Points {
                entity,
                part,
                numbers: self.late.iter().take(most).copied().collect(),
                bodies: true,
                max_bytes: BYTES,
            };
        }
        Query::Range {
            entity,
            part,
            from: self.cursor,
            until,
            limit,
            bodies: self.stride != Stride::Over,
            max_bytes: BYTES,
        }
    }
}

//! Browsers: receivers that are shown a subqueue's messages and take none.
//!
//! Each walks through the subqueue once by its cursor. What comes to stand below that later is kept
//! by number, up to a bound. How they are read for is in `browse.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filter::Selector;
use store::{Query, SequenceNumber, StoredMessage};

use crate::api::id::{ReadId, SubqueueId};
use crate::context::clients::ReceiverSlot;
use crate::message::stored::size_of_body;

/// Most messages and bytes of bodies that are read at once.
pub(super) const MOST: u32 = 256;
pub(super) const BYTES: usize = 1 << 20;
/// As many are read for a selector at least; more while nothing is selected.
pub(super) const LEAST_FOR_SELECTOR: u32 = 32;
/// Most messages that are asked for by number at once.
pub(super) const POINTS: usize = 64;
/// As many of an answer are evaluated though the turn's budget is used up, so that each browser
/// gets on.
pub(super) const LEAST_EVALUATED: usize = 64;
/// Most numbers that are kept of those that arrived behind a cursor; more are not shown.
pub(super) const MOST_LATE: usize = 4_096;

/// Why there is a browser.
pub(super) const ATTACHED: &str = "a browser is here until it is detached";

/// How a browser reads on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Stride {
    #[default]
    Many,
    /// After a read that met a damaged body: one at a time, to find it.
    One,
    /// The next one is damaged: only its number is read.
    Over,
}

/// What a browser has asked for.
#[derive(Debug)]
pub(super) struct PendingRead {
    pub(super) read: ReadId,
    /// By number; all from the cursor on otherwise.
    pub(super) points: Option<Vec<SequenceNumber>>,
    pub(super) limit: usize,
    pub(super) until: SequenceNumber,
}

#[derive(Debug)]
pub(super) struct Browser {
    pub(super) selector: Option<Arc<Selector>>,
    /// What is below has been shown.
    pub(super) cursor: SequenceNumber,
    /// Except for these.
    pub(super) late: BTreeSet<SequenceNumber>,
    pub(super) asked: Option<PendingRead>,
    pub(super) stride: Stride,
    /// As many are read for its selector at least.
    pub(super) reach: u32,
}

/// The browsers of a subqueue.
#[derive(Debug, Default)]
pub(crate) struct Browsers {
    pub(super) all: BTreeMap<ReceiverSlot, Browser>,
    /// Those with credit.
    pub(super) with_credit: BTreeSet<ReceiverSlot>,
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
        self.with_credit.remove(&slot);
    }

    /// A browser has credit.
    pub(crate) fn invite(&mut self, slot: ReceiverSlot) {
        self.with_credit.insert(slot);
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
    pub(crate) fn any_with_credit(&self) -> bool {
        !self.with_credit.is_empty()
    }

    /// Whether a browser has been shown everything below `end`.
    pub(crate) fn is_exhausted(&self, slot: ReceiverSlot, end: SequenceNumber) -> bool {
        let is_done = |b: &Browser| b.asked.is_none() && b.late.is_empty() && b.cursor >= end;
        is_done(self.all.get(&slot).expect(ATTACHED))
    }

    /// A browser that has not left.
    pub(super) fn get_mut(&mut self, slot: ReceiverSlot) -> &mut Browser {
        self.all.get_mut(&slot).expect(ATTACHED)
    }
}

impl Browser {
    /// What of `rows` was asked for and is not there any more needs no asking again.
    pub(super) fn note_missing(&mut self, points: &[SequenceNumber], rows: &[StoredMessage]) {
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
    pub(super) fn skip_to(&mut self, (first, stragglers): &(SequenceNumber, Vec<SequenceNumber>)) {
        if self.asked.is_none() && self.cursor < *first {
            let cursor = std::mem::replace(&mut self.cursor, *first);
            self.late
                .extend(stragglers.iter().filter(|number| **number >= cursor));
        }
    }

    /// A message needs no more looking at.
    pub(super) fn pass(&mut self, number: SequenceNumber) {
        self.late.remove(&number);
        self.cursor = self.cursor.max(number.next());
    }

    /// Goes on behind rows that cannot be read. Returns where they begin.
    pub(super) fn pass_damage(&mut self, until: SequenceNumber) -> SequenceNumber {
        self.stride = Stride::Many;
        let from = self.cursor;
        self.cursor = from.max(until);
        from
    }

    /// Whether it can ask for less than it did, to find what is damaged.
    pub(super) fn can_shorten(&self, asked: &PendingRead) -> bool {
        self.stride != Stride::Over || asked.points.is_some()
    }

    pub(super) fn meet_damage(&mut self, points: Option<&Vec<SequenceNumber>>) {
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

impl Browser {
    pub(super) fn query(&self, place: SubqueueId, limit: usize, until: SequenceNumber) -> Query {
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

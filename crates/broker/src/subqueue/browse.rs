//! Browse: receivers that are shown messages and take none. [AMQP 3.5.3, distribution mode "copy"]
//!
//! A browser is shown what stands in its subqueue from the first message to the last, locked ones
//! too, then whatever arrives; deferred and scheduled messages stand elsewhere. Nothing is locked
//! or counted for it, and no receiver waits for it. It is read from the store as its credit goes,
//! so a browser keeps a number in memory and nothing else. Dead letters keep their numbers: one
//! that arrives behind the number that the browser has come to is shown then.

use store::{Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::ReadId;
use crate::api::output::{Delivery, MessageState, Output};
use crate::context::Context;
use crate::context::clients::ReceiverSlot;
use crate::context::read::Purpose;
use crate::message::stored::{ReadRows, body_of, shown_of, size_of_body};
use crate::queue::rows::Rows;
use crate::subqueue::SubqueueState;
use crate::subqueue::browsers::{
    BYTES, LEAST_EVALUATED, LEAST_FOR_SELECTOR, MOST, PendingRead, Stride,
};
use crate::subqueue::selections::REST_MS;
use crate::subqueue::selections::evaluate::evaluate;

impl SubqueueState {
    /// Reads on for the browsers that have room for more. The subqueue's messages are found from
    /// `first` on.
    pub(crate) fn show_to_browsers(
        &mut self,
        first: &(SequenceNumber, Vec<SequenceNumber>),
        rows: &Rows,
        cx: &mut Context<'_>,
    ) {
        let with_credit: Vec<_> = self.browsers.with_credit.iter().copied().collect();
        for slot in with_credit {
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
            self.browsers.with_credit.remove(&slot);
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
        browser.asked = Some(PendingRead {
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
        self.needs_dispatch = true;
        match rows {
            Ok(rows) if browser.stride == Stride::Over && asked.points.is_none() => {
                browser.stride = Stride::Many;
                browser.cursor = rows.last().map_or(asked.until, |row| row.number.next());
            }
            Ok(rows) => return self.show(slot, &asked, &rows, cx),
            Err(StoreError::UnreadableRows {
                intact: 0, until, ..
            }) => {
                let from = browser.pass_damage(until);
                self.unreadable.note_rows(from..until);
            }
            Err(error) if error.is_damage() && browser.can_shorten(&asked) => {
                browser.meet_damage(asked.points.as_ref());
            }
            Err(_) => self.retry_at = Some(cx.retry_at()),
        }
        false
    }

    /// Shows what was read, as far as there is room for it. Returns whether that was any.
    fn show(
        &mut self,
        slot: ReceiverSlot,
        asked: &PendingRead,
        rows: &[StoredMessage],
        cx: &mut Context<'_>,
    ) -> bool {
        let browser = self.browsers.get_mut(slot);
        browser.stride = Stride::Many;
        browser.reach = browser.reach.saturating_mul(2).min(MOST);
        if let Some(points) = &asked.points {
            browser.note_missing(points, rows);
        }
        let mut grace = LEAST_EVALUATED;
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
        let is_expired = self.is_expired(stored.number, &stored.row, now);
        let browser = self.browsers.get_mut(slot);
        if browser.selector.is_some() && !cx.take_evaluation() {
            *grace = grace.checked_sub(1)?;
        }
        browser.pass(stored.number);
        if is_expired {
            return Some(false);
        }
        let (Some(selector), Some(body)) = (&browser.selector, body_of(stored)) else {
            return Some(browser.selector.is_none());
        };
        let (row, count) = (&stored.row, stored.delivery_count);
        let (is_selected, units) = evaluate(selector, stored.number, row, count, &body);
        if is_selected {
            browser.reach = LEAST_FOR_SELECTOR;
        }
        cx.pay_evaluation(units);
        Some(is_selected)
    }

    fn show_one(&self, slot: ReceiverSlot, stored: &StoredMessage, cx: &mut Context<'_>) -> bool {
        let receiver = cx.shared.clients.get(slot).id;
        // What cannot be read cannot be shown.
        let Some(message) = shown_of(self.place.entity, stored, MessageState::Active) else {
            return false;
        };
        let delivery = Box::new(Delivery {
            token: cx.shared.tokens.next(message.number),
            message,
            rests_on: cx.commit(),
        });
        cx.shared.clients.count_delivery(slot, delivery.size());
        cx.emit(Output::Deliver { receiver, delivery });
        true
    }
}

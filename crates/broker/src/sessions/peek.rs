//! Peek at one session: browses its messages from a number on, without taking anything.
//!
//! Its entries tell the numbers, then the messages are read: first the scheduled ones, the
//! deferred ones last, since a message only ever moves that way, so none is missed between two
//! reads. One that is activated meanwhile has a number that is not looked at.

use store::{Entry, Found, Index, Part, Query, StoreError};

use crate::api::error::RequestError;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::queue::session_key as key;
use crate::receive::peek::peeked;
use crate::sessions::pending_peek::SessionPeek;
use crate::sessions::read::SessionRead;
use crate::sessions::{Parts, Sessions, id_of};

impl Sessions {
    /// Asks for the next numbers, of the part whose turn it is.
    pub(super) fn ask_order(peek: SessionPeek, parts: &Parts<'_>, cx: &mut Context<'_>) {
        let resume = parts.rows.resume(peek.part);
        let from = peek.next.max(resume);
        let query = Query::Entries {
            entity: parts.rows.id,
            index: Index::Session,
            from: key::of(peek.part, peek.key.hash, from),
            until: key::of(peek.part, peek.key.hash, peek.page.until),
            limit: peek.page.count,
            max_bytes: usize::MAX,
        };
        Self::ask_peek(query, peek, parts, cx);
    }

    fn ask_peek(query: Query, peek: SessionPeek, parts: &Parts<'_>, cx: &mut Context<'_>) {
        let read = SessionRead::Peek(Box::new(peek));
        cx.ask(query, Purpose::Session(parts.rows.id, Box::new(read)));
    }

    /// Part of it was read.
    pub(super) fn session_peeked(
        &self,
        mut peek: SessionPeek,
        found: Result<Found, StoreError>,
        parts: &Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        match found {
            Ok(Found::Entries(entries)) => self.peek_numbers(peek, &entries, parts, cx),
            Ok(Found::Messages(rows)) => {
                peek.page.merge(rows);
                self.session_peek_on(peek, parts, cx);
            }
            Err(error) => {
                let error = RequestError::Unreadable(error.to_string());
                cx.emit(peek.page.refusal(error));
            }
        }
    }

    fn peek_numbers(
        &self,
        mut peek: SessionPeek,
        entries: &[Entry],
        parts: &Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let full = entries.len() >= peek.page.count;
        peek.cut = entries.last().map(|last| last.key.number).filter(|_| full);
        // Only the entries of available and locked messages tell an id.
        let own = |entry: &&Entry| peek.part != Part::Active || peek.key.is_of(id_of(entry));
        let numbers: Vec<_> = entries
            .iter()
            .filter(own)
            .map(|entry| entry.key.number)
            .collect();
        if numbers.is_empty() {
            return self.session_peek_on(peek, parts, cx);
        }
        let query = Query::Points {
            entity: parts.rows.id,
            part: peek.part,
            numbers,
            bodies: true,
            max_bytes: peek.page.max_bytes,
        };
        Self::ask_peek(query, peek, parts, cx);
    }

    /// Messages may have gone while they were about to be read: then those behind them are wanted.
    fn session_peek_on(&self, mut peek: SessionPeek, parts: &Parts<'_>, cx: &mut Context<'_>) {
        match peek.cut.take() {
            Some(cut) if cut.next() < peek.page.until && !peek.page.is_full_below(cut.next()) => {
                peek.next = cut.next();
                Self::ask_order(peek, parts, cx);
            }
            _ => self.peek_next_part(peek, parts, cx),
        }
    }

    fn peek_next_part(&self, mut peek: SessionPeek, parts: &Parts<'_>, cx: &mut Context<'_>) {
        let next = match peek.part {
            Part::Scheduled => Some(Part::Active),
            Part::Active => Some(Part::Deferred),
            _ => None,
        };
        if let Some(part) = next.filter(|_| peek.page.count > 0) {
            peek.part = part;
            peek.next = peek.from;
            return Self::ask_order(peek, parts, cx);
        }
        let browse = |stored: &_| {
            let sessions = Some(self);
            peeked(parts.rows.id, parts.main, sessions, stored, cx.now.mono)
        };
        cx.emit(peek.page.answer(browse));
    }
}

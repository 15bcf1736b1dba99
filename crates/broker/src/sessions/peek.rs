//! Peek at one session: browses its messages from a number on, without taking anything.
//!
//! Its entries tell the numbers, then the messages are read: first the scheduled ones, the
//! deferred ones last, since a message only ever moves that way, so none is missed between two
//! reads. One that is activated meanwhile has a number that is not looked at.

use crate::receive::peek::peeked;
use crate::sessions::Parts;
use crate::sessions::Sessions;
use std::collections::BTreeMap;

use bytes::Bytes;
use store::{
    EntityId, Entry, Found, Index, Part, Query, SequenceNumber, StoreError, StoredMessage,
};

use crate::api::id::RequestId;
use crate::api::output::{Browsed, Output, RequestError};
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::stored::{size_of_body, unreadable};
use crate::queue::session_key as key;
use crate::queue::session_key::SessionKey;
use crate::receive::peek::MOST;
use crate::sessions::id_of;
use crate::sessions::read::SessionRead;

/// A peek on its way.
#[derive(Debug)]
pub(crate) struct SessionPeek {
    request: RequestId,
    key: SessionKey,
    from: SequenceNumber,
    until: SequenceNumber,
    count: usize,
    max_bytes: usize,
    /// Which messages are being read.
    part: Part,
    /// From where on, of that part.
    next: SequenceNumber,
    /// Where its numbers were cut off, if they were.
    cut: Option<SequenceNumber>,
    found: BTreeMap<SequenceNumber, StoredMessage>,
}

/// Starts to browse a session.
#[allow(clippy::too_many_arguments, reason = "the command's fields")]
pub(crate) fn peek(
    directory: &mut Directory,
    request: RequestId,
    entity: EntityId,
    session: &Bytes,
    from: SequenceNumber,
    count: usize,
    max_bytes: usize,
    cx: &mut Context<'_>,
) {
    let queue = match directory.receivable(entity) {
        Ok(queue) => queue,
        Err(error) => return refuse(request, error, cx),
    };
    let Some((_, parts)) = queue.by_session() else {
        return refuse(request, RequestError::SessionsNotSupported, cx);
    };
    let peek = SessionPeek {
        request,
        key: SessionKey::new(session),
        from,
        until: parts.rows.end(),
        count: count.min(MOST),
        max_bytes,
        part: Part::Scheduled,
        next: from,
        cut: None,
        found: BTreeMap::new(),
    };
    Sessions::ask_order(peek, &parts, cx);
}

fn refuse(request: RequestId, error: RequestError, cx: &mut Context<'_>) {
    let result = Err(error);
    cx.emit(Output::Browsed { request, result });
}

impl Sessions {
    /// Asks for the next numbers, of the part whose turn it is.
    fn ask_order(peek: SessionPeek, parts: &Parts<'_>, cx: &mut Context<'_>) {
        let resume = parts.rows.resume(peek.part);
        let from = peek.next.max(resume);
        let query = Query::Entries {
            entity: parts.rows.id,
            index: Index::Session,
            from: key::of(peek.part, peek.key.hash, from),
            until: key::of(peek.part, peek.key.hash, peek.until),
            limit: peek.count,
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
                peek.take(rows);
                self.session_peek_on(peek, parts, cx);
            }
            Err(error) => refuse(peek.request, RequestError::Invalid(error.to_string()), cx),
        }
    }

    fn peek_numbers(
        &self,
        mut peek: SessionPeek,
        entries: &[Entry],
        parts: &Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let full = entries.len() >= peek.count;
        peek.cut = entries.last().map(|last| last.key.number).filter(|_| full);
        // Only the entries of available and locked messages tell an id.
        let own = |entry: &&Entry| peek.part != Part::Active || **id_of(entry) == *peek.key.id;
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
            max_bytes: peek.max_bytes,
        };
        Self::ask_peek(query, peek, parts, cx);
    }

    /// Messages may have gone while they were about to be read: then those behind them are wanted.
    fn session_peek_on(&self, mut peek: SessionPeek, parts: &Parts<'_>, cx: &mut Context<'_>) {
        match peek.cut.take() {
            Some(cut) if peek.found.len() < peek.count && cut < peek.until => {
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
        if let Some(part) = next.filter(|_| peek.count > 0) {
            peek.part = part;
            peek.next = peek.from;
            return Self::ask_order(peek, parts, cx);
        }
        cx.emit(Output::Browsed {
            request: peek.request,
            result: peek.shown(self, parts, cx.now.mono),
        });
    }
}

impl SessionPeek {
    pub(super) fn refuse(&self, error: RequestError, cx: &mut Context<'_>) {
        refuse(self.request, error, cx);
    }

    fn shown(
        self,
        sessions: &Sessions,
        parts: &Parts<'_>,
        now: Mono,
    ) -> Result<Vec<Browsed>, RequestError> {
        let mut bytes = 0_usize;
        let mut shown: Vec<Browsed> = Vec::new();
        for stored in self.found.into_values().take(self.count) {
            if bytes >= self.max_bytes && !shown.is_empty() {
                break;
            }
            bytes = bytes.saturating_add(size_of_body(&stored));
            let browsed = peeked(parts.main, Some(sessions), &stored, now);
            shown.push(browsed.ok_or_else(|| unreadable(stored.number))?);
        }
        Ok(shown)
    }

    /// What was cut off cuts off what comes behind it in the other part too.
    fn take(&mut self, rows: Vec<StoredMessage>) {
        let bytes: usize = rows.iter().map(size_of_body).sum();
        let cut = rows.len() >= self.count || bytes >= self.max_bytes;
        if cut && let Some(last) = rows.last() {
            self.until = self.until.min(last.number.next());
            drop(self.found.split_off(&self.until));
        }
        for row in rows {
            self.found.entry(row.number).or_insert(row);
        }
    }
}

//! Peek at one session: browses its messages from a number on, without taking anything.
//!
//! Its entries tell the numbers, then the messages are read: first the scheduled ones, the
//! deferred ones last, since a message only ever moves that way, so none is missed between two
//! reads. One that is activated meanwhile has a number that is not looked at.

use std::collections::BTreeMap;

use bytes::Bytes;
use store::{
    EntityId, Entry, Found, Index, Part, Query, SequenceNumber, StoreError, StoredMessage,
};

use crate::api::id::{RequestId, Subqueue};
use crate::api::output::{Browsed, Output, RequestError};
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::stored::{size_of_body, unreadable};
use crate::queue::Queue;
use crate::receive::peek::MOST;
use crate::sessions::read::SessionRead;
use crate::sessions::{SessionKey, id_of, key};

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
    let refused = match directory.receivable(entity) {
        Ok(queue) if queue.sessions.is_some() => {
            let peek = SessionPeek {
                request,
                key: SessionKey::new(session),
                from,
                until: queue.head.next_number,
                count: count.min(MOST),
                max_bytes,
                part: Part::Scheduled,
                next: from,
                cut: None,
                found: BTreeMap::new(),
            };
            return queue.ask_order(peek, cx);
        }
        Ok(_) => RequestError::SessionsNotSupported,
        Err(error) => error,
    };
    refuse(request, refused, cx);
}

fn refuse(request: RequestId, error: RequestError, cx: &mut Context<'_>) {
    let result = Err(error);
    cx.emit(Output::Browsed { request, result });
}

impl Queue {
    /// Asks for the next numbers, of the part whose turn it is.
    fn ask_order(&mut self, peek: SessionPeek, cx: &mut Context<'_>) {
        let resume = SequenceNumber(self.head.part(peek.part).resume);
        let from = peek.next.max(resume);
        let query = Query::Entries {
            entity: self.id,
            index: Index::Session,
            from: key::of(peek.part, peek.key.hash, from),
            until: key::of(peek.part, peek.key.hash, peek.until),
            limit: peek.count,
            max_bytes: usize::MAX,
        };
        self.ask_peek(query, peek, cx);
    }

    fn ask_peek(&self, query: Query, peek: SessionPeek, cx: &mut Context<'_>) {
        let read = SessionRead::Peek(Box::new(peek));
        cx.ask(query, Purpose::Session(self.id, Box::new(read)));
    }

    /// Part of it was read.
    pub(super) fn session_peeked(
        &mut self,
        mut peek: SessionPeek,
        found: Result<Found, StoreError>,
        cx: &mut Context<'_>,
    ) {
        match found {
            Ok(Found::Entries(entries)) => self.peek_numbers(peek, &entries, cx),
            Ok(Found::Messages(rows)) => {
                peek.take(rows);
                self.session_peek_on(peek, cx);
            }
            Err(error) => refuse(peek.request, RequestError::Invalid(error.to_string()), cx),
        }
    }

    fn peek_numbers(&mut self, mut peek: SessionPeek, entries: &[Entry], cx: &mut Context<'_>) {
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
            return self.session_peek_on(peek, cx);
        }
        let query = Query::Points {
            entity: self.id,
            part: peek.part,
            numbers,
            bodies: true,
            max_bytes: peek.max_bytes,
        };
        self.ask_peek(query, peek, cx);
    }

    /// Messages may have gone while they were about to be read: then those behind them are wanted.
    fn session_peek_on(&mut self, mut peek: SessionPeek, cx: &mut Context<'_>) {
        match peek.cut.take() {
            Some(cut) if peek.found.len() < peek.count && cut < peek.until => {
                peek.next = cut.next();
                self.ask_order(peek, cx);
            }
            _ => self.peek_next_part(peek, cx),
        }
    }

    fn peek_next_part(&mut self, mut peek: SessionPeek, cx: &mut Context<'_>) {
        let next = match peek.part {
            Part::Scheduled => Some(Part::Active),
            Part::Active => Some(Part::Deferred),
            _ => None,
        };
        if let Some(part) = next.filter(|_| peek.count > 0) {
            peek.part = part;
            peek.next = peek.from;
            return self.ask_order(peek, cx);
        }
        cx.emit(Output::Browsed {
            request: peek.request,
            result: peek.shown(self, cx.now.mono),
        });
    }
}

impl SessionPeek {
    pub(super) fn refuse(&self, error: RequestError, cx: &mut Context<'_>) {
        refuse(self.request, error, cx);
    }

    fn shown(self, queue: &Queue, now: Mono) -> Result<Vec<Browsed>, RequestError> {
        let mut bytes = 0_usize;
        let mut shown: Vec<Browsed> = Vec::new();
        for stored in self.found.into_values().take(self.count) {
            if bytes >= self.max_bytes && !shown.is_empty() {
                break;
            }
            bytes = bytes.saturating_add(size_of_body(&stored));
            let browsed = queue.peeked(Subqueue::Main, &stored, now);
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

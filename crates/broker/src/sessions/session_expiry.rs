//! Session expiry: in the mode `cloud` all messages of a session expire with the first of them.
//!
//! When a message of a session expires, those that were sent before that moment and are not
//! locked go the same way, a bounded piece with each read. Locked ones are left to the end of
//! their lock. A session is known by its hash here, so two that share one expire together. What
//! the turn has left of such a session is stored with the turn, until the last of it is gone, so
//! a restart goes on with it. (docs/spec/README.md#settled)

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use store::{Entry, EntryKey, Index, Query, SequenceNumber, StoreError, Write};

use crate::api::id::{ReadId, Subqueue};
use crate::api::settings::Expiry;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::Message;
use crate::message::stored::{Rows, body_of};
use crate::queue::Queue;
use crate::sessions::read::SessionRead;
use crate::sessions::{Sessions, key};

/// Messages, and bytes of them, that are read at once.
const PIECE: usize = 64;
const PIECE_BYTES: usize = 1 << 20;
/// Sessions that are recalled with one read.
const RECALLED: usize = 1_024;

/// A session whose messages expire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionExpiry {
    hash: u64,
    cursor: SequenceNumber,
    until: SequenceNumber,
    /// After a read that failed: one message at a time, so that one that cannot be read keeps
    /// no other.
    cautious: bool,
}

/// A bounded piece of a session's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    last: SequenceNumber,
    /// Whether there are no more behind it.
    whole: bool,
}

/// The sessions that are to expire as a whole, by hash: their messages below a number.
#[derive(Debug, Default)]
pub(super) struct SessionExpiries {
    waiting: BTreeMap<u64, SequenceNumber>,
    running: Option<(u64, SequenceNumber)>,
    /// Those that came up in this turn.
    fresh: BTreeSet<u64>,
    /// Those that the store may know of.
    stored: BTreeSet<u64>,
    recall: Recall,
}

/// How far it is known what was left when the process before this one ended.
#[derive(Debug, Default)]
enum Recall {
    /// The next piece begins at this group.
    Due(u64),
    Reading(u64),
    #[default]
    Complete,
}

impl SessionExpiries {
    /// Those of a queue that may have left some behind.
    pub(super) fn unknown() -> Self {
        Self {
            recall: Recall::Due(0),
            ..Self::default()
        }
    }

    /// Whether a read is to be asked for.
    pub(super) fn is_due(&self) -> bool {
        let idle = self.running.is_none() && !self.waiting.is_empty();
        idle || matches!(self.recall, Recall::Due(_))
    }

    fn add(&mut self, hash: u64, until: SequenceNumber) {
        let known = self.waiting.entry(hash).or_insert(until);
        *known = until.max(*known);
    }

    /// How far a session is to expire.
    fn reach(&self, hash: u64) -> Option<SequenceNumber> {
        let running = self.running.filter(|running| running.0 == hash);
        let running = running.map(|running| running.1);
        self.waiting.get(&hash).copied().max(running)
    }
}

impl Queue {
    /// A message has expired: in the mode `cloud` its session does.
    pub(crate) fn expire_whole_session(&mut self, message: &Message, cx: &Context<'_>) {
        let cloud = self.settings.expiry.unwrap_or(cx.shared.settings.expiry) == Expiry::Cloud;
        let active = message.part == Subqueue::Main.part();
        let until = self.head.next_number;
        let hash = message.row.session_hash;
        // Messages of any queue expire, in whatever mode.
        let Some(sessions) = self.sessions.as_mut().filter(|_| cloud && active) else {
            return;
        };
        let expiries = &mut sessions.expiries;
        let running = expiries.running.filter(|running| running.0 == hash);
        if running.is_none_or(|(_, until)| message.number >= until) {
            expiries.add(hash, until);
            expiries.fresh.insert(hash);
            self.sub_mut(Subqueue::Main).needs_pump = true;
        }
    }

    /// The turn ends: what it has left of sessions that expire is stored with it.
    pub(crate) fn write_session_expiries(&mut self, cx: &mut Context<'_>) {
        let entity = self.id;
        // Every entity's head is written, whether or not it has sessions.
        let Some(sessions) = &mut self.sessions else {
            return;
        };
        for hash in std::mem::take(&mut sessions.expiries.fresh) {
            // A session may come up and be dealt with in the same turn.
            let Some(until) = sessions.expiries.reach(hash) else {
                continue;
            };
            if sessions.may_have_messages(hash) {
                sessions.expiries.stored.insert(hash);
                cx.write(Write::PutEntry {
                    entity,
                    index: Index::Doom,
                    key: key_of(hash),
                    value: Bytes::copy_from_slice(&until.0.to_be_bytes()),
                });
            }
        }
    }

    /// Takes up the next session that is to expire, and what a restart has left.
    pub(super) fn expire_whole_sessions(&mut self, cx: &mut Context<'_>) {
        self.recall_expiries(cx);
        let cursor = SequenceNumber(self.head.part(Subqueue::Main.part()).resume);
        while let Some(sessions) = &mut self.sessions
            && sessions.retry_at.is_none()
            && sessions.expiries.running.is_none()
            && let Some((hash, until)) = sessions.expiries.waiting.pop_first()
        {
            let stored = sessions.expiries.stored.contains(&hash);
            if stored || sessions.may_have_messages(hash) {
                sessions.expiries.running = Some((hash, until));
                let cautious = false;
                let expiry = SessionExpiry {
                    hash,
                    cursor,
                    until,
                    cautious,
                };
                self.ask_expiring(expiry, cx);
            }
        }
    }

    fn ask_expiring(&self, expiry: SessionExpiry, cx: &mut Context<'_>) {
        let query = Query::Entries {
            entity: self.id,
            index: Index::Session,
            from: key::active(expiry.hash, expiry.cursor),
            until: key::active(expiry.hash, expiry.until),
            limit: expiry.limit(),
            max_bytes: usize::MAX,
        };
        let read = SessionRead::Expiring(expiry);
        cx.ask(query, Purpose::Session(self.id, Box::new(read)));
    }

    /// Numbers of messages that are to expire came back.
    pub(super) fn expiring_found(
        &mut self,
        expiry: SessionExpiry,
        found: Result<Vec<Entry>, StoreError>,
        cx: &mut Context<'_>,
    ) {
        let Ok(entries) = found else {
            return self.rest_expiry(expiry, cx);
        };
        let Some(last) = entries.last().map(|entry| entry.key.number) else {
            return self.finish_expiry(cx);
        };
        let whole = entries.len() < expiry.limit();
        let numbers = entries.iter().map(|entry| entry.key.number).collect();
        let query = Query::Points {
            entity: self.id,
            part: Subqueue::Main.part(),
            numbers,
            bodies: true,
            max_bytes: PIECE_BYTES,
        };
        let read = SessionRead::ExpiringRows(expiry, Piece { last, whole });
        let read = cx.ask(query, Purpose::Session(self.id, Box::new(read)));
        self.journal.begin(read);
    }

    /// The messages came back: those that were not touched since expire. The others are read again,
    /// for their locks may have ended.
    pub(super) fn expiring_loaded(
        &mut self,
        read: ReadId,
        expiry: SessionExpiry,
        piece: Piece,
        rows: Rows,
        cx: &mut Context<'_>,
    ) {
        let touched = self.journal.finish(read);
        let rows = match rows {
            Ok(rows) => rows,
            // It is damaged: its own deadline, or its next delivery, will show.
            Err(_) if expiry.cautious => Vec::new(),
            Err(_) => {
                let cautious = true;
                return self.ask_expiring(SessionExpiry { cautious, ..expiry }, cx);
            }
        };
        let bytes: usize = rows.iter().map(|row| row.row.size as usize).sum();
        let reached = match rows.last() {
            Some(row) if bytes >= PIECE_BYTES => row.number,
            _ => piece.last,
        };
        let again = rows.iter().map(|row| row.number);
        let again = again.filter(|number| touched.contains(number)).min();
        for stored in rows {
            let number = stored.number;
            let locked = self.sub(Subqueue::Main).locks.contains(number);
            if let Some(body) = body_of(&stored)
                && !locked
                && !touched.contains(&number)
            {
                let message = Message {
                    number,
                    part: stored.part,
                    row: stored.row,
                    delivery_count: stored.delivery_count,
                    patch: body.patch,
                };
                self.expire(&message, true, cx);
            }
        }
        let more = reached.next() < expiry.until && !(piece.whole && reached == piece.last);
        match again.or(more.then(|| reached.next())) {
            Some(cursor) => self.ask_expiring(SessionExpiry { cursor, ..expiry }, cx),
            None => self.finish_expiry(cx),
        }
    }

    /// Nothing could be read: the session waits for its next turn.
    fn rest_expiry(&mut self, expiry: SessionExpiry, cx: &Context<'_>) {
        let sessions = self.require_sessions_mut();
        sessions.expiries.running = None;
        sessions.expiries.add(expiry.hash, expiry.until);
        sessions.rest(cx.now.mono);
    }

    /// A session has expired, unless it is to once more.
    fn finish_expiry(&mut self, cx: &mut Context<'_>) {
        let entity = self.id;
        let expiries = &mut self.require_sessions_mut().expiries;
        let running = expiries.running.take();
        let (hash, _) = running.expect("one session expires at a time, and ends once");
        if !expiries.waiting.contains_key(&hash) && expiries.stored.remove(&hash) {
            cx.write(Write::RemoveEntry {
                entity,
                index: Index::Doom,
                key: key_of(hash),
            });
        }
        self.sub_mut(Subqueue::Main).needs_pump = true;
    }

    /// Asks for what was left when the process before this one ended.
    fn recall_expiries(&mut self, cx: &mut Context<'_>) {
        let entity = self.id;
        let sessions = self.require_sessions_mut();
        if sessions.retry_at.is_some() {
            return;
        }
        let Recall::Due(from) = sessions.expiries.recall else {
            return;
        };
        sessions.expiries.recall = Recall::Reading(from);
        let query = Query::Entries {
            entity,
            index: Index::Doom,
            from: key_of(from),
            until: EntryKey::by_u64(u64::MAX, SequenceNumber::MAX),
            limit: RECALLED,
            max_bytes: usize::MAX,
        };
        let read = SessionRead::Recall;
        cx.ask(query, Purpose::Session(entity, Box::new(read)));
    }

    /// Some of what was left came back.
    pub(super) fn expiries_recalled(
        &mut self,
        found: Result<Vec<Entry>, StoreError>,
        cx: &Context<'_>,
    ) {
        let sessions = self.sessions.as_mut().expect("it has asked for them");
        let Recall::Reading(from) = sessions.expiries.recall else {
            unreachable!("one piece is read at a time");
        };
        let Ok(entries) = found else {
            sessions.expiries.recall = Recall::Due(from);
            return sessions.rest(cx.now.mono);
        };
        sessions.expiries.recall = match entries.last().and_then(|entry| entry.key.group_u64()) {
            Some(last) if entries.len() == RECALLED && last < u64::MAX => Recall::Due(last + 1),
            _ => Recall::Complete,
        };
        for entry in &entries {
            if let Some(hash) = entry.key.group_u64()
                && let Ok(until) = entry.value.as_ref().try_into()
            {
                let until = SequenceNumber(u64::from_be_bytes(until));
                sessions
                    .expiries
                    .add(hash, until.min(self.head.next_number));
                sessions.expiries.stored.insert(hash);
            }
        }
        self.sub_mut(Subqueue::Main).needs_pump = true;
    }
}

impl Sessions {
    /// Whether a message of this hash may be available or locked, as far as is known now.
    fn may_have_messages(&self, hash: u64) -> bool {
        let mut held = self.holders(hash).map(|id| self.existing_hold(id));
        !self.survey.is_complete()
            || !self.records_of(hash).is_empty()
            || held.any(super::Hold::has_messages)
    }
}

impl SessionExpiry {
    fn limit(&self) -> usize {
        if self.cautious { 1 } else { PIECE }
    }
}

fn key_of(hash: u64) -> EntryKey {
    EntryKey::by_u64(hash, SequenceNumber(0))
}

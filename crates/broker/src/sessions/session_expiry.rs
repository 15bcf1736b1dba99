//! Session expiry: in the mode `cloud` all messages of a session expire with the first of them.
//!
//! When a message of a session expires, those that were sent before that moment and are not
//! locked go the same way, a bounded piece with each read. Locked ones are left to the end of
//! their lock. A session is known by its hash here, so two that share one expire together. What
//! the turn has left of such a session is stored with the turn, until the last of it is gone, so
//! a restart goes on with it. (docs/spec/README.md#settled)

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use store::{EntityId, Entry, EntryKey, Index, Query, SequenceNumber, StoreError, Write};

use crate::api::id::Subqueue;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::Message;
use crate::queue::session_key as key;
use crate::sessions::read::{Piece, SessionExpiry, SessionRead};
use crate::sessions::{Parts, Sessions};

/// Messages, and bytes of them, that are read at once.
const PIECE: usize = 64;
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// Sessions that are recalled with one read.
const RECALLED: usize = 1_024;

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

impl Sessions {
    /// A message has expired, and all of its session are to.
    pub(crate) fn expire_with(&mut self, message: &Message, parts: &mut Parts<'_>) {
        let until = parts.rows.end();
        let hash = message.row.session_hash;
        let running = self.expiries.running.filter(|running| running.0 == hash);
        if running.is_none_or(|(_, until)| message.number >= until) {
            self.expiries.add(hash, until);
            self.expiries.fresh.insert(hash);
            parts.main.needs_dispatch = true;
        }
    }

    /// The turn ends: what it has left of sessions that expire is stored with it.
    pub(crate) fn write_session_expiries(&mut self, entity: EntityId, cx: &mut Context<'_>) {
        for hash in std::mem::take(&mut self.expiries.fresh) {
            // A session may come up and be dealt with in the same turn.
            let Some(until) = self.expiries.reach(hash) else {
                continue;
            };
            if self.may_have_messages(hash) {
                self.expiries.stored.insert(hash);
                cx.write(Write::PutEntry {
                    entity,
                    index: Index::SessionExpiry,
                    key: key_of(hash),
                    value: Bytes::copy_from_slice(&until.0.to_be_bytes()),
                });
            }
        }
    }

    /// Takes up the next session that is to expire, and what a restart has left.
    pub(super) fn expire_whole_sessions(&mut self, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        self.recall_expiries(parts, cx);
        let cursor = parts.rows.resume(Subqueue::Main.part());
        while self.retry_at.is_none()
            && self.expiries.running.is_none()
            && let Some((hash, until)) = self.expiries.waiting.pop_first()
        {
            let stored = self.expiries.stored.contains(&hash);
            if stored || self.may_have_messages(hash) {
                self.expiries.running = Some((hash, until));
                let cautious = false;
                let expiry = SessionExpiry {
                    hash,
                    cursor,
                    until,
                    cautious,
                };
                Self::ask_expiring(expiry, parts, cx);
            }
        }
    }

    pub(super) fn ask_expiring(expiry: SessionExpiry, parts: &Parts<'_>, cx: &mut Context<'_>) {
        let query = Query::Entries {
            entity: parts.rows.id,
            index: Index::Session,
            from: key::active(expiry.hash, expiry.cursor),
            until: key::active(expiry.hash, expiry.until),
            limit: limit_of(&expiry),
            max_bytes: usize::MAX,
        };
        let read = SessionRead::Expiring(expiry);
        cx.ask(query, Purpose::Session(parts.rows.id, Box::new(read)));
    }

    /// Numbers of messages that are to expire came back.
    pub(super) fn expiring_found(
        &mut self,
        expiry: SessionExpiry,
        found: Result<Vec<Entry>, StoreError>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let Ok(entries) = found else {
            return self.rest_expiry(expiry, cx);
        };
        let Some(last) = entries.last().map(|entry| entry.key.number) else {
            return self.finish_expiry(parts, cx);
        };
        let whole = entries.len() < limit_of(&expiry);
        let numbers = entries.iter().map(|entry| entry.key.number).collect();
        let query = Query::Points {
            entity: parts.rows.id,
            part: Subqueue::Main.part(),
            numbers,
            bodies: true,
            max_bytes: PIECE_BYTES,
        };
        let read = SessionRead::ExpiringRows(expiry, Piece { last, whole });
        let read = cx.ask(query, Purpose::Session(parts.rows.id, Box::new(read)));
        parts.rows.journal.begin(read);
    }

    /// Nothing could be read: the session waits for its next turn.
    fn rest_expiry(&mut self, expiry: SessionExpiry, cx: &Context<'_>) {
        self.expiries.running = None;
        self.expiries.add(expiry.hash, expiry.until);
        self.rest(cx.now.mono);
    }

    /// A session has expired, unless it is to once more.
    pub(super) fn finish_expiry(&mut self, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        let entity = parts.rows.id;
        let expiries = &mut self.expiries;
        let running = expiries.running.take();
        let (hash, _) = running.expect("one session expires at a time, and ends once");
        if !expiries.waiting.contains_key(&hash) && expiries.stored.remove(&hash) {
            cx.write(Write::RemoveEntry {
                entity,
                index: Index::SessionExpiry,
                key: key_of(hash),
            });
        }
        parts.main.needs_dispatch = true;
    }

    /// Asks for what was left when the process before this one ended.
    fn recall_expiries(&mut self, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        let entity = parts.rows.id;
        if self.retry_at.is_some() {
            return;
        }
        // All is known, or what is left is being read.
        let Recall::Due(from) = self.expiries.recall else {
            return;
        };
        self.expiries.recall = Recall::Reading(from);
        let query = Query::Entries {
            entity,
            index: Index::SessionExpiry,
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
        parts: &mut Parts<'_>,
        cx: &Context<'_>,
    ) {
        let Recall::Reading(from) = self.expiries.recall else {
            unreachable!("one piece is read at a time");
        };
        let Ok(entries) = found else {
            self.expiries.recall = Recall::Due(from);
            return self.rest(cx.now.mono);
        };
        self.expiries.recall = match entries.last().and_then(|entry| entry.key.group_u64()) {
            Some(last) if entries.len() == RECALLED && last < u64::MAX => Recall::Due(last + 1),
            _ => Recall::Complete,
        };
        for entry in &entries {
            if let Some(hash) = entry.key.group_u64()
                && let Ok(until) = entry.value.as_ref().try_into()
            {
                let until = SequenceNumber(u64::from_be_bytes(until));
                self.expiries.add(hash, until.min(parts.rows.end()));
                self.expiries.stored.insert(hash);
            }
        }
        parts.main.needs_dispatch = true;
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

fn limit_of(expiry: &SessionExpiry) -> usize {
    if expiry.cautious { 1 } else { PIECE }
}

fn key_of(hash: u64) -> EntryKey {
    EntryKey::by_u64(hash, SequenceNumber(0))
}

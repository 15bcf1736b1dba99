//! Survey: learning which sessions have messages, and whether a session still has.
//!
//! After a restart the first entry of every session's group is read, a bounded piece at a time;
//! until that is complete no receiver is told that there is no session. What it finds may have left
//! since, and a first message may expire: a session is checked (one entry of its group is read)
//! before it is handed out, unless its first message is known to be there.

use std::collections::BTreeSet;

use bytes::Bytes;
use store::{Entry, Index, Query, SequenceNumber, StoreError};

use crate::api::id::Subqueue;
use crate::api::time::Mono;
use crate::context::read::Purpose;
use crate::context::{Context, RETRY_MS};
use crate::queue::session_key as key;
use crate::queue::session_key::SessionKey;
use crate::sessions::read::SessionRead;
use crate::sessions::{Parts, Record, Sessions, id_of};

/// Sessions that are learnt of with one read.
const PIECE: usize = 1_024;
/// Entries that are read to find a session's first one; more than one only for those of others
/// that share its hash.
const CHECK: usize = 8;

/// How far the survey is.
#[derive(Debug, Default)]
pub(super) enum Survey {
    /// The next piece begins behind this group.
    Due(Option<Bytes>),
    Reading {
        after: Option<Bytes>,
        /// Hashes of sessions that changed since.
        changed: BTreeSet<u64>,
    },
    #[default]
    Complete,
}

impl Survey {
    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }
}

/// A session that is being looked at.
#[derive(Debug)]
pub(super) struct Check {
    key: SessionKey,
    first: SequenceNumber,
    until: SequenceNumber,
    /// Something left it meanwhile, or it was held.
    changed: bool,
}

impl Sessions {
    /// Something left a session of this hash, or it was held.
    pub(super) fn note_change(&mut self, hash: u64) {
        if let Some(check) = self.check.as_mut().filter(|c| c.key.hash == hash) {
            check.changed = true;
        }
        if let Survey::Reading { changed, .. } = &mut self.survey {
            changed.insert(hash);
        }
    }

    /// A session was found to have this message, as the store was a while ago.
    fn found(&mut self, key: SessionKey, first: SequenceNumber, until: SequenceNumber) {
        if self.by_key.contains_key(&key) {
            // Its window knows, or will.
            return;
        }
        let record = match self.idle.get(&key) {
            Some(record) if record.first <= first => return,
            Some(record) => Record {
                first,
                certain: false,
                enqueued: None,
                ..*record
            },
            None => Record {
                first,
                last: SequenceNumber(until.0.saturating_sub(1)),
                certain: false,
                enqueued: None,
            },
        };
        self.put_idle(key, record);
    }

    /// Entries of a group that belong to other sessions than the one it was read for.
    pub(super) fn note_others(
        &mut self,
        key: &SessionKey,
        entries: &[Entry],
        until: SequenceNumber,
    ) {
        for entry in entries.iter().filter(|entry| !key.is_of(id_of(entry))) {
            let other = self.ids.key(id_of(entry));
            self.found(other.clone(), entry.key.number, until);
            self.uncertain.insert(other);
        }
    }

    pub(super) fn rest(&mut self, now: Mono) {
        let at = now.after(RETRY_MS);
        self.retry_at.get_or_insert(at);
    }
}

impl Sessions {
    /// Asks for what is to be learnt next.
    pub(super) fn survey_sessions(&mut self, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        let entity = parts.rows.id;
        if self.retry_at.is_some() {
            return;
        }
        if let Survey::Due(after) = &mut self.survey {
            let after = after.take();
            let query = Query::Groups {
                entity,
                index: Index::Session,
                after: after.clone(),
                limit: PIECE,
            };
            cx.ask(
                query,
                Purpose::Session(entity, Box::new(SessionRead::Survey)),
            );
            let changed = BTreeSet::new();
            self.survey = Survey::Reading { after, changed };
        }
        while self.check.is_none()
            && let Some(key) = self.uncertain.pop_first()
        {
            self.check_session(key, parts, cx);
        }
    }

    /// Looks whether an idle session has messages, unless another one is looked at.
    pub(super) fn check_session(
        &mut self,
        key: SessionKey,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let resume = parts.rows.resume(Subqueue::Main.part());
        let (entity, until) = (parts.rows.id, parts.rows.end());
        // A session in doubt may be held by now, or have lost its last message.
        let Some(record) = self.idle.get(&key).filter(|_| self.check.is_none()) else {
            return;
        };
        if record.certain || self.retry_at.is_some() {
            return;
        }
        let first = record.first;
        let query = Query::Entries {
            entity,
            index: Index::Session,
            from: key::active(key.hash, first.max(resume)),
            until: key::active(key.hash, until),
            limit: CHECK,
            max_bytes: usize::MAX,
        };
        cx.ask(
            query,
            Purpose::Session(entity, Box::new(SessionRead::Check)),
        );
        self.uncertain.remove(&key);
        self.check = Some(Check {
            key,
            first,
            until,
            changed: false,
        });
    }

    /// A piece of the survey came back.
    pub(super) fn surveyed(
        &mut self,
        found: Result<Vec<Entry>, StoreError>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let until = parts.rows.end();
        let Survey::Reading { after, changed } = std::mem::take(&mut self.survey) else {
            unreachable!("one piece is read at a time");
        };
        let Ok(entries) = found else {
            self.survey = Survey::Due(after);
            return self.rest(cx.now.mono);
        };
        let active = entries
            .iter()
            .filter(|entry| entry.key.group_u64().is_some());
        for entry in active.clone() {
            let key = self.ids.key(id_of(entry));
            if changed.contains(&key.hash) {
                self.uncertain.insert(key.clone());
            }
            self.found(key, entry.key.number, until);
        }
        let whole = entries.len() < PIECE || active.count() < entries.len();
        if !whole {
            self.survey = Survey::Due(entries.last().map(|entry| entry.key.group.clone()));
        } else {
            self.list_at_last(parts, cx);
        }
        parts.main.needs_dispatch = true;
    }

    /// A session was looked at.
    pub(super) fn checked(
        &mut self,
        found: Result<Vec<Entry>, StoreError>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        parts.main.needs_dispatch = true;
        let check = self.check.take();
        let check = check.expect("one session is looked at at a time");
        let Ok(entries) = found else {
            self.uncertain.insert(check.key);
            return self.rest(cx.now.mono);
        };
        self.note_others(&check.key, &entries, check.until);
        // The session may be held by now, or have lost its last message.
        let Some(record) = self.idle.get(&check.key).copied() else {
            return;
        };
        if check.changed || record.first < check.first {
            // What was read is not all there may be, or is no longer there.
            self.uncertain.insert(check.key);
            return;
        }
        let own = entries.iter().find(|entry| check.key.is_of(id_of(entry)));
        let read_all = entries.len() < CHECK;
        let next = match own {
            Some(entry) => Some((entry.key.number, true)),
            None if !read_all => entries.last().map(|entry| (entry.key.number.next(), false)),
            // What arrived since is all there is.
            None => (record.last >= check.until).then_some((check.until, false)),
        };
        match next {
            Some((first, certain)) => {
                let enqueued = record.enqueued.filter(|_| record.first == first);
                let record = Record {
                    first,
                    last: record.last,
                    certain,
                    enqueued,
                };
                self.put_idle(check.key, record);
            }
            None => drop(self.take_idle(&check.key)),
        }
    }
}

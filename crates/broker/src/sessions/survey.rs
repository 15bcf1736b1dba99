//! Survey: learning which sessions have messages, and whether a session still has.
//!
//! After a restart the first entry of every session's group is read, a bounded piece at a time;
//! until that is complete no receiver is told that there is no session. What it finds may have left
//! since, and a first message may expire: a session is checked (one entry of its group is read)
//! before it is handed out, unless its first message is known to be there.
//!
//! Groups that cannot be read are passed over: pieces become shorter until they end before them,
//! then ever longer steps lead behind them. A session whose own entries cannot be read keeps its
//! record and is given only to a receiver that names it. Receivers that wait for the next session
//! are told once that there is such damage, and later ones when their time is up.

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
pub(super) const CHECK: usize = 8;

/// How far the survey is.
#[derive(Debug, Default)]
pub(super) enum Survey {
    Due(Piece),
    Reading {
        piece: Piece,
        /// Hashes of sessions that changed since.
        changed: BTreeSet<u64>,
    },
    #[default]
    Complete,
    /// It is over, and there may be sessions that could not be read.
    Incomplete,
}

impl Survey {
    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }

    /// Whether all sessions are known that can be.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Complete | Self::Incomplete)
    }
}

/// A piece of the survey: some groups of the order of sessions.
#[derive(Debug)]
pub(super) struct Piece {
    /// It begins behind this group.
    after: Option<Bytes>,
    limit: usize,
    /// How many steps have been taken to get behind damage.
    steps: u32,
    /// Whether groups have been passed over.
    is_damaged: bool,
}

impl Piece {
    pub(super) const FIRST: Self = Self {
        after: None,
        limit: PIECE,
        steps: 0,
        is_damaged: false,
    };

    /// The piece behind this one, which ended with that group.
    fn next(&self, last: Option<&Entry>) -> Self {
        Self {
            after: last.map(|entry| entry.key.group.clone()),
            limit: self.limit.saturating_mul(2).min(PIECE),
            steps: 0,
            ..*self
        }
    }

    /// The piece to read when this one met damage; nothing if there is none behind it.
    fn past_damage(self) -> Option<Self> {
        if self.limit > 1 {
            let limit = self.limit / 2;
            return Some(Self { limit, ..self });
        }
        let after = self.after.as_deref().map_or(Some(0), |group| {
            let hash = group.try_into().ok()?;
            Some(u64::from_be_bytes(hash))
        });
        let step = 1_u64.checked_shl(self.steps)?;
        let hash = after?.checked_add(step)?;
        Some(Self {
            after: Some(key::active(hash, SequenceNumber(0)).group),
            limit: 1,
            steps: self.steps + 1,
            is_damaged: true,
        })
    }
}

/// A session that is being looked at.
#[derive(Debug)]
pub(super) struct Check {
    key: SessionKey,
    first: SequenceNumber,
    until: SequenceNumber,
    /// Most entries that are read.
    limit: usize,
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
        self.survey = match std::mem::take(&mut self.survey) {
            Survey::Due(piece) => {
                let query = Query::Groups {
                    entity,
                    index: Index::Session,
                    after: piece.after.clone(),
                    limit: piece.limit,
                };
                let read = Box::new(SessionRead::Survey);
                cx.ask(query, Purpose::Session(entity, read));
                let changed = BTreeSet::new();
                Survey::Reading { piece, changed }
            }
            survey => survey,
        };
        while self.check.is_none()
            && let Some(key) = self.uncertain.pop_first()
        {
            self.check_session(key, CHECK, parts, cx);
        }
    }

    /// Looks whether an idle session has messages, unless another one is looked at.
    pub(super) fn check_session(
        &mut self,
        key: SessionKey,
        limit: usize,
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
            limit,
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
            limit,
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
        let Survey::Reading { piece, changed } = std::mem::take(&mut self.survey) else {
            unreachable!("one piece is read at a time");
        };
        parts.main.needs_dispatch = true;
        let entries = match found {
            Ok(entries) => entries,
            Err(error) if error.is_damage() => {
                // What changed meanwhile has not been read, so it need not be looked at.
                return match piece.past_damage() {
                    Some(piece) => self.survey = Survey::Due(piece),
                    None => self.end_survey(true, parts, cx),
                };
            }
            Err(_) => {
                self.survey = Survey::Due(piece);
                return self.rest(cx.now.mono);
            }
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
        let whole = entries.len() < piece.limit || active.count() < entries.len();
        if whole {
            self.end_survey(piece.is_damaged, parts, cx);
        } else {
            self.survey = Survey::Due(piece.next(entries.last()));
        }
    }

    fn end_survey(&mut self, is_damaged: bool, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        if is_damaged {
            self.survey = Survey::Incomplete;
            self.damage_is_news = true;
            self.refuse_listings(cx);
        } else {
            self.survey = Survey::Complete;
            self.list_at_last(parts, cx);
        }
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
        let entries = match found {
            Ok(entries) => entries,
            // The first entry may be in front of the damage.
            Err(error) if error.is_damage() && check.limit > 1 => {
                return self.check_session(check.key, 1, parts, cx);
            }
            Err(error) if error.is_damage() => {
                self.damage_is_news |= self.damaged.insert(check.key);
                return;
            }
            Err(_) => {
                self.uncertain.insert(check.key);
                return self.rest(cx.now.mono);
            }
        };
        self.damaged.remove(&check.key);
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
        let read_all = entries.len() < check.limit;
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

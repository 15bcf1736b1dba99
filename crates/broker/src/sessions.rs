//! Sessions: those of one queue that have messages or a holder, and which one is accepted next.
//!
//! A session with messages and without a holder is *idle* and stands in order of its first message;
//! a receiver that asks for the next one gets the first of that order, and receivers are served in
//! the order in which they asked. An idle session is a small record (about 160 bytes for an id of
//! 16 bytes; 100,000 of them take 16 MB), its messages are on disk only. A held session has a
//! window (`sessions/hold.rs`). What the records say is learnt as messages arrive, and after a
//! restart by a survey of the sessions' groups, never by a scan of messages.
//! Invariant: a session is idle or held, never both; a record's `first` is never above its first
//! available message.

mod accept;
mod age;
pub(crate) mod command;
mod delete;
pub(crate) mod delete_rows;
mod enter;
mod expire_rows;
pub(crate) mod hold;
mod lend;
mod list;
pub(crate) mod listing;
mod load;
pub(crate) mod loaded;
mod marks;
mod peek;
pub(crate) mod pending_peek;
pub(crate) mod read;
pub(crate) mod release;
mod session_expiry;
pub(crate) mod state;
pub(crate) mod state_request;
mod survey;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use store::SequenceNumber;

use crate::api::settings::QueueSettings;
use crate::api::time::{Mono, Wall};
use crate::context::clients::{HoldId, ReceiverSlot, WaiterId};
use crate::message::entry::Entry;
use crate::queue::rows::Rows;
use crate::queue::session_key::{SessionIds, SessionKey};
use crate::subqueue::SubqueueState;

use survey::{Check, Piece, Survey};

pub(crate) use hold::Hold;

/// A session with messages and without a holder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// No available message has a smaller number.
    pub first: SequenceNumber,
    /// No message has a greater number.
    pub last: SequenceNumber,
    /// Whether `first` is known to be there.
    pub certain: bool,
    /// When `first` was enqueued, if that is known.
    pub enqueued: Option<Wall>,
}

/// A receiver that waits for a session.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub slot: ReceiverSlot,
    pub until: Mono,
}

/// Why there is a hold of an id.
const EXISTS: &str = "a hold that ends takes its key, deadlines, session role and locks along";

/// The parts of a queue that its sessions work with.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub rows: &'a mut Rows,
    pub main: &'a mut SubqueueState,
    pub settings: &'a QueueSettings,
}

/// Where a listing stopped: which one it was, and behind which session it goes on.
pub(crate) type Bookmark = ((Option<Wall>, usize), SessionKey);

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// How they are told apart.
    pub ids: SessionIds,
    idle: BTreeMap<SessionKey, Record>,
    /// Idle sessions by their first message; two may share a hash, so records are looked at too.
    order: BTreeSet<(SequenceNumber, u64)>,
    held: BTreeMap<HoldId, Hold>,
    by_key: BTreeMap<SessionKey, HoldId>,
    deadlines: BTreeSet<(Mono, HoldId)>,
    floors: BTreeSet<(SequenceNumber, HoldId)>,
    waiters: BTreeMap<WaiterId, Waiter>,
    timeouts: BTreeSet<(Mono, WaiterId)>,
    last_id: u64,
    /// Holds to which something has happened.
    pending: BTreeSet<HoldId>,
    /// Holds whose reads failed; the survey's too.
    resting: BTreeSet<HoldId>,
    retry_at: Option<Mono>,
    survey: Survey,
    check: Option<Check>,
    /// Idle sessions whose first message has left: there may be none any more.
    uncertain: BTreeSet<SessionKey>,
    /// Sessions whose entries cannot be read: no receiver gets them that asks for the next one.
    damaged: BTreeSet<SessionKey>,
    /// Waiters have not been told of sessions that cannot be read.
    damage_is_news: bool,
    age_read: age::AgeRead,
    expiries: session_expiry::SessionExpiries,
    bookmarks: Vec<Bookmark>,
    /// Where deletions have come to.
    marks: marks::Marks,
    /// Listings that wait for the survey.
    listings: Vec<listing::Listing>,
    /// How much wider the windows of all holds are than to begin with.
    extra: usize,
    /// Bytes of all sessions' states.
    pub state_bytes: u64,
}

impl Sessions {
    /// The sessions of a queue that may have messages, if `unknown`.
    pub(crate) fn new(ids: SessionIds, unknown: bool, state_bytes: u64) -> Self {
        Self {
            ids,
            survey: if unknown {
                Survey::Due(Piece::FIRST)
            } else {
                Survey::Complete
            },
            expiries: if unknown {
                session_expiry::SessionExpiries::unknown()
            } else {
                session_expiry::SessionExpiries::default()
            },
            state_bytes,
            ..Self::default()
        }
    }

    /// Whether a receiver waits for a session.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Whether there is no session, held or not, and no state of one, and no read under way that
    /// may find one.
    pub(crate) fn is_unused(&self) -> bool {
        let is_read = self.survey.is_complete() && self.check.is_none();
        is_read && self.held.is_empty() && self.idle.is_empty() && self.state_bytes == 0
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// When something is to be done without being asked.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let timeout = self.timeouts.first().map(|(at, _)| *at);
        let reads = matches!(self.survey, Survey::Due(_)) || self.expiries.is_due();
        let reads = (reads && self.retry_at.is_none()).then_some(Mono(0));
        let all = [deadline, timeout, reads, self.retry_at];
        all.into_iter().flatten().min()
    }

    /// No available or locked message has a smaller number, if that is known.
    pub(crate) fn least(&self) -> Option<SequenceNumber> {
        if !self.survey.is_complete() {
            return None;
        }
        let idle = self.order.first().map(|(number, _)| *number);
        let held = self.floors.first().map(|(number, _)| *number);
        idle.into_iter().chain(held).min()
    }

    /// A hold, unless it has ended: reads and transactions keep ids for longer.
    pub(crate) fn hold(&self, id: HoldId) -> Option<&Hold> {
        self.held.get(&id)
    }

    /// The same, to change.
    pub(crate) fn hold_mut(&mut self, id: HoldId) -> Option<&mut Hold> {
        self.held.get_mut(&id)
    }

    /// A hold whose id comes from a key, a deadline, a session role, a lock or the pending ones.
    pub(crate) fn existing_hold(&self, id: HoldId) -> &Hold {
        self.hold(id).expect(EXISTS)
    }

    /// The same, to change.
    pub(crate) fn existing_hold_mut(&mut self, id: HoldId) -> &mut Hold {
        self.hold_mut(id).expect(EXISTS)
    }

    /// The hold of a session, also one whose expiry is not dealt with yet.
    pub(crate) fn holder(&self, key: &SessionKey) -> Option<HoldId> {
        self.by_key.get(key).copied()
    }

    /// The holds of sessions of a hash: one, as a rule.
    pub(crate) fn holders(&self, hash: u64) -> impl Iterator<Item = HoldId> + '_ {
        let keys = self.by_key.range(SessionKey::from_hash(hash)..);
        let same = keys.take_while(move |(key, _)| key.hash == hash);
        same.map(|(_, id)| *id)
    }

    /// Something has happened to a hold.
    pub(crate) fn mark_pending(&mut self, id: HoldId) {
        self.pending.insert(id);
    }

    /// What all holds waited for may be there.
    pub(crate) fn mark_all_pending(&mut self) {
        self.pending.extend(self.held.keys());
    }

    /// A message has arrived that is not in any record yet. Returns what does not stay in memory.
    pub(crate) fn arrived(
        &mut self,
        key: &SessionKey,
        number: SequenceNumber,
        entry: Entry,
    ) -> Option<Entry> {
        if let Some(id) = self.by_key.get(key).copied() {
            self.mark_pending(id);
            return self.existing_hold_mut(id).arrived(number, entry);
        }
        match self.idle.get_mut(key) {
            Some(record) => record.last = record.last.max(number),
            None => {
                let record = Record {
                    first: number,
                    last: number,
                    certain: self.survey.is_complete(),
                    enqueued: Some(Wall(entry.row.enqueued_ms)),
                };
                self.put_idle(key.clone(), record);
            }
        }
        Some(entry)
    }

    /// A message has left its session. Returns what was known of it.
    pub(crate) fn gone(&mut self, hash: u64, number: SequenceNumber) -> Option<Entry> {
        self.note_change(hash);
        let mut found = None;
        for id in self.holders(hash).collect::<Vec<_>>() {
            let hold = self.existing_hold_mut(id);
            found = found.or(hold.window.take(number));
            hold.window.forget(number);
        }
        let same = self.records_of(hash);
        for (key, record) in same.into_iter().filter(|(_, r)| r.first == number) {
            self.take_idle(&key);
            if record.last > number {
                let record = Record {
                    first: number.next(),
                    last: record.last,
                    certain: false,
                    enqueued: None,
                };
                self.uncertain.insert(key.clone());
                self.put_idle(key, record);
            } else {
                self.damaged.remove(&key);
            }
        }
        found
    }

    /// Records that share a hash: one, as a rule.
    fn records_of(&self, hash: u64) -> Vec<(SessionKey, Record)> {
        let records = self.idle.range(SessionKey::from_hash(hash)..);
        let same = records.take_while(|(key, _)| key.hash == hash);
        same.map(|(key, record)| (key.clone(), *record)).collect()
    }

    /// The idle session whose first message is the oldest, of those that can be read.
    fn oldest(&self) -> Option<(SessionKey, Record)> {
        self.order.iter().find_map(|(first, hash)| {
            let mut same = self.records_of(*hash).into_iter();
            same.find(|(key, record)| record.first == *first && !self.damaged.contains(key))
        })
    }

    /// The sessions with messages and without a holder, the one with the oldest message first.
    pub(crate) fn idle_in_order(&self) -> impl Iterator<Item = &SessionKey> {
        self.order.iter().flat_map(|(first, hash)| {
            let records = self.idle.range(SessionKey::from_hash(*hash)..);
            let same = records.take_while(|(key, _)| key.hash == *hash);
            let same = same.filter(|(_, record)| record.first == *first);
            same.map(|(key, _)| key)
        })
    }

    /// The number of such sessions.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle.len()
    }

    /// The sessions with a holder.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Hold> {
        self.held.values()
    }

    /// Whether there may be sessions that cannot be read.
    fn has_damage(&self) -> bool {
        !self.damaged.is_empty() || matches!(self.survey, Survey::Incomplete)
    }

    fn put_idle(&mut self, key: SessionKey, record: Record) {
        debug_assert!(!self.by_key.contains_key(&key), "a session is idle or held");
        self.take_idle(&key);
        self.order.insert((record.first, key.hash));
        self.idle.insert(key, record);
    }

    /// The session is idle no more. Others of its hash keep their place.
    fn take_idle(&mut self, key: &SessionKey) -> Option<(SessionKey, Record)> {
        let (key, record) = self.idle.remove_entry(key)?;
        let place = (record.first, key.hash);
        let same = self.records_of(key.hash);
        if !same.iter().any(|(_, other)| other.first == record.first) {
            self.order.remove(&place);
        }
        Some((key, record))
    }

    /// Doubles a hold's window, as long as all windows of the queue are together no more than
    /// `most` wider than to begin with.
    pub(crate) fn widen(&mut self, id: HoldId, most: usize) {
        let left = most.saturating_sub(self.extra);
        let hold = self.existing_hold_mut(id);
        let limit = hold.window.limit();
        let widest = most.min(hold::WIDEST).saturating_sub(limit);
        let more = limit.min(widest).min(left);
        hold.window.widen(more);
        hold.extra += more;
        hold.was_full = false;
        self.extra += more;
    }

    fn remember_bookmark(&mut self, bookmark: Bookmark) {
        /// Listings that can go on where they stopped; more than that start anew.
        const MOST: usize = 16;
        if self.bookmarks.len() == MOST {
            self.bookmarks.remove(0);
        }
        self.bookmarks.push(bookmark);
    }
}

/// The id that an entry of a session's order tells.
fn id_of(entry: &store::Entry) -> &Bytes {
    &entry.value
}

//! Schedule: messages that wait for their time, and what happens when it has come.
//!
//! A scheduled message has a number, a row in a part of its own and an entry by due time. When it
//! is due it becomes active under a new number, as if it were sent now; its body stays where it
//! is. That goes strictly by due time, then by the number it was given before, in bounded pieces:
//! what a turn does not get to is done in the next. (docs/spec/entities.md#11)
//!
//! Entries that cannot be read are passed over: those before them are read by themselves, and the
//! next read begins behind them. A restart looks for them again.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use store::{
    BodyPointer, EntityId, Entry as StoredEntry, EntryKey, Index, MessageRow, Part, Query,
    SequenceNumber, StoreError, Write,
};

use crate::api::id::ReadId;
use crate::api::incoming::Incoming;
use crate::api::time::{Mono, Wall};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::row;
use crate::queue::rows::Rows;
use crate::send::timetable::{Due, Planned, Timetable, Waiting};

/// Most messages that are read at once, so that taking them in fits a turn.
const READ: usize = 4_096;
/// What is due so soon is brought into memory.
const AHEAD_MS: u64 = 60_000;
/// What follows in an entry.
const SESSION: u8 = 1;
const WAITING: u8 = 2;
const BODY: u8 = 3;

/// A queue's scheduled messages.
#[derive(Debug)]
pub(crate) struct Schedule {
    timetable: Timetable,
    /// After a read that failed: not again before this moment.
    pub retry_at: Option<Mono>,
    /// When the last piece ended with more that was due: messages that have waited longer go first.
    resume_at: Option<Wall>,
    /// How many entries can be read before those that cannot; only they are read next.
    intact: Option<usize>,
    /// The first place where entries were passed over.
    passed: Option<Due>,
}

impl Schedule {
    /// A schedule as the head has it.
    pub(crate) fn new(limit: usize, (at, number): (u64, SequenceNumber)) -> Self {
        Self {
            timetable: Timetable::new(limit, Due { at, number }),
            retry_at: None,
            resume_at: None,
            intact: None,
            passed: None,
        }
    }

    /// A message arrives that is to be enqueued later, with this row.
    pub(crate) fn put(
        &mut self,
        message: Incoming,
        due: Due,
        row: MessageRow,
        rows: &mut Rows,
        cx: &mut Context<'_>,
    ) {
        cx.write(Write::PutBody {
            pointer: row.body,
            body: message.payload,
        });
        let session = message
            .session_id
            .as_deref()
            .filter(|_| rows.session_ids.is_some());
        let mut planned = Planned::of(&row, session);
        if row.body != rows.scheduled_pointer(due.number) {
            planned.body = Some(Box::new(row.body));
        }
        self.plan(due, planned, rows, cx);
    }

    /// A message whose body is stored is to be available later.
    pub(crate) fn plan(
        &mut self,
        due: Due,
        planned: Planned,
        rows: &mut Rows,
        cx: &mut Context<'_>,
    ) {
        cx.write(Write::PutEntry {
            entity: rows.id,
            index: Index::Schedule,
            key: key_of(due),
            value: encode(&planned),
        });
        let beyond = self.beyond(rows);
        if beyond == 0 {
            self.passed = None;
        }
        let row = planned.row(due.at, rows.scheduled_pointer(due.number));
        rows.put(Part::Scheduled, due.number, row, cx);
        self.timetable.insert(due, planned, beyond);
    }

    /// Takes out the next message whose time has come.
    pub(crate) fn take_due(&mut self, now: Wall) -> Option<(Due, Planned)> {
        if !self.is_something_due(now) {
            return None;
        }
        let first = self.timetable.take_first();
        Some(first.expect("a due message is known"))
    }

    pub(crate) fn is_something_due(&self, now: Wall) -> bool {
        let first = self.timetable.first();
        first.is_some_and(|due| due.at <= now.0)
    }

    /// A piece of what is due has been dealt with; more of it waits until then, if at all.
    pub(crate) fn rest(&mut self, resume_at: Option<Wall>) {
        self.resume_at = resume_at;
    }

    /// A scheduled message goes, which is not due.
    pub(crate) fn forget(&mut self, due: Due, rows: &Rows, cx: &mut Context<'_>) {
        self.timetable.forget(due);
        remove_entry(due, rows, cx);
    }

    /// Asks for what is due soon, if few of it are known.
    pub(crate) fn look_ahead(&mut self, rows: &Rows, cx: &mut Context<'_>) {
        self.retry_at.take_if(|at| *at <= cx.now.mono);
        let Some((from, limit)) = self.wanted(rows) else {
            return;
        };
        if from.at.saturating_sub(AHEAD_MS) > cx.now.wall.0 {
            return;
        }
        let limit = limit.min(READ).min(self.intact.unwrap_or(READ));
        let query = Query::Entries {
            entity: rows.id,
            index: Index::Schedule,
            from: key_of(from),
            until: key_of(Due::MAX),
            limit,
            max_bytes: usize::MAX,
        };
        let read = cx.ask(query, Purpose::Schedule(rows.id));
        self.timetable.asked(read, from, limit);
    }

    fn wanted(&self, rows: &Rows) -> Option<(Due, usize)> {
        let wanted = self.timetable.wants(self.beyond(rows))?;
        self.retry_at.is_none().then_some(wanted)
    }

    /// What is due next was read. Returns the messages that cannot be understood.
    pub(crate) fn loaded(
        &mut self,
        read: ReadId,
        found: Result<Vec<StoredEntry>, StoreError>,
        cx: &Context<'_>,
    ) -> Vec<SequenceNumber> {
        match found {
            Ok(entries) => {
                self.intact = None;
                // A key of any other kind than a schedule's cannot be in the range that was read.
                let found = entries
                    .iter()
                    .filter_map(|entry| Some((due_at(&entry.key)?, decode(entry))));
                let passed = self.timetable.loaded(read, found.collect());
                if let Some(first) = passed.first() {
                    self.note_passed(*first);
                }
                return passed.into_iter().map(|due| due.number).collect();
            }
            Err(StoreError::UnreadableEntries { intact, .. }) if intact > 0 => {
                if self.timetable.failed(read) {
                    self.intact = Some(intact);
                }
            }
            Err(StoreError::UnreadableEntries { until, .. }) => {
                self.intact = None;
                let until = due_at(&until).unwrap_or(Due::MAX);
                if let Some(from) = self.timetable.pass_over(read, until) {
                    self.note_passed(from);
                }
            }
            Err(_) => {
                if self.timetable.failed(read) {
                    self.retry_at = Some(cx.retry_at());
                }
            }
        }
        Vec::new()
    }

    fn note_passed(&mut self, from: Due) {
        let first = self.passed.map_or(from, |passed| passed.min(from));
        self.passed = Some(first);
    }

    /// How many scheduled messages are on disk only.
    fn beyond(&self, rows: &Rows) -> u64 {
        let known = self.timetable.len() as u64;
        rows.count(Part::Scheduled).saturating_sub(known)
    }

    /// When it wants a tick.
    pub(crate) fn alarm(&self, rows: &Rows) -> Option<Wall> {
        let first = self.timetable.first();
        let first = first.map(|due| Wall(due.at).max(self.resume_at.unwrap_or_default()));
        let more = self.wanted(rows);
        let more = more.map(|(from, _)| Wall(from.at.saturating_sub(AHEAD_MS)));
        first.into_iter().chain(more).min()
    }

    /// From where a restart will look for what is scheduled.
    pub(crate) fn start(&self, rows: &Rows) -> (u64, SequenceNumber) {
        if rows.count(Part::Scheduled) == 0 {
            return store::Head::empty().schedule_from;
        }
        let start = self.timetable.start();
        let passed = self.passed.filter(|_| self.beyond(rows) > 0);
        let start = passed.map_or(start, |passed| passed.min(start));
        (start.at, start.number)
    }

    /// How long ago the next message should have been activated, in milliseconds. One that was
    /// passed over counts.
    pub(crate) fn lag(&self, rows: &Rows, now: Wall) -> u64 {
        match self.start(rows) {
            (at, _) if rows.count(Part::Scheduled) > 0 => now.0.saturating_sub(at),
            _ => 0,
        }
    }

    /// The wall clock went back: no message has waited since a later time.
    pub(crate) fn clock_went_back(&mut self) {
        self.resume_at = None;
    }
}

/// Removes the entry of a message that is scheduled no more.
pub(crate) fn remove_entry(due: Due, rows: &Rows, cx: &mut Context<'_>) {
    cx.write(Write::RemoveEntry {
        entity: rows.id,
        index: Index::Schedule,
        key: key_of(due),
    });
}

pub(crate) fn key_of(due: Due) -> EntryKey {
    EntryKey::by_u64(due.at, due.number)
}

/// An entry holds what its message's row holds too, so that one read is enough. Behind the fixed
/// fields, each after a byte that tells which: the row to which a waiting message returns, or the
/// body's pointer if the message's number does not tell it; then the session, if it has one.
fn encode(planned: &Planned) -> Bytes {
    let mut value = BytesMut::with_capacity(if planned.waiting.is_some() { 69 } else { 25 });
    value.put_u64(planned.ttl_ms);
    value.put_u32(planned.size);
    value.put_u32(planned.flags);
    value.put_u64(planned.session_hash);
    if let Some(waiting) = &planned.waiting {
        value.put_u8(WAITING);
        value.put_u64(waiting.row.enqueued_ms);
        value.put_u64(waiting.row.expires_ms);
        value.put_u64(waiting.row.enqueued_number);
        value.put_u64(waiting.row.body.home.0);
        value.put_u64(waiting.row.body.number.0);
        value.put_u32(waiting.delivery_count);
    }
    if let Some(body) = &planned.body {
        value.put_u8(BODY);
        value.put_u64(body.home.0);
        value.put_u64(body.number.0);
    }
    if let Some(session) = &planned.session {
        value.put_u8(SESSION);
        value.put_slice(session);
    }
    value.freeze()
}

/// Which message an entry is about, and when it is due.
pub(crate) fn due_at(key: &EntryKey) -> Option<Due> {
    Some(Due {
        at: key.group_u64()?,
        number: key.number,
    })
}

/// How large the message of an entry is; `None` if the entry cannot be understood.
pub(crate) fn size_of(entry: &StoredEntry) -> Option<u32> {
    decode(entry).map(|planned| planned.size)
}

fn decode(entry: &StoredEntry) -> Option<Planned> {
    let mut value = &entry.value[..];
    let mut planned = Planned {
        ttl_ms: value.try_get_u64().ok()?,
        size: value.try_get_u32().ok()?,
        flags: value.try_get_u32().ok()?,
        session_hash: value.try_get_u64().ok()?,
        session: None,
        waiting: None,
        body: None,
    };
    if let [WAITING, rest @ ..] = value {
        value = rest;
        planned.waiting = Some(Box::new(decode_waiting(&planned, &mut value)?));
    }
    if let [BODY, rest @ ..] = value {
        value = rest;
        planned.body = Some(Box::new(decode_pointer(&mut value)?));
    }
    planned.session = match value {
        [] => None,
        [SESSION, session @ ..] => Some(session.into()),
        _ => return None,
    };
    Some(planned)
}

fn decode_waiting(planned: &Planned, value: &mut &[u8]) -> Option<Waiting> {
    let row = MessageRow {
        enqueued_ms: value.try_get_u64().ok()?,
        ttl_ms: planned.ttl_ms,
        expires_ms: value.try_get_u64().ok()?,
        size: planned.size,
        flags: planned.flags & !row::WAITING,
        session_hash: planned.session_hash,
        enqueued_number: value.try_get_u64().ok()?,
        body: decode_pointer(value)?,
    };
    let delivery_count = value.try_get_u32().ok()?;
    Some(Waiting {
        row,
        delivery_count,
    })
}

fn decode_pointer(value: &mut &[u8]) -> Option<BodyPointer> {
    Some(BodyPointer {
        home: EntityId(value.try_get_u64().ok()?),
        number: SequenceNumber(value.try_get_u64().ok()?),
    })
}

/// An entry whose message has a body of its own from now on, under this home and its number; `None`
/// if it cannot be understood.
pub(crate) fn rehomed(entry: &StoredEntry, home: EntityId) -> Option<StoredEntry> {
    due_at(&entry.key)?;
    let mut planned = decode(entry)?;
    let body = BodyPointer {
        home,
        number: entry.key.number,
    };
    planned.flags &= !row::SHARED;
    match &mut planned.waiting {
        Some(waiting) => {
            waiting.row.body = body;
            planned.body = None;
        }
        None => planned.body = Some(Box::new(body)),
    }
    Some(StoredEntry {
        key: entry.key.clone(),
        value: encode(&planned),
    })
}

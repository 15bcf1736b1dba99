//! Schedule: messages that wait for their time, and what happens when it has come.
//!
//! A scheduled message has a number, a row in a part of its own and an entry by due time. When it
//! is due it becomes active under a new number, as if it were sent now; its body stays where it
//! is. That goes strictly by due time, then by the number it was given before, in bounded pieces:
//! what a turn does not get to is done in the next. (docs/spec/entities.md#11)

use bytes::{Buf, BufMut, Bytes, BytesMut};
use store::{
    Entry as StoredEntry, EntryKey, Index, MessageRow, Part, Query, SequenceNumber, StoreError,
    Write,
};

use crate::api::command::Incoming;
use crate::api::id::ReadId;
use crate::api::time::{Mono, Wall};
use crate::context::Context;
use crate::context::RETRY_MS;
use crate::context::read::Purpose;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::row;
use crate::queue::Queue;
use crate::send::timetable::{Due, Planned, Timetable};

/// Most messages that are read at once, so that taking them in fits a turn.
const READ: usize = 4_096;
/// What is due so soon is brought into memory.
const AHEAD_MS: u64 = 60_000;
/// A queue has this part of a turn's work before it is another's turn.
const SHARE: usize = 4;

/// A queue's scheduled messages.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub timetable: Timetable,
    /// After a read that failed: not again before this moment.
    pub retry_at: Option<Mono>,
    /// When the last piece ended with more that was due: messages that have waited longer go first.
    resume_at: Option<Wall>,
}

impl Schedule {
    /// A schedule as the head has it.
    pub(crate) fn new(limit: usize, (at, number): (u64, SequenceNumber)) -> Self {
        Self {
            timetable: Timetable::new(limit, Due { at, number }),
            retry_at: None,
            resume_at: None,
        }
    }
}

impl Queue {
    /// A message arrives that is to be enqueued later.
    pub(crate) fn schedule(
        &mut self,
        message: Incoming,
        number: SequenceNumber,
        due: Wall,
        cx: &mut Context<'_>,
    ) {
        let row = MessageRow {
            expires_ms: u64::MAX,
            ..self.row_of(&message, number, due.0)
        };
        cx.write(Write::PutBody {
            pointer: row.body,
            body: message.payload,
        });
        let session = message
            .session_id
            .as_deref()
            .filter(|_| self.sessions.is_some());
        let (due, planned) = (Due { at: due.0, number }, Planned::of(&row, session));
        cx.write(Write::PutEntry {
            entity: self.id,
            index: Index::Schedule,
            key: key_of(due),
            value: encode(&planned),
        });
        let beyond = self.scheduled_beyond();
        self.rows.put(Part::Scheduled, number, row, cx);
        self.schedule.timetable.insert(due, planned, beyond);
    }

    /// Activates what is due, as far as its share of the turn's work goes.
    pub(crate) fn activate(&mut self, cx: &mut Context<'_>) {
        let share = (cx.shared.settings.turn_work / SHARE).max(1);
        for _ in 0..share {
            if !self.is_something_due(cx) || !cx.take_work() {
                break;
            }
            let first = self.schedule.timetable.take_first();
            let (due, planned) = first.expect("a due message is known");
            self.activate_one(due, &planned, cx);
            self.schedule.resume_at = Some(cx.now.wall);
        }
        if !self.is_something_due(cx) {
            self.schedule.resume_at = None;
        }
        self.look_ahead(cx);
    }

    fn is_something_due(&self, cx: &Context<'_>) -> bool {
        let first = self.schedule.timetable.first();
        first.is_some_and(|due| due.at <= cx.now.wall.0)
    }

    fn activate_one(&mut self, due: Due, planned: &Planned, cx: &mut Context<'_>) {
        assert!(due.at <= cx.now.wall.0, "its time has come");
        self.note_access(cx);
        let row = planned.row(due.at, self.rows.pointer(due.number));
        self.remove_row(Part::Scheduled, due.number, &row, cx);
        self.remove_entry(due, cx);
        let number = self.rows.take_number();
        let enqueued_ms = self.rows.take_enqueued_time(cx);
        let row = MessageRow {
            enqueued_ms,
            expires_ms: enqueued_ms.saturating_add(row.ttl_ms),
            flags: row::activated(&row),
            ..row
        };
        self.note_deadline(number, row.expires_ms, cx);
        let entry = Entry::written(row, 0, cx.commit());
        let session = planned.session.as_deref().map(Bytes::copy_from_slice);
        self.enter_active(session.as_ref(), number, entry, cx);
    }

    /// Removes a scheduled message whose row was read.
    pub(crate) fn erase_scheduled(
        &mut self,
        number: SequenceNumber,
        row: MessageRow,
        cx: &mut Context<'_>,
    ) {
        let due = Due {
            at: row.enqueued_ms,
            number,
        };
        self.schedule.timetable.forget(due);
        self.remove_entry(due, cx);
        let message = Message {
            number,
            part: Part::Scheduled,
            row,
            delivery_count: 0,
            patch: None,
        };
        self.erase(&message, false, cx);
    }

    fn remove_entry(&self, due: Due, cx: &mut Context<'_>) {
        cx.write(Write::RemoveEntry {
            entity: self.id,
            index: Index::Schedule,
            key: key_of(due),
        });
    }

    /// Asks for what is due soon, if few of it are known.
    fn look_ahead(&mut self, cx: &mut Context<'_>) {
        self.schedule.retry_at.take_if(|at| *at <= cx.now.mono);
        let Some((from, limit)) = self.wanted_of_schedule() else {
            return;
        };
        if from.at.saturating_sub(AHEAD_MS) > cx.now.wall.0 {
            return;
        }
        let limit = limit.min(READ);
        let query = Query::Entries {
            entity: self.id,
            index: Index::Schedule,
            from: key_of(from),
            until: key_of(Due::MAX),
            limit,
            max_bytes: usize::MAX,
        };
        let read = cx.ask(query, Purpose::Schedule(self.id));
        self.schedule.timetable.asked(read, from, limit);
    }

    fn wanted_of_schedule(&self) -> Option<(Due, usize)> {
        let wanted = self.schedule.timetable.wants(self.scheduled_beyond())?;
        self.schedule.retry_at.is_none().then_some(wanted)
    }

    /// What is due next was read.
    pub(crate) fn schedule_loaded(
        &mut self,
        read: ReadId,
        found: Result<Vec<StoredEntry>, StoreError>,
        cx: &mut Context<'_>,
    ) {
        let found = found.ok().and_then(|entries| decode_all(&entries));
        match found {
            Some(found) => self.schedule.timetable.loaded(read, found),
            None if self.schedule.timetable.failed(read) => {
                let at = cx.now.mono.0.saturating_add(RETRY_MS);
                self.schedule.retry_at = Some(Mono(at));
            }
            None => {}
        }
    }

    /// How many scheduled messages are on disk only.
    fn scheduled_beyond(&self) -> u64 {
        let known = self.schedule.timetable.len() as u64;
        self.rows.count(Part::Scheduled).saturating_sub(known)
    }

    /// When the schedule wants a tick.
    pub(crate) fn schedule_alarm(&self) -> Option<Wall> {
        let first = self.schedule.timetable.first();
        let first = first.map(|due| Wall(due.at).max(self.schedule.resume_at.unwrap_or_default()));
        let more = self.wanted_of_schedule();
        let more = more.map(|(from, _)| Wall(from.at.saturating_sub(AHEAD_MS)));
        first.into_iter().chain(more).min()
    }

    /// From where a restart will look for what is scheduled.
    pub(crate) fn schedule_start(&self) -> (u64, SequenceNumber) {
        if self.rows.count(Part::Scheduled) == 0 {
            return store::Head::empty().schedule_from;
        }
        let start = self.schedule.timetable.start();
        (start.at, start.number)
    }

    /// How long ago the next message should have been activated, in milliseconds.
    pub(crate) fn schedule_lag(&self, now: Wall) -> u64 {
        match self.schedule_start() {
            (at, _) if self.rows.count(Part::Scheduled) > 0 => now.0.saturating_sub(at),
            _ => 0,
        }
    }

    /// The wall clock went back: no message has waited since a later time.
    pub(crate) fn schedule_went_back(&mut self) {
        self.schedule.resume_at = None;
    }
}

fn key_of(due: Due) -> EntryKey {
    EntryKey::by_u64(due.at, due.number)
}

/// An entry holds what its message's row holds too, so that one read is enough.
fn encode(planned: &Planned) -> Bytes {
    let mut value = BytesMut::with_capacity(25);
    value.put_u64(planned.ttl_ms);
    value.put_u32(planned.size);
    value.put_u32(planned.flags);
    value.put_u64(planned.session_hash);
    if let Some(session) = &planned.session {
        value.put_u8(1);
        value.put_slice(session);
    }
    value.freeze()
}

fn decode(entry: &StoredEntry) -> Option<(Due, Planned)> {
    let due = Due {
        at: entry.key.group_u64()?,
        number: entry.key.number,
    };
    let mut value = &entry.value[..];
    let fixed = (
        value.try_get_u64().ok()?,
        value.try_get_u32().ok()?,
        value.try_get_u32().ok()?,
        value.try_get_u64().ok()?,
    );
    let (ttl_ms, size, flags, session_hash) = fixed;
    let session = match value {
        [] => None,
        [1, session @ ..] => Some(session.into()),
        _ => return None,
    };
    let planned = Planned {
        ttl_ms,
        size,
        flags,
        session_hash,
        session,
    };
    Some((due, planned))
}

fn decode_all(entries: &[StoredEntry]) -> Option<Vec<(Due, Planned)>> {
    entries.iter().map(decode).collect()
}

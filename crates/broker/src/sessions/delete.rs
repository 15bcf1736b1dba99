//! Delete: messages of a queue with sessions go without being received.
//!
//! The holder of a session holds all of its messages, also those that were not handed out
//! (docs/spec/entities.md#18): a deletion passes over them, unless it names the session and comes
//! over its holder's connection; then it passes over the messages that are handed out. Rows are
//! read by range, or in the order of one session, a bounded piece at a time, and taken for what
//! they are: those that were touched since are left alone. A few marks tell where earlier deletions
//! have come to, so that none walks over what those deleted. Invariant: below a mark nothing can be
//! deleted; whatever becomes so lowers it.

use crate::api::time::Mono;
use crate::sessions::Parts;
use crate::subqueue::is_expired;
use store::{Entry, Found, Index, Part, Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::{ReadId, Subqueue};
use crate::api::output::Output;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::delete::{Asked, Deletion, Progress};
use crate::message::Message;
use crate::message::stored::entry_of;
use crate::queue::Queue;
use crate::queue::session_key as key;
use crate::queue::session_key::SessionKey;
use crate::sessions::{Sessions, id_of};

/// Rows that are read at least, since many of them may be held.
const LEAST: usize = 64;
/// How many deletions' marks are remembered.
const MARKS: usize = 16;

/// Where deletions have come to: of one session each, or of all.
#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: Vec<(Option<SessionKey>, SequenceNumber)>,
}

impl Marks {
    fn of(&self, session: Option<&SessionKey>) -> Option<SequenceNumber> {
        let found = self.marks.iter().find(|(of, _)| of.as_ref() == session);
        found.map(|(_, mark)| *mark)
    }

    fn set(&mut self, session: Option<&SessionKey>, mark: SequenceNumber) {
        self.marks.retain(|(of, _)| of.as_ref() != session);
        if self.marks.len() == MARKS {
            self.marks.remove(0);
        }
        self.marks.push((session.cloned(), mark));
    }

    /// A message may be deleted that could not before.
    pub(super) fn lower(&mut self, number: SequenceNumber) {
        for (_, mark) in &mut self.marks {
            *mark = (*mark).min(number);
        }
    }
}

impl Sessions {
    /// No message of an idle session has a smaller number, if that is known.
    fn least_idle(&self, until: SequenceNumber) -> Option<SequenceNumber> {
        let complete = self.survey.is_complete();
        let first = self.order.first().map_or(until, |(number, _)| *number);
        complete.then_some(first)
    }

    /// No message of a session has a smaller number, if that is known.
    fn least_of(&self, key: &SessionKey, until: SequenceNumber) -> Option<SequenceNumber> {
        let hold = self.holder(key).and_then(|id| self.hold(id));
        if let Some(hold) = hold {
            return Some(hold.floor);
        }
        // Before the survey is complete a record may know only what has arrived since the start.
        let first = self.idle.get(key).map_or(until, |record| record.first);
        self.survey.is_complete().then_some(first)
    }
}

impl Sessions {
    /// Asks for the next piece, or tells that there is none.
    pub(crate) fn delete_piece(
        &mut self,
        deletion: &mut Deletion,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) -> Progress {
        if deletion.asked.is_some() {
            return Progress::Waiting;
        }
        if deletion.cursor == SequenceNumber(0) {
            self.place_deletion(deletion, parts);
        }
        let done = deletion.left == 0 || deletion.cursor >= deletion.until;
        if done || self.is_held_from(deletion, cx.now.mono) {
            return Progress::Finished;
        }
        let limit = deletion.left.max(LEAST);
        let limit = limit.min(cx.shared.settings.turn_work);
        let query = deletion_query(deletion, limit, parts);
        ask_for_deletion(deletion, query, limit, deletion.until, parts, cx);
        Progress::Waiting
    }

    /// Puts a deletion to where there may be something to delete.
    fn place_deletion(&mut self, deletion: &mut Deletion, parts: &Parts<'_>) {
        let resume = parts.rows.resume(Part::Active);
        let session = deletion.session.as_ref();
        let least = match session {
            Some(key) => self.least_of(key, deletion.until),
            None => self.least_idle(deletion.until),
        };
        let known = least.max(self.marks.of(session));
        deletion.cursor = known.map_or(resume, |known| known.max(resume));
        self.marks.set(session, deletion.cursor);
    }

    /// Whether another connection holds the session.
    fn is_held_from(&self, deletion: &Deletion, now: Mono) -> bool {
        let holder = |key| self.holder(key);
        let holder = deletion.session.as_ref().and_then(holder);
        holder.is_some_and(|id| !self.is_held_by(id, deletion.request.connection, now))
    }

    /// Asks for the messages whose places in the session's order were read.
    fn delete_by_order(
        &mut self,
        deletion: &mut Deletion,
        asked: Asked,
        entries: &[Entry],
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let covered = match entries.last() {
            Some(last) if entries.len() >= asked.limit => last.key.number.next(),
            _ => asked.covered,
        };
        let session = deletion.session.as_ref();
        let own = |entry: &&Entry| session.is_some_and(|key| **id_of(entry) == *key.id);
        let own = entries.iter().filter(own);
        let numbers: Vec<_> = own.map(|entry| entry.key.number).collect();
        if numbers.is_empty() {
            return self.deleted_below(deletion, covered, None);
        }
        let query = Query::Points {
            entity: parts.rows.id,
            part: Part::Active,
            numbers,
            bodies: false,
            max_bytes: usize::MAX,
        };
        ask_for_deletion(deletion, query, usize::MAX, covered, parts, cx);
    }

    /// Everything below `covered` has been looked at, and what is at `left` not dealt with.
    fn deleted_below(
        &mut self,
        deletion: &mut Deletion,
        covered: SequenceNumber,
        left: Option<SequenceNumber>,
    ) {
        let reached = std::mem::replace(&mut deletion.cursor, covered);
        let session = deletion.session.as_ref();
        // Otherwise it was lowered meanwhile, or an earlier piece left something.
        if self.marks.of(session) == Some(reached) {
            self.marks.set(session, left.unwrap_or(covered));
        }
    }

    /// Whether the message is not held, or only by the connection that deletes it.
    fn is_free(
        &self,
        deletion: &Deletion,
        stored: &StoredMessage,
        parts: &Parts<'_>,
        now: Mono,
    ) -> bool {
        let locked = parts.main.locks.contains(stored.number);
        let held = match &deletion.session {
            None => {
                let mut holders = self.holders(stored.row.session_hash);
                holders.next().is_some()
            }
            Some(_) => self.is_held_from(deletion, now),
        };
        !locked && !held
    }
}

fn deletion_query(deletion: &Deletion, limit: usize, parts: &Parts<'_>) -> Query {
    match &deletion.session {
        Some(session) => Query::Entries {
            entity: parts.rows.id,
            index: Index::Session,
            from: key::active(session.hash, deletion.cursor),
            until: key::active(session.hash, deletion.until),
            limit,
            max_bytes: usize::MAX,
        },
        None => Query::Range {
            entity: parts.rows.id,
            part: Part::Active,
            from: deletion.cursor,
            until: deletion.until,
            limit,
            bodies: false,
            max_bytes: 0,
        },
    }
}

fn ask_for_deletion(
    deletion: &mut Deletion,
    query: Query,
    limit: usize,
    covered: SequenceNumber,
    parts: &mut Parts<'_>,
    cx: &mut Context<'_>,
) {
    let read = cx.ask(query, Purpose::Delete(parts.rows.id));
    parts.rows.journal.begin(read);
    deletion.asked = Some(Asked {
        read,
        limit,
        covered,
    });
}

/// A piece came back.
pub(crate) fn loaded(
    queue: &mut Queue,
    read: ReadId,
    found: Result<Found, StoreError>,
    cx: &mut Context<'_>,
) {
    let touched = queue.rows.journal.finish(read);
    let deletion = queue.deletions.pop_front();
    let mut deletion = deletion.expect("a deletion stays first while it waits for a read");
    let asked = deletion
        .asked
        .take()
        .expect("it waits because it has asked");
    assert_eq!(asked.read, read, "a deletion waits for one read at a time");
    match found {
        Ok(Found::Entries(entries)) => {
            let (sessions, mut parts) = queue.sessions_mut();
            sessions.delete_by_order(&mut deletion, asked, &entries, &mut parts, cx);
        }
        Ok(Found::Messages(rows)) => {
            let untouched = |row: &StoredMessage| !touched.contains(&row.number);
            delete_rows(queue, &mut deletion, asked, &rows, untouched, cx);
        }
        Err(error) => return refuse(&deletion, &error, cx),
    }
    queue.deletions.push_front(deletion);
}

fn delete_rows(
    queue: &mut Queue,
    deletion: &mut Deletion,
    asked: Asked,
    rows: &[StoredMessage],
    untouched: impl Fn(&StoredMessage) -> bool,
    cx: &mut Context<'_>,
) {
    let mut covered = match rows.last() {
        Some(last) if rows.len() >= asked.limit => last.number.next(),
        _ => asked.covered,
    };
    let mut mark = None;
    for stored in rows {
        cx.take_work();
        if deletion.left == 0 || stored.row.enqueued_ms >= deletion.before.0 {
            // Those behind it were enqueued later still.
            covered = stored.number;
            deletion.until = covered;
            break;
        }
        let (sessions, parts) = queue.sessions_mut();
        if !untouched(stored) {
            // It may be available again, or gone.
            mark.get_or_insert(stored.number);
        } else if sessions.is_free(deletion, stored, &parts, cx.now.mono) {
            delete_stored(queue, deletion, stored, cx);
        }
    }
    let (sessions, _) = queue.sessions_mut();
    sessions.deleted_below(deletion, covered, mark);
}

fn delete_stored(
    queue: &mut Queue,
    deletion: &mut Deletion,
    stored: &StoredMessage,
    cx: &mut Context<'_>,
) {
    let entry = entry_of(stored, cx.effects.submitted);
    let message = Message::available(stored.part, stored.number, &entry, None);
    let patched = entry.may_have_patch();
    let expired = is_expired(Subqueue::Main, &stored.row, cx.now.wall);
    if !expired || !queue.may_expire(cx) {
        queue.erase(&message, patched, cx);
        deletion.count_one();
    } else if queue.can_expire_at_once(&entry, cx) {
        queue.expire(&message, patched, cx);
    }
}

fn refuse(deletion: &Deletion, error: &StoreError, cx: &mut Context<'_>) {
    cx.emit(Output::Deleted {
        request: deletion.request,
        result: deletion.result(Progress::Failed(error.to_string())),
    });
}

//! Delete: messages of a queue with sessions go without being received.
//!
//! The holder of a session holds all of its messages, also those that were not handed out
//! (docs/spec/entities.md#18): a deletion passes over them, unless it names the session and comes
//! over its holder's connection; then it passes over the messages that are handed out. Rows are
//! read by range, or in the order of one session, a bounded piece at a time, and taken for what
//! they are: those that were touched since are left alone. A few marks tell where earlier deletions
//! have come to, so that none walks over what those deleted. Invariant: below a mark nothing can be
//! deleted; whatever becomes so lowers it.

use store::{Entry, Found, Index, Part, Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::{ReadId, Subqueue};
use crate::api::output::Output;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::delete::{Asked, Deletion, Progress};
use crate::message::Message;
use crate::message::stored::entry_of;
use crate::queue::Queue;
use crate::sessions::{SessionKey, Sessions, id_of, key};

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

impl Queue {
    /// Asks for the next piece, or tells that there is none.
    pub(crate) fn delete_of_sessions(
        &mut self,
        deletion: &mut Deletion,
        cx: &mut Context<'_>,
    ) -> Progress {
        if deletion.asked.is_some() {
            return Progress::Waiting;
        }
        if deletion.cursor == SequenceNumber(0) {
            self.place_deletion(deletion);
        }
        let done = deletion.left == 0 || deletion.cursor >= deletion.until;
        if done || self.is_held_from(deletion, cx) {
            return Progress::Finished;
        }
        let limit = deletion.left.max(LEAST);
        let limit = limit.min(cx.shared.settings.turn_work);
        let query = self.deletion_query(deletion, limit);
        self.ask_for_deletion(deletion, query, limit, deletion.until, cx);
        Progress::Waiting
    }

    /// Puts a deletion to where there may be something to delete.
    fn place_deletion(&mut self, deletion: &mut Deletion) {
        let resume = SequenceNumber(self.head.part(Part::Active).resume);
        let session = deletion.session.as_ref();
        let sessions = self.require_sessions_mut();
        let least = match session {
            Some(key) => sessions.least_of(key, deletion.until),
            None => sessions.least_idle(deletion.until),
        };
        let known = least.max(sessions.marks.of(session));
        deletion.cursor = known.map_or(resume, |known| known.max(resume));
        sessions.marks.set(session, deletion.cursor);
    }

    /// Whether another connection holds the session.
    fn is_held_from(&self, deletion: &Deletion, cx: &Context<'_>) -> bool {
        let holder = |key| self.require_sessions().holder(key);
        let holder = deletion.session.as_ref().and_then(holder);
        holder.is_some_and(|id| !self.is_held_by(id, deletion.request.connection, cx))
    }

    fn deletion_query(&self, deletion: &Deletion, limit: usize) -> Query {
        match &deletion.session {
            Some(session) => Query::Entries {
                entity: self.id,
                index: Index::Session,
                from: key::active(session.hash, deletion.cursor),
                until: key::active(session.hash, deletion.until),
                limit,
                max_bytes: usize::MAX,
            },
            None => Query::Range {
                entity: self.id,
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
        &mut self,
        deletion: &mut Deletion,
        query: Query,
        limit: usize,
        covered: SequenceNumber,
        cx: &mut Context<'_>,
    ) {
        let read = cx.ask(query, Purpose::Delete(self.id));
        self.journal.begin(read);
        deletion.asked = Some(Asked {
            read,
            limit,
            covered,
        });
    }

    /// A piece came back.
    pub(crate) fn deletion_loaded(
        &mut self,
        read: ReadId,
        found: Result<Found, StoreError>,
        cx: &mut Context<'_>,
    ) {
        let touched = self.journal.finish(read);
        let deletion = self.deletions.pop_front();
        let mut deletion = deletion.expect("a deletion stays first while it waits for a read");
        let asked = deletion
            .asked
            .take()
            .expect("it waits because it has asked");
        assert_eq!(asked.read, read, "a deletion waits for one read at a time");
        match found {
            Ok(Found::Entries(entries)) => self.delete_by_order(&mut deletion, asked, &entries, cx),
            Ok(Found::Messages(rows)) => {
                let untouched = |row: &StoredMessage| !touched.contains(&row.number);
                self.delete_rows(&mut deletion, asked, &rows, untouched, cx);
            }
            Err(error) => return refuse(&deletion, &error, cx),
        }
        self.deletions.push_front(deletion);
    }

    /// Asks for the messages whose places in the session's order were read.
    fn delete_by_order(
        &mut self,
        deletion: &mut Deletion,
        asked: Asked,
        entries: &[Entry],
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
            entity: self.id,
            part: Part::Active,
            numbers,
            bodies: false,
            max_bytes: usize::MAX,
        };
        self.ask_for_deletion(deletion, query, usize::MAX, covered, cx);
    }

    fn delete_rows(
        &mut self,
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
            if !untouched(stored) {
                // It may be available again, or gone.
                mark.get_or_insert(stored.number);
            } else if self.is_free(deletion, stored, cx) {
                self.delete_stored(deletion, stored, cx);
            }
        }
        self.deleted_below(deletion, covered, mark);
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
        let sessions = self.require_sessions_mut();
        // Otherwise it was lowered meanwhile, or an earlier piece left something.
        if sessions.marks.of(session) == Some(reached) {
            sessions.marks.set(session, left.unwrap_or(covered));
        }
    }

    /// Whether the message is not held, or only by the connection that deletes it.
    fn is_free(&self, deletion: &Deletion, stored: &StoredMessage, cx: &Context<'_>) -> bool {
        let locked = self.sub(Subqueue::Main).locks.contains(stored.number);
        let held = match &deletion.session {
            None => {
                let mut holders = self.require_sessions().holders(stored.row.session_hash);
                holders.next().is_some()
            }
            Some(_) => self.is_held_from(deletion, cx),
        };
        !locked && !held
    }

    fn delete_stored(
        &mut self,
        deletion: &mut Deletion,
        stored: &StoredMessage,
        cx: &mut Context<'_>,
    ) {
        let entry = entry_of(stored, cx.effects.submitted);
        let message = Message::available(stored.part, stored.number, &entry, None);
        let patched = entry.may_have_patch();
        let expired = Self::is_expired(Subqueue::Main, &stored.row, cx.now.wall);
        if !expired || !self.may_expire(cx) {
            self.erase(&message, patched, cx);
            deletion.count_one();
        } else if self.can_expire_at_once(&entry, cx) {
            self.expire(&message, patched, cx);
        }
    }
}

fn refuse(deletion: &Deletion, error: &StoreError, cx: &mut Context<'_>) {
    cx.emit(Output::Deleted {
        request: deletion.request,
        result: deletion.result(Progress::Failed(error.to_string())),
    });
}

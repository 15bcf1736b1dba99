//! Delete: messages of a queue with sessions go without being received.
//!
//! The holder of a session holds all of its messages, also those that were not handed out
//! (docs/spec/entities.md#18): a deletion passes over them, unless it names the session and comes
//! over its holder's connection; then it passes over the messages that are handed out. Rows are
//! read by range, or in the order of one session, a bounded piece at a time, and taken for what
//! they are: those that were touched since are left alone. A few marks tell where earlier deletions
//! have come to, so that none walks over what those deleted. Invariant: below a mark nothing can be
//! deleted; whatever becomes so lowers it.

use store::{Entry, Index, Part, Query, SequenceNumber, StoredMessage};

use crate::api::time::Mono;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::delete::deletion::{Deletion, PendingRead, Progress};
use crate::queue::session_key as key;
use crate::queue::session_key::SessionKey;
use crate::sessions::{Parts, Sessions, id_of};

/// Rows that are read at least, since many of them may be held.
const LEAST: usize = 64;
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
    pub(super) fn delete_by_order(
        &mut self,
        deletion: &mut Deletion,
        asked: PendingRead,
        entries: &[Entry],
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let covered = match entries.last() {
            Some(last) if entries.len() >= asked.limit => last.key.number.next(),
            _ => asked.covered,
        };
        let session = deletion.session.as_ref();
        let own = |entry: &&Entry| session.is_some_and(|key| key.is_of(id_of(entry)));
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
    pub(super) fn deleted_below(
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
    pub(super) fn is_free(
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
    deletion.asked = Some(PendingRead {
        read,
        limit,
        covered,
    });
}

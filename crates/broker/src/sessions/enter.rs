//! Enter: how messages come into a session and leave it.
//!
//! With its row, a message that stands in the active part has an entry in its session's order,
//! and a deferred or scheduled one has one among those of its session. Abandoned and lapsed
//! messages keep theirs; whatever removes the row removes the entry.

use bytes::Bytes;
use store::{Index, Part, SequenceNumber, Write};

use crate::api::id::Subqueue;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::message::entry::Entry;
use crate::message::patch::Patch;
use crate::queue::Queue;
use crate::sessions::{SessionKey, key};

impl Queue {
    /// A message enters the active part: it arrives, or its scheduled time has come. In a queue
    /// with sessions one without a session cannot stay. (docs/spec/entities.md#8.2)
    pub(crate) fn enter_active(
        &mut self,
        session: Option<&Bytes>,
        number: SequenceNumber,
        entry: Entry,
        cx: &mut Context<'_>,
    ) {
        match session {
            _ if self.sessions.is_none() => self.enter(Subqueue::Main, number, entry, cx),
            Some(id) => self.enter_session(id, number, entry, cx),
            None => self.enter_without_session(number, entry, cx),
        }
    }

    fn enter_session(
        &mut self,
        id: &Bytes,
        number: SequenceNumber,
        mut entry: Entry,
        cx: &mut Context<'_>,
    ) {
        let key = SessionKey::new(id);
        entry.row.session_hash = key.hash;
        self.put_row(Part::Active, number, entry.row, cx);
        cx.write(Write::PutEntry {
            entity: self.id,
            index: Index::Session,
            key: key::active(key.hash, number),
            value: id.clone(),
        });
        let sessions = self.require_sessions_mut();
        if let Some(spilled) = sessions.arrived(&key, number, entry) {
            drop(cx.shared.bodies.take(spilled.body));
        }
        self.sub_mut(Subqueue::Main).needs_pump = true;
    }

    fn enter_without_session(
        &mut self,
        number: SequenceNumber,
        entry: Entry,
        cx: &mut Context<'_>,
    ) {
        let description =
            "Session enabled entity doesn't allow a message whose session identifier is null.";
        let body = cx.shared.bodies.take(entry.body);
        let old = body.and_then(|body| body.patch);
        let patch = Patch::with_reason(old.as_deref(), "Session id is null.", description);
        self.put_patch(number, &patch, cx);
        let body = crate::message::bodies::BodyRef::NONE;
        self.enter(Subqueue::DeadLetter, number, Entry { body, ..entry }, cx);
    }

    /// A message that was lent with its session stands again in its place.
    pub(crate) fn return_to_session(
        &mut self,
        id: HoldId,
        number: SequenceNumber,
        entry: Entry,
        cx: &mut Context<'_>,
    ) {
        self.journal.note(number);
        self.note_deadline(number, entry.row.expires_ms, cx);
        let sessions = self.require_sessions_mut();
        sessions.mark_pending(id);
        sessions.marks.lower(number);
        let hold = sessions.existing_hold_mut(id);
        if let Some(spilled) = hold.returned(number, entry) {
            drop(cx.shared.bodies.take(spilled.body));
        }
        self.sub_mut(Subqueue::Main).needs_pump = true;
    }

    /// What a row knows of its session; 0 where that is only a property.
    pub(crate) fn session_hash(&self, session: Option<&Bytes>) -> u64 {
        let session = session.filter(|_| self.sessions.is_some());
        session.map_or(0, |session| SessionKey::new(session).hash)
    }

    /// A row was put into a part: deferred and scheduled messages are found by their session too.
    pub(crate) fn session_row_put(
        &mut self,
        part: Part,
        number: SequenceNumber,
        hash: u64,
        cx: &mut Context<'_>,
    ) {
        let aside = matches!(part, Part::Deferred | Part::Scheduled);
        if aside && self.sessions.is_some() {
            cx.write(Write::PutEntry {
                entity: self.id,
                index: Index::Session,
                key: key::of(part, hash, number),
                value: Bytes::new(),
            });
        }
    }

    /// A row was removed from a part.
    pub(crate) fn session_row_removed(
        &mut self,
        part: Part,
        number: SequenceNumber,
        hash: u64,
        cx: &mut Context<'_>,
    ) {
        // Rows of any queue are removed, whether or not it has sessions.
        let Some(sessions) = &mut self.sessions else {
            return;
        };
        if !matches!(part, Part::Active | Part::Deferred | Part::Scheduled) {
            return;
        }
        cx.write(Write::RemoveEntry {
            entity: self.id,
            index: Index::Session,
            key: key::of(part, hash, number),
        });
        if part == Part::Active {
            if let Some(entry) = sessions.gone(hash, number) {
                drop(cx.shared.bodies.take(entry.body));
            }
            self.sub_mut(Subqueue::Main).needs_pump = true;
        }
    }

    /// Whether the next message of a session will stay in memory, so that its body is worth
    /// keeping.
    pub(crate) fn keeps_next_of(&self, session: &Bytes) -> bool {
        let sessions = self.require_sessions();
        let holder = sessions.holder(&SessionKey::new(session));
        holder.is_some_and(|id| sessions.existing_hold(id).beyond() == 0)
    }
}

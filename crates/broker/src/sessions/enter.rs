//! Enter: how messages come into a session and return to it.
//!
//! With its row, a message that stands in the active part has an entry in its session's order,
//! and a deferred or scheduled one has one among those of its session. Abandoned and lapsed
//! messages keep theirs; whatever removes the row removes the entry.

use bytes::Bytes;
use store::{Part, SequenceNumber};

use crate::context::Context;
use crate::context::clients::HoldId;
use crate::message::entry::Entry;
use crate::sessions::{Parts, Sessions};

impl Sessions {
    /// A message with a session enters the active part.
    pub(crate) fn enter(
        &mut self,
        id: &Bytes,
        number: SequenceNumber,
        mut entry: Entry,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let key = self.ids.key(id);
        entry.row.session_hash = key.hash;
        parts.rows.put(Part::Active, number, entry.row, cx);
        parts
            .rows
            .put_session_entry(Part::Active, number, key.hash, id.clone(), cx);
        if let Some(spilled) = self.arrived(&key, number, entry) {
            drop(cx.shared.bodies.take(spilled.body));
        }
        parts.main.needs_dispatch = true;
    }

    /// A message that was lent with its session stands again in its place.
    pub(crate) fn return_message(
        &mut self,
        id: HoldId,
        number: SequenceNumber,
        entry: Entry,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        self.mark_pending(id);
        self.marks.lower(number);
        if let Some(spilled) = self.existing_hold_mut(id).returned(number, entry) {
            drop(cx.shared.bodies.take(spilled.body));
        }
        parts.main.needs_dispatch = true;
    }

    /// Whether the next message of a session will stay in memory, so that its body is worth
    /// keeping.
    pub(crate) fn keeps_next_of(&self, session: &Bytes) -> bool {
        let holder = self.holder(&self.ids.key(session));
        holder.is_some_and(|id| self.existing_hold(id).beyond() == 0)
    }
}

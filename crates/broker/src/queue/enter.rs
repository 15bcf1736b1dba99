//! Enter: a message enters the active part of a queue, with or without a session.
//!
//! In a queue with sessions it enters its session; one without a session is dead-lettered there.
//! In any other queue the session is only a property.

use bytes::Bytes;
use store::SequenceNumber;

use crate::api::id::Subqueue;
use crate::context::Context;
use crate::message::bodies::BodyRef;
use crate::message::entry::Entry;
use crate::message::patch::Patch;
use crate::queue::Queue;

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
        if entry.row.ttl_ms == 0 && !self.forwards(Subqueue::Main) {
            self.sub_mut(Subqueue::Main).now_or_never.push(number);
        }
        let Some((sessions, mut parts)) = self.by_session() else {
            return self.enter(Subqueue::Main, number, entry, cx);
        };
        match session {
            Some(id) => sessions.enter(id, number, entry, &mut parts, cx),
            None => self.enter_without_session(number, entry, cx),
        }
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
        self.record_dead_letter(number, Subqueue::DeadLetter, &patch, cx);
        self.rows.put_patch(number, &patch, cx);
        let body = BodyRef::NONE;
        self.enter(Subqueue::DeadLetter, number, Entry { body, ..entry }, cx);
    }
}

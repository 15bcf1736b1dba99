//! Heads: what a restart will know of an entity, written once per touched entity and turn.
//!
//! A part's `resume` is its least live number, but for a few stragglers (`subqueue/first.rs`). In a
//! queue with sessions the sessions know the least number of the main part.

use store::SequenceNumber;

use crate::api::id::Subqueue;
use crate::api::time::Wall;
use crate::context::Context;
use crate::queue::Queue;

impl Queue {
    /// Writes the head.
    pub(crate) fn write_head(&mut self, cx: &mut Context<'_>) {
        self.idle.is_written(Wall(self.rows.head.accessed_ms));
        if let Some(sessions) = &mut self.sessions {
            sessions.write_session_expiries(self.id, cx);
        }
        for subqueue in Subqueue::ALL {
            let sub = self.sub(subqueue);
            debug_assert!(
                (sub.window.len() + sub.locks.on_available()) as u64
                    <= self.rows.count(subqueue.part()),
                "a part counts all that memory knows of it"
            );
            let (resume, stragglers) = self.place_of_first(subqueue);
            let part = self.rows.head.part_mut(subqueue.part());
            part.resume = resume.0;
            part.stragglers = stragglers;
        }
        self.rows.head.schedule_from = self.schedule.start(&self.rows);
        self.rows.head.session_state_bytes = self.sessions.as_ref().map_or(0, |s| s.state_bytes);
        self.rows.write_head(cx);
        if self.rows.origins.borrows() && self.is_empty() {
            self.rows.origins.forget_snapshots();
            cx.shared.lent.is_to_check = true;
        }
    }

    /// From where a subqueue's messages are found, and the few before that.
    pub(crate) fn place_of_first(
        &self,
        subqueue: Subqueue,
    ) -> (SequenceNumber, Vec<SequenceNumber>) {
        if self.rows.count(subqueue.part()) == 0 {
            return (self.rows.end(), Vec::new());
        }
        if let Some(sessions) = self
            .sessions
            .as_ref()
            .filter(|_| subqueue == Subqueue::Main)
        {
            let resume = self.rows.resume(subqueue.part());
            return (sessions.least().unwrap_or(resume), Vec::new());
        }
        self.sub(subqueue).place_of_first(&self.rows)
    }
}

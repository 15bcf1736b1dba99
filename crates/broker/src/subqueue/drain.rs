//! Drain: a receiver that drains is told when nothing more can come.
//!
//! That is after the last delivery: when nothing is available, or nothing is handed out for now.
//! What becomes available later is another credit's business. While messages cannot be read no
//! receiver is told that there is nothing: it is evicted.

use crate::api::output::Output;
use crate::context::Context;
use crate::context::clients::Choice;
use crate::queue::rows::Rows;
use crate::subqueue::SubqueueState;

impl SubqueueState {
    /// Answers the drains that are over, after the last delivery.
    pub(crate) fn answer_drains(&mut self, rows: &Rows, cx: &mut Context<'_>) {
        if self.draining.is_empty() {
            return;
        }
        let exhausted = self.is_exhausted(rows, cx);
        let (end, stopped) = (rows.end(), self.is_stopped(cx));
        let failed = self.retry_at.is_some();
        let is_damaged = self.unreadable.eviction().is_some();
        let active = self.active;
        let Self {
            draining,
            unreadable,
            selections,
            browsers,
            ..
        } = self;
        draining.retain(|slot| {
            let receiver = cx.shared.clients.get_mut(*slot);
            let done = match receiver.choice {
                _ if receiver.credit() == 0 => true,
                // It is given nothing until it is the active one.
                _ if active.is_some_and(|active| active != *slot) => true,
                Choice::Next => exhausted,
                Choice::Selected(id) => stopped || selections.is_exhausted(id, end),
                Choice::Shown => failed || browsers.is_exhausted(*slot, end),
            };
            if done && is_damaged && receiver.credit() > 0 {
                unreadable.drained(*slot);
            } else if done {
                receiver.finish_drain();
                let receiver = receiver.id;
                cx.emit(Output::Drained { receiver });
            }
            !done
        });
    }

    /// Whether nothing is available, nor will be when the reads under way have come back.
    fn is_exhausted(&self, rows: &Rows, cx: &Context<'_>) -> bool {
        let read_all = !self.window.is_refilling() && self.window.end() >= rows.end();
        let empty = self.window.len() == 0 && (read_all || self.beyond(rows) == 0);
        empty || self.is_stopped(cx)
    }

    /// Whether nothing is handed out for now, be it available or not.
    fn is_stopped(&self, cx: &Context<'_>) -> bool {
        self.is_full_of_locks(&cx.shared.settings) || self.retry_at.is_some()
    }
}

//! Hand out: which message goes to which receiver with a selector.
//!
//! Selections with takers have their turns, one message each. A search that the turn's budget stops
//! goes on with the next tick.

use store::SequenceNumber;

use super::REST_MS;
use super::search::SearchResult;
use crate::context::Context;
use crate::message::entry::Entry;
use crate::queue::rows::Rows;
use crate::subqueue::SubqueueState;
use crate::subqueue::taker::{Taker, next_taker};

impl SubqueueState {
    /// The next message that a receiver's selector selects, with its body in memory. It is the
    /// receiver's turn, and another's then.
    pub(crate) fn next_selected(
        &mut self,
        rows: &Rows,
        cx: &mut Context<'_>,
    ) -> Option<(Taker, SequenceNumber, Entry)> {
        if self.is_full_of_locks(&cx.shared.settings) {
            return None;
        }
        for _ in 0..self.selections.with_credit.len() {
            let next = self.selections.next_turn();
            let id = next.expect("each round removes at most one of the with_credit ones");
            let Some(taker) = next_taker(&mut self.selections.get_mut(id).takers, cx) else {
                self.selections.with_credit.remove(&id);
                continue;
            };
            match self.search(id, rows, cx) {
                SearchResult::Match(number, entry) => {
                    self.selections.get_mut(id).takers.rotate_left(1);
                    return Some((taker, number, entry));
                }
                SearchResult::Nothing => {}
                SearchResult::Interrupted => {
                    self.resume_at = Some(cx.now.mono.after(REST_MS));
                    return None;
                }
            }
        }
        None
    }
}

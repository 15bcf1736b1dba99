//! Hand out: gives messages to receivers with selectors, each selection in its turn.

use super::search::Found;
use crate::api::id::Subqueue;
use crate::api::time::Mono;
use crate::context::Context;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::queue::Queue;
use crate::receive::dispatch::{self, Taker};
use store::SequenceNumber;

/// How long a search rests when the turn's budget is used up, in milliseconds.
pub(crate) const REST_MS: u64 = 1;

impl Queue {
    /// Hands out the next message that a receiver's selector selects. Returns whether there was
    /// one.
    pub(crate) fn hand_out_selected(&mut self, subqueue: Subqueue, cx: &mut Context<'_>) -> bool {
        let sub = self.sub(subqueue);
        if sub.is_full_of_locks(&cx.shared.settings) {
            return false;
        }
        for _ in 0..sub.selections.hungry.len() {
            let selections = &mut self.sub_mut(subqueue).selections;
            let next = selections.next_turn();
            let id = next.expect("each round removes at most one of the hungry ones");
            let selection = selections.get_mut(id);
            let Some(taker) = dispatch::next_taker(&mut selection.takers, cx) else {
                selections.hungry.remove(&id);
                continue;
            };
            match self.search(subqueue, id, cx) {
                Found::Match(number, entry) => {
                    let selections = &mut self.sub_mut(subqueue).selections;
                    selections.get_mut(id).takers.rotate_left(1);
                    self.hand_out_match(subqueue, taker, number, &entry, cx);
                    return true;
                }
                Found::Nothing => {}
                Found::Interrupted => {
                    let at = Mono(cx.now.mono.0.saturating_add(REST_MS));
                    self.sub_mut(subqueue).resume_at = Some(at);
                    return false;
                }
            }
        }
        false
    }

    fn hand_out_match(
        &mut self,
        subqueue: Subqueue,
        taker: Taker,
        number: SequenceNumber,
        entry: &Entry,
        cx: &mut Context<'_>,
    ) {
        let body = cx.shared.bodies.take(entry.body);
        let body = body.expect("it was judged in this step, during which bodies stay");
        // Behind its end the window does not know it, but the page does.
        if let Some(known) = self.sub_mut(subqueue).window.take(number) {
            drop(cx.shared.bodies.take(known.body));
        }
        let message = Message::available(subqueue.part(), number, entry, body.patch);
        self.hand_out(subqueue, taker, message, body.payload, entry.rests_on, cx);
    }
}

//! Dispatch: which receiver of a subqueue is given the next message.
//!
//! Receivers with credit have one message each in turn; those with selectors and the others take
//! turns; of a session's messages only its holder is given any. Browsers are shown what they have
//! room for. A drain is answered when nothing more can come, after the last delivery.

use crate::api::id::Subqueue;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::message::Message;
use crate::queue::Queue;
use crate::receive::hand_out::{Progress, Source};
use crate::receive::{evict, hand_out};

/// Hands out what can be handed out now.
pub(crate) fn dispatch(queue: &mut Queue, subqueue: Subqueue, cx: &mut Context<'_>) {
    if queue.sub(subqueue).browsers.any_with_credit() {
        let first = queue.place_of_first(subqueue);
        queue.subs[subqueue as usize].show_to_browsers(&first, &queue.rows, cx);
    }
    if queue.sub(subqueue).by_session {
        dispatch_sessions(queue, cx);
    } else {
        while hand_out_one(queue, subqueue, cx) {}
    }
    queue.subs[subqueue as usize].answer_drains(&queue.rows, cx);
    evict::evict_drained(queue, subqueue, cx);
}

/// Does what can be done for sessions now, and hands out their messages.
fn dispatch_sessions(queue: &mut Queue, cx: &mut Context<'_>) {
    let (sessions, mut parts) = queue.sessions_mut();
    sessions.prepare(&mut parts, cx);
    while let (sessions, _) = queue.sessions_mut()
        && let Some(id) = sessions.next_pending()
    {
        let progress = hand_out_session(queue, id, cx);
        let (sessions, parts) = queue.sessions_mut();
        if let Some(reason) = sessions.answer_drain(id, &parts, cx) {
            let holder = sessions.existing_hold(id).slot;
            evict::evict(queue, holder, reason, cx);
            continue;
        }
        if progress == Progress::Interrupted {
            let (sessions, mut parts) = queue.sessions_mut();
            return sessions.wake_hold(id, &mut parts);
        }
    }
}

/// Hands out messages of a session as long as its holder can take some.
fn hand_out_session(queue: &mut Queue, id: HoldId, cx: &mut Context<'_>) -> Progress {
    loop {
        let (sessions, parts) = queue.sessions_mut();
        let Some(holder) = sessions.ready_holder(id, &parts, cx) else {
            return Progress::Stopped;
        };
        let progress = hand_out::hand_out_first(queue, Source::Session(id), holder, cx);
        if progress != Progress::Made {
            return progress;
        }
    }
}

/// Gives one message to one receiver. Those with selectors and the others take turns.
fn hand_out_one(queue: &mut Queue, subqueue: Subqueue, cx: &mut Context<'_>) -> bool {
    let had_turn = queue.sub(subqueue).selections.had_turn;
    for with_selector in [!had_turn, had_turn] {
        let given = if with_selector {
            hand_out_selected(queue, subqueue, cx)
        } else {
            let taker = queue.sub_mut(subqueue).next_taker(cx);
            taker.is_some_and(|taker| {
                let source = Source::Subqueue(subqueue);
                hand_out::hand_out_first(queue, source, taker, cx) == Progress::Made
            })
        };
        if given {
            queue.sub_mut(subqueue).selections.had_turn = with_selector;
            return true;
        }
    }
    false
}

/// Hands out the next message that a receiver's selector selects. Returns whether there was
/// one.
fn hand_out_selected(queue: &mut Queue, subqueue: Subqueue, cx: &mut Context<'_>) -> bool {
    let sub = &mut queue.subs[subqueue as usize];
    let Some((taker, number, entry)) = sub.next_selected(&queue.rows, cx) else {
        return false;
    };
    let body = cx.shared.bodies.take(entry.body);
    let body = body.expect("it was evaluated in this step, during which bodies stay");
    // Behind its end the window does not know it, but the page does.
    if let Some(known) = sub.window.take(number) {
        drop(cx.shared.bodies.take(known.body));
    }
    let message = Message::available(subqueue.part(), number, &entry, body.patch);
    let source = Source::Subqueue(subqueue);
    hand_out::deliver(
        queue,
        source,
        taker,
        message,
        body.payload,
        entry.rests_on,
        cx,
    );
    true
}

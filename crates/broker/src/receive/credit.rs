//! Credit: a receiver waits for messages as long as it has credit.
//!
//! It waits in the ring of its subqueue, or with the session that it holds. A delivery that did not
//! reach it gives its credit back.

use crate::api::id::ReceiverId;
use crate::context::Context;
use crate::context::clients::{ReceiverSlot, ReceiverState, SessionRole};
use crate::queue::Queue;

/// Puts a receiver to where it waits for messages, if it has credit and is nowhere yet.
pub(crate) fn invite(queue: &mut Queue, slot: ReceiverSlot, cx: &mut Context<'_>) {
    let receiver = cx.shared.clients.get_mut(slot);
    assert_eq!(
        receiver.place.entity, queue.id,
        "a receiver is invited to the queue that it is attached to"
    );
    match receiver.session_role {
        SessionRole::None => {
            let subqueue = receiver.place.subqueue;
            queue.sub_mut(subqueue).invite(slot, cx);
        }
        SessionRole::Waiting(_) => {}
        SessionRole::Holding(session) => {
            receiver.state = ReceiverState::Idle;
            let (sessions, mut parts) = queue.sessions_mut();
            sessions.wake_hold(session, &mut parts);
        }
    }
}

/// A delivery did not reach its receiver, which gets the credit back.
pub(crate) fn give_credit_back(queue: &mut Queue, receiver: ReceiverId, cx: &mut Context<'_>) {
    // A receiver that has gone needs no credit.
    let Some(slot) = cx.shared.clients.find(receiver) else {
        return;
    };
    cx.shared.clients.get_mut(slot).give_credit_back();
    invite(queue, slot, cx);
}

//! Evict: receivers are told that messages of their subqueue cannot be read.
//!
//! All of them are told when that is found, and later each whose drain is over. Their links end
//! with an error; their locks run on. A receiver that attaches again is given what can be read.

use crate::api::error::Eviction;
use crate::api::id::Subqueue;
use crate::api::output::Output;
use crate::context::Context;
use crate::context::clients::ReceiverSlot;
use crate::queue::Queue;
use crate::receive::leave::{Departure, leave};

/// Evicts all receivers of a subqueue, if there is something that they have not been told.
pub(crate) fn evict_for_news(queue: &mut Queue, subqueue: Subqueue, cx: &mut Context<'_>) {
    let Some(reason) = queue.sub_mut(subqueue).unreadable.take_news() else {
        return;
    };
    let clients = &cx.shared.clients;
    let receivers = clients.receivers_at(queue.id);
    let mut slots: Vec<_> = receivers
        .filter(|slot| clients.get(*slot).place.subqueue == subqueue)
        .collect();
    // Holders last, or others would be given what they leave.
    slots.sort_by_key(|slot| clients.get(*slot).holds_session());
    for slot in slots {
        evict(queue, slot, reason, cx);
    }
}

/// Evicts the receivers whose drains are over, while some messages cannot be read.
pub(crate) fn evict_drained(queue: &mut Queue, subqueue: Subqueue, cx: &mut Context<'_>) {
    let unreadable = &mut queue.sub_mut(subqueue).unreadable;
    let slots = unreadable.take_drained();
    // As a rule all messages can be read.
    let Some(reason) = unreadable.eviction() else {
        return;
    };
    for slot in slots {
        evict(queue, slot, reason, cx);
    }
}

/// Ends one receiver.
pub(super) fn evict(queue: &mut Queue, slot: ReceiverSlot, reason: Eviction, cx: &mut Context<'_>) {
    let receiver = leave(queue, slot, Departure::Detached, cx);
    cx.emit(Output::Evicted { receiver, reason });
}

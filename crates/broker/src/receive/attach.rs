//! Attach: receivers come, get credit, have their deliveries written, and go.
//!
//! A receiver that goes leaves its locks running, unless they last as long as it does (`leave.rs`);
//! a lost connection may end them (`disconnect.rs`). (docs/spec/README.md#settled)

use std::sync::Arc;

use filter::Selector;
use store::EntityId;

use crate::api::command::Access;
use crate::api::error::Eviction;
use crate::api::id::{ConnectionId, ReceiverId, Subqueue, SubqueueId};
use crate::api::output::Output;
use crate::api::receive_mode::ReceiveMode;
use crate::context::Context;
use crate::context::clients::{Choice, Receiver, ReceiverState, SessionRole};
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::receive::credit;
use crate::receive::leave::{Departure, leave};
use crate::receive::run::run;

/// A receiver appears, without credit.
pub(crate) fn attach(
    directory: &mut Directory,
    receiver: ReceiverId,
    place: SubqueueId,
    access: Access,
    selector: Option<Arc<Selector>>,
    cx: &mut Context<'_>,
) {
    let browses = access == Access::Browse;
    // One that is not admitted has been told so.
    let Some(queue) = admit(directory, receiver, place, browses, cx) else {
        return;
    };
    let (mode, priority, consumer_timeout, hears_activity) = match access {
        Access::Consume(mode) => (mode, 0, None, false),
        Access::Prioritized {
            mode,
            priority,
            consumer_timeout,
            hears_activity,
        } => (mode, priority, consumer_timeout, hears_activity),
        Access::Browse => (ReceiveMode::ReceiveAndDelete, 0, None, false),
    };
    let clients = &mut cx.shared.clients;
    assert!(
        clients.find(receiver).is_none(),
        "a link that attaches again was detached"
    );
    let slot = clients.attach(receiver, place, mode);
    let single = queue.settings.single_active_receiver;
    let sub = queue.sub_mut(place.subqueue);
    sub.attached += 1;
    let choice = match selector {
        selector if browses => {
            sub.browsers.join(slot, selector);
            Choice::Shown
        }
        Some(selector) => Choice::Selected(sub.selections.join(selector)),
        None => Choice::Next,
    };
    let attached = clients.get_mut(slot);
    attached.choice = choice;
    attached.priority = priority;
    attached.consumer_timeout = consumer_timeout;
    attached.hears_activity = hears_activity;
    sub.prioritized += usize::from(priority != 0);
    if single && !browses && place.subqueue == Subqueue::Main {
        sub.active.get_or_insert(slot);
    }
    if hears_activity {
        let active = sub.active.is_none_or(|active| active == slot);
        cx.emit(Output::Activity { receiver, active });
    }
    // Expiry may depend on a receiver being there.
    run(queue, cx);
}

/// The queue that a receiver is let in to, or it is told why not. Only a receiver that `browses` is
/// let in to a queue with sessions without one.
fn admit<'a>(
    directory: &'a mut Directory,
    receiver: ReceiverId,
    place: SubqueueId,
    browses: bool,
    cx: &mut Context<'_>,
) -> Option<&'a mut Queue> {
    // A link that attaches again starts anew.
    detach(directory, receiver, cx);
    let reason = match directory.admit(place) {
        Ok(queue) if !queue.is_open_to(receiver.connection) => Eviction::Exclusive,
        Ok(queue) if place.subqueue != Subqueue::Main || queue.sessions.is_none() || browses => {
            return Some(queue);
        }
        Ok(_) => Eviction::SessionRequired,
        Err(reason) => reason,
    };
    cx.emit(Output::Evicted { receiver, reason });
    None
}

/// A receiver has gone in good order.
pub(crate) fn detach(directory: &mut Directory, receiver: ReceiverId, cx: &mut Context<'_>) {
    detach_with(directory, receiver, Departure::Detached, cx);
}

/// A receiver has gone with its session, which no client ends with deliveries that it has
/// finished with.
pub(crate) fn lose(directory: &mut Directory, receiver: ReceiverId, cx: &mut Context<'_>) {
    detach_with(directory, receiver, Departure::Lost, cx);
}

/// A receiver goes in this way.
pub(super) fn detach_with(
    directory: &mut Directory,
    receiver: ReceiverId,
    departure: Departure,
    cx: &mut Context<'_>,
) {
    // The receiver may have been evicted before its link was closed.
    let Some(slot) = cx.shared.clients.find(receiver) else {
        return;
    };
    let queue = queue_of(directory, cx.shared.clients.get(slot));
    cx.enter(queue.namespace);
    leave(queue, slot, departure, cx);
    run(queue, cx);
}

/// Where a receiver is, or was until now.
fn queue_of<'a>(directory: &'a mut Directory, receiver: &Receiver) -> &'a mut Queue {
    let queue = directory.get_mut(receiver.place.entity);
    queue.expect("an entity that goes detaches its receivers")
}

/// A receiver names its limit.
pub(crate) fn credit(
    directory: &mut Directory,
    receiver: ReceiverId,
    limit: u32,
    drain: bool,
    cx: &mut Context<'_>,
) {
    // The receiver may have been evicted before its credit came.
    let Some(slot) = cx.shared.clients.find(receiver) else {
        return;
    };
    let receiver = cx.shared.clients.get_mut(slot);
    let waited = receiver.waits();
    receiver.set_limit(limit);
    receiver.draining = drain;
    let waits = waited || receiver.waits();
    let has_session_role = receiver.session_role != SessionRole::None;
    let place = receiver.place;
    let queue = queue_of(directory, receiver);
    cx.enter(queue.namespace);
    if waits {
        queue.note_access(cx);
    }
    let sub = queue.sub_mut(place.subqueue);
    sub.draining.retain(|other| *other != slot);
    if drain && !has_session_role {
        sub.draining.push(slot);
    }
    credit::invite(queue, slot, cx);
    run(queue, cx);
}

/// A connection has written deliveries of `bytes` bytes.
pub(crate) fn written(
    directory: &mut Directory,
    connection: ConnectionId,
    bytes: usize,
    cx: &mut Context<'_>,
) {
    let output_buffer_bytes = cx.shared.settings.output_buffer_bytes;
    let freed = cx
        .shared
        .clients
        .written(connection, bytes, output_buffer_bytes);
    let mut entities: Vec<EntityId> = Vec::new();
    for slot in freed {
        let receiver = cx.shared.clients.get_mut(slot);
        receiver.state = ReceiverState::Idle;
        let queue = queue_of(directory, receiver);
        cx.enter(queue.namespace);
        credit::invite(queue, slot, cx);
        entities.push(queue.id);
    }
    // All of them are in their rings again before the first takes anything.
    entities.dedup();
    for entity in entities {
        let queue = directory.get_mut(entity);
        run(queue.expect("no entity goes in this step"), cx);
    }
}

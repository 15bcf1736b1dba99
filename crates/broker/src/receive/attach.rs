//! Attach: receivers and connections come, get credit, write, and go.
//!
//! A receiver that goes leaves its locks running; only a lost connection may end them, if the
//! broker is set up so. (docs/spec/README.md#settled)

use std::collections::BTreeSet;
use std::sync::Arc;

use filter::Selector;
use store::{EntityId, SequenceNumber};

use crate::api::command::{Access, ReceiveMode, RetryTime};
use crate::api::id::{ConnectionId, ReceiverId, Subqueue, SubqueueId};
use crate::api::lineage::LockEnd;
use crate::api::output::{Eviction, Output};
use crate::api::settings::{LocksOnDisconnect, SessionCountOnDisconnect};
use crate::context::Context;
use crate::context::clients::{Choice, Receiver, ReceiverSlot, ReceiverState, SessionRole};
use crate::entities::directory::Directory;
use crate::entities::exclusive;
use crate::node;
use crate::queue::Queue;
use crate::receive::credit;
use crate::receive::run::run;
use crate::sessions;
use crate::settle::end_lock;
use crate::subqueue::lock::{Holder, Lock};
use crate::transaction;

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

/// How a receiver goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Departure {
    /// Alone, or with its connection in good order.
    Detached,
    /// With its connection, which is lost, or with its session.
    Lost,
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

fn detach_with(
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
    remove(queue, slot, departure, cx);
    run(queue, cx);
}

/// A receiver leaves its queue. Returns its id.
pub(crate) fn remove(
    queue: &mut Queue,
    slot: ReceiverSlot,
    departure: Departure,
    cx: &mut Context<'_>,
) -> ReceiverId {
    let receiver = cx.shared.clients.detach(slot);
    if receiver.waits() {
        // It has waited until now.
        queue.note_access(cx);
    }
    if receiver.session_role == SessionRole::None {
        let sub = queue.sub_mut(receiver.place.subqueue);
        sub.leave(slot, &receiver);
        if sub.active == Some(slot) {
            sub.active = cx.shared.clients.next_active(receiver.place);
            sub.needs_dispatch = true;
            let next = sub.active.map(|slot| cx.shared.clients.get(slot));
            if let Some(next) = next.filter(|it| it.hears_activity).map(|it| it.id) {
                let active = true;
                cx.emit(Output::Activity {
                    receiver: next,
                    active,
                });
            }
        }
        if receiver.mode == ReceiveMode::LinkLock {
            end_lasting_locks(queue, &receiver, departure, cx);
        }
    } else {
        let counts = match departure {
            Departure::Detached => SessionCountOnDisconnect::Keep,
            Departure::Lost => cx.shared.settings.session_count_on_disconnect,
        };
        sessions::release::leave(queue, &receiver, counts, cx);
    }
    if queue.kind.ends_with_consumers() {
        cx.shared.left_subscriptions.insert(queue.id);
    }
    receiver.id
}

/// Ends the locks that last as long as their receiver, which goes.
/// (docs/spec/rabbitmq.md#10.3)
fn end_lasting_locks(
    queue: &mut Queue,
    receiver: &Receiver,
    departure: Departure,
    cx: &mut Context<'_>,
) {
    let (subqueue, gone) = (receiver.place.subqueue, LockEnd::ReceiverGone);
    let held = locks_where(queue, subqueue, |lock| lock.lasts_with(receiver.id));
    for number in held {
        match departure {
            Departure::Lost => end_lock::expire_lock(queue, subqueue, number, gone, cx),
            Departure::Detached => {
                let lock = end_lock::take_lock(queue, subqueue, number, cx);
                queue.record_lock_lost(number, &lock, gone, cx);
                end_lock::release(queue, subqueue, number, lock, RetryTime::Backoff, cx);
            }
        }
    }
}

/// The numbers of the locks of a kind.
fn locks_where(
    queue: &Queue,
    subqueue: Subqueue,
    is_one: impl Fn(&Lock) -> bool,
) -> Vec<SequenceNumber> {
    let locks = queue.sub(subqueue).locks.range(..);
    let found = locks.filter(|(_, lock)| is_one(lock));
    found.map(|(number, _)| number).collect()
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

/// A connection is gone, and all its receivers with it.
pub(crate) fn disconnect(
    directory: &mut Directory,
    connection: ConnectionId,
    cx: &mut Context<'_>,
) {
    let places = end_connection(directory, connection, Departure::Lost, cx);
    if cx.shared.settings.locks_on_disconnect == LocksOnDisconnect::Drop {
        for place in places {
            // An entity may have gone since its receivers were attached.
            if let Some(queue) = directory.get_mut(place.entity) {
                cx.enter(queue.namespace);
                drop_locks(queue, place.subqueue, connection, cx);
                run(queue, cx);
            }
        }
    }
}

/// A connection is gone in good order, and keeps its locks.
pub(crate) fn leave(directory: &mut Directory, connection: ConnectionId, cx: &mut Context<'_>) {
    end_connection(directory, connection, Departure::Detached, cx);
}

/// Takes out all of a connection but its locks. Returns where it may have some.
fn end_connection(
    directory: &mut Directory,
    connection: ConnectionId,
    departure: Departure,
    cx: &mut Context<'_>,
) -> BTreeSet<SubqueueId> {
    for slot in cx.shared.clients.receivers_of(connection) {
        let receiver = cx.shared.clients.get(slot).id;
        detach_with(directory, receiver, departure, cx);
    }
    node::close_all(directory, connection, cx);
    exclusive::end_of(directory, connection, cx);
    // Only now, so that none of these receivers takes a message that a rollback gives back.
    transaction::end(directory, connection, None, cx);
    cx.shared.clients.disconnect(connection)
}

/// Ends the locks of a connection as if their time were up.
fn drop_locks(
    queue: &mut Queue,
    subqueue: Subqueue,
    connection: ConnectionId,
    cx: &mut Context<'_>,
) {
    let is_held = |holder: Holder| holder.connection == connection;
    let held = locks_where(queue, subqueue, |lock| lock.holder.is_some_and(is_held));
    for number in held {
        end_lock::expire_lock(queue, subqueue, number, LockEnd::ReceiverGone, cx);
    }
}

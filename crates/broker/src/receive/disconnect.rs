//! Disconnect: a connection is gone, with its receivers, dynamic nodes, exclusive entities,
//! transactions, and what it was reading or loading of namespaces.
//!
//! Its locks run on, unless the connection is lost and the broker is set up to end them then. Its
//! receivers go first, so that none takes what the others give back.
//! (docs/spec/README.md#settled)

use std::collections::BTreeSet;

use crate::api::id::{ConnectionId, Subqueue, SubqueueId};
use crate::api::lineage::LockEnd;
use crate::api::settings::LocksOnDisconnect;
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::entities::exclusive;
use crate::node;
use crate::queue::Queue;
use crate::receive::attach::detach_with;
use crate::receive::leave::{Departure, locks_where};
use crate::receive::run::run;
use crate::settle::end_lock;
use crate::snapshot::free;
use crate::subqueue::lock::Holder;
use crate::transaction;

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
    free::release_of(directory, connection, cx);
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

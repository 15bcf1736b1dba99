//! Remove: an entity goes, with all that is in it and all that was to come of it.
//!
//! Its receivers are told, and each request that waits for an answer gets one: at once, or when the
//! read comes back that the answer waits for. Whatever still names it by its id finds nothing,
//! since ids are never used again; so nothing of it can touch another entity that takes its path.

use bytes::Bytes;
use store::{EntityId, NamespaceId, SequenceNumber, Write};

use crate::api::error::{Eviction, SendError};
use crate::api::id::Subqueue;
use crate::api::lineage::MessageEvent;
use crate::api::output::{EntityChange, Output};
use crate::context::Context;
use crate::context::alarms::Alarm;
use crate::delete::pieces;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::send::enqueue::answer_refusal;

/// An entity goes. It takes its transfer queues with it, and a topic its subscriptions.
pub(crate) fn end(directory: &mut Directory, entity: EntityId, cx: &mut Context<'_>) {
    let Some(queue) = directory.take(entity) else {
        return;
    };
    let transfer_queues: Vec<_> = directory.transfer_queues(entity).collect();
    for transfer_queue in transfer_queues {
        end(directory, transfer_queue, cx);
    }
    directory.routers.entity_removed(entity, cx);
    if queue.rows.origins.borrows() {
        cx.shared.lent.is_to_check = true;
    }
    match &queue.kind {
        Kind::Queue | Kind::Transfer { .. } => {
            let is_home = cx.shared.lent.is_home(entity);
            let at_once = !is_home && (!queue.shares_bodies || queue.is_empty());
            if !at_once {
                directory.create_tombstone(&queue, None, cx);
            }
            end_queue(queue, at_once, cx);
        }
        Kind::Topic(topic) => {
            let is_home = cx.shared.lent.is_home(entity);
            let subscriptions: Vec<_> = topic.subscriptions.iter().copied().collect();
            for subscription in subscriptions {
                if let Some(subscription) = directory.take(subscription) {
                    cx.shared.lent.is_to_check |= subscription.rows.origins.borrows();
                    let is_nothing_left = !is_home || subscription.is_empty();
                    let at_once = is_nothing_left && !cx.shared.lent.is_home(subscription.id);
                    if !at_once {
                        directory.create_tombstone(&subscription, Some(entity), cx);
                    }
                    end_queue(subscription, at_once, cx);
                }
            }
            if is_home {
                directory.create_tombstone(&queue, None, cx);
            } else {
                directory.end_tombstones(entity, cx);
            }
            end_queue(queue, !is_home, cx);
            cx.shared.topics.forget(entity);
        }
        Kind::Subscription(subscription) => {
            let topic = subscription.topic;
            let bytes = i64::try_from(queue.bytes()).unwrap_or(i64::MAX);
            cx.shared.topics.weigh(topic, -bytes);
            directory.leave_topic(entity, topic);
            if let Some(topic) = directory.get_mut(topic) {
                topic.note_access_at(queue.accessed(), cx);
                let last_use = queue.idle.last_use();
                if last_use > topic.idle.last_use() {
                    topic.idle.note_use_at(last_use);
                }
            }
            // It is the home of bodies that rules have changed.
            let at_once = queue.is_empty() && !cx.shared.lent.is_home(entity);
            if !at_once {
                directory.create_tombstone(&queue, Some(topic), cx);
            }
            end_queue(queue, at_once, cx);
        }
    }
}

impl Directory {
    /// A client deletes an entity. To delete a subscription is to use its topic.
    /// (docs/spec/entities.md#15)
    pub(crate) fn delete(&mut self, entity: EntityId, cx: &mut Context<'_>) {
        let topic = self.get(entity).and_then(|queue| queue.kind.topic());
        end(self, entity, cx);
        if let Some(topic) = topic {
            self.note_use(topic, cx);
        }
    }

    /// All entities of a namespace go.
    pub(crate) fn remove_entities(&mut self, namespace: NamespaceId, cx: &mut Context<'_>) {
        let all = self.by_path(namespace, "").map(|(_, queue)| queue);
        // A subscription goes with its topic.
        let roots = all.filter(|queue| queue.kind.topic().is_none());
        let roots: Vec<_> = roots.map(|queue| queue.id).collect();
        for entity in roots {
            end(self, entity, cx);
        }
    }
}

/// The end of an entity that no path leads to any more. What it has in the store goes `at_once`
/// or is looked after by others.
fn end_queue(mut queue: Box<Queue>, at_once: bool, cx: &mut Context<'_>) {
    if at_once {
        cx.write(Write::RemoveEntity(queue.id));
    }
    if !queue.id.is_volatile() {
        let bytes = i64::try_from(queue.bytes()).unwrap_or(i64::MAX);
        cx.shared.namespaces.weigh(queue.namespace, -bytes);
    }
    let event = || MessageEvent::EntityDeleted {
        path: Bytes::copy_from_slice(queue.path.as_bytes()),
    };
    queue.record(SequenceNumber(0), event, cx);
    evict_all(&queue, Eviction::NotFound, cx);
    for request in queue.duplicates.take_waiting() {
        answer_refusal(request, Err(SendError::NotFound), cx);
    }
    pieces::refuse_deletions(&mut queue, cx);
    if let Some(sessions) = queue.sessions.take() {
        sessions.end(cx);
    }
    drop_bodies(&queue, cx);
    if at_once {
        cx.shared
            .alarms
            .set(queue.id, queue.alarm, Alarm::default());
    }
    for subqueue in Subqueue::ALL {
        cx.shared.pumps.remove(&queue.sub(subqueue).place);
    }
    if queue.id.is_volatile() {
        cx.shared.volatile.remove_entity(&queue.rows.head);
        return;
    }
    if matches!(queue.kind, Kind::Transfer { .. }) {
        return;
    }
    cx.emit(Output::EntityChanged(Box::new(EntityChange {
        id: queue.id,
        namespace: queue.namespace,
        path: queue.path,
        kind: queue.kind.seen(),
        settings: None,
        authorization_rules: Vec::new(),
        replaces: None,
    })));
}

/// Receivers are gone with their entity; there is nothing that they could leave behind.
pub(crate) fn evict_all(queue: &Queue, reason: Eviction, cx: &mut Context<'_>) {
    let slots: Vec<_> = cx.shared.clients.receivers_at(queue.id).collect();
    for slot in slots {
        let receiver = cx.shared.clients.detach(slot).id;
        cx.emit(Output::Evicted { receiver, reason });
    }
}

fn drop_bodies(queue: &Queue, cx: &mut Context<'_>) {
    for subqueue in Subqueue::ALL {
        let all = SequenceNumber(0)..SequenceNumber::MAX;
        for (_, entry) in queue.sub(subqueue).window.range(all) {
            drop(cx.shared.bodies.take(entry.body));
        }
    }
}

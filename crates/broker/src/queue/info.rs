//! Info: a queue's definition and counters at one moment.
//!
//! Counters are those of the head, so they are exact. Ages and lags are as of the moment asked for.

use std::sync::Arc;

use store::Part;

use crate::api::id::Subqueue;
use crate::api::info::QueueInfo;
use crate::api::time::Now;
use crate::entities::directory::Directory;
use crate::queue::Queue;

pub(crate) fn info(directory: &Directory, queue: &Queue, now: Now) -> QueueInfo {
    let count = |part| queue.rows.count(part);
    let sent_via = directory.sent_via(queue.id);
    let forwarded = match queue.forwards(Subqueue::Main) {
        true => count(Subqueue::Main.part()),
        false => 0,
    };
    QueueInfo {
        id: queue.id,
        namespace: queue.namespace,
        path: queue.path.clone(),
        kind: queue.kind.seen(),
        settings: queue.own().clone(),
        policy: queue.governed.as_ref().map(|it| Arc::clone(&it.applied)),
        active: count(Subqueue::Main.part()),
        locked: queue.sub(Subqueue::Main).locks.on_available() as u64,
        available_bytes: queue.available_bytes(),
        dead_letter: count(Subqueue::DeadLetter.part())
            + count(Subqueue::DeadLetter.deferred_part()),
        deferred: count(Subqueue::Main.deferred_part()),
        scheduled: count(Part::Scheduled),
        schedule_lag_ms: queue.schedule.lag(&queue.rows, now.wall),
        bytes: queue.bytes(),
        oldest_age_ms: queue.oldest_age(now.wall),
        traffic: queue.rows.traffic,
        receivers: queue.sub(Subqueue::Main).attached as u64,
        transfer: forwarded + sent_via.messages,
        sent_via,
        transfer_dead_letter: count(Subqueue::TransferDeadLetter.part())
            + count(Subqueue::TransferDeadLetter.deferred_part()),
        created: queue.times.created,
        updated: queue.times.updated,
        accessed: Some(queue.accessed()).filter(|at| at.0 > 0),
    }
}

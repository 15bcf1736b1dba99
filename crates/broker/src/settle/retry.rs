//! Retry: a message that comes back waits before it is available again.
//!
//! Its receiver says how long, or the entity's retry-backoff or delayed retry by the delivery
//! count. The message waits among the scheduled ones and keeps its number, its place in the queue,
//! its deadline, its delivery count and its changes. Messages behind it go on meanwhile. It waits
//! until its deadline at the latest, and expires then, and for seven days at most. Messages of a
//! session never wait.
//! (docs/spec/entities.md#10.1)

use store::SequenceNumber;

use crate::api::id::Subqueue;
use crate::api::lineage::MessageEvent;
use crate::api::outcome::RetryTime;
use crate::api::time::Wall;
use crate::context::Context;
use crate::message::entry::Entry;
use crate::queue::Queue;
use crate::send::timetable::{Due, Planned, Waiting};
use crate::subqueue::lock::{Lock, Origin};

/// The longest wait: seven days, in milliseconds. Nothing but time ends it.
const MAX_WAIT: u64 = 7 * 86_400_000;

/// When a message that comes back is due, if it waits: its delivery `failed`, or was given back.
pub(crate) fn due(
    queue: &Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    lock: &Lock,
    (retry, failed): (RetryTime, bool),
    cx: &Context<'_>,
) -> Option<Due> {
    // A deferred message is deferred again, and messages of a session keep its order.
    if lock.session.is_some() || subqueue != Subqueue::Main || lock.origin != Origin::Available {
        return None;
    }
    let now = cx.now.wall.0;
    let at = match retry {
        RetryTime::Backoff => {
            let settings = &queue.settings;
            now.saturating_add(settings.retry_delay(lock.delivery_count, failed)?)
        }
        RetryTime::After(delay_ms) => now.saturating_add(delay_ms),
        RetryTime::At(at) => at.0,
    };
    let expires = queue.sub(subqueue).ceilings.expires_ms(number, &lock.row);
    let at = at.min(expires).min(now.saturating_add(MAX_WAIT));
    (at > now).then_some(Due { at, number })
}

/// A message whose lock has ended waits.
pub(crate) fn wait(queue: &mut Queue, due: Due, lock: &Lock, cx: &mut Context<'_>) {
    queue.record(
        due.number,
        || MessageEvent::Delayed {
            until: Wall(due.at),
        },
        cx,
    );
    queue.remove_row(Subqueue::Main.part(), due.number, &lock.row, cx);
    let planned = Planned::again(Waiting {
        row: lock.row,
        delivery_count: lock.delivery_count,
    });
    queue.schedule.plan(due, planned, &mut queue.rows, cx);
}

/// A message that has waited stands again in its place.
pub(crate) fn resume(
    queue: &mut Queue,
    number: SequenceNumber,
    waiting: &Waiting,
    cx: &mut Context<'_>,
) {
    queue.record(number, || MessageEvent::Resumed, cx);
    queue.note_deadline(number, &waiting.row, cx);
    queue.sub_mut(Subqueue::Main).fetch.note(number);
    let entry = Entry::written(waiting.row, waiting.delivery_count, cx.commit());
    queue.enter(Subqueue::Main, number, entry, cx);
}

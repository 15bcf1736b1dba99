//! Tick: what time does to entities: locks end, messages expire or become active, sessions are
//! lost, transactions time out, unused entities go.
//!
//! Locks end by the monotonic clock, messages leave by the wall clock. All is done in bounded
//! pieces: what a turn's budget does not allow goes on with the next tick.

use store::EntityId;

use crate::api::id::Subqueue;
use crate::api::lineage::LockEnd;
use crate::context::Context;
use crate::delete;
use crate::entities::directory::Directory;
use crate::entities::tombstone::Tombstone;
use crate::entities::{removal, remove};
use crate::expire::sweep_blocks::sweep;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::receive::run::run;
use crate::send::activate::activate;
use crate::sessions;
use crate::settle::end_lock;
use crate::transaction;

/// Time has passed: every entity whose alarm is due does what is due, within the budget.
pub(crate) fn tick(directory: &mut Directory, cx: &mut Context<'_>) {
    transaction::time_out_due(directory, cx);
    delete::go_on(directory, cx);
    while cx.shared.work_left > 0
        && let Some(entity) = cx.shared.alarms.next_due(cx.broker_now)
    {
        let work_left = cx.shared.work_left;
        let Some(queue) = directory.get_mut(entity) else {
            removal::advance(directory, entity, Tombstone::advance, cx);
            cx.take_work();
            continue;
        };
        cx.enter(queue.namespace);
        let topic = matches!(queue.kind, Kind::Topic(_)).then_some(entity);
        if let Some(topic) = topic {
            note_uses_below(directory, topic, cx);
        }
        let queue = directory
            .get_mut(entity)
            .expect("it was found in this step");
        if queue.is_idle_for_too_long(cx) || queue.is_lease_over(cx) {
            remove::end(directory, entity, cx);
        } else {
            tick_queue(queue, cx);
        }
        if cx.shared.work_left == work_left {
            // Looking in vain costs something too, so that a tick ends.
            cx.take_work();
        }
    }
}

/// The use of a subscription counts as use of its topic, that of a receiver that waits there too.
/// (docs/spec/entities.md#15)
fn note_uses_below(directory: &mut Directory, topic: EntityId, cx: &mut Context<'_>) {
    const A_TOPIC: &str = "it was found to be a topic in this step";
    let queue = directory.get(topic).expect(A_TOPIC);
    let Kind::Topic(of_topic) = &queue.kind else {
        unreachable!("it was found to be a topic in this step");
    };
    if queue.idle_limit_ms() == u64::MAX {
        return;
    }
    let below: Vec<_> = of_topic.subscriptions.iter().copied().collect();
    let uses = below.into_iter().map(|id| {
        let subscription = directory.get_mut(id);
        let subscription = subscription.expect("a subscription that goes is taken out");
        subscription.note_lasting_use(cx);
        subscription.idle.last_use()
    });
    // A topic without subscriptions was last used when it says.
    let Some(used) = uses.max() else {
        return;
    };
    let queue = directory.get_mut(topic).expect(A_TOPIC);
    if used > queue.idle.last_use() {
        queue.idle.note_use_at(used);
    }
}

/// The wall clock went back, which must freeze nothing.
pub(crate) fn clock_went_back(queue: &mut Queue, cx: &mut Context<'_>) {
    cx.enter(queue.namespace);
    queue.expiry.clock_went_back();
    queue.schedule.clock_went_back();
    for sub in &mut queue.subs {
        sub.clock_went_back();
    }
    run_and_set_alarm(queue, cx);
}

fn tick_queue(queue: &mut Queue, cx: &mut Context<'_>) {
    queue.fold_session_ids(cx);
    for subqueue in Subqueue::ALL {
        expire_locks(queue, subqueue, cx);
        queue.sub_mut(subqueue).tick(cx.now.mono);
    }
    activate(queue, cx);
    sessions::release::tick(queue, cx);
    sweep(queue, cx);
    queue
        .duplicates
        .sweep_history(&mut queue.rows, &queue.settings, cx);
    run_and_set_alarm(queue, cx);
}

/// The alarm is set at once, since those that are due are looked for next.
fn run_and_set_alarm(queue: &mut Queue, cx: &mut Context<'_>) {
    run(queue, cx);
    queue.set_alarm(cx);
}

fn expire_locks(queue: &mut Queue, subqueue: Subqueue, cx: &mut Context<'_>) {
    while cx.shared.work_left > 0 {
        let Some(number) = queue.sub_mut(subqueue).locks.next_expired(cx.now.mono) else {
            break;
        };
        cx.take_work();
        if queue.sub(subqueue).locks.lasts_with_link(number) {
            end_lock::time_out(queue, subqueue, number, cx);
        } else {
            end_lock::expire_lock(queue, subqueue, number, LockEnd::Expired, cx);
        }
    }
}

//! Leave: a receiver leaves its queue.
//!
//! Its place in the line of its subqueue, its session and the locks that last as long as it does go
//! with it; all other locks run on. The next receiver may become the active one.
//! (docs/spec/rabbitmq.md#10.3)

use store::SequenceNumber;

use crate::api::id::{ReceiverId, Subqueue};
use crate::api::lineage::LockEnd;
use crate::api::outcome::RetryTime;
use crate::api::output::Output;
use crate::api::receive_mode::ReceiveMode;
use crate::api::settings::SessionCountOnDisconnect;
use crate::context::Context;
use crate::context::clients::{Receiver, ReceiverSlot, SessionRole};
use crate::queue::Queue;
use crate::sessions::release;
use crate::settle::end_lock;
use crate::subqueue::lock::Lock;

/// How a receiver goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Departure {
    /// Alone, or with its connection in good order.
    Detached,
    /// With its connection, which is lost, or with its session.
    Lost,
}

/// A receiver leaves its queue. Returns its id.
pub(crate) fn leave(
    queue: &mut Queue,
    slot: ReceiverSlot,
    departure: Departure,
    cx: &mut Context<'_>,
) -> ReceiverId {
    let receiver = cx.shared.clients.detach(slot);
    assert_eq!(
        receiver.place.entity, queue.id,
        "a receiver leaves the queue that it is attached to"
    );
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
        release::leave(queue, &receiver, counts, cx);
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
pub(super) fn locks_where(
    queue: &Queue,
    subqueue: Subqueue,
    is_one: impl Fn(&Lock) -> bool,
) -> Vec<SequenceNumber> {
    let locks = queue.sub(subqueue).locks.range(..);
    let found = locks.filter(|(_, lock)| is_one(lock));
    found.map(|(number, _)| number).collect()
}

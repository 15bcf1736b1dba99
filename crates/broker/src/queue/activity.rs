//! Activity: what an operator sees of an entity's receivers, locks and sessions at one moment.
//!
//! Lists have at most as many entries as were asked for, and the counts beside them are of all.
//! Nothing changes by it, and no message is read.

use store::SequenceNumber;

use crate::api::activity::{
    ActiveHold, ActiveLock, ActiveReceiver, ActiveSession, Activity, ActivityWanted,
};
use crate::api::id::Subqueue;
use crate::api::time::{Mono, Now};
use crate::context::Shared;
use crate::context::clients::{Choice, Receiver, ReceiverState, SessionRole};
use crate::queue::Queue;
use crate::sessions::{Hold, Sessions};

/// The activity at `now`, or what is wanted of it.
pub(crate) fn activity(
    queue: &Queue,
    shared: &Shared,
    now: Now,
    wanted: &ActivityWanted,
) -> Activity {
    let most = match wanted {
        ActivityWanted::First(most) => *most,
        ActivityWanted::Sessions(_) => 0,
    };
    let clients = &shared.clients;
    let Now { wall, mono: now } = now;
    let sessions = queue.sessions.as_deref();
    let receivers = clients.receivers_at(queue.id);
    let receivers = receivers.map(|slot| receiver(clients.get(slot), queue));
    Activity {
        at: wall,
        expiry: queue.settings.expiry.unwrap_or(shared.settings.expiry),
        receivers: receivers.take(most).collect(),
        receiver_count: clients.receivers_at(queue.id).count(),
        locks: locks(queue, now).take(most).collect(),
        lock_counts: Subqueue::ALL.map(|subqueue| locks_in(queue, subqueue, now).count()),
        sessions: sessions.map_or_else(Vec::new, |sessions| sessions.active(now, wanted)),
        session_count: sessions.map_or(0, Sessions::active_count),
    }
}

fn receiver(receiver: &Receiver, queue: &Queue) -> ActiveReceiver {
    let sessions = queue.sessions.as_deref();
    let selections = &queue.sub(receiver.place.subqueue).selections;
    let hold = match receiver.session_role {
        SessionRole::Holding(id) => sessions.and_then(|sessions| sessions.hold(id)),
        SessionRole::None | SessionRole::Waiting(_) => None,
    };
    ActiveReceiver {
        id: receiver.id,
        subqueue: receiver.place.subqueue,
        mode: (receiver.choice != Choice::Shown).then_some(receiver.mode),
        selector: match receiver.choice {
            Choice::Selected(id) => Some(selections.selector(id)),
            Choice::Next | Choice::Shown => None,
        },
        credit: receiver.credit(),
        is_blocked: receiver.state == ReceiverState::Blocked,
        session: hold.map(|hold| hold.key.id.clone()),
        waits_for_session: matches!(receiver.session_role, SessionRole::Waiting(_)),
    }
}

/// The locks that a client holds; messages that are only set aside have no holder.
fn locks(queue: &Queue, now: Mono) -> impl Iterator<Item = ActiveLock> {
    let all = Subqueue::ALL.into_iter();
    all.flat_map(move |subqueue| locks_in(queue, subqueue, now))
}

fn locks_in(queue: &Queue, subqueue: Subqueue, now: Mono) -> impl Iterator<Item = ActiveLock> {
    let locks = &queue.sub(subqueue).locks;
    let locks = locks.range(SequenceNumber(0)..SequenceNumber::MAX);
    locks.filter_map(move |(number, lock)| {
        let holder = lock.holder?;
        let is_timed = lock.session.is_none() && lock.until != Mono(u64::MAX);
        Some(ActiveLock {
            number,
            subqueue,
            connection: holder.connection,
            link: holder.link,
            left_ms: is_timed.then(|| lock.until.0.saturating_sub(now.0)),
            delivery_count: lock.delivery_count,
        })
    })
}

fn active_hold(hold: &Hold, now: Mono) -> ActiveHold {
    ActiveHold {
        receiver: hold.receiver,
        left_ms: hold.left_ms(now),
        locked: hold.locked.len(),
        state_bytes: hold.state_cost,
    }
}

impl Sessions {
    /// The number of sessions that are held or have messages, as far as they are known.
    fn active_count(&self) -> usize {
        self.held().count() + self.idle_count()
    }

    /// A session by its id, whether it is held or not.
    fn active_one(&self, id: &[u8], now: Mono) -> ActiveSession {
        let hold = self.holder(&self.ids.key(id)).and_then(|id| self.hold(id));
        ActiveSession {
            id: id.into(),
            hold: hold.map(|hold| active_hold(hold, now)),
        }
    }

    fn active(&self, now: Mono, wanted: &ActivityWanted) -> Vec<ActiveSession> {
        let most = match wanted {
            ActivityWanted::First(most) => *most,
            ActivityWanted::Sessions(ids) => {
                return ids.iter().map(|id| self.active_one(id, now)).collect();
            }
        };
        let held = self.held().map(|hold| ActiveSession {
            id: hold.key.id.clone(),
            hold: Some(active_hold(hold, now)),
        });
        let idle = self.idle_in_order().map(|key| ActiveSession {
            id: key.id.clone(),
            hold: None,
        });
        held.chain(idle).take(most).collect()
    }
}

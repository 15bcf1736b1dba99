//! Hand out: the next message of a window goes to a receiver whose turn it is.
//!
//! The same steps for a subqueue and for a session that is held: a message is handed out only when
//! its body is in memory, never past its deadline, and in order of number. In receive-and-delete
//! mode its removal is decided only then.

use bytes::Bytes;
use store::{CommitId, Part, SequenceNumber};

use crate::api::id::{LockToken, Subqueue};
use crate::api::lineage::{MessageEvent, Settlement};
use crate::api::output::{Browsed, Delivery, LockTime, MessageState, Output};
use crate::api::receive_mode::ReceiveMode;
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::expire;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::partition_key::PartitionKey;
use crate::queue::Queue;
use crate::subqueue::lock::{Holder, Lock, Origin};
use crate::subqueue::taker::Taker;
use crate::subqueue::window::Window;

/// What a message is handed out of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Subqueue(Subqueue),
    /// A session that is held, of the main queue.
    Session(HoldId),
}

impl Source {
    fn subqueue(self) -> Subqueue {
        match self {
            Self::Subqueue(subqueue) => subqueue,
            Self::Session(_) => Subqueue::Main,
        }
    }
}

/// Whether it is worth going on with a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    Made,
    Stopped,
    /// The turn's budget is used up.
    Interrupted,
}

/// Deals with the first message of a source, for a receiver that can take one.
pub(crate) fn hand_out_first(
    queue: &mut Queue,
    source: Source,
    taker: Taker,
    cx: &mut Context<'_>,
) -> Progress {
    let subqueue = source.subqueue();
    let full = queue.sub(subqueue).is_full_of_locks(&cx.shared.settings);
    let Some((number, entry)) = window(queue, source).first().filter(|_| !full) else {
        refill(queue, source, cx);
        return Progress::Stopped;
    };
    let entry = *entry;
    let expired = queue.sub(subqueue).is_past(number, &entry.row, cx.now.wall);
    if expired && expire::can_expire_at_once(queue, &entry, cx) {
        return expire_first(queue, number, &entry, cx);
    }
    let Some(body) = cx.shared.bodies.take(entry.body) else {
        fetch(queue, source, cx);
        return Progress::Stopped;
    };
    let taken = window(queue, source).take_first().map(|(number, _)| number);
    assert_eq!(
        taken,
        Some(number),
        "the window has the same first message as before"
    );
    if let Source::Subqueue(subqueue) = source {
        queue.sub_mut(subqueue).takers.rotate_left(1);
    }
    let message = Message::available(subqueue.part(), number, &entry, body.patch);
    deliver(
        queue,
        source,
        taker,
        message,
        body.payload,
        entry.rests_on,
        cx,
    );
    refill(queue, source, cx);
    if let Source::Subqueue(subqueue) = source {
        queue.sub_mut(subqueue).read_ahead(number, cx);
    }
    Progress::Made
}

/// Expiring is background work: past the turn's budget it goes on in the next one.
fn expire_first(
    queue: &mut Queue,
    number: SequenceNumber,
    entry: &Entry,
    cx: &mut Context<'_>,
) -> Progress {
    if !cx.take_work() {
        queue.sub_mut(Subqueue::Main).needs_dispatch = true;
        return Progress::Interrupted;
    }
    expire::expire_available(queue, number, entry, cx);
    Progress::Made
}

/// Gives a receiver a message, which is on the disk with the commit that it `rests_on`.
pub(crate) fn deliver(
    queue: &mut Queue,
    source: Source,
    taker: Taker,
    message: Message,
    payload: Bytes,
    rests_on: CommitId,
    cx: &mut Context<'_>,
) {
    let receiver = taker.id;
    assert_eq!(
        cx.shared.clients.get(taker.slot).id,
        receiver,
        "a taker is the receiver of its slot"
    );
    queue.note_access(cx);
    let holder = Holder {
        connection: receiver.connection,
        link: Some(receiver.link),
    };
    let mut shown = message.shown(queue.id, MessageState::Active, payload);
    let returns = queue.rows.returns.of(message.number);
    shown.acquired_count = returns.max(message.delivery_count);
    let timeout = taker.consumer_timeout.or(queue.settings.consumer_timeout);
    let mode = (taker.mode, timeout.filter(|timeout| *timeout > 0));
    let mut delivery = give(queue, source, mode, holder, message, shown, cx);
    if delivery.message.lock.is_some() {
        delivery.rests_on = rests_on;
    }
    cx.shared
        .clients
        .count_delivery(taker.slot, delivery.size());
    let delivery = Box::new(delivery);
    cx.emit(Output::Deliver { receiver, delivery });
}

/// Locks a message or erases it, for a client that gets it as `shown`. Resting on this turn's
/// commit. A lock that ends with its receiver may have a `timeout` besides.
pub(crate) fn give(
    queue: &mut Queue,
    source: Source,
    (mode, timeout): (ReceiveMode, Option<u64>),
    holder: Holder,
    message: Message,
    mut shown: Browsed,
    cx: &mut Context<'_>,
) -> Delivery {
    let number = message.number;
    let token = cx.shared.tokens.next(number);
    let waited_ms = message.time_since_enqueued(source.subqueue(), cx.now);
    let is_first = message.delivery_count == 0 && message.part == Part::Active;
    shown.lock = match mode {
        ReceiveMode::PeekLock | ReceiveMode::LinkLock => {
            let duration = match mode {
                ReceiveMode::LinkLock => timeout,
                _ => Some(queue.settings.lock_duration),
            };
            let is_partitioned = queue.is_partitioned;
            let key = is_partitioned.then(|| PartitionKey::of(&shown.payload));
            let lock = Lock {
                partition_key: key.flatten(),
                ends_with_receiver: mode == ReceiveMode::LinkLock,
                ..lock_of(source, message, token, holder)
            };
            let event = || MessageEvent::Locked {
                connection: holder.connection,
                delivery_count: lock.delivery_count,
            };
            queue.record(number, event, cx);
            Some(lend(queue, source, number, lock, duration, cx))
        }
        ReceiveMode::ReceiveAndDelete => {
            queue.rows.traffic.complete(waited_ms);
            let event = || MessageEvent::Settled {
                how: Settlement::ReceivedAndDeleted,
                by: Some(holder.connection),
            };
            queue.record(number, event, cx);
            let patched = message.patch.is_some();
            queue.erase(&message, patched, cx);
            None
        }
    };
    let first_ms = waited_ms.filter(|_| is_first);
    queue.rows.traffic.deliver(first_ms);
    Delivery {
        message: shown,
        token,
        rests_on: cx.commit(),
    }
}

/// The lock of a message that goes to a holder.
fn lock_of(source: Source, message: Message, token: LockToken, holder: Holder) -> Lock {
    let origin = if message.part == source.subqueue().deferred_part() {
        Origin::Deferred
    } else {
        Origin::Available
    };
    Lock::new(message, token, Some(holder), origin)
}

/// Locks a message for its holder, for a `duration` unless it has none or its session's. Returns
/// for how long.
fn lend(
    queue: &mut Queue,
    source: Source,
    number: SequenceNumber,
    lock: Lock,
    duration: Option<u64>,
    cx: &Context<'_>,
) -> LockTime {
    match source {
        Source::Subqueue(subqueue) => {
            let ends_with_receiver = lock.ends_with_receiver;
            let sub = queue.sub_mut(subqueue);
            match duration {
                Some(duration) => sub.lock(number, lock, duration, cx.now.mono),
                None => sub.lock_lasting(number, lock),
            }
            match duration {
                Some(duration) if !ends_with_receiver => LockTime::Own(duration),
                _ => LockTime::WithReceiver,
            }
        }
        Source::Session(id) => {
            let (sessions, mut parts) = queue.sessions_mut();
            sessions.lock(id, number, lock, &mut parts, cx.now.mono)
        }
    }
}

fn window(queue: &mut Queue, source: Source) -> &mut Window {
    match source {
        Source::Subqueue(subqueue) => &mut queue.sub_mut(subqueue).window,
        Source::Session(id) => &mut queue.sessions_mut().0.existing_hold_mut(id).window,
    }
}

/// Asks for the source's next messages, if its window runs low.
fn refill(queue: &mut Queue, source: Source, cx: &mut Context<'_>) {
    match source {
        Source::Subqueue(subqueue) => queue.subs[subqueue as usize].refill(&queue.rows, cx),
        Source::Session(id) => {
            let (sessions, mut parts) = queue.sessions_mut();
            sessions.load_session(id, &mut parts, cx);
        }
    }
}

/// Asks for the bodies of the source's first messages.
fn fetch(queue: &mut Queue, source: Source, cx: &mut Context<'_>) {
    match source {
        Source::Subqueue(subqueue) => queue.sub_mut(subqueue).fetch_for_takers(cx),
        Source::Session(id) => {
            let (sessions, mut parts) = queue.sessions_mut();
            sessions.fetch_bodies(id, &mut parts, cx);
        }
    }
}

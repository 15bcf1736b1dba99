//! Hop: what a queue does with messages that pass through: it says which goes on next, checks
//! what would arrive, lets go and takes in.

use store::{EntityId, SequenceNumber};

use super::death::note_death;
use super::transfer::{Admission, Transfer, TransferFailure};
use crate::api::forward_error::ForwardError;
use crate::api::id::{ReadId, Subqueue, SubqueueId};
use crate::api::lineage::MessageEvent;
use crate::api::name::path_of;
use crate::api::settings::{ForwardFailures, ForwardRetry};
use crate::api::time::Wall;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::expire;
use crate::message::Message;
use crate::message::bodies::Body;
use crate::message::id::IdHash;
use crate::message::patch::Patch;
use crate::message::properties::Properties;
use crate::message::row;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::send::duplicates::known::Known;
use crate::send::{enqueue, length};
use crate::settle::dead_letter;
use crate::subqueue::pump::{Looked, Pump};

/// Why there is the entity of a pump.
pub(super) const HAS_PUMP: &str = "an entity that goes takes its pumps along";
/// Why there is the destination of a path.
pub(super) const THERE: &str = "its path was found in this step";

/// Where messages of a subqueue go by themselves.
pub(crate) enum Destination {
    Path(String),
    /// Where the router for dead letters tells.
    Router,
}

/// Where messages of a subqueue go by themselves. They stay if no receiver could reach them
/// there.
pub(crate) fn destination(queue: &Queue, subqueue: Subqueue) -> Option<Destination> {
    let settings = &queue.settings;
    if !settings.status.allows_receive() {
        return None;
    }
    let path = |target: &String| Destination::Path(path_of(target).to_owned());
    match subqueue {
        Subqueue::Main => settings.forward_to.as_ref().map(path),
        Subqueue::DeadLetter => {
            let forward = settings
                .forward_dead_lettered_messages_to
                .as_ref()
                .map(path);
            let router = settings.dead_letter_router.as_ref();
            forward.or(router.map(|_| Destination::Router))
        }
        Subqueue::TransferDeadLetter => None,
    }
}

pub(crate) fn pump_later(queue: &mut Queue, subqueue: Subqueue, cx: &mut Context<'_>) {
    queue.sub_mut(subqueue).needs_dispatch = true;
    queue.note_alarm(cx);
}

pub(crate) fn pump_again_at(queue: &mut Queue, subqueue: Subqueue, cx: &Context<'_>) {
    let at = cx.retry_at();
    queue.sub_mut(subqueue).pump = Pump::Until(at);
}

/// Whether a message that its destination has no room for is tried again. The first that finds no
/// room there starts the clock; a message that came later gets as much time.
pub(crate) fn waits_for_room(
    queue: &mut Queue,
    destination: EntityId,
    transfer: &Transfer,
    cx: &Context<'_>,
) -> bool {
    let ForwardRetry { interval, time_out } = cx.shared.settings.forward_retry;
    let sub = queue.sub_mut(Subqueue::Main);
    let known = sub.full_since.filter(|(full, _)| *full == destination);
    let (_, since) = *sub
        .full_since
        .insert(known.unwrap_or((destination, cx.now.mono)));
    let comes_late = transfer.entry.row.enqueued_ms.saturating_add(time_out) > cx.now.wall.0;
    let waits = cx.now.mono < since.after(time_out) || comes_late;
    if waits {
        sub.pump = Pump::Until(cx.now.mono.after(interval.max(1)));
    }
    waits
}

pub(crate) fn take_looked(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
) -> Option<Looked> {
    match std::mem::take(&mut queue.sub_mut(subqueue).pump) {
        Pump::Looked(looked) if looked.number == number => Some(looked),
        _ => None,
    }
}

/// A message that cannot go on is set aside for a lock's time, so that others can.
pub(crate) fn pass_over(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    cx: &mut Context<'_>,
) {
    let entry = queue.sub(subqueue).window.get(number);
    let entry = entry.expect("the message that could not go on is still here");
    drop(cx.shared.bodies.take(entry.body));
    let duration = queue.settings.lock_duration;
    queue.sub_mut(subqueue).set_aside(number, duration, cx);
}

/// A message of which the destination cannot tell whether it has had it stays, so that others can
/// go on. One that is not of sessions is tried again after a lock's time.
pub(super) fn pass_unknown(
    queue: &mut Queue,
    subqueue: Subqueue,
    number: SequenceNumber,
    cx: &mut Context<'_>,
) {
    let duration = queue.settings.lock_duration;
    let sub = queue.sub_mut(subqueue);
    if sub.by_session {
        sub.unreadable.note_message(number);
        return;
    }
    // It may have gone while its id was looked up.
    if let Some(entry) = sub.window.get(number) {
        drop(cx.shared.bodies.take(entry.body));
        sub.lock_unreadable(&[number], duration, cx);
    }
}

/// The next message, with its body, if one can go now.
pub(crate) fn next_transfer(
    queue: &mut Queue,
    subqueue: Subqueue,
    cx: &mut Context<'_>,
) -> Option<Transfer> {
    if queue.sub(subqueue).pump.is_waiting(cx.now.mono) {
        return None;
    }
    if queue.sub(subqueue).is_full_of_locks(&cx.shared.settings) {
        return None;
    }
    let first = queue.sub(subqueue).window.first();
    let Some((number, entry)) = first.map(|(number, entry)| (number, *entry)) else {
        queue.subs[subqueue as usize].refill(&queue.rows, cx);
        return None;
    };
    let sub = queue.sub(subqueue);
    let expired = sub.is_expired(number, &entry.row, cx.now.wall);
    if expired && expire::can_expire_at_once(queue, &entry, cx) {
        expire::expire_available(queue, number, &entry, cx);
        queue.sub_mut(subqueue).needs_dispatch = true;
        return None;
    }
    let Some(body) = cx.shared.bodies.get(entry.body).cloned() else {
        queue.sub_mut(subqueue).fetch_for_pump(cx);
        return None;
    };
    let properties = Properties::of(&body.payload);
    Some(Transfer {
        source: queue.id,
        number,
        entry,
        body,
        properties,
        sent_via: matches!(queue.kind, Kind::Transfer { .. }),
    })
}

/// What this queue says to a message that would arrive.
pub(super) fn check_arrival(
    queue: &mut Queue,
    transfer: &Transfer,
    looked: Option<Looked>,
    cx: &mut Context<'_>,
) -> Admission {
    if let Some(refusal) = check_open(queue, transfer, cx) {
        return refusal;
    }
    let detects = queue.settings.requires_duplicate_detection;
    let Some(id) = transfer.properties.id_hash().filter(|_| detects) else {
        return check_forwarded_size(queue, transfer, cx);
    };
    let looked = looked.filter(|looked| {
        let here = looked.destination == queue.id;
        here && queue.duplicates.is_remembered_since(looked.seen)
    });
    let known = looked.map(|looked| looked.known);
    match known.or_else(|| queue.duplicates.known_at_once(id, &queue.rows, cx)) {
        None => Admission::Ask(id),
        Some(known) if is_duplicate(queue, id, &known, cx) => Admission::Duplicate,
        Some(_) => check_forwarded_size(queue, transfer, cx),
    }
}

/// Why nothing like a message arrives here now, if so.
fn check_open(queue: &Queue, transfer: &Transfer, cx: &Context<'_>) -> Option<Admission> {
    if cx.shared.nearly_full {
        return Some(Admission::Failed(TransferFailure::Wait));
    }
    if matches!(queue.kind, Kind::Subscription(_)) {
        let destination = queue.path.clone();
        let error = ForwardError::Subscription { destination };
        return Some(Admission::Failed(TransferFailure::Refused(error)));
    }
    if !queue.settings.status.allows_send() {
        // It is never a failed forward. (docs/spec/entities.md#14.4)
        return Some(Admission::Failed(TransferFailure::Wait));
    }
    let has_none = queue.settings.requires_session && transfer.properties.session_id.is_none();
    has_none.then_some(Admission::NoSession)
}

/// What this queue says to a dead letter that its router sends here.
pub(super) fn check_routed(queue: &Queue, transfer: &Transfer, cx: &Context<'_>) -> Admission {
    let refusal = check_open(queue, transfer, cx);
    // The broker's limit is for what senders and forwards bring: what has been accepted once is not
    // lost for it.
    let own = queue.settings.max_message_size;
    let limit = own.unwrap_or(enqueue::MAX_MESSAGE_SIZE);
    let refusal = refusal.or_else(|| check_arriving_size(queue, transfer, limit, cx));
    refusal.unwrap_or(Admission::Take)
}

fn is_duplicate(queue: &Queue, id: IdHash, known: &Known, cx: &Context<'_>) -> bool {
    let before = queue
        .duplicates
        .duplicate_of(id, known, &queue.settings, cx);
    before.is_some()
}

/// Whether there is room for a message that is forwarded.
fn check_forwarded_size(queue: &Queue, transfer: &Transfer, cx: &Context<'_>) -> Admission {
    let own = queue.settings.max_message_size;
    // A sender is held to the default by its link. (docs/spec/entities.md#2.1)
    let limit = own.unwrap_or(cx.shared.settings.max_message_size);
    check_arriving_size(queue, transfer, limit, cx).unwrap_or(Admission::Take)
}

/// Why there is no room for a message, if so.
fn check_arriving_size(
    queue: &Queue,
    transfer: &Transfer,
    limit: u64,
    cx: &Context<'_>,
) -> Option<Admission> {
    let size = u64::from(transfer.entry.row.size);
    let below = enqueue::below(queue, cx);
    let checked = enqueue::check_size(size, limit)
        .and_then(|()| enqueue::check_sizes(queue, [size].into_iter(), below));
    let error = checked.and_then(|()| length::check(queue, 1, size)).err()?;
    let error = ForwardError::of_size(queue.path.clone(), &error);
    Some(Admission::Failed(match error {
        ForwardError::TooLarge { .. } => TransferFailure::Unfit(error),
        _ => TransferFailure::Full(error),
    }))
}

/// A message leaves the window, unless it is one of sessions: their window knows none.
fn take_out(queue: &mut Queue, subqueue: Subqueue, transfer: &Transfer, cx: &mut Context<'_>) {
    if !queue.sub(subqueue).by_session {
        queue.sub_mut(subqueue).take_available(transfer.number);
    }
    drop(cx.shared.bodies.take(transfer.entry.body));
}

/// A message goes on: it leaves this queue for good.
pub(crate) fn leave(
    queue: &mut Queue,
    subqueue: Subqueue,
    transfer: &Transfer,
    cx: &mut Context<'_>,
) {
    take_out(queue, subqueue, transfer, cx);
    let patch = transfer.body.patch.clone();
    let message = Message::available(subqueue.part(), transfer.number, &transfer.entry, patch);
    let patched = message.patch.is_some();
    queue.erase(&message, patched, cx);
}

/// A message comes from another queue.
pub(crate) fn arrive(
    queue: &mut Queue,
    from: Subqueue,
    source: &str,
    transfer: Transfer,
    cx: &mut Context<'_>,
) {
    let id = transfer.properties.id_hash();
    let number = arrive_as(queue, Subqueue::Main, from, source, transfer, None, cx);
    if let Some(id) = id.filter(|_| queue.settings.requires_duplicate_detection) {
        let at = Wall(queue.rows.head.last_enqueued_ms);
        let (rows, settings) = (&mut queue.rows, &queue.settings);
        queue
            .duplicates
            .remember(id, at, number, rows, settings, cx);
        queue.duplicates.trim_recent(cx);
    }
}

/// A dead letter comes that a router sends here.
pub(super) fn arrive_routed(queue: &mut Queue, transfer: Transfer, cx: &mut Context<'_>) {
    let main = Subqueue::Main;
    arrive_as(queue, main, main, "", transfer, None, cx);
}

/// A message without a session comes to a queue of sessions. (docs/spec/entities.md#14.4)
pub(crate) fn arrive_dead(
    queue: &mut Queue,
    from: Subqueue,
    source: &str,
    transfer: Transfer,
    cx: &mut Context<'_>,
) {
    let error = Some(ForwardError::SessionRequired);
    arrive_as(
        queue,
        Subqueue::DeadLetter,
        from,
        source,
        transfer,
        error,
        cx,
    );
}

/// A message that was sent via this queue cannot go on. (docs/spec/amqp.md#8.2)
pub(super) fn arrive_stuck(
    queue: &mut Queue,
    transfer: Transfer,
    error: ForwardError,
    cx: &mut Context<'_>,
) {
    let to = Subqueue::TransferDeadLetter;
    arrive_as(queue, to, Subqueue::Main, "", transfer, Some(error), cx);
}

fn arrive_as(
    queue: &mut Queue,
    subqueue: Subqueue,
    from: Subqueue,
    source: &str,
    mut transfer: Transfer,
    error: Option<ForwardError>,
    cx: &mut Context<'_>,
) -> SequenceNumber {
    assert!(
        !matches!(queue.kind, Kind::Subscription(_)),
        "only its topic writes to a subscription"
    );
    queue.note_access(cx);
    let priority = row::priority(&transfer.entry.row);
    let number = queue.rows.take_number(priority);
    let arrival = MessageEvent::Arrived {
        from: transfer.place(),
    };
    queue.record(number, || arrival, cx);
    let enqueued = queue.rows.take_enqueued_time(cx);
    let mut patch = transfer.body.patch.take().map(|patch| *patch);
    if from != Subqueue::Main {
        let patch = patch.get_or_insert_default();
        patch.set_source(source);
        note_death(patch, source, &transfer, cx.now.wall);
    }
    if let Some(error) = error {
        let why = (cx.shared.describe_forward_error)(&error);
        let old = patch.as_ref();
        let dead = Patch::with_reason(old, &why.reason, &why.description);
        queue.record_dead_letter(number, subqueue, &dead, cx);
        patch = Some(dead);
    }
    let mut row = enqueue::arriving_row(
        queue,
        &transfer.entry.row,
        transfer.number,
        number,
        enqueued,
    );
    row.flags = if transfer.sent_via {
        row.enqueued_number = 0;
        row::sent_via(&transfer.entry.row, patch.is_some())
    } else {
        row::moved_on(&transfer.entry.row, patch.is_some())
    };
    if let Some(patch) = &patch {
        queue.rows.put_patch(number, patch, cx);
    }
    let session = transfer.properties.session_id.as_ref();
    row.session_hash = queue.rows.session_hash(session);
    let body = Body {
        patch: patch.map(Box::new),
        distribution: None,
        ..transfer.body
    };
    enqueue::insert_with_body(queue, subqueue, session, number, row, body, cx);
    number
}

/// Whether a dead letter that cannot go on has come as far as it may, so that it does not wait for
/// ever. In the ordinary dead-letter queue, where setting `forward-failures` wants it, it is.
/// (docs/spec/entities.md#14.3)
pub(crate) fn is_at_its_end(
    place: SubqueueId,
    transfer: &Transfer,
    error: &ForwardError,
    cx: &Context<'_>,
) -> bool {
    place.subqueue == Subqueue::DeadLetter
        && matches!(error, ForwardError::TooManyHops { .. })
        && !row::is_stuck(&transfer.entry.row)
        && cx.shared.settings.forward_failures == ForwardFailures::Transfer
}

/// A message that cannot go on is dead-lettered here.
pub(crate) fn dead_letter(
    queue: &mut Queue,
    from: Subqueue,
    transfer: &Transfer,
    error: &ForwardError,
    cx: &mut Context<'_>,
) {
    let to = match cx.shared.settings.forward_failures {
        ForwardFailures::Transfer => Subqueue::TransferDeadLetter,
        ForwardFailures::DeadLetter => Subqueue::DeadLetter,
    };
    take_out(queue, from, transfer, cx);
    let why = (cx.shared.describe_forward_error)(error);
    let old = transfer.body.patch.as_deref();
    let patch = Patch::with_reason(old, &why.reason, &why.description);
    let mut message = Message::available(from.part(), transfer.number, &transfer.entry, None);
    message.row.flags |= row::STUCK;
    dead_letter::dead_letter_to(queue, to, &message, &patch, cx);
}

pub(crate) fn look_up_transfer(
    queue: &mut Queue,
    id: IdHash,
    place: SubqueueId,
    cx: &mut Context<'_>,
) -> ReadId {
    let purpose = Purpose::TransferLookup(place, queue.id);
    queue.duplicates.look_up_one(id, purpose, &queue.rows, cx)
}

//! Enqueue: messages enter a queue, all or none.
//!
//! Each gets the next number and its deadline. Enqueued time never decreases within an entity,
//! whatever the clock does. Messages are refused before anything is written when the entity is
//! disabled, the disk is nearly full, the entity is full, or a message is too large.

use std::sync::Arc;

use bytes::Bytes;
use store::{BodyPointer, MessageRow, SequenceNumber, Write};

use crate::api::error::SendError;
use crate::api::id::{RequestId, Subqueue};
use crate::api::incoming::Incoming;
use crate::api::lineage::MessageEvent;
use crate::api::output::Output;
use crate::api::publication::Publication;
use crate::api::time::Wall;
use crate::context::Context;
use crate::entities::definition;
use crate::message::bodies::Body;
use crate::message::entry::Entry;
use crate::message::id::IdHash;
use crate::message::row;
use crate::queue::Queue;
use crate::queue::kind::Kind;
use crate::receive::run::run;
use crate::send::duplicates::known::Known;
use crate::send::timetable::Due;
use crate::send::{length, refused};

/// The limit of a message where neither the queue nor the dialect sets one: what a row can count.
pub(crate) const MAX_MESSAGE_SIZE: u64 = u32::MAX as u64;
/// So much larger than its queue allows a message may be: what its dialect adds to it when it comes
/// in, which its sender knows nothing of. (docs/spec/amqp.md#4.2)
pub const MAX_GROWTH: u64 = 64;
/// The moment of a message without any time to live where it is forwarded.
const PASSING_MS: u64 = 1_000;

/// Answers a send that was refused; one that was accepted has been answered.
pub(crate) fn answer_refusal(
    request: RequestId,
    sent: Result<(), SendError>,
    cx: &mut Context<'_>,
) {
    if let Err(error) = sent {
        cx.emit(Output::Sent {
            request,
            result: Err(error),
            duplicates: Vec::new(),
        });
    }
}

/// Enqueues `messages` but those that are known to be duplicates, and answers.
pub(crate) fn send(
    queue: &mut Queue,
    request: RequestId,
    messages: Vec<Incoming>,
    known: &Known,
    cx: &mut Context<'_>,
) -> Result<(), SendError> {
    if let Err(error) = check_room(queue, &messages, 0, cx) {
        if refused::becomes_dead_letter(queue, &error, cx) {
            let fresh = messages.iter().enumerate().filter(|(index, _)| {
                let id = known.id(*index);
                let before = id.and_then(|id| {
                    let duplicates = &mut queue.duplicates;
                    duplicates.duplicate_of(id, known, &queue.settings, cx)
                });
                before.is_none()
            });
            let fresh: Vec<_> = fresh.map(|(_, message)| message).collect();
            refused::dead_letter(queue, &fresh, cx);
            run(queue, cx);
        }
        return Err(error);
    }
    let (first, duplicates) = accept(queue, messages, known, None, cx);
    cx.emit(Output::Sent {
        request,
        result: Ok(first),
        duplicates,
    });
    run(queue, cx);
    Ok(())
}

/// Enqueues `messages` but those that are known to be duplicates, without a word. Returns the
/// number of the first, or the arrival that comes next where that one is a duplicate, and which
/// were dropped. Scheduled messages have the numbers from `promised` on, if there are such.
pub(crate) fn accept(
    queue: &mut Queue,
    messages: Vec<Incoming>,
    known: &Known,
    promised: Option<SequenceNumber>,
    cx: &mut Context<'_>,
) -> (SequenceNumber, Vec<(usize, SequenceNumber)>) {
    assert!(
        !matches!(queue.kind, Kind::Subscription(_)) && queue.settings.status.allows_send(),
        "the caller has seen that there is room"
    );
    queue.note_access(cx);
    let mut first = queue.rows.next_arrival();
    let enqueued = queue.rows.take_enqueued_time(cx);
    let mut duplicates = Vec::new();
    for (index, message) in messages.into_iter().enumerate() {
        let id = known.id(index);
        if let Some(before) = id.and_then(|id| {
            queue
                .duplicates
                .duplicate_of(id, known, &queue.settings, cx)
        }) {
            duplicates.push((index, before));
            queue.record(before, || MessageEvent::DuplicateDropped, cx);
            continue;
        }
        let promised = promised.map(|first| plus(first, index));
        let number = enqueue(queue, message, enqueued, promised, cx);
        if index == 0 {
            first = number;
        }
        if let Some(id) = id {
            let (rows, settings) = (&mut queue.rows, &queue.settings);
            queue
                .duplicates
                .remember(id, Wall(enqueued), number, rows, settings, cx);
        }
    }
    (first, duplicates)
}

/// Whether there is room for `messages` besides what is there and `held` bytes that are
/// promised to others.
pub(crate) fn check_room(
    queue: &Queue,
    messages: &[Incoming],
    held: u64,
    cx: &Context<'_>,
) -> Result<(), SendError> {
    if matches!(queue.kind, Kind::Subscription(_)) {
        return Err(SendError::Subscription);
    }
    if !queue.settings.status.allows_send() {
        return Err(SendError::Disabled);
    }
    if cx.shared.nearly_full && !queue.id.is_volatile() {
        return Err(SendError::DiskNearlyFull);
    }
    if queue.sessions.is_some() && messages.iter().any(|m| m.session_id.is_none()) {
        return Err(SendError::SessionRequired);
    }
    let sizes = messages.iter().map(|message| message.payload.len() as u64);
    check_memory(queue, sizes.clone(), held, cx)?;
    if !queue.id.is_volatile() {
        let more = sizes.clone().fold(held, u64::saturating_add);
        cx.shared.namespaces.check(queue.namespace, more)?;
    }
    check_sizes(queue, sizes, held.saturating_add(below(queue, cx)))?;
    // Last, since what only the length refuses may become a dead letter.
    let (count, bytes) = length::arriving(messages, cx.now.wall);
    length::check(queue, count, bytes)
}

/// Volatile entities share an amount of memory.
fn check_memory(
    queue: &Queue,
    sizes: impl Iterator<Item = u64>,
    held: u64,
    cx: &Context<'_>,
) -> Result<(), SendError> {
    let (size, limit) = (cx.shared.volatile.bytes(), cx.shared.settings.node_bytes);
    let sum = sizes.fold(held, u64::saturating_add);
    if queue.id.is_volatile() && size.saturating_add(sum) > limit {
        return Err(SendError::QuotaExceeded { size, limit });
    }
    Ok(())
}

/// Bytes that count towards its size and lie elsewhere: a topic's in its subscriptions.
pub(crate) fn below(queue: &Queue, cx: &Context<'_>) -> u64 {
    match queue.kind {
        Kind::Topic(_) => cx.shared.topics.bytes_below(queue.id),
        Kind::Queue | Kind::Subscription(_) | Kind::Transfer { .. } => 0,
    }
}

/// Whether messages of these sizes fit, each and all of them together with `held` bytes more.
pub(crate) fn check_sizes(
    queue: &Queue,
    sizes: impl Iterator<Item = u64>,
    held: u64,
) -> Result<(), SendError> {
    let limit = queue.settings.max_message_size.unwrap_or(MAX_MESSAGE_SIZE);
    let mut sum = 0_u64;
    for size in sizes {
        check_size(size, limit)?;
        sum = sum.saturating_add(size);
    }
    let size = queue.bytes().saturating_add(held);
    if !queue.settings.has_room(size, sum) {
        let limit = queue.settings.max_size;
        return Err(SendError::QuotaExceeded { size, limit });
    }
    Ok(())
}

/// Whether a message of `size` fits where `limit` holds.
pub(crate) fn check_size(size: u64, limit: u64) -> Result<(), SendError> {
    let most = limit.saturating_add(MAX_GROWTH).min(MAX_MESSAGE_SIZE);
    match size > most {
        true => Err(SendError::TooLarge { size, limit }),
        false => Ok(()),
    }
}

/// Whether a message is to become available later.
pub(crate) fn is_scheduled(message: &Incoming, cx: &Context<'_>) -> bool {
    message.scheduled.is_some_and(|due| due > cx.now.wall)
}

/// Enqueues a message that a router sends here, which is no duplicate and for which there is room.
/// With `shared` its body is stored there already, for this queue and others.
pub(crate) fn accept_routed(
    queue: &mut Queue,
    publication: &Publication,
    shared: Option<&(BodyPointer, Body)>,
    cx: &mut Context<'_>,
) {
    let message = &publication.message;
    queue.note_access(cx);
    let enqueued = queue.rows.take_enqueued_time(cx);
    let number = match shared {
        Some((pointer, body)) => enqueue_shared(queue, message, *pointer, body, enqueued, cx),
        None => enqueue(queue, message.clone(), enqueued, None, cx),
    };
    let event = || MessageEvent::Routed {
        router: Bytes::from(publication.router.clone()),
        key: publication.keys.first().cloned().unwrap_or_default().into(),
    };
    queue.record(number, event, cx);
    let detects = queue.settings.requires_duplicate_detection;
    if let Some(id) = IdHash::of(message).filter(|_| detects) {
        let (rows, settings) = (&mut queue.rows, &queue.settings);
        queue
            .duplicates
            .remember(id, Wall(enqueued), number, rows, settings, cx);
        queue.duplicates.trim_recent(cx);
    }
}

fn enqueue_shared(
    queue: &mut Queue,
    message: &Incoming,
    pointer: BodyPointer,
    body: &Body,
    enqueued_ms: u64,
    cx: &mut Context<'_>,
) -> SequenceNumber {
    definition::note_shared_bodies(queue, cx);
    let number = queue.rows.take_number(message.priority);
    queue.record_acceptance(number, message, cx);
    let row = row_of(queue, message, number, enqueued_ms);
    let row = MessageRow {
        flags: row.flags | row::SHARED,
        body: pointer,
        ..row
    };
    let session = message.session_id.as_ref();
    insert_message(
        queue,
        Subqueue::Main,
        session,
        number,
        row,
        body.clone(),
        cx,
    );
    number
}

fn enqueue(
    queue: &mut Queue,
    message: Incoming,
    enqueued_ms: u64,
    promised: Option<SequenceNumber>,
    cx: &mut Context<'_>,
) -> SequenceNumber {
    debug_assert!(
        queue.sessions.is_none() || message.session_id.is_some(),
        "a message without a session is refused before"
    );
    if let Some(due) = message.scheduled.filter(|due| *due > cx.now.wall) {
        let number = promised.unwrap_or_else(|| queue.rows.take_arrival());
        queue.record_acceptance(number, &message, cx);
        let mut row = MessageRow {
            expires_ms: u64::MAX,
            ..row_of(queue, &message, number, due.0)
        };
        if cx.shared.lent.covers(row.body) {
            // The number was promised before a snapshot was taken, to which the bodies belong that
            // have a number from then.
            row.body.number = queue.rows.take_arrival();
        }
        let due = Due { at: due.0, number };
        queue.schedule.put(message, due, row, &mut queue.rows, cx);
        return number;
    }
    let number = queue.rows.take_number(message.priority);
    queue.record_acceptance(number, &message, cx);
    let row = row_of(queue, &message, number, enqueued_ms);
    // The rules of the moment at which it is accepted hold for it.
    let distribution = match &queue.kind {
        Kind::Topic(topic) => message
            .distribution
            .filter(|said| said.generation == topic.rules.generation()),
        _ => None,
    };
    let body = Body {
        distribution: distribution.map(Arc::from),
        ..Body::received(message.payload)
    };
    let session = message.session_id.as_ref();
    insert_with_body(queue, Subqueue::Main, session, number, row, body, cx);
    number
}

/// A message with its body enters a subqueue for the first time.
pub(crate) fn insert_with_body(
    queue: &mut Queue,
    subqueue: Subqueue,
    session: Option<&Bytes>,
    number: SequenceNumber,
    row: MessageRow,
    body: Body,
    cx: &mut Context<'_>,
) {
    cx.write(Write::PutBody {
        pointer: row.body,
        body: body.payload.clone(),
    });
    insert_message(queue, subqueue, session, number, row, body, cx);
}

/// As [`insert_with_body`], for a body that the store has.
pub(crate) fn insert_message(
    queue: &mut Queue,
    subqueue: Subqueue,
    session: Option<&Bytes>,
    number: SequenceNumber,
    row: MessageRow,
    body: Body,
    cx: &mut Context<'_>,
) {
    if subqueue == Subqueue::Main {
        queue.note_deadline(number, &row, cx);
    }
    let mut entry = Entry::written(row, 0, cx.commit());
    if keeps_next(queue, subqueue, session, cx) {
        let passing = queue.forwards(subqueue);
        entry.body = cx.shared.bodies.put_arrived(queue.id, body, passing);
    }
    match subqueue {
        Subqueue::Main => queue.enter_active(session, number, entry, cx),
        _ => queue.enter(subqueue, number, entry, cx),
    }
}

/// The row of a message that is enqueued at this time under this number.
pub(crate) fn row_of(
    queue: &Queue,
    message: &Incoming,
    number: SequenceNumber,
    enqueued_ms: u64,
) -> MessageRow {
    let default = queue.settings.default_message_time_to_live;
    let ttl_ms = message.ttl_ms.unwrap_or(u64::MAX).min(default);
    MessageRow {
        enqueued_ms,
        ttl_ms,
        expires_ms: deadline(queue, enqueued_ms, ttl_ms),
        size: u32::try_from(message.payload.len()).expect("sizes were checked"),
        flags: row::sent_with(message.priority),
        session_hash: queue.rows.session_hash(message.session_id.as_ref()),
        enqueued_number: 0,
        body: queue.rows.pointer(number),
    }
}

/// When a message that is enqueued at this time expires. One that has no time at all gets a moment
/// where it only passes through, or it could never reach a receiver that waits for it.
pub(crate) fn deadline(queue: &Queue, enqueued_ms: u64, ttl_ms: u64) -> u64 {
    let passes = ttl_ms == 0 && queue.forwards(Subqueue::Main);
    let ttl_ms = if passes { PASSING_MS } else { ttl_ms };
    enqueued_ms.saturating_add(ttl_ms)
}

/// The row of a message that had `before` and the number `old` in the queue it comes from.
pub(crate) fn arriving_row(
    queue: &Queue,
    before: &MessageRow,
    old: SequenceNumber,
    number: SequenceNumber,
    enqueued_ms: u64,
) -> MessageRow {
    let default = queue.settings.default_message_time_to_live;
    let ttl_ms = before.ttl_ms.min(default);
    let first = match before.enqueued_number {
        0 => old.0,
        first => first,
    };
    MessageRow {
        enqueued_ms,
        ttl_ms,
        expires_ms: deadline(queue, enqueued_ms, ttl_ms),
        enqueued_number: first,
        body: queue.rows.pointer(number),
        ..*before
    }
}

/// Whether the window will know the next message, so that its body is worth keeping.
fn keeps_next(
    queue: &Queue,
    subqueue: Subqueue,
    session: Option<&Bytes>,
    cx: &Context<'_>,
) -> bool {
    let sub = queue.sub(subqueue);
    if let Some(sessions) = queue.sessions.as_ref().filter(|_| sub.by_session) {
        return session.is_some_and(|session| sessions.keeps_next_of(session));
    }
    sub.window.len() < cx.shared.settings.window && sub.beyond(&queue.rows) == 0
}

fn plus(number: SequenceNumber, count: usize) -> SequenceNumber {
    SequenceNumber(number.0.saturating_add(count as u64))
}

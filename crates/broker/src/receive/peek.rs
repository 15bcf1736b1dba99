//! Peek: browses a subqueue from a number on, without taking anything.
//!
//! Shows what is scheduled, available, locked or deferred, or one of these states alone, in order
//! of number. The scheduled ones come first, what the window knows is asked for by number, the rest
//! by range, and the deferred ones last: a message only ever moves that way, so none is missed
//! between two reads.

use std::collections::BTreeSet;

use store::{EntityId, Part, Query, SequenceNumber, StoredMessage};

use crate::api::error::RequestError;
use crate::api::id::{ReadId, RequestId, Subqueue, SubqueueId};
use crate::api::output::{Browsed, LockTime, MessageState, Output};
use crate::api::time::Mono;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::stored::{ReadRows, shown_of, state_of};
use crate::queue::Queue;
use crate::receive::page::Page;
use crate::receive::pending_peek::{PendingPeek, Stage};
use crate::sessions::Sessions;
use crate::subqueue::SubqueueState;

/// Most messages of one answer. (docs/spec/entities.md#13)
pub(crate) const MOST: usize = 250;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub place: SubqueueId,
    /// Whatever it is, if none is named.
    pub state: Option<MessageState>,
    pub from: SequenceNumber,
    pub count: usize,
    pub max_bytes: usize,
}

/// Starts to browse.
pub(crate) fn peek(
    directory: &mut Directory,
    request: RequestId,
    wanted: Wanted,
    cx: &mut Context<'_>,
) {
    let queue = match directory.receivable(wanted.place.entity) {
        Ok(queue) => queue,
        Err(error) => return refuse(request, error, cx),
    };
    let peek = PendingPeek {
        place: wanted.place,
        state: wanted.state,
        from: wanted.from,
        page: Page::new(
            request,
            wanted.count.min(MOST),
            wanted.max_bytes,
            queue.rows.end(),
        ),
        stage: Stage::Scheduled,
        cursor: wanted.from,
        bytes: 0,
        scheduled: Vec::new(),
    };
    peek_on(queue, peek, cx);
}

fn refuse(request: RequestId, error: RequestError, cx: &mut Context<'_>) {
    let result = Err(error);
    cx.emit(Output::Browsed { request, result });
}

/// Asks for what comes next, or answers.
fn peek_on(queue: &mut Queue, mut peek: PendingPeek, cx: &mut Context<'_>) {
    if peek.stage == Stage::Scheduled {
        let scheduled = queue.rows.head.part(Part::Scheduled);
        let from = peek.from.max(SequenceNumber(scheduled.resume));
        let main = peek.place.subqueue == Subqueue::Main;
        let wanted = main && peek.wants(MessageState::Scheduled);
        if wanted && scheduled.count > 0 && from < peek.page.until && peek.page.count > 0 {
            peek.cursor = from;
            let read = ask_range(peek, Part::Scheduled, cx);
            return queue.rows.journal.begin(read);
        }
        peek.stage = Stage::Known;
    }
    if !peek.wants(MessageState::Active) {
        peek.stage = Stage::Deferred;
    }
    if peek.stage == Stage::Known {
        let numbers = peek_known(queue, &mut peek);
        if !numbers.is_empty() {
            return ask_points(queue, peek, numbers, cx);
        }
        peek.stage = Stage::Disk;
    }
    let subqueue = peek.place.subqueue;
    if peek.stage == Stage::Disk {
        peek.stage = Stage::Deferred;
        if queue.sub(subqueue).beyond(&queue.rows) > 0
            && peek.has_room()
            && peek.cursor < peek.page.until
        {
            peek.stage = Stage::Disk;
            ask_range(peek, subqueue.part(), cx);
            return;
        }
    }
    let deferred = queue.rows.head.part(subqueue.deferred_part());
    let from = peek.from.max(SequenceNumber(deferred.resume));
    let wanted = peek.wants(MessageState::Deferred);
    if wanted && deferred.count > 0 && from < peek.page.until && peek.page.count > 0 {
        peek.cursor = from;
        ask_range(peek, subqueue.deferred_part(), cx);
        return;
    }
    answer_peek(queue, peek, cx);
}

/// The next numbers that the window or a lock knows. The cursor moves behind them.
fn peek_known(queue: &Queue, peek: &mut PendingPeek) -> Vec<SequenceNumber> {
    let sub = queue.sub(peek.place.subqueue);
    let end = known_until(queue, peek.place.subqueue);
    let room = peek.page.count.saturating_sub(peek.page.found.len());
    let locks = sub.locks.range(peek.cursor..);
    let locked = locks
        .filter(|(_, lock)| lock.origin != crate::subqueue::lock::Origin::Deferred)
        .map(|(number, lock)| (number, Some(lock.row.size)));
    let mut known: Vec<_> = sub.window.known_from(peek.cursor).take(room).collect();
    known.extend(locked.take(room));
    known.retain(|(number, _)| *number < end && *number < peek.page.until);
    known.sort_unstable();
    known.truncate(room);
    let mut numbers = Vec::new();
    let mut bytes = peek.bytes;
    for (number, size) in known {
        if bytes >= peek.page.max_bytes && bytes > 0 {
            break;
        }
        // One whose size is not known is asked for alone.
        let size = size.map_or(peek.page.max_bytes, |size| size as usize);
        bytes = bytes.saturating_add(size.max(1));
        numbers.push(number);
    }
    peek.cursor = match numbers.last() {
        Some(last) => last.next(),
        None if peek.has_room() => peek.cursor.max(end),
        None => peek.cursor,
    };
    numbers
}

/// Everything below this number is in the window or locked. Locks may know messages behind the
/// window's end, which has gone back since, when every message on disk is known.
fn known_until(queue: &Queue, subqueue: Subqueue) -> SequenceNumber {
    match queue.sub(subqueue).beyond(&queue.rows) {
        0 => SequenceNumber::MAX,
        _ => queue.sub(subqueue).window.end(),
    }
}

fn ask_points(
    queue: &Queue,
    peek: PendingPeek,
    numbers: Vec<SequenceNumber>,
    cx: &mut Context<'_>,
) {
    let query = Query::Points {
        entity: queue.id,
        part: peek.place.subqueue.part(),
        numbers,
        bodies: true,
        max_bytes: usize::MAX,
    };
    cx.ask(query, Purpose::Peek(Box::new(peek)));
}

fn ask_range(peek: PendingPeek, part: Part, cx: &mut Context<'_>) -> ReadId {
    let active = peek.stage == Stage::Disk;
    let query = Query::Range {
        entity: peek.place.entity,
        part,
        from: peek.cursor,
        until: peek.page.until,
        limit: peek.page.count - if active { peek.page.found.len() } else { 0 },
        bodies: true,
        max_bytes: peek.page.max_bytes
            - if active {
                peek.bytes.min(peek.page.max_bytes)
            } else {
                0
            },
    };
    cx.ask(query, Purpose::Peek(Box::new(peek)))
}

/// A part of it was read.
pub(crate) fn loaded(
    queue: &mut Queue,
    read: ReadId,
    mut peek: PendingPeek,
    rows: ReadRows,
    cx: &mut Context<'_>,
) {
    let came = queue.rows.journal.lowest_scheduled();
    // The journal follows the read of scheduled messages only.
    let touched = match peek.stage {
        Stage::Scheduled => queue.rows.journal.finish(read),
        Stage::Known | Stage::Disk | Stage::Deferred => BTreeSet::new(),
    };
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => {
            return cx.emit(
                peek.page
                    .refusal(RequestError::Unreadable(error.to_string())),
            );
        }
    };
    match peek.stage {
        Stage::Scheduled => {
            note_first_scheduled(queue, &peek, &rows, came);
            // What was activated meanwhile is to be found where it is now.
            peek.page.until = queue.rows.end();
            let cut = peek.take_scheduled(rows, &touched);
            if cut && peek.scheduled.is_empty() && !peek.wants(MessageState::Active) {
                // All that was read has gone on; those behind it have not been looked at.
                peek.stage = Stage::Scheduled;
                peek.from = std::mem::replace(&mut peek.page.until, queue.rows.end());
            }
            peek_on(queue, peek, cx);
        }
        Stage::Known => {
            peek.take(rows);
            peek_on(queue, peek, cx);
        }
        Stage::Disk => {
            peek.take(rows);
            peek.stage = Stage::Deferred;
            peek_on(queue, peek, cx);
        }
        Stage::Deferred => {
            peek.page.merge(rows);
            answer_peek(queue, peek, cx);
        }
    }
}

/// Shows what was found.
fn answer_peek(queue: &Queue, peek: PendingPeek, cx: &mut Context<'_>) {
    let sub = queue.sub(peek.place.subqueue);
    let sessions = queue.sessions.as_deref();
    let browse = |stored: &StoredMessage| peeked(queue.id, sub, sessions, stored, cx.now.mono);
    cx.emit(peek.into_page().answer(browse));
}

/// What was read from the start of the scheduled part, and what came to it meanwhile, tell where it
/// starts by now. So the next peek does not walk over what has gone.
fn note_first_scheduled(
    queue: &mut Queue,
    peek: &PendingPeek,
    rows: &[StoredMessage],
    came: Option<SequenceNumber>,
) {
    let part = queue.rows.head.part_mut(Part::Scheduled);
    if peek.cursor.0 == part.resume {
        let first = rows.first().map_or(peek.page.until, |first| first.number);
        part.resume = came.map_or(first, |came| first.min(came)).0;
    }
}

/// A stored message as a peek shows it: with its lock, if it is locked.
pub(crate) fn peeked(
    entity: EntityId,
    sub: &SubqueueState,
    sessions: Option<&Sessions>,
    stored: &StoredMessage,
    now: Mono,
) -> Option<Browsed> {
    let mut shown = shown_of(entity, stored, state_of(stored.part))?;
    shown.lock = lock_time(sub, sessions, stored.number, now);
    Some(shown)
}

/// How long a message stays locked, if it is.
fn lock_time(
    sub: &SubqueueState,
    sessions: Option<&Sessions>,
    number: SequenceNumber,
    now: Mono,
) -> Option<LockTime> {
    let lock = sub.locks.get(number)?;
    lock.holder?;
    match lock.session.zip(sessions) {
        Some((session, sessions)) => {
            let hold = sessions.existing_hold(session);
            let live = hold.is_live(now);
            live.then(|| LockTime::WithSession(hold.left_ms(now)))
        }
        None if lock.ends_with_receiver => Some(LockTime::WithReceiver),
        None => {
            let left = lock.until.0.checked_sub(now.0).filter(|left| *left > 0);
            left.map(LockTime::Own)
        }
    }
}

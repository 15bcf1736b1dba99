//! Schedule peek: browses scheduled messages in the order in which they are due.
//!
//! The entries of the schedule tell which messages come next and how large they are; then these are
//! read by their numbers. One that is activated or cancelled meanwhile is left out. What cannot be
//! read is passed over: entries by their place, a message once those that were read with it are
//! read one at a time.

use store::{Entry, Found, Index, Part, Query, SequenceNumber, StoreError};

use crate::api::error::RequestError;
use crate::api::id::ReadId;
use crate::api::output::{Browsed, MessageState, Output};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::message::stored::{ReadRows, shown_of};
use crate::queue::Queue;
use crate::receive::peek::MOST;
use crate::receive::pending_schedule_peek::SchedulePeek;
use crate::send::schedule::{due_at, key_of, size_of};
use crate::send::timetable::Due;

/// Starts to browse.
pub(crate) fn peek(directory: &mut Directory, mut peek: SchedulePeek, cx: &mut Context<'_>) {
    peek.count = peek.count.min(MOST);
    match directory.receivable(peek.entity) {
        Ok(queue) => go_on(queue, peek, cx),
        Err(error) => cx.emit(peek.refusal(error)),
    }
}

/// Asks for what comes next, or answers.
fn go_on(queue: &mut Queue, mut peek: SchedulePeek, cx: &mut Context<'_>) {
    if !peek.numbers.is_empty() {
        return ask_messages(queue, peek, cx);
    }
    let is_done = !peek.found.is_empty() || peek.count == 0 || peek.from >= Due::MAX;
    if is_done || queue.rows.count(Part::Scheduled) == 0 {
        return answer(queue, &peek, cx);
    }
    peek.alone = false;
    let (at, number) = queue.schedule.start(&queue.rows);
    peek.from = peek.from.max(Due { at, number });
    let query = Query::Entries {
        entity: queue.id,
        index: Index::Schedule,
        from: key_of(peek.from),
        until: key_of(Due::MAX),
        limit: peek.count.min(peek.intact.unwrap_or(MOST)),
        max_bytes: usize::MAX,
    };
    cx.ask(query, Purpose::SchedulePeek(Box::new(peek)));
}

fn ask_messages(queue: &mut Queue, mut peek: SchedulePeek, cx: &mut Context<'_>) {
    let some = if peek.alone { 1 } else { peek.numbers.len() };
    let numbers: Vec<_> = peek.numbers.drain(..some).collect();
    peek.asked = Some(numbers.clone());
    let query = Query::Points {
        entity: queue.id,
        part: Part::Scheduled,
        numbers,
        bodies: true,
        max_bytes: usize::MAX,
    };
    let read = cx.ask(query, Purpose::SchedulePeek(Box::new(peek)));
    queue.rows.journal.begin(read);
}

/// A part of it was read.
pub(crate) fn loaded(
    queue: &mut Queue,
    read: ReadId,
    mut peek: SchedulePeek,
    found: Result<Found, StoreError>,
    cx: &mut Context<'_>,
) {
    let taken = match peek.asked.take() {
        Some(asked) => {
            let rows = found.and_then(Found::into_messages);
            take_messages(queue, read, &mut peek, asked, rows)
        }
        None => take_entries(&mut peek, found.and_then(Found::into_entries)),
    };
    match taken {
        Ok(()) => go_on(queue, peek, cx),
        Err(error) => cx.emit(peek.refusal(RequestError::Unreadable(error.to_string()))),
    }
}

fn take_entries(
    peek: &mut SchedulePeek,
    found: Result<Vec<Entry>, StoreError>,
) -> Result<(), StoreError> {
    peek.intact = None;
    match found {
        Ok(entries) if entries.is_empty() => peek.from = Due::MAX,
        Ok(entries) => plan(peek, &entries),
        Err(StoreError::UnreadableEntries {
            intact: before @ 1..,
            ..
        }) => peek.intact = Some(before),
        Err(StoreError::UnreadableEntries { until, .. }) => {
            let until = due_at(&until).unwrap_or(Due::MAX);
            peek.from = peek.from.next().max(until);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Takes the numbers of the entries for which there is room, and goes on behind them.
fn plan(peek: &mut SchedulePeek, entries: &[Entry]) {
    let mut bytes = 0_usize;
    for entry in entries {
        if bytes >= peek.max_bytes && bytes > 0 {
            return;
        }
        // A key of any other kind than a schedule's cannot be in the range that was read.
        peek.from = due_at(&entry.key).map_or(Due::MAX, Due::next);
        let Some(due) = due_at(&entry.key) else {
            return;
        };
        if let Some(size) = size_of(entry) {
            bytes = bytes.saturating_add((size as usize).max(1));
            peek.numbers.push_back(due.number);
        }
    }
}

fn take_messages(
    queue: &mut Queue,
    read: ReadId,
    peek: &mut SchedulePeek,
    asked: Vec<SequenceNumber>,
    rows: ReadRows,
) -> Result<(), StoreError> {
    let touched = queue.rows.journal.finish(read);
    match rows {
        Ok(rows) => {
            let rows = rows.into_iter();
            peek.found
                .extend(rows.filter(|stored| !touched.contains(&stored.number)));
            Ok(())
        }
        Err(error) if error.is_damage() => {
            if asked.len() > 1 {
                peek.alone = true;
                peek.numbers = asked.into_iter().chain(peek.numbers.drain(..)).collect();
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Shows what was found, in the order of the schedule.
fn answer(queue: &Queue, peek: &SchedulePeek, cx: &mut Context<'_>) {
    let mut found: Vec<_> = peek.found.iter().collect();
    found.sort_unstable_by_key(|stored| (stored.row.enqueued_ms, stored.number));
    let shown = found.into_iter();
    let shown = shown.filter_map(|stored| shown_of(queue.id, stored, MessageState::Scheduled));
    let (request, result) = (peek.request, Ok(shown.collect::<Vec<Browsed>>()));
    cx.emit(Output::Browsed { request, result });
}

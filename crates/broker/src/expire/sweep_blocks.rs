//! Sweep of blocks: looks through blocks of 1,024 numbers for messages past their deadline.
//!
//! A block that is all in the window is looked through there; any other is read, in pieces that fit
//! a turn's budget. Rows are taken for what they are: messages that were locked, removed or
//! unlocked since the read was asked for are left to the operation that did so. Locked messages are
//! left to the end of their lock; deferred ones stand elsewhere and never expire.
//! (docs/spec/entities.md#7.3)

use std::collections::BTreeSet;

use store::record::EXPIRY_BLOCK;
use store::{CommitId, Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::{ReadId, Subqueue};
use crate::context::read::Purpose;
use crate::context::{Context, RETRY_MS};
use crate::expire;
use crate::expire::index::bounds_of;
use crate::expire::sweep::Sweep;
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::stored::{ReadRows, body_of, entry_of};
use crate::queue::Queue;

/// Most messages, and bytes of them, whose patches are read at once.
const PATCHES: usize = 64;
const PATCH_BYTES: usize = 1 << 20;

/// Looks through what is due, as far as the budget goes.
pub(crate) fn sweep(queue: &mut Queue, cx: &mut Context<'_>) {
    while cx.shared.work_left > 0 && queue.may_expire(cx) {
        let sweep = match queue.sweep.take() {
            Some(sweep) if sweep.is_waiting() => {
                queue.sweep = Some(sweep);
                return;
            }
            Some(sweep) => sweep,
            None => match queue.expiry.start(cx.now.wall.0) {
                Some(block) => Sweep::new(block),
                None => return,
            },
        };
        sweep_piece(queue, sweep, cx);
    }
}

fn sweep_piece(queue: &mut Queue, mut sweep: Sweep, cx: &mut Context<'_>) {
    let window = &queue.sub(Subqueue::Main).window;
    if sweep.cursor >= sweep.end() {
        finish_sweep(queue, &sweep, cx);
    } else if window.covers(sweep.end()) {
        skip_unused(queue, sweep.block);
        sweep_window(queue, &mut sweep, cx);
        go_on(queue, sweep, cx);
    } else {
        sweep_disk(queue, sweep, cx);
    }
}

fn finish_sweep(queue: &mut Queue, sweep: &Sweep, cx: &mut Context<'_>) {
    let found = sweep.outcome(cx.now.wall);
    if let Some(write) = queue.expiry.finish(queue.id, sweep.block, found) {
        cx.write(write);
    }
}

/// After a piece: reads the patches that are needed, if any.
fn go_on(queue: &mut Queue, mut sweep: Sweep, cx: &mut Context<'_>) {
    let numbers = sweep.next_unpatched();
    if !numbers.is_empty() {
        let query = Query::Points {
            entity: queue.id,
            part: Subqueue::Main.part(),
            numbers: numbers.clone(),
            bodies: true,
            max_bytes: usize::MAX,
        };
        let read = cx.ask(query, Purpose::SweepPatches(queue.id, numbers));
        queue.rows.journal.begin(read);
        sweep.waiting = Some(read);
    }
    queue.sweep = Some(sweep);
}

fn sweep_window(queue: &mut Queue, sweep: &mut Sweep, cx: &mut Context<'_>) {
    let end = sweep.end();
    sweep.look_at_locks(queue.sub(Subqueue::Main), end, cx);
    while sweep.cursor < sweep.end() && cx.take_work() {
        let window = &queue.sub(Subqueue::Main).window;
        let next = window.range(sweep.cursor..sweep.end()).next();
        let Some((number, entry)) = next else {
            sweep.cursor = sweep.end();
            return;
        };
        let entry = *entry;
        if !sweep_available(queue, sweep, number, &entry, cx) {
            return;
        }
        sweep.cursor = number.next();
    }
}

/// Nothing is to be rechecked between a block of the window and the next message.
fn skip_unused(queue: &mut Queue, block: u64) {
    let Some(reach) = queue.expiry.recheck_behind(block) else {
        return;
    };
    let (main, (_, end)) = (queue.sub(Subqueue::Main), bounds_of(block));
    let available = main.window.range(end..reach).next();
    let locked = main.locks.range(end..reach).next();
    let next = available.map_or(main.window.end(), |(number, _)| number);
    let next = locked.map_or(next, |(number, _)| next.min(number));
    queue.expiry.skip_to(next);
}

/// Deals with one available message. Returns whether there is room for more.
fn sweep_available(
    queue: &mut Queue,
    sweep: &mut Sweep,
    number: SequenceNumber,
    entry: &Entry,
    cx: &mut Context<'_>,
) -> bool {
    let main = queue.sub(Subqueue::Main);
    if !main.is_expired(number, &entry.row, cx.now.wall) {
        sweep.keep(main.ceilings.expires_ms(number, &entry.row));
    } else if expire::can_expire_at_once(queue, entry, cx) {
        expire::expire_available(queue, number, entry, cx);
    } else if sweep.unpatched.len() < PATCHES && sweep.unpatched_bytes < PATCH_BYTES {
        sweep.unpatched.push(number);
        sweep.unpatched_bytes += entry.row.size as usize;
    } else {
        return false;
    }
    true
}

fn sweep_disk(queue: &mut Queue, mut sweep: Sweep, cx: &mut Context<'_>) {
    let limit = limit_of(&sweep, cx);
    // Levels of priority lie so far apart that most blocks have nothing.
    sweep.reach = queue.expiry.recheck_behind(sweep.block);
    let query = Query::Range {
        entity: queue.id,
        part: Subqueue::Main.part(),
        from: sweep.cursor,
        until: sweep.reach.unwrap_or(sweep.end()),
        limit,
        bodies: false,
        max_bytes: 0,
    };
    cx.take_work();
    let read = cx.ask(query, Purpose::Sweep(queue.id));
    queue.rows.journal.begin(read);
    sweep.waiting = Some(read);
    queue.sweep = Some(sweep);
}

/// A piece of the block was read.
pub(crate) fn loaded(queue: &mut Queue, read: ReadId, rows: ReadRows, cx: &mut Context<'_>) {
    let touched = queue.rows.journal.finish(read);
    let mut sweep = waiting_sweep(queue, read);
    match rows {
        Ok(rows) if queue.may_expire(cx) => {
            sweep_rows(queue, &mut sweep, &rows, &touched, cx);
            go_on(queue, sweep, cx);
        }
        Ok(_) => queue.expiry.postpone(sweep.block, cx.now.wall.0),
        Err(StoreError::UnreadableRows { intact, until, .. }) => {
            // Rows before the damage are read by themselves; those behind it are next.
            if intact > 0 {
                sweep.limit = intact;
            } else {
                sweep.limit = usize::MAX;
                sweep.look_again(cx);
                if sweep.reach.take().is_some() {
                    queue.expiry.skip_to(until);
                }
                sweep.cursor = until.clamp(sweep.cursor.next(), sweep.end());
            }
            queue.sweep = Some(sweep);
        }
        Err(_) => retry_sweep(queue, &sweep, cx),
    }
}

/// How many rows are read at once.
fn limit_of(sweep: &Sweep, cx: &Context<'_>) -> usize {
    let limit = cx.shared.settings.turn_work.max(1).min(sweep.limit);
    limit.min(usize::try_from(EXPIRY_BLOCK).unwrap_or(limit))
}

/// The sweep that has waited for a read.
fn waiting_sweep(queue: &mut Queue, read: ReadId) -> Sweep {
    let mut sweep = queue.sweep.take().expect("a sweep stays while it waits");
    sweep.stop_waiting(read);
    sweep
}

fn sweep_rows(
    queue: &mut Queue,
    sweep: &mut Sweep,
    rows: &[StoredMessage],
    touched: &BTreeSet<SequenceNumber>,
    cx: &mut Context<'_>,
) {
    let own = rows.partition_point(|row| row.number < sweep.end());
    let (rows, behind) = rows.split_at(own);
    let last = rows.last().map(|row| row.number.next());
    let whole = !behind.is_empty() || rows.len() < limit_of(sweep, cx);
    if let Some(reach) = sweep.reach.take().filter(|_| whole) {
        queue
            .expiry
            .skip_to(behind.first().map_or(reach, |row| row.number));
    }
    sweep.limit = usize::MAX;
    let until = last.filter(|_| !whole).unwrap_or(sweep.end());
    sweep.look_at_locks(queue.sub(Subqueue::Main), until, cx);
    for stored in rows {
        let number = stored.number;
        sweep.cursor = number;
        if let Some(entry) = still_available(queue, stored, touched, cx.effects.submitted)
            && !sweep_available(queue, sweep, number, &entry, cx)
        {
            return;
        }
    }
    sweep.cursor = until;
}

/// What is available under a number that was read, if anything is.
fn still_available(
    queue: &Queue,
    stored: &StoredMessage,
    touched: &BTreeSet<SequenceNumber>,
    submitted: CommitId,
) -> Option<Entry> {
    let sub = queue.sub(Subqueue::Main);
    let number = stored.number;
    if let Some(entry) = sub.window.get(number) {
        return Some(*entry);
    }
    let on_disk_only = number >= sub.window.end() || sub.window.is_straggler(number);
    let unchanged = !touched.contains(&number) && !sub.locks.contains(number);
    (on_disk_only && unchanged).then(|| entry_of(stored, submitted))
}

/// Patches came back: what is still available and due expires.
pub(crate) fn patches_loaded(
    queue: &mut Queue,
    read: ReadId,
    numbers: &[SequenceNumber],
    rows: ReadRows,
    cx: &mut Context<'_>,
) {
    let touched = queue.rows.journal.finish(read);
    let mut sweep = waiting_sweep(queue, read);
    if let Err(error) = &rows
        && error.is_damage()
        && numbers.len() > 1
    {
        sweep.one_by_one = numbers.iter().rev().copied().collect();
        return go_on(queue, sweep, cx);
    }
    // Messages whose patches cannot be read are looked at again.
    let rows = rows.unwrap_or_default();
    for stored in &rows {
        let entry = still_available(queue, stored, &touched, cx.effects.submitted);
        let due = entry.filter(|entry| {
            let main = queue.sub(Subqueue::Main);
            main.is_expired(stored.number, &entry.row, cx.now.wall) && queue.may_expire(cx)
        });
        if let Some(entry) = due
            && let Some(body) = body_of(stored)
        {
            let number = stored.number;
            queue.sub_mut(Subqueue::Main).window.take(number);
            drop(cx.shared.bodies.take(entry.body));
            let part = Subqueue::Main.part();
            let message = Message::available(part, number, &entry, body.patch);
            expire::expire(queue, &message, true, cx);
        } else if entry.is_some() || queue.sub(Subqueue::Main).locks.contains(stored.number) {
            sweep.look_again(cx);
        }
    }
    if rows.len() < numbers.len() {
        sweep.look_again(cx);
    }
    go_on(queue, sweep, cx);
}

fn retry_sweep(queue: &mut Queue, sweep: &Sweep, cx: &Context<'_>) {
    let at = cx.now.wall.0.saturating_add(RETRY_MS);
    queue.expiry.rest(sweep.block, at);
}

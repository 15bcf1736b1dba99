//! Session page: messages of a queue with sessions that go on by themselves.
//!
//! The window of such a queue knows none of them, so its pump reads its first messages, whatever
//! their session, in the order of their numbers, and moves on those that were not touched since.
//! One page is read at a time. A message that is locked, or whose session is held, is passed over;
//! what frees it wakes the pump. So is one that is damaged: pages become shorter until it is found,
//! and it is not read again. One whose id cannot be looked up stays, too.

use std::collections::BTreeSet;

use store::{CommitId, Part, Query, SequenceNumber, StoreError, StoredMessage};

use super::forward_one;
use super::hop::{self, Destination, HAS_PUMP};
use super::transfer::Transfer;
use crate::api::id::{ReadId, Subqueue, SubqueueId};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::expire;
use crate::message::Message;
use crate::message::properties::Properties;
use crate::message::stored::{ReadRows, body_of, entry_of, size_of_body};
use crate::queue::Queue;
use crate::receive::run::run;
use crate::subqueue::pump::{Looked, PendingPage, Pump};

/// Most messages of a page, and bytes of their bodies.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// Asks for the first messages, if there are any.
pub(super) fn ask_first(queue: &mut Queue, cx: &mut Context<'_>) {
    let is_waiting = queue.sub(Subqueue::Main).pump.is_waiting(cx.now.mono);
    if is_waiting || queue.rows.count(Part::Active) == 0 {
        return;
    }
    let looked = match std::mem::take(&mut queue.sub_mut(Subqueue::Main).pump) {
        Pump::Looked(looked) => Some(looked),
        _ => None,
    };
    let (first, _) = queue.place_of_first(Subqueue::Main);
    let first = queue.sub(Subqueue::Main).unreadable.readable_from(first);
    ask(queue, whole_page(first, looked), cx);
}

fn whole_page(from: SequenceNumber, looked: Option<Looked>) -> PendingPage {
    PendingPage {
        from,
        limit: PAGE,
        bodies: true,
        looked,
    }
}

fn ask(queue: &mut Queue, page: PendingPage, cx: &mut Context<'_>) {
    let query = Query::Range {
        entity: queue.id,
        part: Part::Active,
        from: page.from,
        until: queue.rows.end(),
        limit: page.limit,
        bodies: page.bodies,
        max_bytes: PAGE_BYTES,
    };
    let place = queue.sub(Subqueue::Main).place;
    let read = cx.ask(query, Purpose::SessionPage(place, cx.commit()));
    queue.rows.journal.begin(read);
    queue.sub_mut(Subqueue::Main).pump = Pump::Reading(page);
}

/// A page met damage: the next one ends before it, or begins behind it. Nothing if the page
/// failed for another reason.
fn pass_damage(source: &mut Queue, page: PendingPage, error: &StoreError) -> Option<PendingPage> {
    let unreadable = &mut source.sub_mut(Subqueue::Main).unreadable;
    match *error {
        StoreError::UnreadableRows {
            intact: 0, until, ..
        } => {
            let until = until.max(page.from.next());
            unreadable.note_rows(page.from..until);
            Some(whole_page(until, page.looked))
        }
        StoreError::UnreadableRows { intact, .. } => Some(PendingPage {
            limit: intact,
            ..page
        }),
        StoreError::Corrupt { .. } if page.limit > 1 => Some(PendingPage {
            limit: page.limit / 2,
            ..page
        }),
        StoreError::Corrupt { .. } if page.bodies => Some(PendingPage {
            bodies: false,
            ..page
        }),
        _ => None,
    }
}

/// The first message from a number on is damaged: the next page begins behind it.
fn pass_message(
    source: &mut Queue,
    page: PendingPage,
    rows: &[StoredMessage],
) -> Option<PendingPage> {
    let number = rows.first()?.number;
    let unreadable = &mut source.sub_mut(Subqueue::Main).unreadable;
    unreadable.note_message(number);
    Some(whole_page(number.next(), page.looked))
}

/// What became of a page.
enum Progress {
    /// A message has gone, or may be free now although the page did not say so.
    Made,
    /// All of it was passed over.
    None,
    /// The pump waits for the destination, or for its next turn.
    Waits,
}

/// A page came back, which holds that commit.
pub(crate) fn loaded(
    directory: &mut Directory,
    read: ReadId,
    place: SubqueueId,
    after: CommitId,
    rows: ReadRows,
    cx: &mut Context<'_>,
) {
    // The entity was deleted while its page was being read.
    let Some(source) = directory.get_mut(place.entity) else {
        return;
    };
    let touched = source.rows.journal.finish(read);
    let pump = std::mem::take(&mut source.sub_mut(place.subqueue).pump);
    let Pump::Reading(page) = pump else {
        unreachable!("a pump waits until its page is here");
    };
    let limit = page.limit;
    let rows = match rows {
        Ok(rows) if page.bodies => {
            let looked = page.looked.map_or(Pump::Free, Pump::Looked);
            source.sub_mut(place.subqueue).pump = looked;
            rows
        }
        Ok(rows) => {
            match pass_message(source, page, &rows) {
                Some(next) => ask(source, next, cx),
                // It has gone since.
                None => source.sub_mut(place.subqueue).needs_dispatch = true,
            }
            return run(source, cx);
        }
        Err(error) => {
            match pass_damage(source, page, &error) {
                Some(next) => ask(source, next, cx),
                None => hop::pump_again_at(source, place.subqueue, cx),
            }
            return run(source, cx);
        }
    };
    let bytes: usize = rows.iter().map(size_of_body).sum();
    let is_full = rows.len() >= limit || bytes >= PAGE_BYTES;
    let last = rows.last().map(|row| row.number);
    let progress = move_on(directory, place, after, rows, &touched, cx);
    let source = directory.get_mut(place.entity).expect(HAS_PUMP);
    match (progress, last) {
        (Progress::Made, _) => source.sub_mut(place.subqueue).needs_dispatch = true,
        (Progress::None, Some(last)) if is_full => {
            ask(source, whole_page(last.next(), None), cx);
        }
        (Progress::None | Progress::Waits, _) => {}
    }
    run(source, cx);
}

/// Moves on what can go.
fn move_on(
    directory: &mut Directory,
    place: SubqueueId,
    after: CommitId,
    rows: Vec<StoredMessage>,
    touched: &BTreeSet<SequenceNumber>,
    cx: &mut Context<'_>,
) -> Progress {
    let mut progress = Progress::None;
    for stored in rows {
        let source = directory.get_mut(place.entity).expect(HAS_PUMP);
        let Some(Destination::Path(path)) = hop::destination(source, place.subqueue) else {
            return Progress::Waits;
        };
        if touched.contains(&stored.number) {
            progress = Progress::Made;
            continue;
        }
        if !is_free(source, &stored) {
            continue;
        }
        // A message that cannot be read stays.
        let Some(body) = body_of(&stored) else {
            continue;
        };
        if !cx.take_pump_work() {
            hop::pump_later(source, place.subqueue, cx);
            return Progress::Waits;
        }
        progress = Progress::Made;
        let sub = source.sub(place.subqueue);
        if sub.is_expired(stored.number, &stored.row, cx.now.wall) {
            let message = Message::stored(&stored, body.patch);
            expire::expire(source, &message, true, cx);
            continue;
        }
        let transfer = Transfer {
            source: source.id,
            number: stored.number,
            entry: entry_of(&stored, after),
            properties: Properties::of(&body.payload),
            body,
            sent_via: false,
        };
        if !forward_one(directory, place, path, transfer, cx) {
            return Progress::Waits;
        }
    }
    progress
}

/// Whether a message is neither locked nor its session's holder's, nor one that was passed over.
fn is_free(queue: &Queue, stored: &StoredMessage) -> bool {
    let number = stored.number;
    let main = queue.sub(Subqueue::Main);
    let sessions = queue.sessions.as_ref();
    let is_held = sessions.is_some_and(|it| it.holders(stored.row.session_hash).next().is_some());
    let is_passed = main.unreadable.readable_from(number) > number;
    !is_held && !is_passed && !main.locks.contains(number)
}

//! Loaded: which operation continues with what was read.
//!
//! One arm for each purpose (`context/read.rs`), one call each. The entity may be gone: then a
//! request that waits for the answer is refused.

use store::{Found, StoreError};

use crate::api::id::{ReadId, Subqueue};
use crate::context::Context;
use crate::context::read::Purpose;
use crate::entities::directory::Directory;
use crate::entities::removal;
use crate::expire::sweep_blocks;
use crate::forward;
use crate::queue::Queue;
use crate::receive::run::run;
use crate::receive::{deferred, peek, schedule_peek};
use crate::router;
use crate::send::cancel;
use crate::send::duplicates::known::Known;
use crate::send::send_once;
use crate::sessions;
use crate::transaction::discharge;

/// Hands the answer to the operation that asked for it.
pub(crate) fn loaded(
    directory: &mut Directory,
    read: ReadId,
    found: Result<Found, StoreError>,
    cx: &mut Context<'_>,
) {
    let purpose = cx.shared.take_read(read);
    if let Purpose::Fetch(_, _, Some(bytes)) = purpose {
        cx.shared.ahead_reads -= 1;
        cx.shared.ahead_bytes -= bytes;
    }
    if let Some(queue) = directory.get(purpose.entity()) {
        cx.enter(queue.namespace);
    }
    if let Purpose::TransferLookup(place, destination) = purpose {
        let known = found.and_then(Found::into_entries);
        let known = known.and_then(|entries| Known::of(&entries));
        return forward::looked_up(directory, read, place, destination, known, cx);
    }
    if let Purpose::SessionPage(place, after) = purpose {
        let rows = found.and_then(Found::into_messages);
        return forward::session_page::loaded(directory, read, place, after, rows, cx);
    }
    if let Purpose::Transaction(_, id) = purpose {
        // It is about other entities too, and has to be decided even if this one is gone.
        return discharge::loaded(directory, id, read, found, cx);
    }
    if let Purpose::Publication(_, connection) = purpose {
        let known = found.and_then(Found::into_entries);
        let known = known.and_then(|entries| Known::of(&entries));
        return router::publish::looked_up(directory, read, connection, known, cx);
    }
    if let Purpose::Tombstone(entity) = purpose {
        let rows = found.and_then(Found::into_messages);
        return removal::advance(
            directory,
            entity,
            |tombstone, cx| tombstone.loaded(rows, cx),
            cx,
        );
    }
    let Some(queue) = directory.get_mut(purpose.entity()) else {
        if let Some(output) = purpose.refusal() {
            cx.emit(output);
        }
        return;
    };
    let rows = |found: Result<Found, StoreError>| found.and_then(Found::into_messages);
    let entries = |found: Result<Found, StoreError>| found.and_then(Found::into_entries);
    match purpose {
        Purpose::Refill(place, after) => {
            queue
                .sub_mut(place.subqueue)
                .refilled(read, after, rows(found), cx);
        }
        Purpose::Fetch(place, numbers, _) => {
            let lock_duration = queue.settings.lock_duration;
            let sub = queue.sub_mut(place.subqueue);
            sub.fetched(read, &numbers, rows(found), lock_duration, cx);
        }
        Purpose::Select(place) => {
            let sub = queue.sub_mut(place.subqueue);
            sub.selections_loaded(read, rows(found), cx);
        }
        Purpose::Show(place, slot) => {
            let sub = queue.sub_mut(place.subqueue);
            if sub.show_loaded(slot, read, rows(found), cx) {
                queue.note_access(cx);
            }
        }
        Purpose::Sweep(_) => sweep_blocks::loaded(queue, read, rows(found), cx),
        Purpose::SweepPatches(_, numbers) => {
            sweep_blocks::patches_loaded(queue, read, &numbers, rows(found), cx);
        }
        Purpose::DuplicateLookup(_) => send_once::looked_up(queue, read, entries(found), cx),
        Purpose::DuplicateLoad(_) => {
            let Queue {
                duplicates, rows, ..
            } = queue;
            duplicates.history_loaded(read, entries(found), rows, cx);
        }
        Purpose::Session(_, what) => sessions::loaded::loaded(queue, read, *what, found, cx),
        Purpose::SessionPage(..)
        | Purpose::TransferLookup(..)
        | Purpose::Transaction(..)
        | Purpose::Publication(..)
        | Purpose::Tombstone(_) => {
            unreachable!("it has been dealt with above");
        }
        Purpose::Peek(peek) => peek::loaded(queue, read, *peek, rows(found), cx),
        Purpose::SchedulePeek(peek) => schedule_peek::loaded(queue, read, *peek, found, cx),
        Purpose::Deferred(retrieval) => {
            deferred::loaded(queue, read, &retrieval, rows(found), cx);
        }
        Purpose::Delete(_) => sessions::delete_rows::loaded(queue, read, found, cx),
        Purpose::Schedule(_) => {
            for number in queue.schedule.loaded(read, entries(found), cx) {
                let unreadable = &mut queue.sub_mut(Subqueue::Main).unreadable;
                unreadable.note_rows(number..number.next());
            }
        }
        Purpose::Cancel(cancellation) => {
            cancel::loaded(queue, read, &cancellation, rows(found), cx);
        }
    }
    run(queue, cx);
}

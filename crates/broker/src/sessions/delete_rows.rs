//! Delete rows: messages of a queue with sessions go, once they have been read.
//!
//! Rows are taken for what they are: those that were touched since they were asked for are left
//! alone, and so are those that are held. What is left lowers the deletion's mark.

use store::{Found, StoreError, StoredMessage};

use crate::api::id::{ReadId, Subqueue};
use crate::api::lineage::MessageEvent;
use crate::api::output::Output;
use crate::context::Context;
use crate::delete::deletion::{Deletion, PendingRead, Progress};
use crate::expire;
use crate::message::Message;
use crate::message::stored::entry_of;
use crate::queue::Queue;

/// A piece came back.
pub(crate) fn loaded(
    queue: &mut Queue,
    read: ReadId,
    found: Result<Found, StoreError>,
    cx: &mut Context<'_>,
) {
    let touched = queue.rows.journal.finish(read);
    let deletion = queue.deletions.take_first();
    let mut deletion = deletion.expect("a deletion stays first while it waits for a read");
    let asked = deletion
        .asked
        .take()
        .expect("it waits because it has asked");
    assert_eq!(asked.read, read, "a deletion waits for one read at a time");
    match found {
        Ok(Found::Entries(entries)) => {
            let (sessions, mut parts) = queue.sessions_mut();
            sessions.delete_by_order(&mut deletion, asked, &entries, &mut parts, cx);
        }
        Ok(Found::Messages(rows)) => {
            let untouched = |row: &StoredMessage| !touched.contains(&row.number);
            delete_rows(queue, &mut deletion, asked, &rows, untouched, cx);
        }
        Err(error) => return refuse(&deletion, &error, cx),
    }
    queue.deletions.put_back(deletion);
}

fn delete_rows(
    queue: &mut Queue,
    deletion: &mut Deletion,
    asked: PendingRead,
    rows: &[StoredMessage],
    untouched: impl Fn(&StoredMessage) -> bool,
    cx: &mut Context<'_>,
) {
    let mut covered = match rows.last() {
        Some(last) if rows.len() >= asked.limit => last.number.next(),
        _ => asked.covered,
    };
    let mut mark = None;
    for stored in rows {
        cx.take_work();
        if deletion.left == 0 || stored.row.enqueued_ms >= deletion.before.0 {
            // Those behind it were enqueued later still.
            covered = stored.number;
            deletion.until = covered;
            break;
        }
        let (sessions, parts) = queue.sessions_mut();
        if !untouched(stored) {
            // It may be available again, or gone.
            mark.get_or_insert(stored.number);
        } else if sessions.is_free(deletion, stored, &parts, cx.now.mono) {
            delete_stored(queue, deletion, stored, cx);
        }
    }
    let (sessions, _) = queue.sessions_mut();
    sessions.deleted_below(deletion, covered, mark);
}

fn delete_stored(
    queue: &mut Queue,
    deletion: &mut Deletion,
    stored: &StoredMessage,
    cx: &mut Context<'_>,
) {
    let entry = entry_of(stored, cx.effects.submitted);
    let message = Message::available(stored.part, stored.number, &entry, None);
    let patched = entry.may_have_patch();
    let main = queue.sub(Subqueue::Main);
    let expired = main.is_expired(stored.number, &stored.row, cx.now.wall);
    if !expired || !queue.may_expire(cx) {
        queue.record(stored.number, || MessageEvent::Purged, cx);
        queue.erase(&message, patched, cx);
        deletion.count_one();
    } else if expire::can_expire_at_once(queue, &entry, cx) {
        expire::expire(queue, &message, patched, cx);
    }
}

fn refuse(deletion: &Deletion, error: &StoreError, cx: &mut Context<'_>) {
    cx.emit(Output::Deleted {
        request: deletion.request,
        result: deletion.result(Progress::Failed(error.to_string())),
    });
}

//! Expire rows: messages of a session that expires, once they have been read.
//!
//! Those that were touched since they were asked for are read again, for their locks may have
//! ended. Locked ones are left to the end of their lock.

use crate::api::id::{ReadId, Subqueue};
use crate::context::Context;
use crate::expire;
use crate::message::Message;
use crate::message::stored::{ReadRows, body_of};
use crate::queue::Queue;
use crate::sessions::Sessions;
use crate::sessions::read::{Piece, SessionExpiry};
use crate::sessions::session_expiry::PIECE_BYTES;

/// The messages came back: those that were not touched since expire. The others are read again,
/// for their locks may have ended.
pub(super) fn loaded(
    queue: &mut Queue,
    read: ReadId,
    expiry: SessionExpiry,
    piece: Piece,
    rows: ReadRows,
    cx: &mut Context<'_>,
) {
    let touched = queue.rows.journal.finish(read);
    let rows = match rows {
        Ok(rows) => rows,
        // It is damaged: its own deadline, or its next delivery, will show.
        Err(_) if expiry.cautious => Vec::new(),
        Err(_) => {
            let cautious = true;
            let (_, parts) = queue.sessions_mut();
            return Sessions::ask_expiring(SessionExpiry { cautious, ..expiry }, &parts, cx);
        }
    };
    let bytes: usize = rows.iter().map(|row| row.row.size as usize).sum();
    let reached = match rows.last() {
        Some(row) if bytes >= PIECE_BYTES => row.number,
        _ => piece.last,
    };
    let again = rows.iter().map(|row| row.number);
    let again = again.filter(|number| touched.contains(number)).min();
    for stored in rows {
        let number = stored.number;
        let locked = queue.sub(Subqueue::Main).locks.contains(number);
        if let Some(body) = body_of(&stored)
            && !locked
            && !touched.contains(&number)
        {
            let message = Message::stored(&stored, body.patch);
            expire::expire(queue, &message, true, cx);
        }
    }
    let more = reached.next() < expiry.until && !(piece.whole && reached == piece.last);
    let (sessions, mut parts) = queue.sessions_mut();
    match again.or(more.then(|| reached.next())) {
        Some(cursor) => {
            Sessions::ask_expiring(SessionExpiry { cursor, ..expiry }, &parts, cx);
        }
        None => sessions.finish_expiry(&mut parts, cx),
    }
}

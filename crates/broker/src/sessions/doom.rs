//! Doom: in the mode `cloud` all messages of a session expire with the first of them.
//!
//! When a message of a session expires, those that were sent before that moment and are not
//! locked go the same way, a bounded piece with each read. Locked ones are left to the end of
//! their lock. A session is known by its hash here, so two that share one expire together. What
//! a crash interrupts goes on with the next message that expires. (`spec/README.md`, Expiry)

use store::{Entry, Index, Query, SequenceNumber, StoreError};

use crate::id::{ReadId, Subqueue};
use crate::queue::{Message, Queue};
use crate::read::{Purpose, Rows, body_of};
use crate::sessions::key;
use crate::sessions::read::SessionRead;
use crate::settings::Expiry;
use crate::shared::Context;

/// Messages, and bytes of them, that are read at once.
const PIECE: usize = 64;
const PIECE_BYTES: usize = 1 << 20;

/// A session whose messages expire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doom {
    hash: u64,
    cursor: SequenceNumber,
    until: SequenceNumber,
}

impl Queue {
    /// A message has expired: in the mode `cloud` its session does.
    pub(crate) fn doom_session(&mut self, message: &Message, cx: &Context<'_>) {
        let cloud = self.settings.expiry.unwrap_or(cx.shared.settings.expiry) == Expiry::Cloud;
        let active = message.part == Subqueue::Main.part();
        let until = self.head.next_number;
        let hash = message.row.session_hash;
        let Some(sessions) = self.sessions.as_mut().filter(|_| cloud && active) else {
            return;
        };
        if sessions.dooming != Some(hash) {
            sessions.doomed.insert(hash, until);
            self.sub_mut(Subqueue::Main).stirred = true;
        }
    }

    /// Takes up the next session that is to expire.
    pub(super) fn expire_doomed(&mut self, cx: &mut Context<'_>) {
        let resume = SequenceNumber(self.head.part(Subqueue::Main.part()).resume);
        let Some(sessions) = self.sessions.as_mut().filter(|s| s.dooming.is_none()) else {
            return;
        };
        if let Some((hash, until)) = sessions.doomed.pop_first() {
            sessions.dooming = Some(hash);
            let cursor = resume;
            let doom = Doom {
                hash,
                cursor,
                until,
            };
            self.ask_doomed(doom, cx);
        }
    }

    fn ask_doomed(&self, doom: Doom, cx: &mut Context<'_>) {
        let query = Query::Entries {
            entity: self.id,
            index: Index::Session,
            from: key::active(doom.hash, doom.cursor),
            until: key::active(doom.hash, doom.until),
            limit: PIECE,
            max_bytes: usize::MAX,
        };
        let read = SessionRead::Doomed(doom);
        cx.ask(query, Purpose::Session(self.id, Box::new(read)));
    }

    /// Numbers of messages that are to expire came back.
    pub(super) fn doomed_found(
        &mut self,
        doom: Doom,
        found: Result<Vec<Entry>, StoreError>,
        cx: &mut Context<'_>,
    ) {
        let entries = found.unwrap_or_default();
        if entries.is_empty() {
            return self.finish_doom();
        }
        let numbers = entries.iter().map(|entry| entry.key.number).collect();
        let query = Query::Points {
            entity: self.id,
            part: Subqueue::Main.part(),
            numbers,
            bodies: true,
            max_bytes: PIECE_BYTES,
        };
        let last = entries.last().map_or(doom.until, |entry| entry.key.number);
        let read = SessionRead::DoomedRows(doom, last);
        let read = cx.ask(query, Purpose::Session(self.id, Box::new(read)));
        self.journal.begin(read);
    }

    /// The messages came back: those that nobody has touched since expire.
    pub(super) fn doomed_loaded(
        &mut self,
        read: ReadId,
        doom: Doom,
        last: SequenceNumber,
        rows: Rows,
        cx: &mut Context<'_>,
    ) {
        let touched = self.journal.finish(read);
        let Ok(rows) = rows else {
            return self.finish_doom();
        };
        let bytes: usize = rows.iter().map(|row| row.row.size as usize).sum();
        let reached = match rows.last() {
            Some(row) if bytes >= PIECE_BYTES => row.number,
            _ => last,
        };
        for stored in rows {
            let number = stored.number;
            let locked = self.sub(Subqueue::Main).locks.contains(number);
            if let Some(body) = body_of(&stored)
                && !locked
                && !touched.contains(&number)
            {
                let message = Message {
                    number,
                    part: stored.part,
                    row: stored.row,
                    delivery_count: stored.delivery_count,
                    patch: body.patch,
                };
                self.expire(&message, true, cx);
            }
        }
        let cursor = reached.next();
        if cursor < doom.until {
            self.ask_doomed(Doom { cursor, ..doom }, cx);
        } else {
            self.finish_doom();
        }
    }

    fn finish_doom(&mut self) {
        if let Some(sessions) = &mut self.sessions {
            sessions.dooming = None;
        }
        self.sub_mut(Subqueue::Main).stirred = true;
    }
}

//! Load: brings a held session's next messages and their bodies into memory.
//!
//! The session's order tells the numbers, then the messages are read by number. Both are read
//! only while the holder wants messages. A read that failed is tried again after a second; a
//! damaged message is set aside for as long as the session is held.

use store::{CommitId, Entry, Index, Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::{ReadId, Subqueue};
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::context::read::Purpose;
use crate::message::Message;
use crate::message::stored::{Rows, entry_of, known_of, take_body};
use crate::queue::Queue;
use crate::sessions::read::SessionRead;
use crate::sessions::{id_of, key};
use crate::subqueue::lock::Origin;
use crate::subqueue::window::Ask;

/// Most messages that are read at once.
const FETCH_MESSAGES: usize = 1_024;
/// Most bytes of bodies that are read at once.
const FETCH_BYTES: usize = 1 << 20;

impl Queue {
    fn ask_of(&self, query: Query, read: SessionRead, cx: &mut Context<'_>) -> ReadId {
        cx.ask(query, Purpose::Session(self.id, Box::new(read)))
    }

    /// Asks for more messages if the hold's window runs low.
    pub(super) fn load_session(&mut self, id: HoldId, cx: &mut Context<'_>) {
        let (entity, until) = (self.id, self.head.next_number);
        let sessions = self.require_sessions_mut();
        let hold = sessions.existing_hold_mut(id);
        if hold.resting
            || hold.window.wants(hold.beyond(), until).is_none()
            || hold.knows_enough(&cx.shared.settings)
        {
            return;
        }
        if hold.was_full {
            sessions.widen(id, cx.shared.settings.window);
        }
        let hold = sessions.existing_hold(id);
        let Some(Ask::From(from, limit)) = hold.window.wants(hold.beyond(), until) else {
            unreachable!("a wider window wants no less, and a hold's has no stragglers");
        };
        let limit = limit.min(FETCH_MESSAGES);
        let query = Query::Entries {
            entity,
            index: Index::Session,
            from: key::active(hold.key.hash, from),
            until: key::active(hold.key.hash, until),
            limit,
            max_bytes: usize::MAX,
        };
        sessions.raise_floor(id, until);
        let read = SessionRead::Order {
            hold: id,
            limit,
            until,
        };
        let read = self.ask_of(query, read, cx);
        let hold = self.require_sessions_mut().existing_hold_mut(id);
        hold.window.asked(read, Ask::From(from, limit), until);
    }

    /// The numbers of a hold's next messages came back.
    pub(super) fn order_loaded(
        &mut self,
        read: ReadId,
        id: HoldId,
        limit: usize,
        until: SequenceNumber,
        found: Result<Vec<Entry>, StoreError>,
        cx: &mut Context<'_>,
    ) {
        let sessions = self.require_sessions_mut();
        // The hold may have ended since.
        let Some(key) = sessions.hold(id).map(|hold| hold.key.clone()) else {
            return;
        };
        let Ok(entries) = found else {
            return self.loading_failed(id, read, cx);
        };
        sessions.note_strangers(&key, &entries, until);
        let covered = match entries.last() {
            Some(last) if entries.len() >= limit => last.key.number.next(),
            _ => until,
        };
        let own = entries.iter().filter(|entry| **id_of(entry) == *key.id);
        let numbers: Vec<_> = own.map(|entry| entry.key.number).collect();
        if numbers.is_empty() {
            return self.take_rows(id, read, Vec::new(), covered, cx);
        }
        self.ask_rows(id, read, numbers, covered, true, cx);
    }

    fn ask_rows(
        &self,
        hold: HoldId,
        asked: ReadId,
        numbers: Vec<SequenceNumber>,
        covered: SequenceNumber,
        bodies: bool,
        cx: &mut Context<'_>,
    ) {
        let query = Query::Points {
            entity: self.id,
            part: Subqueue::Main.part(),
            numbers: numbers.clone(),
            bodies,
            max_bytes: FETCH_BYTES,
        };
        let read = SessionRead::Rows {
            hold,
            asked,
            numbers,
            covered,
            bodies,
        };
        self.ask_of(query, read, cx);
    }

    /// A hold's next messages came back. Fewer bodies than asked for end what is covered.
    #[allow(clippy::too_many_arguments, reason = "what was asked, and its answer")]
    pub(super) fn rows_loaded(
        &mut self,
        id: HoldId,
        asked: ReadId,
        numbers: Vec<SequenceNumber>,
        covered: SequenceNumber,
        bodies: bool,
        found: Rows,
        cx: &mut Context<'_>,
    ) {
        if self.require_sessions().hold(id).is_none() {
            // The hold has ended since.
            return;
        }
        let rows = match found {
            Ok(rows) => rows,
            Err(StoreError::Corrupt { .. }) if bodies => {
                return self.ask_rows(id, asked, numbers, covered, false, cx);
            }
            Err(_) => return self.loading_failed(id, asked, cx),
        };
        let sizes = rows.iter().filter_map(|row| row.body.as_ref());
        let cut_short = sizes.map(bytes::Bytes::len).sum::<usize>() >= FETCH_BYTES;
        let covered = match rows.last() {
            Some(last) if cut_short && numbers.last() > Some(&last.number) => last.number.next(),
            _ => covered,
        };
        self.take_rows(id, asked, rows, covered, cx);
    }

    fn take_rows(
        &mut self,
        id: HoldId,
        asked: ReadId,
        rows: Vec<StoredMessage>,
        covered: SequenceNumber,
        cx: &mut Context<'_>,
    ) {
        let entity = self.id;
        let locks = &self.subs[Subqueue::Main as usize].locks;
        let sessions = self.sessions.as_mut().expect("it has the hold");
        let hold = sessions.existing_hold_mut(id);
        let submitted = cx.effects.submitted;
        let bodies = &mut cx.shared.bodies;
        let rows = rows.into_iter().map(|mut row| {
            let mut entry = entry_of(&row, submitted);
            if let Some(body) = take_body(&mut row) {
                entry.body = bodies.put(entity, body);
            }
            (row.number, entry)
        });
        let rows = rows.collect();
        let is_locked = |number| locks.contains(number);
        let spilled = hold.window.loaded_below(asked, rows, covered, is_locked);
        hold.was_full |= hold.window.len() * 2 >= hold.window.limit();
        for entry in spilled {
            drop(cx.shared.bodies.take(entry.body));
        }
        self.mark_session_pending(id);
    }

    fn loading_failed(&mut self, id: HoldId, read: ReadId, cx: &Context<'_>) {
        let hold = self.require_sessions_mut().existing_hold_mut(id);
        hold.window.failed(read);
        self.rest_session(id, cx);
    }

    fn rest_session(&mut self, id: HoldId, cx: &Context<'_>) {
        let sessions = self.require_sessions_mut();
        sessions.rest(cx.now.mono);
        sessions.resting.insert(id);
        sessions.existing_hold_mut(id).resting = true;
        self.mark_session_pending(id);
    }

    pub(crate) fn mark_session_pending(&mut self, id: HoldId) {
        self.require_sessions_mut().mark_pending(id);
        self.sub_mut(Subqueue::Main).needs_pump = true;
    }

    /// Asks for the bodies of the first messages that are wanted and not in memory.
    pub(super) fn fetch_bodies(&mut self, id: HoldId, cx: &mut Context<'_>) {
        let hold = self.require_sessions().existing_hold(id);
        if hold.fetch.count() > 0 || hold.resting {
            return;
        }
        let credit = cx.shared.clients.get(hold.slot).credit();
        let most = if hold.cautious { 1 } else { credit.max(1) };
        let mut bytes = 0_usize;
        let mut known = Vec::new();
        let mut after = CommitId::default();
        let all = SequenceNumber(0)..SequenceNumber::MAX;
        for (number, entry) in hold.window.range(all).take(most as usize) {
            if cx.shared.bodies.is_resident(entry.body) {
                continue;
            }
            bytes = bytes.saturating_add(entry.row.size as usize);
            if bytes > FETCH_BYTES && !known.is_empty() {
                break;
            }
            known.push(known_of(number, entry));
            after = after.max(entry.rests_on);
        }
        assert!(
            !known.is_empty(),
            "the first message's body is not in memory"
        );
        let numbers: Vec<_> = known.iter().map(|known| known.number).collect();
        let query = Query::Bodies {
            entity: self.id,
            part: Subqueue::Main.part(),
            known,
        };
        let asked = numbers.clone();
        let read = SessionRead::Bodies { hold: id, numbers };
        let read = cx.ask_after(after, query, Purpose::Session(self.id, Box::new(read)));
        let hold = self.require_sessions_mut().existing_hold_mut(id);
        hold.fetch.begin(read, asked);
    }

    /// Bodies came back.
    pub(super) fn bodies_loaded(
        &mut self,
        id: HoldId,
        read: ReadId,
        numbers: &[SequenceNumber],
        found: Rows,
        cx: &mut Context<'_>,
    ) {
        // The hold may have ended since.
        let Some(hold) = self.sessions.as_mut().and_then(|s| s.hold_mut(id)) else {
            return;
        };
        let returned = hold.fetch.finish(read);
        match found {
            Ok(rows) => {
                hold.cautious = false;
                let mut missing = numbers.to_vec();
                missing.retain(|number| !returned.contains(number));
                let rows = rows.into_iter();
                for mut stored in rows.filter(|row| !returned.contains(&row.number)) {
                    if let Some(body) = take_body(&mut stored) {
                        missing.retain(|number| *number != stored.number);
                        if let Some(entry) = hold.window.get_mut(stored.number) {
                            drop(cx.shared.bodies.take(entry.body));
                            entry.body = cx.shared.bodies.put(self.id, body);
                        }
                    }
                }
                self.lock_unreadable_of_session(id, &missing, cx);
            }
            Err(StoreError::Corrupt { .. }) if numbers.len() > 1 => hold.cautious = true,
            Err(StoreError::Corrupt { .. }) => self.lock_unreadable_of_session(id, numbers, cx),
            Err(_) => return self.rest_session(id, cx),
        }
        self.mark_session_pending(id);
    }

    /// Locks messages that cannot be read, without a holder, until another receiver holds the
    /// session.
    fn lock_unreadable_of_session(
        &mut self,
        id: HoldId,
        numbers: &[SequenceNumber],
        cx: &mut Context<'_>,
    ) {
        for &number in numbers {
            let hold = self.require_sessions_mut().existing_hold_mut(id);
            // The message may have gone, or been lent, while it was being read.
            let Some(entry) = hold.window.take(number) else {
                continue;
            };
            let message = Message::available(Subqueue::Main.part(), number, &entry, None);
            let token = cx.shared.tokens.next(number);
            self.lock_of(id, message, token, None, Origin::Unreadable, cx);
        }
    }
}

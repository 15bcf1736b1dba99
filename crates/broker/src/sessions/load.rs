//! Load: brings a held session's next messages and their bodies into memory.
//!
//! The session's order tells the numbers, then the messages are read by number. Both are read
//! only while the holder wants messages. A read that failed is tried again after a second; a
//! damaged message is set aside for as long as the session is held. Its holder is told when it has
//! been given all others.

use store::{Entry, Index, Query, SequenceNumber, StoreError, StoredMessage};

use crate::api::id::{ReadId, Subqueue};
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::context::read::Purpose;
use crate::message::Message;
use crate::message::stored::{ReadRows, entry_of, take_body};
use crate::queue::session_key as key;
use crate::sessions::read::SessionRead;
use crate::sessions::{Parts, Sessions, id_of};
use crate::subqueue::lock::{Lock, Origin};
use crate::subqueue::missing_bodies::MissingBodies;
use crate::subqueue::window::Ask;

/// Most messages that are read at once.
const FETCH_MESSAGES: usize = 1_024;
/// Most bytes of bodies that are read at once.
const FETCH_BYTES: usize = 1 << 20;

impl Sessions {
    fn ask_of(query: Query, read: SessionRead, parts: &Parts<'_>, cx: &mut Context<'_>) -> ReadId {
        cx.ask(query, Purpose::Session(parts.rows.id, Box::new(read)))
    }

    /// Asks for more messages if the hold's window runs low.
    pub(crate) fn load_session(&mut self, id: HoldId, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        let (entity, until) = (parts.rows.id, parts.rows.end());
        let hold = self.existing_hold_mut(id);
        if hold.resting
            || hold.window.wants(hold.beyond(), until).is_none()
            || hold.knows_enough(&cx.shared.settings)
        {
            return;
        }
        if hold.was_full {
            self.widen(id, cx.shared.settings.window);
        }
        let hold = self.existing_hold(id);
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
        self.raise_floor(id, until);
        let read = SessionRead::Order {
            hold: id,
            limit,
            until,
        };
        let read = Self::ask_of(query, read, parts, cx);
        let hold = self.existing_hold_mut(id);
        hold.window.asked(read, Ask::From(from, limit), until);
    }

    /// The numbers of a hold's next messages came back.
    #[allow(clippy::too_many_arguments, reason = "what was asked, and its answer")]
    pub(super) fn order_loaded(
        &mut self,
        read: ReadId,
        id: HoldId,
        limit: usize,
        until: SequenceNumber,
        found: Result<Vec<Entry>, StoreError>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        // The hold may have ended since.
        let Some(key) = self.hold(id).map(|hold| hold.key.clone()) else {
            return;
        };
        let entries = match found {
            Ok(entries) => entries,
            Err(error) => {
                if error.is_damage() {
                    // Of which messages the session is cannot be told.
                    let hold = self.existing_hold_mut(id);
                    hold.note_damage(hold.window.end()..hold.last.next(), true);
                }
                return self.loading_failed(id, read, parts, cx);
            }
        };
        self.note_others(&key, &entries, until);
        let covered = match entries.last() {
            Some(last) if entries.len() >= limit => last.key.number.next(),
            _ => until,
        };
        let own = entries.iter().filter(|entry| key.is_of(id_of(entry)));
        let numbers: Vec<_> = own.map(|entry| entry.key.number).collect();
        if numbers.is_empty() {
            return self.take_rows(id, read, Vec::new(), covered, parts, cx);
        }
        Self::ask_rows(id, read, numbers, covered, true, parts, cx);
    }

    fn ask_rows(
        hold: HoldId,
        asked: ReadId,
        numbers: Vec<SequenceNumber>,
        covered: SequenceNumber,
        bodies: bool,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let query = Query::Points {
            entity: parts.rows.id,
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
        Self::ask_of(query, read, parts, cx);
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
        found: ReadRows,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        if self.hold(id).is_none() {
            // The hold has ended since.
            return;
        }
        let rows = match found {
            Ok(rows) => rows,
            Err(StoreError::Corrupt { .. }) if bodies => {
                return Self::ask_rows(id, asked, numbers, covered, false, parts, cx);
            }
            Err(error) if error.is_damage() => {
                return self.pass_damaged_rows(id, asked, numbers, covered, parts, cx);
            }
            Err(_) => return self.loading_failed(id, asked, parts, cx),
        };
        let sizes = rows.iter().filter_map(|row| row.body.as_ref());
        let cut_short = sizes.map(bytes::Bytes::len).sum::<usize>() >= FETCH_BYTES;
        let covered = match rows.last() {
            Some(last) if cut_short && numbers.last() > Some(&last.number) => last.number.next(),
            _ => covered,
        };
        self.take_rows(id, asked, rows, covered, parts, cx);
    }

    /// Rows cannot be read: half of them are asked for, down to one that is passed over.
    fn pass_damaged_rows(
        &mut self,
        id: HoldId,
        asked: ReadId,
        mut numbers: Vec<SequenceNumber>,
        covered: SequenceNumber,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        if let [number] = numbers[..] {
            let is_news = parts.main.unreadable.note_message(number);
            let hold = self.existing_hold_mut(id);
            hold.note_damage(number..number.next(), is_news);
            return self.take_rows(id, asked, Vec::new(), covered, parts, cx);
        }
        let covered = numbers.split_off(numbers.len() / 2)[0];
        Self::ask_rows(id, asked, numbers, covered, false, parts, cx);
    }

    fn take_rows(
        &mut self,
        id: HoldId,
        asked: ReadId,
        rows: Vec<StoredMessage>,
        covered: SequenceNumber,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let entity = parts.rows.id;
        let locks = &parts.main.locks;
        let hold = self.existing_hold_mut(id);
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
        self.wake_hold(id, parts);
    }

    fn loading_failed(
        &mut self,
        id: HoldId,
        read: ReadId,
        parts: &mut Parts<'_>,
        cx: &Context<'_>,
    ) {
        let hold = self.existing_hold_mut(id);
        hold.window.failed(read);
        self.rest_session(id, parts, cx);
    }

    fn rest_session(&mut self, id: HoldId, parts: &mut Parts<'_>, cx: &Context<'_>) {
        self.rest(cx.now.mono);
        self.resting.insert(id);
        self.existing_hold_mut(id).resting = true;
        self.wake_hold(id, parts);
    }

    /// Something has happened to a hold, so there may be something to do.
    pub(crate) fn wake_hold(&mut self, id: HoldId, parts: &mut Parts<'_>) {
        self.mark_pending(id);
        parts.main.needs_dispatch = true;
    }

    /// Asks for the bodies of the first messages that are wanted and not in memory.
    pub(crate) fn fetch_bodies(&mut self, id: HoldId, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        let hold = self.existing_hold(id);
        if hold.fetch.count() > 0 || hold.resting {
            return;
        }
        let credit = cx.shared.clients.get(hold.slot).credit();
        let most = if hold.cautious { 1 } else { credit.max(1) };
        let bodies = &cx.shared.bodies;
        let all = SequenceNumber(0)..SequenceNumber::MAX;
        let first = hold.window.range(all).take(most as usize);
        let first = first.filter(|(_, entry)| !bodies.is_resident(entry.body));
        let missing = MissingBodies::of(first, FETCH_BYTES);
        let numbers = missing.numbers;
        assert!(
            !numbers.is_empty(),
            "the first message's body is not in memory"
        );
        let query = Query::Bodies {
            entity: parts.rows.id,
            part: parts.main.part(),
            known: missing.known,
        };
        let asked = numbers.clone();
        let read = SessionRead::Bodies { hold: id, numbers };
        let purpose = Purpose::Session(parts.rows.id, Box::new(read));
        let read = cx.ask_after(missing.rest_on, query, purpose);
        let hold = self.existing_hold_mut(id);
        hold.fetch.begin(read, asked);
    }

    /// Bodies came back.
    pub(super) fn bodies_loaded(
        &mut self,
        id: HoldId,
        read: ReadId,
        numbers: &[SequenceNumber],
        found: ReadRows,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        // The hold may have ended since.
        let Some(hold) = self.hold_mut(id) else {
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
                            entry.body = cx.shared.bodies.put(parts.rows.id, body);
                        }
                    }
                }
                self.lock_unreadable_of_session(id, &missing, parts, cx);
            }
            Err(StoreError::Corrupt { .. }) if numbers.len() > 1 => hold.cautious = true,
            Err(StoreError::Corrupt { .. }) => {
                self.lock_unreadable_of_session(id, numbers, parts, cx);
            }
            Err(_) => return self.rest_session(id, parts, cx),
        }
        self.wake_hold(id, parts);
    }

    /// Locks messages that cannot be read, without a holder, until another receiver holds the
    /// session.
    fn lock_unreadable_of_session(
        &mut self,
        id: HoldId,
        numbers: &[SequenceNumber],
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        for &number in numbers {
            let hold = self.existing_hold_mut(id);
            // The message may have gone, or been lent, while it was being read.
            let Some(entry) = hold.window.take(number) else {
                continue;
            };
            let message = Message::available(parts.main.part(), number, &entry, None);
            let token = cx.shared.tokens.next(number);
            let lock = Lock::new(message, token, None, Origin::SetAside);
            self.lock(id, number, lock, parts, cx.now.mono);
            parts.main.unreadable.note_message(number);
            let hold = self.existing_hold_mut(id);
            hold.note_damage(number..number.next(), false);
        }
    }
}

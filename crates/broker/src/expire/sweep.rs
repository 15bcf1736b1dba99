//! Sweep: looks through a block of 1,024 numbers for messages past their deadline.
//!
//! A block that is all in the window is looked through there; any other is read, in pieces that fit
//! a turn's budget. ReadRows are taken for what they are: messages that were locked, removed or
//! unlocked since the read was asked for are left to the operation that did so. Locked messages are
//! left to the end of their lock; deferred ones stand elsewhere and never expire.
//! (docs/spec/entities.md#7.3)

use crate::subqueue::is_expired;
use std::collections::BTreeSet;

use store::record::EXPIRY_BLOCK;
use store::{CommitId, Query, SequenceNumber, StoredMessage};

use crate::api::id::{ReadId, Subqueue};
use crate::context::Context;
use crate::context::RETRY_MS;
use crate::context::read::Purpose;
use crate::expire::index::{self, bounds_of};
use crate::message::Message;
use crate::message::entry::Entry;
use crate::message::stored::{ReadRows, body_of, entry_of};
use crate::queue::Queue;
use crate::subqueue::lock::Origin;

/// When to look again after messages that were due and locked.
const LOOK_AGAIN_MS: u64 = 60_000;
/// Most messages, and bytes of them, whose patches are read at once.
const PATCHES: usize = 64;
const PATCH_BYTES: usize = 1 << 20;

/// A block that is being looked through.
#[derive(Debug)]
pub(crate) struct Sweep {
    block: u64,
    /// Everything below has been looked at.
    cursor: SequenceNumber,
    found: index::Outcome,
    waiting: Option<ReadId>,
    /// Due, but their patches have to be read first.
    unpatched: Vec<SequenceNumber>,
    unpatched_bytes: usize,
}

impl Sweep {
    fn new(block: u64) -> Self {
        Self {
            block,
            cursor: bounds_of(block).0,
            found: index::Outcome {
                remaining: u64::MAX,
                again: None,
            },
            waiting: None,
            unpatched: Vec::new(),
            unpatched_bytes: 0,
        }
    }

    /// Whether a read is under way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    fn end(&self) -> SequenceNumber {
        bounds_of(self.block).1
    }

    fn keep(&mut self, expires: u64) {
        self.found.remaining = self.found.remaining.min(expires);
    }

    fn look_again(&mut self, cx: &Context<'_>) {
        let again = cx.now.wall.0.saturating_add(LOOK_AGAIN_MS);
        self.found.again = Some(again);
    }
}

impl Queue {
    /// Looks through what is due, as far as the budget goes.
    pub(crate) fn sweep(&mut self, cx: &mut Context<'_>) {
        while cx.shared.work_left > 0 && self.may_expire(cx) {
            let sweep = match self.sweep.take() {
                Some(sweep) if sweep.is_waiting() => {
                    self.sweep = Some(sweep);
                    return;
                }
                Some(sweep) => sweep,
                None => match self.expiry.start(cx.now.wall.0) {
                    Some(block) => Sweep::new(block),
                    None => return,
                },
            };
            self.sweep_piece(sweep, cx);
        }
    }

    fn sweep_piece(&mut self, mut sweep: Sweep, cx: &mut Context<'_>) {
        let window = &self.sub(Subqueue::Main).window;
        if sweep.cursor >= sweep.end() {
            self.finish_sweep(&sweep, cx);
        } else if window.covers(sweep.end()) {
            self.sweep_window(&mut sweep, cx);
            self.go_on(sweep, cx);
        } else {
            self.sweep_disk(sweep, cx);
        }
    }

    fn finish_sweep(&mut self, sweep: &Sweep, cx: &mut Context<'_>) {
        let mut found = sweep.found;
        // The clock may have gone back since the sweep began.
        let soonest = cx.now.wall.0.saturating_add(LOOK_AGAIN_MS);
        found.again = found.again.map(|again| again.min(soonest));
        if let Some(write) = self.expiry.finish(self.id, sweep.block, found) {
            cx.write(write);
        }
    }

    /// After a piece: reads the patches that are needed, if any.
    fn go_on(&mut self, mut sweep: Sweep, cx: &mut Context<'_>) {
        if !sweep.unpatched.is_empty() {
            let numbers = std::mem::take(&mut sweep.unpatched);
            sweep.unpatched_bytes = 0;
            let query = Query::Points {
                entity: self.id,
                part: Subqueue::Main.part(),
                numbers: numbers.clone(),
                bodies: true,
                max_bytes: usize::MAX,
            };
            let read = cx.ask(query, Purpose::SweepPatches(self.id, numbers));
            self.rows.journal.begin(read);
            sweep.waiting = Some(read);
        }
        self.sweep = Some(sweep);
    }

    fn sweep_window(&mut self, sweep: &mut Sweep, cx: &mut Context<'_>) {
        self.sweep_locks(sweep, sweep.end(), cx);
        while sweep.cursor < sweep.end() && cx.take_work() {
            let window = &self.sub(Subqueue::Main).window;
            let next = window.range(sweep.cursor..sweep.end()).next();
            let Some((number, entry)) = next else {
                sweep.cursor = sweep.end();
                return;
            };
            let entry = *entry;
            if !self.sweep_available(sweep, number, &entry, cx) {
                return;
            }
            sweep.cursor = number.next();
        }
    }

    /// Deals with one available message. Returns whether there is room for more.
    fn sweep_available(
        &mut self,
        sweep: &mut Sweep,
        number: SequenceNumber,
        entry: &Entry,
        cx: &mut Context<'_>,
    ) -> bool {
        if !is_expired(Subqueue::Main, &entry.row, cx.now.wall) {
            sweep.keep(entry.row.expires_ms);
        } else if self.can_expire_at_once(entry, cx) {
            self.expire_available(number, entry, cx);
        } else if sweep.unpatched.len() < PATCHES && sweep.unpatched_bytes < PATCH_BYTES {
            sweep.unpatched.push(number);
            sweep.unpatched_bytes += entry.row.size as usize;
        } else {
            return false;
        }
        true
    }

    /// Locked messages from the cursor to `until` are only noted.
    fn sweep_locks(&self, sweep: &mut Sweep, until: SequenceNumber, cx: &Context<'_>) {
        let locks = &self.sub(Subqueue::Main).locks;
        for (_, lock) in locks.range(sweep.cursor..until) {
            if lock.origin == Origin::Deferred {
                continue;
            }
            if is_expired(Subqueue::Main, &lock.row, cx.now.wall) {
                sweep.look_again(cx);
            } else {
                sweep.keep(lock.row.expires_ms);
            }
        }
    }

    fn sweep_disk(&mut self, mut sweep: Sweep, cx: &mut Context<'_>) {
        let limit = cx.shared.settings.turn_work.max(1);
        let limit = limit.min(usize::try_from(EXPIRY_BLOCK).unwrap_or(limit));
        let query = Query::Range {
            entity: self.id,
            part: Subqueue::Main.part(),
            from: sweep.cursor,
            until: sweep.end(),
            limit,
            bodies: false,
            max_bytes: 0,
        };
        cx.take_work();
        let read = cx.ask(query, Purpose::Sweep(self.id));
        self.rows.journal.begin(read);
        sweep.waiting = Some(read);
        self.sweep = Some(sweep);
    }

    /// A piece of the block was read.
    pub(crate) fn sweep_loaded(&mut self, read: ReadId, rows: ReadRows, cx: &mut Context<'_>) {
        let touched = self.rows.journal.finish(read);
        let mut sweep = self.waiting_sweep(read);
        match rows {
            Ok(rows) if self.may_expire(cx) => {
                self.sweep_rows(&mut sweep, &rows, &touched, cx);
                self.go_on(sweep, cx);
            }
            Ok(_) => self.expiry.postpone(sweep.block, cx.now.wall.0),
            Err(_) => self.retry_sweep(&sweep, cx),
        }
    }

    /// The sweep that has waited for a read.
    fn waiting_sweep(&mut self, read: ReadId) -> Sweep {
        let mut sweep = self.sweep.take().expect("a sweep stays while it waits");
        let waited = sweep.waiting.take();
        assert_eq!(waited, Some(read), "a sweep waits for one read at a time");
        sweep
    }

    fn sweep_rows(
        &mut self,
        sweep: &mut Sweep,
        rows: &[StoredMessage],
        touched: &BTreeSet<SequenceNumber>,
        cx: &mut Context<'_>,
    ) {
        let last = rows.last().map(|row| row.number.next());
        let limit = cx.shared.settings.turn_work.max(1);
        let whole = rows.len() < limit.min(usize::try_from(EXPIRY_BLOCK).unwrap_or(limit));
        let until = last.filter(|_| !whole).unwrap_or(sweep.end());
        self.sweep_locks(sweep, until, cx);
        for stored in rows {
            let number = stored.number;
            sweep.cursor = number;
            if let Some(entry) = self.still_available(stored, touched, cx.effects.submitted)
                && !self.sweep_available(sweep, number, &entry, cx)
            {
                return;
            }
        }
        sweep.cursor = until;
    }

    /// What is available under a number that was read, if anything is.
    fn still_available(
        &self,
        stored: &StoredMessage,
        touched: &BTreeSet<SequenceNumber>,
        submitted: CommitId,
    ) -> Option<Entry> {
        let sub = self.sub(Subqueue::Main);
        let number = stored.number;
        if let Some(entry) = sub.window.get(number) {
            return Some(*entry);
        }
        let on_disk_only = number >= sub.window.end() || sub.window.is_straggler(number);
        let unchanged = !touched.contains(&number) && !sub.locks.contains(number);
        (on_disk_only && unchanged).then(|| entry_of(stored, submitted))
    }

    /// Patches came back: what is still available and due expires.
    pub(crate) fn sweep_patches_loaded(
        &mut self,
        read: ReadId,
        numbers: &[SequenceNumber],
        rows: ReadRows,
        cx: &mut Context<'_>,
    ) {
        let touched = self.rows.journal.finish(read);
        let mut sweep = self.waiting_sweep(read);
        // Messages whose patches cannot be read are looked at again.
        let rows = rows.unwrap_or_default();
        for stored in &rows {
            let entry = self.still_available(stored, &touched, cx.effects.submitted);
            let due = entry.filter(|entry| {
                is_expired(Subqueue::Main, &entry.row, cx.now.wall) && self.may_expire(cx)
            });
            if let Some(entry) = due
                && let Some(body) = body_of(stored)
            {
                let number = stored.number;
                self.sub_mut(Subqueue::Main).window.take(number);
                drop(cx.shared.bodies.take(entry.body));
                let part = Subqueue::Main.part();
                let message = Message::available(part, number, &entry, body.patch);
                self.expire(&message, true, cx);
            } else if entry.is_some() || self.sub(Subqueue::Main).locks.contains(stored.number) {
                sweep.look_again(cx);
            }
        }
        if rows.len() < numbers.len() {
            sweep.look_again(cx);
        }
        self.sweep = Some(sweep);
    }

    fn retry_sweep(&mut self, sweep: &Sweep, cx: &Context<'_>) {
        let at = cx.now.wall.0.saturating_add(RETRY_MS);
        self.expiry.postpone(sweep.block, at);
    }
}

//! Sweep: ids whose window is over leave the store, some time after that.
//!
//! What counts is the time that stands with an id, not whether it is still there, so sweeping may
//! be late; it is done in pieces that fit a turn, and not more often than worth it. Ids that were
//! accepted again while a piece was being read are left alone.

use std::collections::BTreeMap;

use store::{Entry, EntryKey, Index, Query, SequenceNumber, StoreError, Write};

use super::{Acceptance, IdHash};
use crate::id::ReadId;
use crate::queue::Queue;
use crate::read::Purpose;
use crate::refill::RETRY_MS;
use crate::shared::Context;
use crate::time::Wall;

/// How long after the end of an id's window it may stay, at most: there should be several by then.
const LATEST_MS: u64 = 60_000;

#[derive(Debug, Default)]
pub(super) struct Sweep {
    next: Next,
    waiting: Option<ReadId>,
    /// Accepted while a piece was being read, and when the first of them was.
    renewed: BTreeMap<IdHash, Acceptance>,
    renewed_from: Option<Wall>,
}

/// When to look next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Next {
    /// It has to be found out what the store has.
    #[default]
    Unknown,
    /// Nothing is there.
    Never,
    /// The oldest id was accepted at this moment.
    Oldest(Wall),
    /// After a failure.
    Retry(Wall),
}

impl Sweep {
    pub(super) fn note_accepted(&mut self, id: IdHash, acceptance: Acceptance) {
        if self.next == Next::Never {
            self.next = Next::Oldest(acceptance.at);
        }
        if self.waiting.is_some() {
            self.renewed.insert(id, acceptance);
            self.renewed_from.get_or_insert(acceptance.at);
        }
    }

    fn due(&self, window: u64) -> Option<Wall> {
        if self.waiting.is_some() {
            return None;
        }
        match self.next {
            Next::Unknown => Some(Wall(0)),
            Next::Never => None,
            Next::Oldest(at) => {
                let late = (window / 16).min(LATEST_MS);
                Some(Wall(at.0.saturating_add(window).saturating_add(late)))
            }
            Next::Retry(at) => Some(at),
        }
    }
}

impl Queue {
    /// When the history wants a tick.
    pub(crate) fn history_alarm(&self) -> Option<Wall> {
        let unused = self.head.next_number == SequenceNumber::FIRST;
        if unused || !self.settings.requires_duplicate_detection {
            return None;
        }
        let window = self.settings.duplicate_detection_history_time_window;
        self.duplicates.sweep.due(window)
    }

    /// Starts to sweep, if it is time.
    pub(crate) fn sweep_history(&mut self, cx: &mut Context<'_>) {
        let due = self.history_alarm().is_some_and(|at| at <= cx.now.wall);
        if due && cx.take_work() {
            let query = Query::Entries {
                entity: self.id,
                index: Index::DuplicateTime,
                from: EntryKey::by_u64(self.head.duplicates_from_ms, SequenceNumber(0)),
                until: EntryKey::by_u64(u64::MAX, SequenceNumber::MAX),
                limit: cx.shared.settings.turn_work,
                max_bytes: usize::MAX,
            };
            let read = cx.ask(query, Purpose::DuplicateSweep(self.id));
            self.duplicates.sweep.waiting = Some(read);
        }
    }

    /// The oldest of the history were read.
    pub(crate) fn history_read(
        &mut self,
        read: ReadId,
        found: Result<Vec<Entry>, StoreError>,
        cx: &mut Context<'_>,
    ) {
        if self.duplicates.sweep.waiting != Some(read) {
            return;
        }
        self.duplicates.sweep.waiting = None;
        let renewed = std::mem::take(&mut self.duplicates.sweep.renewed);
        match found {
            Ok(entries) => self.sweep_entries(&entries, &renewed, cx),
            Err(_) => {
                self.duplicates.sweep.renewed_from = None;
                let again = Wall(cx.now.wall.0.saturating_add(RETRY_MS));
                self.duplicates.sweep.next = Next::Retry(again);
            }
        }
    }

    fn sweep_entries(
        &mut self,
        entries: &[Entry],
        renewed: &BTreeMap<IdHash, Acceptance>,
        cx: &mut Context<'_>,
    ) {
        let window = self.settings.duplicate_detection_history_time_window;
        let now = cx.now.wall.0;
        let over = |at: u64| at.saturating_add(window) <= now;
        let whole = entries.len() < cx.shared.settings.turn_work;
        let mut next = if whole { Next::Never } else { Next::Unknown };
        let mut swept = 0;
        for entry in entries {
            let at = entry.key.group_u64().unwrap_or(0);
            if !over(at) {
                next = Next::Oldest(Wall(at));
                break;
            }
            self.forget(entry, Wall(at), renewed, cx);
            swept = at;
        }
        if let (Next::Never, Some(at)) = (next, self.duplicates.sweep.renewed_from) {
            next = Next::Oldest(at);
        }
        self.duplicates.sweep.renewed_from = None;
        self.duplicates.sweep.next = next;
        if swept > self.head.duplicates_from_ms {
            self.head.duplicates_from_ms = swept;
            self.touch(cx);
            self.duplicates.filter.swept(Wall(swept));
        }
    }

    fn forget(
        &mut self,
        entry: &Entry,
        at: Wall,
        renewed: &BTreeMap<IdHash, Acceptance>,
        cx: &mut Context<'_>,
    ) {
        let entity = self.id;
        let (index, key) = (Index::DuplicateTime, entry.key.clone());
        cx.write(Write::RemoveEntry { entity, index, key });
        // What was read may be the renewed acceptance itself.
        let number = entry.key.number;
        let acceptance = Acceptance { at, number };
        let is_last = |id: &IdHash| renewed.get(id).is_none_or(|last| *last == acceptance);
        let Some(id) = IdHash::parse(&entry.value).filter(is_last) else {
            return;
        };
        let (index, key) = (Index::DuplicateId, id.key());
        cx.write(Write::RemoveEntry { entity, index, key });
        self.duplicates.recent.forget(id, acceptance);
    }
}

//! Periods: message ids are kept by when they were accepted, a quarter of a window in each period,
//! so that they go from the store as a whole once the windows of all of them are over.
//!
//! A period begins behind the last id of the one before, once that has lasted for long enough and
//! another id is accepted, and the entity's head says when. An id accepted again after its window
//! stands in two of them for a while. What counts is the time that stands with it, not whether it
//! is still there, so a period may go late. Ids that were kept before there were periods are one
//! that began at 0; its keys name no period.

use std::ops::{Range, RangeInclusive};

use bytes::Bytes;
use store::{EntityId, EntryKey, Head, Index, SequenceNumber, Write};

use super::known::{HASH, START};
use crate::api::settings::QueueSettings;
use crate::api::time::Wall;
use crate::context::Context;
use crate::message::id::IdHash;
use crate::queue::rows::Rows;
use crate::send::duplicates::Duplicates;

/// Periods within a window.
const WITHIN_A_WINDOW: u64 = 4;

/// How long a period takes in ids, in milliseconds.
fn length(window: u64) -> u64 {
    (window / WITHIN_A_WINDOW).max(1)
}

/// The key of an id in the period that began at this moment.
pub(super) fn key(period: u64, id: IdHash) -> EntryKey {
    EntryKey::new(group(period, id.0), SequenceNumber(0))
}

fn group(period: u64, hash: [u8; HASH]) -> Bytes {
    if period == 0 {
        return Bytes::copy_from_slice(&hash);
    }
    let mut group = [0; START + HASH];
    group[..START].copy_from_slice(&period.to_be_bytes());
    group[START..].copy_from_slice(&hash);
    Bytes::copy_from_slice(&group)
}

/// The keys of all ids of the period that began at this moment.
fn keys(period: u64) -> Range<EntryKey> {
    let first = EntryKey::new(group(period, [0; HASH]), SequenceNumber(0));
    first..EntryKey::new(group(period, [u8::MAX; HASH]), SequenceNumber::MAX)
}

/// The keys of all ids of the periods that began at this moment and later.
pub(super) fn keys_from(period: u64) -> Range<EntryKey> {
    keys(period).start..keys(u64::MAX).end
}

/// Where an id is if it was accepted within this span of time.
pub(super) fn keys_within(
    periods: &[u64],
    span: RangeInclusive<Wall>,
    id: IdHash,
) -> impl Iterator<Item = EntryKey> {
    let ends = periods.iter().skip(1).copied().chain([u64::MAX]);
    let overlap = move |(start, end): &(u64, u64)| span.start().0 <= *end && *start <= span.end().0;
    let periods = periods.iter().copied().zip(ends).filter(overlap);
    periods.map(move |(period, _)| key(period, id))
}

impl Duplicates {
    /// The period of an id that is accepted at this moment.
    pub(super) fn period_at(
        &mut self,
        at: Wall,
        rows: &mut Rows,
        settings: &QueueSettings,
        cx: &mut Context<'_>,
    ) -> u64 {
        let length = length(settings.duplicate_detection_history_time_window);
        match rows.head.periods.last() {
            Some(last)
                if at.0 < last.saturating_add(length)
                    || rows.head.periods.len() == Head::MAX_PERIODS =>
            {
                *last
            }
            last => {
                // The one before ends with its last id, so that it need not stay for longer than
                // that.
                let behind = last.map(|_| self.newest.0.saturating_add(1));
                let start = behind.map_or(at.0, |behind| behind.min(at.0));
                rows.head.periods.push(start);
                rows.touch(cx);
                start
            }
        }
    }

    /// When the history wants a tick: the windows of all ids of its first period are over then.
    pub(crate) fn history_alarm(&self, rows: &Rows, settings: &QueueSettings) -> Option<Wall> {
        let first = *rows.head.periods.first()?;
        if !settings.requires_duplicate_detection {
            return None;
        }
        let window = settings.duplicate_detection_history_time_window;
        // While it is the last one more may come, until another begins.
        let latest = first.saturating_add(length(window));
        let last = latest.max(self.newest.0);
        let end = rows.head.periods.get(1).copied().unwrap_or(last);
        Some(Wall(end.saturating_add(window)))
    }

    /// Removes the periods that are over.
    pub(crate) fn sweep_history(
        &mut self,
        rows: &mut Rows,
        settings: &QueueSettings,
        cx: &mut Context<'_>,
    ) {
        while self
            .history_alarm(rows, settings)
            .is_some_and(|at| at <= cx.now.wall)
            && cx.take_work()
        {
            let period = rows.head.periods.remove(0);
            rows.touch(cx);
            Self::remove_ids(rows.id, Index::DuplicateId, keys(period), cx);
            if period == 0 {
                let first = EntryKey::by_u64(0, SequenceNumber(0));
                let times = first..EntryKey::by_u64(u64::MAX, SequenceNumber::MAX);
                Self::remove_ids(rows.id, Index::DuplicateTime, times, cx);
            }
            let next = rows.head.periods.first().copied();
            self.filter.swept(Wall(next.unwrap_or(u64::MAX)));
        }
    }

    fn remove_ids(entity: EntityId, index: Index, keys: Range<EntryKey>, cx: &mut Context<'_>) {
        cx.write(Write::RemoveEntries {
            entity,
            index,
            keys: Box::new(keys),
        });
    }
}

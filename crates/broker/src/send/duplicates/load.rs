//! Load: after a restart the filter is filled from the store, piece by piece, once it is needed.

use store::{Entry, EntryKey, Index, Query, StoreError};

use super::filter::Filter;
use super::known::{damaged, id_of};
use super::periods;
use crate::api::id::ReadId;
use crate::api::time::Wall;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::message::id::{Acceptance, IdHash};
use crate::queue::rows::Rows;
use crate::send::duplicates::Duplicates;

/// Entries of one piece.
const PIECE: usize = 4_096;

/// How far the filter knows what the store has.
#[derive(Debug, Default)]
pub(super) enum Load {
    /// Not needed yet.
    #[default]
    NotStarted,
    Waiting(ReadId),
    Complete,
    /// There are too many ids, or they cannot be read: every lookup goes to the store.
    GivenUp,
}

impl Load {
    /// Whether an id that the filter has not seen is new.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }

    /// Adds an id to the filter, unless that was given up.
    pub(super) fn add(&mut self, filter: &mut Filter, id: IdHash, at: Wall) {
        if !matches!(self, Self::GivenUp) {
            filter.insert(id, at);
            self.limit(filter);
        }
    }

    /// Gives the filter up when it has grown too large.
    fn limit(&mut self, filter: &mut Filter) {
        if filter.is_too_large() {
            self.give_up(filter);
        }
    }

    fn give_up(&mut self, filter: &mut Filter) {
        *self = Self::GivenUp;
        filter.clear();
    }
}

impl Duplicates {
    /// Begins to fill the filter, if that has not been done.
    pub(super) fn start_load(&mut self, rows: &Rows, cx: &mut Context<'_>) {
        if !matches!(self.load, Load::NotStarted) {
            return;
        }
        match rows.head.periods.first() {
            None => self.load = Load::Complete,
            Some(first) => self.load_piece(periods::keys_from(*first).start, rows, cx),
        }
    }

    fn load_piece(&mut self, from: EntryKey, rows: &Rows, cx: &mut Context<'_>) {
        let until = periods::keys_from(0).end;
        let query = Query::Entries {
            entity: rows.id,
            index: Index::DuplicateId,
            from,
            until,
            limit: PIECE,
            max_bytes: usize::MAX,
        };
        let read = cx.ask(query, Purpose::DuplicateLoad(rows.id));
        self.load = Load::Waiting(read);
    }

    /// A piece of the history was read. What was accepted since is in the filter already, and
    /// what has been swept since only makes it a little less sharp.
    pub(crate) fn history_loaded(
        &mut self,
        read: ReadId,
        found: Result<Vec<Entry>, StoreError>,
        rows: &Rows,
        cx: &mut Context<'_>,
    ) {
        if !matches!(self.load, Load::Waiting(id) if id == read) {
            // The filter was given up since.
            return;
        }
        match found.and_then(|entries| add(&mut self.filter, &entries)) {
            Ok(None) => self.load = Load::Complete,
            Ok(Some(next)) => self.load_piece(next, rows, cx),
            Err(_) => self.load.give_up(&mut self.filter),
        }
        self.load.limit(&mut self.filter);
    }
}

/// Adds what was read. Returns where to go on, if there is more.
fn add(filter: &mut Filter, entries: &[Entry]) -> Result<Option<EntryKey>, StoreError> {
    for entry in entries {
        let id = id_of(&entry.key).ok_or_else(damaged)?;
        let acceptance = Acceptance::decode(&entry.value).ok_or_else(damaged)?;
        filter.insert(id, acceptance.at);
    }
    let last = entries.last().filter(|_| entries.len() == PIECE);
    Ok(last.map(|entry| EntryKey {
        number: entry.key.number.next(),
        ..entry.key.clone()
    }))
}

//! Load: after a restart the filter is filled from the store, piece by piece, once it is needed.

use store::{Entry, EntryKey, Index, Query, StoreError};

use super::filter::Filter;
use super::{Acceptance, IdHash, damaged, eras};
use crate::api::id::ReadId;
use crate::api::time::Wall;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::queue::Queue;

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

impl Queue {
    /// Begins to fill the filter, if that has not been done.
    pub(super) fn start_load(&mut self, cx: &mut Context<'_>) {
        if !matches!(self.duplicates.load, Load::NotStarted) {
            return;
        }
        match self.rows.head.eras.first() {
            None => self.duplicates.load = Load::Complete,
            Some(first) => self.load_piece(eras::keys_from(*first).start, cx),
        }
    }

    fn load_piece(&mut self, from: EntryKey, cx: &mut Context<'_>) {
        let until = eras::keys_from(0).end;
        let query = Query::Entries {
            entity: self.id,
            index: Index::DuplicateId,
            from,
            until,
            limit: PIECE,
            max_bytes: usize::MAX,
        };
        let read = cx.ask(query, Purpose::DuplicateLoad(self.id));
        self.duplicates.load = Load::Waiting(read);
    }

    /// A piece of the history was read. What was accepted since is in the filter already, and
    /// what has been swept since only makes it a little less sharp.
    pub(crate) fn history_loaded(
        &mut self,
        read: ReadId,
        found: Result<Vec<Entry>, StoreError>,
        cx: &mut Context<'_>,
    ) {
        let duplicates = &mut self.duplicates;
        if !matches!(duplicates.load, Load::Waiting(id) if id == read) {
            // The filter was given up since.
            return;
        }
        match found.and_then(|entries| add(&mut duplicates.filter, &entries)) {
            Ok(None) => duplicates.load = Load::Complete,
            Ok(Some(next)) => self.load_piece(next, cx),
            Err(_) => duplicates.load.give_up(&mut duplicates.filter),
        }
        let duplicates = &mut self.duplicates;
        duplicates.load.limit(&mut duplicates.filter);
    }
}

/// Adds what was read. Returns where to go on, if there is more.
fn add(filter: &mut Filter, entries: &[Entry]) -> Result<Option<EntryKey>, StoreError> {
    for entry in entries {
        let id = eras::id_of(&entry.key).ok_or_else(damaged)?;
        let acceptance = Acceptance::decode(&entry.value).ok_or_else(damaged)?;
        filter.insert(id, acceptance.at);
    }
    let last = entries.last().filter(|_| entries.len() == PIECE);
    Ok(last.map(|entry| EntryKey {
        number: entry.key.number.next(),
        ..entry.key.clone()
    }))
}

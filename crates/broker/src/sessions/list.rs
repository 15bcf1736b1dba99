//! List: the ids of sessions, a page at a time.
//!
//! Either all that have messages or a state, or those whose state was set after a moment. Those
//! with messages are in memory, those with a state are read by their notes in bounded pieces, and
//! the two are merged in the order of their keys. A page that goes on where one before stopped
//! starts there; any other walks from the beginning. (docs/spec/entities.md#18)

use store::{Entry, Index, Query, StoreError};

use crate::api::error::{RequestError, SessionError};
use crate::api::output::SessionPage;
use crate::api::time::Wall;
use crate::context::Context;
use crate::context::read::Purpose;
use crate::queue::session_key::SessionKey;
use crate::sessions::listing::Listing;
use crate::sessions::read::SessionRead;
use crate::sessions::state::read_note;
use crate::sessions::{Parts, Sessions};

/// Notes that are read at once.
const PIECE: usize = 1_024;
/// Why sessions cannot be listed that the survey did not find.
pub(super) fn unreadable() -> RequestError {
    RequestError::Unreadable(SessionError::Unreadable.to_string())
}

impl Sessions {
    /// The survey is over, and not all sessions are known.
    pub(super) fn refuse_listings(&mut self, cx: &mut Context<'_>) {
        for listing in std::mem::take(&mut self.listings) {
            cx.emit(listing.answer(Err(unreadable())));
        }
    }

    /// The survey is complete, so listings can begin.
    pub(super) fn list_at_last(&mut self, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        for listing in std::mem::take(&mut self.listings) {
            Self::list_on(listing, parts, cx);
        }
    }

    /// Asks for the next notes. Those of a group that shares a hash with the one before are few.
    pub(super) fn list_on(listing: Listing, parts: &mut Parts<'_>, cx: &mut Context<'_>) {
        let after = listing.after.as_ref();
        let query = Query::Groups {
            entity: parts.rows.id,
            index: Index::SessionState,
            after: after.map(|key| key.state_note().group),
            limit: PIECE,
        };
        let read = SessionRead::List(Box::new(listing));
        cx.ask(query, Purpose::Session(parts.rows.id, Box::new(read)));
    }

    /// Some notes came back.
    pub(super) fn list_loaded(
        &mut self,
        mut listing: Listing,
        found: Result<Vec<Entry>, StoreError>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let entries = match found {
            Ok(entries) => entries,
            Err(error) => {
                return cx.emit(listing.answer(Err(RequestError::Unreadable(error.to_string()))));
            }
        };
        let notes = entries
            .iter()
            .filter(|entry| entry.key.group_u64().is_some());
        let notes: Vec<_> = notes
            .filter_map(|entry| read_note(&entry.value, self.ids))
            .collect();
        let whole = entries.len() < PIECE || notes.len() < entries.len();
        self.merge(&mut listing, &notes, whole);
        if !listing.is_full() && !whole {
            return Self::list_on(listing, parts, cx);
        }
        let skip = listing.skip.saturating_add(listing.ids.len());
        if listing.is_full()
            && let Some(after) = listing.after.take()
        {
            self.remember_bookmark(((listing.updated_after, skip), after));
        }
        let ids = std::mem::take(&mut listing.ids);
        cx.emit(listing.answer(Ok(SessionPage { ids, skip })));
    }
}

impl Sessions {
    /// Takes sessions with messages and those noted into the listing, in order of their keys.
    fn merge(&self, listing: &mut Listing, notes: &[(Wall, SessionKey)], whole: bool) {
        let mut keys: Vec<&SessionKey> = Vec::new();
        let mut noted = notes.iter();
        if let Some(after) = listing.updated_after {
            keys.extend(
                noted
                    .by_ref()
                    .filter(|(at, _)| *at > after)
                    .map(|(_, key)| key),
            );
        } else {
            let room = listing.left_to_skip.saturating_add(listing.top);
            let from = listing.after.clone();
            let behind = |key: &&SessionKey| from.as_ref().is_none_or(|from| *key > from);
            let until = notes.last().filter(|_| !whole).map(|(_, key)| key);
            let within = |key: &&SessionKey| until.is_none_or(|until| *key <= until);
            let start = from.clone().unwrap_or(SessionKey::from_hash(0));
            let idle = self.idle.range(&start..).map(|(key, _)| key);
            let held = self
                .by_key
                .range(&start..)
                .filter(|(_, id)| self.existing_hold(**id).has_messages());
            keys.extend(idle.filter(behind).take_while(within).take(room));
            let held = held.map(|(key, _)| key);
            keys.extend(held.filter(behind).take_while(within).take(room));
            keys.extend(noted.map(|(_, key)| key).take(room));
        }
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            if listing.is_full() {
                return;
            }
            listing.take(key);
        }
        if let Some((_, last)) = notes.last().filter(|_| !listing.is_full() && !whole) {
            listing.after = Some(last.clone());
        }
    }
}

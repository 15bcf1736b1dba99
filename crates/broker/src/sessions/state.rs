//! State: opaque bytes that a session's holder keeps with it.
//!
//! Only the holder's connection reads and sets it. What holders ask is done in the order in which
//! they asked, once the state has been read, since its size counts towards the entity's. It stays
//! when the session is empty, and beside it stands a note for listings: when it was set, and
//! whose it is. (docs/spec/entities.md#18)

use bytes::{BufMut, Bytes, BytesMut};
use store::{EntityId, Entry, Index, Query, StoreError, Write};

use crate::api::error::{RequestError, SendError};
use crate::api::id::RequestId;
use crate::api::output::Output;
use crate::api::settings::QueueSettings;
use crate::api::time::{Mono, Wall};
use crate::context::Context;
use crate::context::clients::HoldId;
use crate::context::read::Purpose;
use crate::queue::rows::Rows;
use crate::queue::session_key::{SessionIds, SessionKey};
use crate::sessions::read::SessionRead;
use crate::sessions::state_request::StateRequest;
use crate::sessions::{Parts, Sessions};

/// What a state costs besides its bytes; it counts towards the entity's size too.
const OVERHEAD: u64 = 64;

impl Sessions {
    pub(super) fn ask_state(
        &mut self,
        id: HoldId,
        wanted: StateRequest,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let entity = parts.rows.id;
        let hold = self.existing_hold_mut(id);
        hold.states.push_back(wanted);
        if hold.states.len() > 1 {
            // The first one's read serves them all.
            return;
        }
        let query = query(entity, &hold.key);
        let read = Box::new(SessionRead::State(id));
        cx.ask(query, Purpose::Session(entity, read));
    }

    /// The state came back: what is wanted of it is done in order.
    pub(super) fn state_loaded(
        &mut self,
        id: HoldId,
        found: Result<Vec<Entry>, StoreError>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        // The hold may have ended since; its requests were refused then.
        let Some(hold) = self.hold_mut(id) else {
            return;
        };
        let (wanted, key) = (std::mem::take(&mut hold.states), hold.key.clone());
        let live = hold.is_live(cx.now.mono);
        let mut state = match (found, hold.state_meanwhile.take()) {
            _ if !live => Err(RequestError::SessionLockLost),
            (_, Some(newer)) => Ok(newer),
            (Ok(entries), None) => Ok(entries.into_iter().next().map(|entry| entry.value)),
            (Err(error), None) => Err(RequestError::Unreadable(error.to_string())),
        };
        for wanted in wanted {
            match (&mut state, wanted) {
                (Err(error), wanted) => cx.emit(wanted.refusal(error.clone())),
                (Ok(state), StateRequest::Get(request)) => cx.emit(Output::SessionState {
                    request,
                    result: Ok(state.clone()),
                }),
                (Ok(state), StateRequest::Set(request, new)) => {
                    let result = self.set_state(&key, state, new, parts, cx);
                    cx.emit(Output::SessionStateSet { request, result });
                }
            }
        }
        if let Ok(state) = &state {
            let hold = self.existing_hold_mut(id);
            hold.state_cost = Some(cost(state.as_ref()));
        }
    }

    /// Asks for the state of a session, be it held or not.
    pub(super) fn show_state(
        &self,
        request: RequestId,
        session: &Bytes,
        entity: EntityId,
        cx: &mut Context<'_>,
    ) {
        let query = query(entity, &self.ids.key(session));
        let read = Box::new(SessionRead::ShowState(request));
        cx.ask(query, Purpose::Session(entity, read));
    }

    fn set_state(
        &mut self,
        key: &SessionKey,
        old: &mut Option<Bytes>,
        new: Option<Bytes>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), RequestError> {
        let before = cost(old.as_ref());
        let after = cost(new.as_ref());
        let room = self.check_state_room(before, after, 0, parts.rows, parts.settings);
        let grown = after.saturating_sub(before);
        let in_namespace = || match grown {
            0 => Ok(()),
            grown => cx.shared.namespaces.check(parts.rows.namespace, grown),
        };
        room.and_then(|()| in_namespace())
            .map_err(RequestError::Refused)?;
        self.put_state(key, before, new.clone(), parts, cx);
        *old = new;
        Ok(())
    }

    /// Whether the entity has room for a state that takes `after` instead of `before`, beside
    /// what is `held` for it.
    pub(crate) fn check_state_room(
        &self,
        before: u64,
        after: u64,
        held: u64,
        rows: &Rows,
        settings: &QueueSettings,
    ) -> Result<(), SendError> {
        let size = rows.message_bytes().saturating_add(self.state_bytes);
        let size = size.saturating_add(held);
        let limit = settings.max_size;
        if after > before && size.saturating_sub(before).saturating_add(after) > limit {
            return Err(SendError::QuotaExceeded { size, limit });
        }
        Ok(())
    }

    /// What there is to read before it is known what the state of a held session takes.
    pub(crate) fn unknown_state(&self, id: HoldId, entity: EntityId) -> Option<Query> {
        let hold = self.hold(id)?;
        hold.state_cost.is_none().then(|| query(entity, &hold.key))
    }

    /// What the state of a held session took when it was read. It may have been set since.
    pub(crate) fn learn_state(&mut self, id: HoldId, cost: u64) {
        if let Some(hold) = self.hold_mut(id) {
            hold.state_cost.get_or_insert(cost);
        }
    }

    /// What the state of a session takes, if that is held.
    pub(crate) fn state_cost(&self, id: HoldId, now: Mono) -> Option<u64> {
        let hold = self.hold(id)?;
        hold.state_cost.filter(|_| hold.is_live(now))
    }

    /// Sets a state whose session is held and which has room.
    pub(crate) fn commit_state(
        &mut self,
        id: HoldId,
        state: Option<Bytes>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let hold = self.existing_hold_mut(id);
        let before = hold.state_cost.replace(cost(state.as_ref()));
        let before = before.expect("the check has looked up what the old state takes");
        if !hold.states.is_empty() {
            // What is being read for them is the state before.
            hold.state_meanwhile = Some(state.clone());
        }
        let key = hold.key.clone();
        self.put_state(&key, before, state, parts, cx);
    }

    fn put_state(
        &mut self,
        key: &SessionKey,
        before: u64,
        new: Option<Bytes>,
        parts: &mut Parts<'_>,
        cx: &mut Context<'_>,
    ) {
        let after = cost(new.as_ref());
        Self::write_state(parts.rows.id, key, new, cx);
        let left = self.state_bytes.saturating_sub(before);
        self.state_bytes = left.saturating_add(after);
        parts.rows.weigh_state(before, after, cx);
        parts.rows.touch(cx);
    }

    fn write_state(entity: EntityId, key: &SessionKey, state: Option<Bytes>, cx: &mut Context<'_>) {
        let index = Index::SessionState;
        match state {
            Some(value) => {
                cx.write(Write::PutEntry {
                    entity,
                    index,
                    key: key.state_note(),
                    value: note(cx.now.wall, key),
                });
                cx.write(Write::PutEntry {
                    entity,
                    index,
                    key: key.state(),
                    value,
                });
            }
            None => {
                for key in [key.state_note(), key.state()] {
                    cx.write(Write::RemoveEntry { entity, index, key });
                }
            }
        }
    }
}

/// The state came back that a request wanted to see.
pub(super) fn shown(request: RequestId, found: Result<Vec<Entry>, StoreError>) -> Output {
    let state = found.map(|entries| entries.into_iter().next().map(|entry| entry.value));
    let result = state.map_err(|error| RequestError::Unreadable(error.to_string()));
    Output::SessionState { request, result }
}

fn query(entity: EntityId, key: &SessionKey) -> Query {
    Query::EntryPoints {
        entity,
        index: Index::SessionState,
        keys: vec![key.state()],
    }
}

/// What a state takes of its entity's size.
pub(crate) fn cost(state: Option<&Bytes>) -> u64 {
    state.map_or(0, |state| (state.len() as u64).saturating_add(OVERHEAD))
}

fn note(updated: Wall, key: &SessionKey) -> Bytes {
    let mut note = BytesMut::with_capacity(8 + key.id.len());
    note.put_u64(updated.0);
    note.put_slice(&key.id);
    note.freeze()
}

/// When a session's state was set, and which session it is; `None` if the note makes no sense.
pub(super) fn read_note(note: &Bytes, ids: SessionIds) -> Option<(Wall, SessionKey)> {
    let (updated, id) = note.split_first_chunk()?;
    Some((Wall(u64::from_be_bytes(*updated)), ids.key(id)))
}

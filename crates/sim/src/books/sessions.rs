//! Sessions: the entries by which messages are found by session, and those of sessions' states.
//!
//! Every row that is available, deferred or scheduled in a queue with sessions has one entry, in
//! the group of its session's hash; one that is available tells the session's id. Each state has
//! a note beside it which says whose it is. The hash is learnt from the rows: one session has
//! one, for ever. (Invariants I4, I9)

use std::collections::BTreeMap;

use bytes::Bytes;
use store::image::FullEntryKey;
use store::{EntityId, EntryKey, Index, MessageRow, Part, SequenceNumber};

use super::{Books, Page, Place};
use crate::message::MessageId;
use crate::session::Session;
use crate::violation::Violation;

/// What a state costs besides its bytes.
const OVERHEAD: u64 = 64;

/// A place in the order of a session: whose, in which part, under which hash.
pub(super) type Member = (EntityId, Part, SequenceNumber, u64);
/// A state's place: whose, and two hashes of the session's id.
pub(super) type StatePlace = (EntityId, u64, SequenceNumber);

/// What simulated queues do that changes how their books are kept.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Kind {
    pub sessions: bool,
    pub cloud: bool,
    pub is_topic: bool,
    /// Whose subscription it is.
    pub topic: Option<EntityId>,
}

/// A session's state was set or, without a value, cleared.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct StateChange {
    pub entity: EntityId,
    /// `None` if there was no state to clear.
    pub session: Option<Session>,
    pub value: Option<Bytes>,
}

/// What is known of the hash of sessions' ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Hashes {
    of: BTreeMap<Session, u64>,
    whose: BTreeMap<u64, Session>,
}

impl Hashes {
    fn learn(&mut self, session: Session, hash: u64) -> Result<(), Violation> {
        let known = *self.of.entry(session).or_insert(hash);
        let whose = *self.whose.entry(hash).or_insert(session);
        if (known, whose) == (hash, session) {
            return Ok(());
        }
        let what = format!("{session:?} has hash {hash:x}, which was {known:x}, or {whose:?}'s");
        Err(Violation::new("I4", what))
    }
}

impl Books {
    pub(super) fn kind(&self, entity: EntityId) -> Kind {
        self.kinds.get(&entity).copied().unwrap_or_default()
    }

    /// A row is put or removed.
    pub(super) fn note_member(
        &mut self,
        place: Place,
        id: MessageId,
        row: &MessageRow,
        there: bool,
        page: &mut Page,
    ) {
        let Place {
            entity,
            part,
            number,
        } = place;
        if !has_order(part) || !self.kind(entity).sessions {
            return;
        }
        page.members
            .insert((entity, part, number, row.session_hash));
        if let (Part::Active, Some(session)) = (part, Session::of(id)) {
            let key = (entity, session, number);
            if there {
                self.sessions.insert(key, id);
            } else {
                self.sessions.remove(&key);
            }
        }
    }

    /// An entry is put or removed.
    pub(super) fn note_session(
        &mut self,
        place: &FullEntryKey,
        value: Option<&Bytes>,
        page: &mut Page,
    ) {
        let state = self.note_session_place(place, value, page);
        if let Some(state) = state.filter(|state| state_of(*state) == *place) {
            self.change_state(place, state, value.cloned(), page);
        }
    }

    /// What an entry is about is to be looked at. Returns the state, if it is about one.
    pub(super) fn note_session_place(
        &self,
        place: &FullEntryKey,
        value: Option<&Bytes>,
        page: &mut Page,
    ) -> Option<StatePlace> {
        let (entity, index, key) = place;
        let (hash, turn_end) = key.group.split_first_chunk()?;
        let hash = u64::from_be_bytes(*hash);
        match index {
            Index::Session => {
                let part = turn_end.first().map_or(Some(Part::Active), |part| {
                    Part::ALL.into_iter().find(|known| *known as u8 == *part)
                });
                let member = part.map(|part| (*entity, part, key.number, hash));
                page.members.extend(member);
                None
            }
            Index::SessionState => {
                let state = (*entity, hash, key.number);
                let whose = page.states.entry(state).or_default();
                let note = self.entries.get(&note_of(state));
                let note = value.filter(|_| turn_end.is_empty()).or(note);
                *whose = note.and_then(named_in).or(*whose);
                Some(state)
            }
            _ => None,
        }
    }

    fn change_state(
        &mut self,
        place: &FullEntryKey,
        state: StatePlace,
        value: Option<Bytes>,
        page: &mut Page,
    ) {
        let before = cost(self.entries.get(place));
        let tally = self.tallies.entry(state.0).or_default();
        tally.state_bytes = tally.state_bytes - before + cost(value.as_ref());
        page.changes.entities.insert(state.0);
        page.state_changes.push((state, value));
    }

    /// Takes the bytes of all states into account, for a look at all entries.
    pub(super) fn count_states(&mut self) {
        let of_states = |(place, _): &(&FullEntryKey, &Bytes)| {
            place.1 == Index::SessionState && place.2.group.len() > 8
        };
        for ((entity, ..), value) in self.entries.iter().filter(of_states) {
            self.tallies.entry(*entity).or_default().state_bytes += cost(Some(value));
        }
    }

    /// What became of states, in order.
    pub(super) fn state_changes(page: &mut Page) -> Vec<StateChange> {
        let changes = std::mem::take(&mut page.state_changes).into_iter();
        let resolve = |(place, value): (StatePlace, _)| StateChange {
            entity: place.0,
            session: page.states.get(&place).copied().flatten(),
            value,
        };
        changes.map(resolve).collect()
    }

    /// A row has its entry, and an entry its row.
    pub(super) fn check_member(&mut self, member: Member) -> Result<(), Violation> {
        let (entity, part, number, hash) = member;
        let row = self.rows.get(&(entity, part, number));
        let row = row.filter(|(_, row)| row.session_hash == hash).copied();
        let entry = self.entries.get(&entry_of(member));
        let wrong = |what: &str| {
            let what = format!("{number} of {entity:?} {part:?} {what}");
            Err(Violation::new("I4", what))
        };
        let (id, entry) = match (row, entry) {
            (None, None) => return Ok(()),
            (Some((id, _)), Some(entry)) => (id, entry),
            (Some(_), None) => return wrong("is not in its session's order"),
            (None, Some(_)) => return wrong("is in a session's order and not there"),
        };
        let (Some(session), Some(as_sent)) = (Session::of(id), Session::as_sent(id)) else {
            return wrong("has no session");
        };
        let told = if part == Part::Active {
            as_sent
        } else {
            String::new()
        };
        if *entry != told.as_bytes() {
            return wrong("is in another session's order");
        }
        self.hashes.learn(session, hash)
    }

    /// A state has its note, and a note its state.
    pub(super) fn check_state(&mut self, place: StatePlace) -> Result<(), Violation> {
        let note = self.entries.get(&note_of(place));
        let state = self.entries.contains_key(&state_of(place));
        if note.is_some() != state {
            let what = format!("{place:?}: a note {}, a state {state}", note.is_some());
            return Err(Violation::new("I9", what));
        }
        match note.map(named_in) {
            None => Ok(()),
            Some(Some(session)) => self.hashes.learn(session, place.1),
            Some(None) => Err(Violation::new(
                "I9",
                format!("{place:?} is the state of no session"),
            )),
        }
    }

    /// Available messages of a session, locked ones included, in order.
    pub fn of_session(
        &self,
        entity: EntityId,
        session: Session,
    ) -> impl DoubleEndedIterator<Item = (SequenceNumber, MessageId)> {
        let first = (entity, session, SequenceNumber(0));
        let all = first..=(entity, session, SequenceNumber::MAX);
        self.sessions
            .range(all)
            .map(|((_, _, number), id)| (*number, *id))
    }

    /// Sessions of an entity that have available messages, locked ones included.
    #[must_use]
    pub fn sessions_of(&self, entity: EntityId) -> Vec<Session> {
        let mut found = Vec::new();
        let (mut next, last) = Session::BOUNDS;
        let after = |from| (entity, from, SequenceNumber::MAX);
        while let Some(((of, session, _), _)) = self.sessions.range(after(next)..).next()
            && *of == entity
            && *session < last
        {
            found.push(*session);
            next = *session;
        }
        found
    }

    /// The states of all sessions, for a start from what a crash has left.
    #[must_use]
    pub fn states(&self) -> BTreeMap<(EntityId, Session), Bytes> {
        let notes = self
            .entries
            .iter()
            .filter_map(|((entity, index, key), note)| {
                let hash = key.group_u64().filter(|_| *index == Index::SessionState)?;
                Some(((*entity, hash, key.number), named_in(note)?))
            });
        let state = |(place, session): (StatePlace, Session)| {
            let state = self.entries.get(&state_of(place))?;
            Some(((place.0, session), state.clone()))
        };
        notes.filter_map(state).collect()
    }
}

/// Whether messages of that part are found by their session.
fn has_order(part: Part) -> bool {
    matches!(part, Part::Active | Part::Deferred | Part::Scheduled)
}

fn cost(state: Option<&Bytes>) -> u64 {
    state.map_or(0, |state| state.len() as u64 + OVERHEAD)
}

fn named_in(note: &Bytes) -> Option<Session> {
    Session::named(note.get(8..)?)
}

fn entry_of((entity, part, number, hash): Member) -> FullEntryKey {
    let key = match part {
        Part::Active => EntryKey::by_u64(hash, number),
        part => EntryKey::new(longer(hash, part as u8), number),
    };
    (entity, Index::Session, key)
}

fn note_of((entity, hash, number): StatePlace) -> FullEntryKey {
    (entity, Index::SessionState, EntryKey::by_u64(hash, number))
}

fn state_of((entity, hash, number): StatePlace) -> FullEntryKey {
    let key = EntryKey::new(longer(hash, 0), number);
    (entity, Index::SessionState, key)
}

fn longer(hash: u64, last: u8) -> Vec<u8> {
    let mut group = hash.to_be_bytes().to_vec();
    group.push(last);
    group
}

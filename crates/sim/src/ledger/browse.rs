//! Browse: what clients are shown that browse: messages in order, and the sessions that there are.
//!
//! What was there all the time is shown, as far as the answer goes; what is shown of a session
//! belongs to it. (I1, I4)

use broker::{Browsed, RequestError, RequestId, SessionPage, Wall};
use store::{EntityId, Part, SequenceNumber};

use super::Ledger;
use super::answers::Asked;
use super::sessions::Key;
use crate::books::Place;
use crate::message::{self, MessageId};
use crate::session::Session;
use crate::violation::Violation;

/// How many messages are noted that a look has to show.
const NOTED: usize = 8;

/// A session that was there when a client asked: some of its messages, and changes of its state.
#[derive(Debug)]
pub(super) struct Listed {
    session: Session,
    messages: Vec<MessageId>,
    /// If it has one.
    state: Option<usize>,
}

impl Ledger {
    pub(super) fn observe_peek(
        &mut self,
        request: RequestId,
        entity: EntityId,
        session: Option<Session>,
        from: SequenceNumber,
    ) {
        let there: Vec<_> = match session {
            Some(session) => {
                let of_session = self.books.of_session(entity, session);
                of_session
                    .filter(|(number, _)| *number >= from)
                    .take(NOTED)
                    .collect()
            }
            None => self.books.numbered(entity, from).take(NOTED).collect(),
        };
        let lasting = |(_, id): &(_, MessageId)| self.books.expires_ms(*id) == Some(u64::MAX);
        let there = there.into_iter().filter(lasting).collect();
        let asked = Asked::Peek {
            entity,
            session,
            since: self.turn.index,
            there,
        };
        self.answers.expect(request, asked);
    }

    pub(super) fn verify_browsed(
        &mut self,
        asked: Option<Asked>,
        result: &Result<Vec<Browsed>, RequestError>,
    ) -> Result<(), Violation> {
        let Some(Asked::Peek {
            entity,
            session,
            since,
            there,
        }) = asked
        else {
            return Ok(());
        };
        let wrong = |invariant, what: String| Err(Violation::new(invariant, what));
        let queue = self.queue_of(entity);
        if result.is_err() && queue.is_some_and(|queue| self.queues[queue].unsteady) {
            return Ok(());
        }
        let Ok(shown) = result else {
            return wrong("I1", format!("a look was refused with {result:?}"));
        };
        if !shown.is_sorted_by_key(|message| message.number) {
            return wrong("I4", "messages are shown out of order".to_owned());
        }
        let named = |m: &Browsed| {
            let root = message::id_of(&m.payload);
            let id = self.books.named(entity, m.number);
            id.filter(|id| root == Some(message::root_of(*id)))
        };
        let ids: Vec<_> = shown.iter().map(named).collect();
        let of_session = |id: &Option<MessageId>| id.and_then(Session::of) == session;
        if session.is_some() && !ids.iter().all(of_session) {
            return wrong("I4", format!("{ids:?} are shown as of {session:?}"));
        }
        // The answer may be cut off behind its last message.
        let last = shown.last().map_or(SequenceNumber::MAX, |m| m.number);
        let missing = |(number, id): &&(SequenceNumber, MessageId)| {
            let is_shown = ids.contains(&Some(*id));
            *number < last
                && !is_shown
                && self.is_still(entity, *number, *id)
                && !self.has_waited(*id, since)
        };
        match there.iter().find(missing) {
            Some(missing) => wrong(
                "I1",
                format!(
                    "{missing:?} of {entity:?} {session:?} was there and is not among {:?}",
                    shown
                        .iter()
                        .map(|m| (m.number, m.state))
                        .collect::<Vec<_>>()
                ),
            ),
            None => Ok(()),
        }
    }

    /// Whether a message may have been scheduled for a while since that turn, so that an answer
    /// which takes several reads may have missed it.
    fn has_waited(&self, id: MessageId, since: u64) -> bool {
        let entry = self.entries.get(&id);
        entry.is_some_and(|entry| entry.waited.is_some() && entry.freed >= since)
    }

    fn is_still(&self, entity: EntityId, number: SequenceNumber, id: MessageId) -> bool {
        let part = Part::Active;
        let place = Place {
            entity,
            part,
            number,
        };
        self.books.message(place) == Some(id)
    }

    pub(super) fn observe_list(
        &mut self,
        request: RequestId,
        entity: EntityId,
        updated_after: Option<Wall>,
        skip: usize,
    ) {
        let mut listed = Vec::new();
        if updated_after.is_none() && skip == 0 {
            let with_messages = self.books.sessions_of(entity);
            let known = self.states.known().filter(|(of, _)| *of == entity);
            let with_states = known.filter(|key| self.states.is_there(*key));
            let mut sessions: Vec<_> = with_states.map(|(_, session)| session).collect();
            sessions.extend(with_messages);
            sessions.sort_unstable();
            sessions.dedup();
            let sessions = sessions.into_iter();
            listed.extend(sessions.map(|session| self.listed((entity, session))));
        }
        self.answers.expect(request, Asked::List { entity, listed });
    }

    fn listed(&self, key: Key) -> Listed {
        let of_session = self.books.of_session(key.0, key.1);
        let state = self.states.is_there(key);
        Listed {
            session: key.1,
            messages: of_session.take(NOTED).map(|(_, id)| id).collect(),
            state: state.then(|| self.states.changes(key)),
        }
    }

    pub(super) fn verify_sessions(
        &mut self,
        asked: Option<Asked>,
        result: &Result<SessionPage, RequestError>,
    ) -> Result<(), Violation> {
        let Some(Asked::List { entity, listed }) = asked else {
            return Ok(());
        };
        let wrong = |what: String| Err(Violation::new("I4", what));
        let Ok(page) = result else {
            return wrong(format!("a list of sessions was refused with {result:?}"));
        };
        let named: Option<Vec<_>> = page.ids.iter().map(|id| Session::named(id)).collect();
        let Some(mut named) = named else {
            return wrong(format!(
                "sessions are listed that no client named: {page:?}"
            ));
        };
        named.sort_unstable();
        if named.windows(2).any(|pair| pair[0] == pair[1]) {
            return wrong(format!("a session is listed twice: {page:?}"));
        }
        let missing = |listed: &&Listed| {
            let key = (entity, listed.session);
            let unchanged = listed.state == Some(self.states.changes(key));
            let place = |id: &MessageId| self.books.place(*id);
            let mut places = listed.messages.iter().filter_map(place);
            let stays = places.any(|place| (place.entity, place.part) == (entity, Part::Active));
            !named.contains(&listed.session) && (unchanged || stays)
        };
        match listed.iter().find(missing) {
            Some(missing) => wrong(format!("{missing:?} is not listed")),
            None => Ok(()),
        }
    }
}

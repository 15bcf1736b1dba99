//! Sessions: whether holders are given what is free, whether receivers that wait get a session, and
//! whether holds end in time. (I14)

use std::collections::BTreeMap;

use broker::{Mono, ReceiverId, Subqueue};
use store::EntityId;

use super::{check, cost};
use crate::ledger::entry::Hold as State;
use crate::ledger::sessions::Key;
use crate::ledger::{Ledger, TurnEnd};
use crate::message::MessageId;
use crate::violation::Violation;

/// How many messages of a session are looked at for one that is free.
const LOOK_AT: usize = 16;

/// How much has been waited for each thing.
#[derive(Debug, Default)]
pub(in crate::ledger) struct Watch {
    unserved: BTreeMap<Key, u32>,
    /// By entity: a session that a waiting receiver could have, and how long this has lasted.
    waiting: BTreeMap<EntityId, (Key, u32)>,
    late: BTreeMap<ReceiverId, u32>,
}

impl Watch {
    /// A holder was given something.
    pub(in crate::ledger) fn fed(&mut self, key: Key) {
        self.unserved.remove(&key);
    }
}

impl Ledger {
    pub(super) fn watch_sessions(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        self.check_acceptors()?;
        self.watch_holders(turn_end)?;
        self.watch_waiters(turn_end)?;
        self.watch_ends(turn_end)
    }

    /// The holder of a session with a free message is given it.
    fn watch_holders(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let mut before = std::mem::take(&mut self.watch.sessions.unserved);
        for (key, hold) in &self.sessions.holds {
            let wants = hold.lasts(now) && self.clients.wants(hold.receiver);
            if !wants || !self.has_free_of(*key) {
                continue;
            }
            let waited = before.remove(key).unwrap_or(0) + cost(turn_end, key.0);
            check("I14", waited, || {
                format!("a message of {key:?} is free and wanted, and not delivered")
            })?;
            self.watch.sessions.unserved.insert(*key, waited);
        }
        Ok(())
    }

    /// Whether something of a session could be delivered.
    fn has_free_of(&self, key: Key) -> bool {
        let mut messages = self.books.of_session(key.0, key.1).take(LOOK_AT);
        messages.any(|(_, id)| self.can_be_had(id))
    }

    fn can_be_had(&self, id: MessageId) -> bool {
        let expires = self.books.expires_ms(id);
        expires.is_some_and(|at| at > self.turn.now.wall.0) && self.is_free(id)
    }

    /// A receiver that waits for a session gets one that no receiver holds.
    fn watch_waiters(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let mut before = std::mem::take(&mut self.watch.sessions.waiting);
        let acceptors = self.sessions.acceptors.values();
        let waiting = acceptors.filter(|acceptor| acceptor.is_pending() && acceptor.until > now);
        let mut entities: Vec<_> = waiting.map(|acceptor| acceptor.entity).collect();
        entities.dedup();
        for entity in entities {
            let Some(key) = self.acceptable_session(entity, now) else {
                continue;
            };
            let seen = before.remove(&entity).filter(|(seen, _)| *seen == key);
            let waited = seen.map_or(0, |(_, waited)| waited) + cost(turn_end, entity);
            check("I14", waited, || {
                format!("{key:?} is free and wanted, and not accepted")
            })?;
            self.watch.sessions.waiting.insert(entity, (key, waited));
        }
        Ok(())
    }

    /// A session without a holder that has a free message.
    fn acceptable_session(&self, entity: EntityId, now: Mono) -> Option<Key> {
        let sessions = self.books.sessions_of(entity).into_iter();
        let mut keys = sessions.map(|session| (entity, session));
        keys.find(|key| {
            let hold = self.sessions.holds.get(key);
            hold.is_none_or(|hold| hold.has_ended(now)) && self.has_free_of(*key)
        })
    }

    /// A receiver that holds or waits too long is told so.
    fn watch_ends(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let mut before = std::mem::take(&mut self.watch.sessions.late);
        let holds = self.sessions.holds.iter();
        let late = holds.filter(|(_, hold)| hold.state == State::Held && hold.has_ended(now));
        let late = late.map(|(key, hold)| (hold.receiver, key.0));
        let acceptors = self.sessions.acceptors.iter();
        let waited = acceptors.filter(|(_, acceptor)| {
            acceptor.is_pending() && acceptor.wanted.is_none() && acceptor.until < now
        });
        let waited = waited.map(|(receiver, acceptor)| (*receiver, acceptor.entity));
        for (receiver, entity) in late.chain(waited) {
            let waited = before.remove(&receiver).unwrap_or(0) + cost(turn_end, entity);
            check("I14", waited, || {
                format!("the time of {receiver:?} is up, and it was not told")
            })?;
            self.watch.sessions.late.insert(receiver, waited);
        }
        Ok(())
    }

    /// Whether the drain of a receiver is due.
    pub(super) fn may_drain(&self, receiver: ReceiverId) -> bool {
        let acceptor = self.sessions.acceptors.get(&receiver);
        acceptor.is_none_or(|acceptor| {
            let key = acceptor.granted.map(|session| (acceptor.entity, session));
            let hold = key.and_then(|key| self.sessions.holds.get(&key));
            hold.is_some_and(|hold| hold.receiver == receiver && hold.lasts(self.turn.now.mono))
        })
    }

    /// Whether sessions are what is received from a place.
    pub(super) fn is_by_session(&self, entity: EntityId, subqueue: Subqueue) -> bool {
        let queue = self.queue_of(entity);
        subqueue == Subqueue::Main && queue.is_some_and(|index| self.queues[index].sessions)
    }
}

//! Expired sessions: where sessions expire as a whole, the messages that go with the first one past
//! its deadline. They were there before it went, and no receiver holds them. (I6)

use std::collections::BTreeMap;

use store::{EntityId, Part, SequenceNumber};

use super::Ledger;
use crate::books::Move;
use crate::session::Session;

/// Up to which number the messages of a session may go with one that has gone.
pub(super) type ExpiredSessions = BTreeMap<(EntityId, Session), SequenceNumber>;

impl Ledger {
    /// Whether a message that leaves its queue is past its deadline or goes with its session.
    pub(super) fn expires(&mut self, moved: &Move) -> bool {
        let Some(from) = moved.from.filter(|from| from.part == Part::Active) else {
            return false;
        };
        let past = moved.row.expires_ms <= self.turn.now.wall.0;
        let queue = self.queue_of(from.entity).map(|index| &self.queues[index]);
        let cloud = queue.is_some_and(|queue| queue.sessions && queue.cloud);
        let Some(session) = Session::of(moved.id).filter(|_| cloud) else {
            return past;
        };
        let key = (from.entity, session);
        if past {
            let next = self.books.next_number(from.entity);
            self.expired_sessions.insert(key, next);
        }
        past || self.expired_sessions.get(&key) > Some(&from.number)
    }
}

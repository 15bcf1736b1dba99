//! Sessions: which receivers came for one, which receiver holds which, and until when. (I3, I4)
//!
//! One receiver holds a session, and no other receiver gets it before that one has left or was told
//! that its time is up. By id a session is granted if no receiver holds it, and refused if one
//! does. Messages are locked for as long as their session is.

use std::collections::BTreeMap;

use broker::{
    ConnectionId, LockToken, Mono, ReceiverId, RequestError, RequestId, SessionError, SessionFilter,
};
use store::EntityId;

use super::Ledger;
use super::answers::{Asked, LockState, check_lock_state};
use super::entry::Hold as State;
use crate::message::MessageId;
use crate::session::Session;
use crate::violation::Violation;

/// A session of an entity.
pub(super) type Key = (EntityId, Session);

/// A receiver that came for a session.
#[derive(Debug)]
pub(super) struct Acceptor {
    pub entity: EntityId,
    /// `None` for the next one.
    pub wanted: Option<Session>,
    /// So long it waits.
    pub until: Mono,
    /// Whether what it wants was free when it came.
    free: LockState,
    pub granted: Option<Session>,
    /// It left, was refused, or has lost its session.
    pub over: bool,
}

impl Acceptor {
    /// Whether the shard has not said what becomes of it.
    pub(super) fn is_pending(&self) -> bool {
        !self.over && self.granted.is_none()
    }

    /// Whether it may be about to get that session.
    fn may_get(&self, (entity, session): Key) -> bool {
        let wants = self.wanted.is_none_or(|wanted| wanted == session);
        self.is_pending() && self.entity == entity && wants
    }
}

/// How much longer than its lock lasts a holder with nothing unsettled keeps its session.
const GRACE_MS: u64 = 500;

/// One acceptance of a session.
#[derive(Debug)]
pub(super) struct Hold {
    pub receiver: ReceiverId,
    /// It lasts at least until here, unless its holder leaves.
    pub until: Mono,
    /// It lasts no longer than this.
    pub at_most: Mono,
    pub state: State,
    /// Messages that were locked with it, and their locks.
    pub locked: BTreeMap<MessageId, LockToken>,
}

impl Hold {
    /// Whether it certainly lasts.
    pub(super) fn lasts(&self, now: Mono) -> bool {
        self.state == State::Held && now < self.until
    }

    /// Whether it is certainly over.
    pub(super) fn is_over(&self, now: Mono) -> bool {
        self.state == State::Ended || now > self.at_most
    }

    /// Whether its holder has certainly to be told, and others may hold the session.
    pub(super) fn has_ended(&self, now: Mono) -> bool {
        self.state == State::Ended || now.0 > self.at_most.0 + GRACE_MS
    }
}

/// The receivers that came, and the sessions that are held.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Every receiver that came since the last crash.
    pub acceptors: BTreeMap<ReceiverId, Acceptor>,
    pub holds: BTreeMap<Key, Hold>,
}

impl Sessions {
    /// Whether a receiver may be about to get a session, one of that connection or any.
    fn may_go_to(&self, key: Key, connection: Option<ConnectionId>) -> bool {
        let mut acceptors = self.acceptors.iter();
        acceptors.any(|(receiver, acceptor)| {
            let its = connection.is_none_or(|connection| connection == receiver.connection);
            its && acceptor.may_get(key)
        })
    }

    /// Whether no receiver holds a session.
    fn is_free(&self, key: Key, now: Mono) -> LockState {
        match self.holds.get(&key) {
            Some(hold) if hold.lasts(now) => LockState::Lost,
            Some(hold) if !hold.has_ended(now) => LockState::Unknown,
            _ if self.may_go_to(key, None) => LockState::Unknown,
            _ => LockState::Held,
        }
    }

    /// Whether a connection holds a session.
    fn is_held_by(&self, key: Key, connection: ConnectionId, now: Mono) -> LockState {
        let hold = self.holds.get(&key);
        match hold.filter(|hold| hold.receiver.connection == connection) {
            Some(hold) if hold.lasts(now) => LockState::Held,
            Some(hold) if !hold.is_over(now) => LockState::Unknown,
            _ if self.may_go_to(key, Some(connection)) => LockState::Unknown,
            _ => LockState::Lost,
        }
    }

    /// Whether a connection ever accepted a session.
    pub(super) fn was_accepted_by(&self, key: Key, connection: ConnectionId) -> bool {
        let all = |link| ReceiverId { connection, link };
        let mut acceptors = self.acceptors.range(all(0)..=all(u32::MAX));
        acceptors.any(|(_, acceptor)| (acceptor.entity, acceptor.granted) == (key.0, Some(key.1)))
    }
}

impl Ledger {
    /// A client was told that it has a session.
    ///
    /// # Errors
    /// I4, when the shard never said so.
    pub fn session_granted(&self, queue: usize, session: Session) -> Result<(), Violation> {
        let key = (self.queues[queue].id, session);
        if self.sessions.holds.contains_key(&key) {
            return Ok(());
        }
        let what = format!("a client was told that it has {key:?}");
        Err(Violation::new("I4", what))
    }

    /// A receiver comes for a session.
    pub(super) fn observe_accept(
        &mut self,
        receiver: ReceiverId,
        entity: EntityId,
        filter: &SessionFilter,
    ) {
        self.observe_leave(receiver);
        let now = self.turn.now.mono;
        let (wanted, until) = match filter {
            SessionFilter::ById(id) => (Session::named(id), now),
            SessionFilter::Next { timeout_ms } => (None, Mono(now.0 + timeout_ms)),
        };
        let free = wanted.map(|session| self.sessions.is_free((entity, session), now));
        let acceptor = Acceptor {
            entity,
            wanted,
            until,
            free: free.unwrap_or(LockState::Unknown),
            granted: None,
            over: false,
        };
        self.sessions.acceptors.insert(receiver, acceptor);
    }

    /// A receiver goes, and gives its session back.
    pub(super) fn observe_leave(&mut self, receiver: ReceiverId) {
        self.end_locks_with_receiver(receiver, false);
        let Some(acceptor) = self.sessions.acceptors.get_mut(&receiver) else {
            return;
        };
        acceptor.over = true;
        if let Some(session) = acceptor.granted {
            let key = (acceptor.entity, session);
            self.end_hold(key, receiver);
        }
    }

    /// A connection goes, with all its receivers.
    pub(super) fn observe_leave_all(&mut self, connection: ConnectionId) {
        self.end_locks_of(connection);
        let all = |link| ReceiverId { connection, link };
        let acceptors = self.sessions.acceptors.range(all(0)..=all(u32::MAX));
        let leaving: Vec<_> = acceptors.filter(|(_, acceptor)| !acceptor.over).collect();
        let leaving: Vec<_> = leaving.into_iter().map(|(receiver, _)| *receiver).collect();
        for receiver in leaving {
            self.observe_leave(receiver);
        }
    }

    /// The messages that the receiver locked with its session are free.
    fn end_hold(&mut self, key: Key, receiver: ReceiverId) {
        let hold = self.sessions.holds.get_mut(&key);
        let Some(hold) = hold.filter(|hold| hold.receiver == receiver) else {
            return;
        };
        hold.state = State::Ended;
        for (id, token) in std::mem::take(&mut hold.locked) {
            let entry = self.entries.get_mut(&id);
            if let Some(entry) = entry.filter(|entry| entry.is_locked_by(token)) {
                entry.free(self.turn.index);
            }
        }
    }

    /// The shard lends a session.
    pub(super) fn verify_session_accepted(
        &mut self,
        receiver: ReceiverId,
        id: &[u8],
        lock_ms: u64,
    ) -> Result<(), Violation> {
        let wrong = |what: &str| {
            let id = String::from_utf8_lossy(id);
            let what = format!("{receiver:?} is granted '{id}', {what}");
            Err(Violation::new("I3", what))
        };
        let now = self.turn.now.mono;
        let session = Session::named(id);
        let acceptor = self.sessions.acceptors.get_mut(&receiver);
        let (Some(acceptor), Some(session)) = (acceptor, session) else {
            return wrong("which was not asked for");
        };
        if acceptor.granted.is_some() || acceptor.wanted.is_some_and(|wanted| wanted != session) {
            return wrong("not what it asked for");
        }
        if acceptor.free == LockState::Lost {
            return wrong("which was another's when it came");
        }
        acceptor.granted = Some(session);
        let key = (acceptor.entity, session);
        let state = if acceptor.over {
            State::Ended
        } else {
            State::Held
        };
        let before = self.sessions.holds.get(&key);
        if before.is_some_and(|hold| hold.state == State::Held) {
            return wrong("and its holder was not told");
        }
        let hold = Hold {
            receiver,
            until: Mono(self.last_quiet.0 + lock_ms),
            at_most: Mono(now.0 + lock_ms),
            state,
            locked: BTreeMap::new(),
        };
        self.sessions.holds.insert(key, hold);
        self.report.accepts += 1;
        Ok(())
    }

    /// The shard has no session for a receiver, which is gone.
    pub(super) fn verify_session_refused(
        &mut self,
        receiver: ReceiverId,
        error: SessionError,
    ) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let acceptor = self.sessions.acceptors.get_mut(&receiver);
        let Some(acceptor) = acceptor.filter(|acceptor| acceptor.granted.is_none()) else {
            let what = format!("{receiver:?} is refused, but wants nothing");
            return Err(Violation::new("I14", what));
        };
        let sound = match error {
            SessionError::Timeout => acceptor.wanted.is_none() && acceptor.until <= now,
            SessionError::CannotBeLocked => {
                acceptor.wanted.is_some() && acceptor.free != LockState::Held
            }
            SessionError::NotAllowed | SessionError::Unreadable | SessionError::Injected(_) => {
                false
            }
        };
        if !sound {
            let what = format!("{receiver:?} is refused with {error:?}: {acceptor:?}");
            return Err(Violation::new("I3", what));
        }
        acceptor.over = true;
        self.clients.leave(receiver);
        Ok(())
    }

    /// The shard takes a session from its holder.
    pub(super) fn verify_session_lost(&mut self, receiver: ReceiverId) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let acceptor = self.sessions.acceptors.get_mut(&receiver);
        let granted = acceptor.and_then(|acceptor| {
            let over = std::mem::replace(&mut acceptor.over, true);
            Some((over, (acceptor.entity, acceptor.granted?)))
        });
        let Some((over, key)) = granted else {
            let what = format!("{receiver:?} has lost a session and had none");
            return Err(Violation::new("I14", what));
        };
        let hold = self.sessions.holds.get(&key);
        let hold = hold.filter(|hold| hold.receiver == receiver && !over);
        if hold.is_some_and(|hold| hold.lasts(now)) {
            let what = format!("{key:?} was taken from {receiver:?} before its time");
            return Err(Violation::new("I3", what));
        }
        self.end_hold(key, receiver);
        self.clients.leave(receiver);
        Ok(())
    }

    /// Whether the connection that asks for something certainly holds the session that it says it
    /// does.
    pub(super) fn holds(
        &self,
        request: RequestId,
        entity: EntityId,
        session: Option<&[u8]>,
    ) -> bool {
        let named = session.and_then(Session::named);
        named.is_some_and(|named| self.held_for(request, (entity, named)).0 == LockState::Held)
    }

    /// Whether the connection that asks for something holds the session, and by which receiver.
    pub(super) fn held_for(&self, request: RequestId, key: Key) -> (LockState, Option<ReceiverId>) {
        let now = self.turn.now.mono;
        let lock_state = self.sessions.is_held_by(key, request.connection, now);
        let hold = self.sessions.holds.get(&key);
        (lock_state, hold.map(|hold| hold.receiver))
    }

    pub(super) fn observe_renew_session(&mut self, request: RequestId, key: Key) {
        let (lock_state, holder) = self.held_for(request, key);
        let at = self.turn.now.mono;
        let duration = self.queue_of(key.0);
        let duration = duration.map_or(0, |index| self.queues[index].lock_duration);
        if lock_state != LockState::Lost {
            self.prolong(key, None, Some(Mono(at.0 + duration)));
        }
        let asked = Asked::RenewSession {
            key,
            holder,
            at,
            lock_state,
        };
        self.answers.expect(request, asked);
    }

    pub(super) fn verify_session_renewed(
        &mut self,
        asked: Option<&Asked>,
        result: &Result<u64, RequestError>,
    ) -> Result<(), Violation> {
        let Some(&Asked::RenewSession {
            key,
            holder,
            at,
            lock_state,
        }) = asked
        else {
            return Ok(());
        };
        check_lock_state(lock_state, result.is_ok(), || format!("renewing {key:?}"))?;
        let holds = self.sessions.holds.get(&key).map(|hold| hold.receiver);
        if let Ok(ms) = result
            && holds == holder
        {
            self.prolong(key, Some(Mono(at.0 + ms)), None);
        }
        Ok(())
    }

    /// A session is held at least so long, or at most, and the locks of its messages too.
    fn prolong(&mut self, key: Key, until: Option<Mono>, at_most: Option<Mono>) {
        let Some(hold) = self.sessions.holds.get_mut(&key) else {
            return;
        };
        hold.until = hold.until.max(until.unwrap_or_default());
        hold.at_most = hold.at_most.max(at_most.unwrap_or_default());
        for (id, token) in &hold.locked {
            let entry = self.entries.get_mut(id);
            let lock = entry.and_then(|entry| entry.lock.as_mut());
            if let Some(lock) = lock.filter(|lock| lock.token == *token) {
                lock.until = lock.until.max(hold.until);
                lock.at_most = lock.at_most.max(hold.at_most);
            }
        }
    }

    /// Each receiver that came for a session by its id has an answer. (I14)
    pub(super) fn check_acceptors(&self) -> Result<(), Violation> {
        let mut acceptors = self.sessions.acceptors.iter();
        match acceptors.find(|(_, acceptor)| acceptor.is_pending() && acceptor.wanted.is_some()) {
            Some(waits) => {
                let what = format!("{waits:?} came for a session and was not answered");
                Err(Violation::new("I14", what))
            }
            None => Ok(()),
        }
    }
}

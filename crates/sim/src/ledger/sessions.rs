//! Sessions: which receivers came for one, which receiver holds which, and until when. (I3, I4)
//!
//! One receiver holds a session, and no other receiver gets it before that one has left or was told
//! that its time is up. By id a session is lent if no receiver holds it, and refused if one does.
//! Messages are lent for as long as their session is.

use std::collections::BTreeMap;

use broker::{
    ConnectionId, LockToken, Mono, ReceiverId, RequestError, RequestId, SessionError, SessionFilter,
};
use store::EntityId;

use super::Ledger;
use super::answers::{Asked, Standing, check_standing};
use super::entry::Hold as State;
use crate::message::MessageId;
use crate::session::Session;
use crate::violation::Violation;

/// A session of an entity.
pub(super) type Key = (EntityId, Session);

/// A receiver that came for a session.
#[derive(Debug)]
pub(super) struct Seat {
    pub entity: EntityId,
    /// `None` for the next one.
    pub wanted: Option<Session>,
    /// So long it waits.
    pub until: Mono,
    /// Whether what it wants was free when it came.
    free: Standing,
    pub granted: Option<Session>,
    /// It left, was refused, or has lost its session.
    pub over: bool,
}

impl Seat {
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
    /// Messages that were lent with it, and their locks.
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
    pub seats: BTreeMap<ReceiverId, Seat>,
    pub holds: BTreeMap<Key, Hold>,
}

impl Sessions {
    /// Whether a receiver may be about to get a session, one of that connection or any.
    fn may_go_to(&self, key: Key, connection: Option<ConnectionId>) -> bool {
        let mut seats = self.seats.iter();
        seats.any(|(receiver, seat)| {
            let its = connection.is_none_or(|connection| connection == receiver.connection);
            its && seat.may_get(key)
        })
    }

    /// Whether no receiver holds a session.
    fn is_free(&self, key: Key, now: Mono) -> Standing {
        match self.holds.get(&key) {
            Some(hold) if hold.lasts(now) => Standing::Lost,
            Some(hold) if !hold.has_ended(now) => Standing::Unknown,
            _ if self.may_go_to(key, None) => Standing::Unknown,
            _ => Standing::Good,
        }
    }

    /// Whether a connection holds a session.
    fn is_held_by(&self, key: Key, connection: ConnectionId, now: Mono) -> Standing {
        let hold = self.holds.get(&key);
        match hold.filter(|hold| hold.receiver.connection == connection) {
            Some(hold) if hold.lasts(now) => Standing::Good,
            Some(hold) if !hold.is_over(now) => Standing::Unknown,
            _ if self.may_go_to(key, Some(connection)) => Standing::Unknown,
            _ => Standing::Lost,
        }
    }

    /// Whether a connection was ever lent a session.
    pub(super) fn was_lent(&self, key: Key, connection: ConnectionId) -> bool {
        let all = |link| ReceiverId { connection, link };
        let mut seats = self.seats.range(all(0)..=all(u32::MAX));
        seats.any(|(_, seat)| (seat.entity, seat.granted) == (key.0, Some(key.1)))
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
    pub(super) fn told_accept(
        &mut self,
        receiver: ReceiverId,
        entity: EntityId,
        filter: &SessionFilter,
    ) {
        self.told_leave(receiver);
        let now = self.turn.now.mono;
        let (wanted, until) = match filter {
            SessionFilter::ById(id) => (Session::named(id), now),
            SessionFilter::Next { timeout_ms } => (None, Mono(now.0 + timeout_ms)),
        };
        let free = wanted.map(|session| self.sessions.is_free((entity, session), now));
        let seat = Seat {
            entity,
            wanted,
            until,
            free: free.unwrap_or(Standing::Unknown),
            granted: None,
            over: false,
        };
        self.sessions.seats.insert(receiver, seat);
    }

    /// A receiver goes, and gives its session back.
    pub(super) fn told_leave(&mut self, receiver: ReceiverId) {
        let Some(seat) = self.sessions.seats.get_mut(&receiver) else {
            return;
        };
        seat.over = true;
        if let Some(session) = seat.granted {
            let key = (seat.entity, session);
            self.end_hold(key, receiver);
        }
    }

    /// A connection goes, with all its receivers.
    pub(super) fn told_leave_all(&mut self, connection: ConnectionId) {
        let all = |link| ReceiverId { connection, link };
        let seats = self.sessions.seats.range(all(0)..=all(u32::MAX));
        let leaving: Vec<_> = seats.filter(|(_, seat)| !seat.over).collect();
        let leaving: Vec<_> = leaving.into_iter().map(|(receiver, _)| *receiver).collect();
        for receiver in leaving {
            self.told_leave(receiver);
        }
    }

    /// What the receiver was lent with its session is free.
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
    pub(super) fn said_session_accepted(
        &mut self,
        receiver: ReceiverId,
        id: &[u8],
        lock_ms: u64,
    ) -> Result<(), Violation> {
        let wrong = |what: &str| {
            let id = String::from_utf8_lossy(id);
            let what = format!("{receiver:?} is lent '{id}', {what}");
            Err(Violation::new("I3", what))
        };
        let now = self.turn.now.mono;
        let session = Session::named(id);
        let seat = self.sessions.seats.get_mut(&receiver);
        let (Some(seat), Some(session)) = (seat, session) else {
            return wrong("which nobody asked for");
        };
        if seat.granted.is_some() || seat.wanted.is_some_and(|wanted| wanted != session) {
            return wrong("not what it asked for");
        }
        if seat.free == Standing::Lost {
            return wrong("which was another's when it came");
        }
        seat.granted = Some(session);
        let key = (seat.entity, session);
        let state = if seat.over { State::Ended } else { State::Held };
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
    pub(super) fn said_session_refused(
        &mut self,
        receiver: ReceiverId,
        error: SessionError,
    ) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let seat = self.sessions.seats.get_mut(&receiver);
        let Some(seat) = seat.filter(|seat| seat.granted.is_none()) else {
            let what = format!("{receiver:?} is refused, but wants nothing");
            return Err(Violation::new("I14", what));
        };
        let sound = match error {
            SessionError::Timeout => seat.wanted.is_none() && seat.until <= now,
            SessionError::CannotBeLocked => seat.wanted.is_some() && seat.free != Standing::Good,
            SessionError::NotAllowed => false,
        };
        if !sound {
            let what = format!("{receiver:?} is refused with {error:?}: {seat:?}");
            return Err(Violation::new("I3", what));
        }
        seat.over = true;
        self.clients.leave(receiver);
        Ok(())
    }

    /// The shard takes a session from its holder.
    pub(super) fn said_session_lost(&mut self, receiver: ReceiverId) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let seat = self.sessions.seats.get_mut(&receiver);
        let granted = seat.and_then(|seat| {
            let over = std::mem::replace(&mut seat.over, true);
            Some((over, (seat.entity, seat.granted?)))
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
        named.is_some_and(|named| self.held_for(request, (entity, named)).0 == Standing::Good)
    }

    /// Whether the connection that asks for something holds the session, and by which receiver.
    pub(super) fn held_for(&self, request: RequestId, key: Key) -> (Standing, Option<ReceiverId>) {
        let now = self.turn.now.mono;
        let standing = self.sessions.is_held_by(key, request.connection, now);
        let hold = self.sessions.holds.get(&key);
        (standing, hold.map(|hold| hold.receiver))
    }

    pub(super) fn told_renew_session(&mut self, request: RequestId, key: Key) {
        let (standing, holder) = self.held_for(request, key);
        let at = self.turn.now.mono;
        let duration = self.queue_of(key.0);
        let duration = duration.map_or(0, |index| self.queues[index].lock_duration);
        if standing != Standing::Lost {
            self.prolong(key, None, Some(Mono(at.0 + duration)));
        }
        let asked = Asked::RenewSession {
            key,
            holder,
            at,
            standing,
        };
        self.answers.expect(request, asked);
    }

    pub(super) fn said_session_renewed(
        &mut self,
        asked: Option<&Asked>,
        result: &Result<u64, RequestError>,
    ) -> Result<(), Violation> {
        let Some(&Asked::RenewSession {
            key,
            holder,
            at,
            standing,
        }) = asked
        else {
            return Ok(());
        };
        check_standing(standing, result.is_ok(), || format!("renewing {key:?}"))?;
        let holds = self.sessions.holds.get(&key).map(|hold| hold.receiver);
        if let Ok(ms) = result
            && holds == holder
        {
            self.prolong(key, Some(Mono(at.0 + ms)), None);
        }
        Ok(())
    }

    /// A session is held at least so long, or at most, and what was lent with it too.
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
    pub(super) fn check_seats(&self) -> Result<(), Violation> {
        let mut seats = self.sessions.seats.iter();
        match seats.find(|(_, seat)| seat.is_pending() && seat.wanted.is_some()) {
            Some(waits) => {
                let what = format!("{waits:?} came for a session and was not answered");
                Err(Violation::new("I14", what))
            }
            None => Ok(()),
        }
    }
}

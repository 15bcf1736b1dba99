//! Answers: what the shard was asked, what it says, and whether it may say so.
//!
//! Every request is answered once, and no answer leaves before the commit that it rests on is
//! durable: that is what "accepted" and "completed" promise. (Invariants I1, I2, I3, I14)

use std::collections::{BTreeMap, BTreeSet};

use broker::{ConnectionId, Mono, Output, RequestId, SettleError, Wall};
use store::{CommitId, EntityId, Part, SequenceNumber};

use super::deliveries::Way;
use super::entry::Hold;
use super::{Ask, Ledger, TurnEnd};
use crate::message::MessageId;
use crate::violation::Violation;

pub(super) use super::asked::{Asked, LockState};

#[derive(Debug)]
struct Pending {
    asked: Asked,
    /// What was submitted when it was decided.
    commit: CommitId,
}

/// Requests that wait for their answer.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pending: BTreeMap<RequestId, Pending>,
    /// Where deferred messages are fetched from, even if no client waits for them any more.
    pub fetches: BTreeMap<RequestId, EntityId>,
    /// Asked in the turn under way.
    fresh: Vec<RequestId>,
    /// Whether fault rules may have connections dropped.
    are_faults_injected: bool,
    /// Those that were dropped, and are there as long as their clients have not noticed.
    dropped: BTreeSet<ConnectionId>,
}

impl Answers {
    pub(super) fn expect(&mut self, request: RequestId, asked: Asked) {
        let commit = CommitId::default();
        self.pending.insert(request, Pending { asked, commit });
        self.fresh.push(request);
    }

    /// What was asked in this turn rests on that.
    pub(super) fn rest_on(&mut self, commit: CommitId) {
        for request in self.fresh.drain(..) {
            if let Some(pending) = self.pending.get_mut(&request) {
                pending.commit = commit;
            }
        }
    }

    /// The wall clock went back.
    pub(super) fn handle_earlier_clock(&mut self, wall: Wall) {
        for pending in self.pending.values_mut() {
            if let Asked::Send { asked, .. } = &mut pending.asked {
                *asked = wall.min(*asked);
            }
        }
    }

    /// What a request that is not answered is about.
    pub(super) fn asked(&self, request: RequestId) -> Option<&Asked> {
        self.pending.get(&request).map(|pending| &pending.asked)
    }

    /// Whether a request is about a part of a transaction.
    fn is_enlisted(&self, request: RequestId) -> bool {
        matches!(self.asked(request), Some(Asked::Enlist { .. }))
    }

    /// No client waits for an answer on that connection any more.
    pub(super) fn forget(&mut self, connection: ConnectionId) {
        self.dropped.remove(&connection);
        self.pending
            .retain(|request, _| request.connection != connection);
    }

    /// Nothing waits for an answer but what waits for a read. For a time when all was said. (I14)
    pub(super) fn check(&self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let waits = |pending: &Pending| match pending.asked {
            // A send waits only where ids are looked up.
            Asked::Read(entity)
            | Asked::Peek { entity, .. }
            | Asked::List { entity, .. }
            | Asked::Send { entity, .. } => turn_end.is_reading(entity),
            Asked::State { key, .. } => turn_end.is_reading(key.0),
            // A commit waits for whatever its parts want to know.
            Asked::Discharge => !turn_end.reads.is_empty(),
            // It is done in pieces.
            Asked::Deletion => true,
            _ => false,
        };
        let mut pending = self.pending.iter();
        let is_told = |request: &RequestId| !self.dropped.contains(&request.connection);
        match pending.find(|(request, pending)| is_told(request) && !waits(pending)) {
            Some((request, pending)) => Err(Violation::new(
                "I14",
                format!("{request:?} is not answered: {:?}", pending.asked),
            )),
            None => Ok(()),
        }
    }
}

impl Ledger {
    /// Whether fault rules may have sends refused and connections dropped from now on.
    pub fn expect_injected_faults(&mut self, are_injected: bool) {
        self.answers.are_faults_injected = are_injected;
    }

    /// The shard says something, with everything up to `durable` on stable storage.
    ///
    /// # Errors
    /// I1, I2, I3, I4, I5 or I12.
    pub fn verify_output(&mut self, output: &Output, durable: CommitId) -> Result<(), Violation> {
        match output {
            Output::Sent {
                request, result, ..
            } if self.answers.is_enlisted(*request) => match self.take(*request, durable)? {
                Some(asked) => self.verify_send_enlisted(&asked, result),
                None => Ok(()),
            },
            Output::Settled { request, result } if self.answers.is_enlisted(*request) => {
                match self.take(*request, durable)? {
                    Some(asked) => self.verify_settlement_enlisted(&asked, result),
                    None => Ok(()),
                }
            }
            Output::SessionStateSet { request, result } if self.answers.is_enlisted(*request) => {
                match self.take(*request, durable)? {
                    Some(asked) => self.verify_enlisted(&asked, result.is_ok()).map(drop),
                    None => Ok(()),
                }
            }
            Output::Sent {
                request,
                result,
                duplicates,
            } => {
                self.check_room(*request, result)?;
                let first = result.as_ref().ok().copied();
                self.verify_sent(*request, first, duplicates, durable)
            }
            Output::Published { request, result } => {
                let asked = self.take(*request, durable)?;
                self.verify_published(asked.as_ref(), result)
            }
            Output::Settled { request, result } => self.verify_settled(*request, result, durable),
            Output::Renewed { request, result } => {
                self.verify_renewed(*request, result.as_ref().ok().copied(), durable)
            }
            Output::Browsed { request, result } => {
                let asked = self.take(*request, durable)?;
                self.verify_browsed(asked, result)
            }
            Output::Cancelled { request, result } => {
                self.take(*request, durable)?;
                self.verify_cancelled(*request, result, durable)
            }
            Output::Deferred { request, result } => {
                self.take(*request, durable)?;
                let Some(entity) = self.answers.fetches.remove(request) else {
                    return Ok(());
                };
                let way = Way::Number(request.connection, entity);
                let mut deliveries = result.iter().flatten();
                deliveries.try_for_each(|d| self.delivered(d, way))
            }
            Output::Deliver { receiver, delivery } => {
                self.clients.given(*receiver, delivery.size());
                self.delivered(delivery, Way::Link(*receiver))
            }
            Output::Drained { receiver } => {
                self.clients.drained(*receiver);
                Ok(())
            }
            Output::Administered { request, result } => {
                let asked = self.take(*request, durable)?;
                self.verify_order(*request, asked.as_ref(), result)
            }
            Output::RuleChanged { request, result } => {
                let asked = self.take(*request, durable)?;
                self.verify_rule(*request, asked.as_ref(), result)
            }
            Output::Rules { .. }
            | Output::DeliveryTimedOut { .. }
            | Output::LockEnded { .. }
            | Output::Activity { .. }
            | Output::EntityChanged(_)
            | Output::RulesChanged(..)
            | Output::NamespaceChanged(_)
            | Output::NodeOpened { .. }
            | Output::NodeClosed { .. }
            | Output::Subscribed { .. } => Ok(()),
            // What it has asked for and is not answered is lost on the way.
            Output::Dropped { connection } if self.answers.are_faults_injected => {
                self.answers.dropped.insert(*connection);
                Ok(())
            }
            Output::Dropped { .. }
            | Output::Ended { .. }
            | Output::CreditWithheld { .. }
            | Output::SenderAttached { .. } => {
                let connection = output.connection();
                let what = format!("{connection:?} is dropped without a fault rule");
                Err(Violation::new("I14", what))
            }
            Output::Evicted { receiver, .. } => {
                self.clients.leave(*receiver);
                self.end_locks_with_receiver(*receiver, false);
                Ok(())
            }
            Output::Deleted { request, result } => {
                self.take(*request, durable)?;
                self.verify_deleted(*request, result.as_ref().ok().copied())
            }
            Output::SessionAccepted { .. }
            | Output::SessionRefused { .. }
            | Output::SessionLost { .. }
            | Output::SessionRenewed { .. }
            | Output::SessionState { .. }
            | Output::SessionStateSet { .. }
            | Output::Sessions { .. } => self.verify_session_output(output, durable),
            Output::Declared { request, result } => {
                self.take(*request, durable)?;
                self.verify_declared(*request, result)
            }
            Output::Discharged { request, result } => {
                self.take(*request, durable)?;
                self.verify_discharged(*request, result, durable)
            }
            Output::TimedOut { transaction, .. } => self.verify_timed_out(*transaction),
        }
    }

    fn verify_session_output(
        &mut self,
        output: &Output,
        durable: CommitId,
    ) -> Result<(), Violation> {
        match output {
            Output::SessionAccepted {
                receiver,
                session_id,
                lock_ms,
            } => self.verify_session_accepted(*receiver, session_id, *lock_ms),
            Output::SessionRefused { receiver, error } => {
                self.verify_session_refused(*receiver, *error)
            }
            Output::SessionLost { receiver } => self.verify_session_lost(*receiver),
            Output::SessionRenewed { request, result } => {
                let asked = self.take(*request, durable)?;
                self.verify_session_renewed(asked.as_ref(), result)
            }
            Output::SessionState { request, result } => {
                let asked = self.take(*request, durable)?;
                self.verify_state(asked.as_ref(), result)
            }
            Output::SessionStateSet { request, result } => {
                let asked = self.take(*request, durable)?;
                self.verify_state_set(*request, asked.as_ref(), result, durable)
            }
            Output::Sessions { request, result } => {
                let asked = self.take(*request, durable)?;
                self.verify_sessions(asked, result)
            }
            _ => Ok(()),
        }
    }

    /// What the answered request was about; nothing if its connection is gone.
    fn take(&mut self, request: RequestId, durable: CommitId) -> Result<Option<Asked>, Violation> {
        match self.answers.pending.remove(&request) {
            Some(pending) if pending.commit > durable => Err(Violation::new(
                "I1",
                format!("{request:?} was answered before it was durable"),
            )),
            Some(pending) => Ok(Some(pending.asked)),
            None if self.clients.is_gone(request.connection) => Ok(None),
            None => Err(Violation::new(
                "I14",
                format!("{request:?} was answered, but not asked or twice"),
            )),
        }
    }

    fn verify_sent(
        &mut self,
        request: RequestId,
        first: Option<SequenceNumber>,
        duplicates: &[(usize, SequenceNumber)],
        durable: CommitId,
    ) -> Result<(), Violation> {
        let Some(Asked::Send {
            ids,
            asked,
            allowed,
            ..
        }) = self.take(request, durable)?
        else {
            return Ok(());
        };
        if first.is_some() && !allowed {
            let what = format!("{ids:?} were accepted where nothing can be sent");
            return Err(Violation::new("I1", what));
        }
        let mut duplicates = duplicates.iter().peekable();
        let mut next = first;
        for (index, id) in ids.into_iter().enumerate() {
            self.sends.remove(&id);
            self.check_durable(request, id, durable)?;
            if let Some((_, number)) = duplicates.next_if(|(place, _)| *place == index) {
                self.verify_duplicate(id, *number, asked, durable)?;
            } else {
                self.check_number(id, next, index == 0)?;
                next = next.map(|number| number.arrival().next());
            }
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.confirmed = first.is_some();
            }
        }
        match duplicates.next() {
            Some(left) => Err(Violation::new(
                "I11",
                format!("{request:?} was told of a duplicate that it did not send: {left:?}"),
            )),
            None => Ok(()),
        }
    }

    /// A message was stored as the arrival that its sender is told; the first with its level.
    fn check_number(
        &self,
        id: MessageId,
        told: Option<SequenceNumber>,
        is_first: bool,
    ) -> Result<(), Violation> {
        let stored = self.entries.get(&id).map(|entry| entry.arrived);
        let seen = |stored: Option<SequenceNumber>| match is_first {
            true => stored,
            false => stored.map(SequenceNumber::arrival),
        };
        if stored.is_none_or(|stored| seen(stored) == told) {
            return Ok(());
        }
        let what = format!("message {id} was answered with {told:?} and stored as {stored:?}");
        Err(Violation::new("I1", what))
    }

    fn verify_settled(
        &mut self,
        request: RequestId,
        result: &Result<(), SettleError>,
        durable: CommitId,
    ) -> Result<(), Violation> {
        let asked = self.take(request, durable)?;
        let done = result.is_ok();
        if let Some(Asked::Redrive(redrive)) = asked {
            return self.verify_redriven(redrive, done);
        }
        let Some(Asked::Settle {
            entity,
            ids,
            ask,
            lock_state,
            holds_session,
        }) = asked
        else {
            return Ok(());
        };
        if holds_session && *result == Err(SettleError::SessionLockLost) {
            let what = format!("{ids:?}: a session that is held was said to be lost");
            return Err(Violation::new("I3", what));
        }
        let queue = self.queue_of(entity);
        check_lock_state(lock_state, done, || format!("{ask:?} of messages {ids:?}"))?;
        for id in ids.into_iter().filter(|_| done) {
            self.check_settled(entity, id, ask)?;
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.grant(ask);
                if ask == Ask::DeadLetter {
                    entry.dead_lettered = queue;
                }
            }
        }
        Ok(())
    }

    /// What was done stays done. (I2)
    fn check_settled(&self, entity: EntityId, id: MessageId, ask: Ask) -> Result<(), Violation> {
        // Elsewhere it is a message like any other.
        let place = self.books.place(id).filter(|place| place.entity == entity);
        let part = place.map(|place| place.part);
        let undone = match ask {
            Ask::Complete => part.is_some(),
            Ask::DeadLetter => matches!(part, Some(Part::Active | Part::Deferred)),
            Ask::Defer => part == Some(Part::Active),
            Ask::Abandon | Ask::Release => false,
        };
        if undone {
            let what = format!("{ask:?} of message {id} was answered and it is in {part:?}");
            return Err(Violation::new("I2", what));
        }
        Ok(())
    }

    fn verify_renewed(
        &mut self,
        request: RequestId,
        lock_ms: Option<u64>,
        durable: CommitId,
    ) -> Result<(), Violation> {
        let Some(asked) = self.take(request, durable)? else {
            return Ok(());
        };
        let Asked::Renew {
            tokens,
            at,
            lock_state,
        } = asked
        else {
            return Ok(());
        };
        check_lock_state(lock_state, lock_ms.is_some(), || {
            format!("renewing {tokens:?}")
        })?;
        for token in tokens {
            let id = self.tokens.get(&token);
            let lock = id.and_then(|id| self.entries.get_mut(id)?.lock.as_mut());
            if let (Some(lock), Some(ms)) = (lock, lock_ms)
                && lock.token == token
                && lock.hold == Hold::Held
            {
                lock.until = lock.until.max(Mono(at.0 + ms));
            }
        }
        Ok(())
    }
}

/// A lock that is held can be settled, and one that is over cannot. (I3)
pub(super) fn check_lock_state(
    lock_state: LockState,
    done: bool,
    what: impl Fn() -> String,
) -> Result<(), Violation> {
    let wrong = match (lock_state, done) {
        (LockState::Held, false) => "refused although the lock is held",
        (LockState::Lost, true) => "done although the lock is lost",
        _ => return Ok(()),
    };
    Err(Violation::new("I3", format!("{} was {wrong}", what())))
}

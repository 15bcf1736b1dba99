//! Turn: one turn of the shard as the ledger sees it, from what it is told to what it leaves.
//!
//! The order is fixed: `turn_begins` with the commands, `wrote` with the write sets, `said` with
//! each output, `turn_ends`. A new kind of command is noted here and explained in `moves.rs`.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Command, ConnectionId, Incoming, LockToken, Mono, Now, Outcome, RequestId, Subqueue, SubqueueId,
};
use bytes::Bytes;
use store::image::NumberKey;
use store::{CommitId, EntityId, SequenceNumber, WriteSet};

use super::administration::Planned;
use super::answers::{Asked, Standing};
use super::entry::Hold;
use super::settlements::ask_of;
use super::{Ask, Ledger, Rest};
use crate::books::Due;
use crate::message::MessageId;
use crate::session::Session;
use crate::violation::Violation;

/// What may explain the writes of the turn under way.
#[derive(Debug)]
pub(super) struct Turn {
    pub now: Now,
    /// Turns are counted.
    pub index: u64,
    /// The last one after which everything decided was said.
    pub quiet: u64,
    /// Locks that are to end by a token that may be good.
    pub ends: BTreeSet<(MessageId, Ask)>,
    /// Dead letters that are to go back by a token that may be good.
    pub redriven: BTreeSet<MessageId>,
    /// How many numbers may be set aside for transactions.
    pub promises: BTreeMap<EntityId, u64>,
    /// The last scheduled message of each entity that was activated.
    pub activated: BTreeMap<EntityId, Due>,
    /// Bodies that were removed in the write set at hand.
    pub passed: BTreeMap<NumberKey, Bytes>,
    /// The last message of each entity that went on from it.
    pub forwarded: BTreeMap<EntityId, SequenceNumber>,
    /// What becomes of entities and rules.
    pub planned: Planned,
}

impl Turn {
    pub(super) fn new(now: Now, before: Option<&Self>) -> Self {
        Self {
            now,
            index: before.map_or(0, |before| before.index + 1),
            quiet: before.map_or(0, |before| before.quiet),
            ends: BTreeSet::new(),
            redriven: BTreeSet::new(),
            promises: BTreeMap::new(),
            activated: BTreeMap::new(),
            passed: BTreeMap::new(),
            forwarded: BTreeMap::new(),
            planned: Planned::default(),
        }
    }
}

impl Ledger {
    /// The shard is about to be told all this.
    pub fn turn_begins(&mut self, commands: &[Command], now: Now) {
        self.turn = Turn::new(now, Some(&self.turn));
        // Elsewhere what is not enqueued at once never is.
        let mut sends = std::mem::take(&mut self.sends);
        sends.retain(|_, entity| self.detects(*entity));
        self.sends = sends;
        for command in commands {
            self.told(command);
            self.clients.told(command);
        }
    }

    /// What the turn submitted. Returns whose messages it touched.
    ///
    /// # Errors
    /// I1, I2, I3, I5, I6, I8, I9 or I12.
    pub fn wrote(
        &mut self,
        sets: &[(CommitId, WriteSet)],
        submitted: CommitId,
    ) -> Result<BTreeSet<EntityId>, Violation> {
        let mut entities = BTreeSet::new();
        for (commit, set) in sets {
            self.report.write_sets += 1;
            let mut changes = self.books.apply(set)?;
            self.turn.passed = std::mem::take(&mut changes.passed);
            for counted in &changes.counts {
                self.explain_count(counted, *commit)?;
            }
            self.note_cancelled(&changes, *commit);
            for change in &changes.states {
                self.explain_state(change, *commit)?;
            }
            self.explain_skips(&changes)?;
            self.note_entities(&changes)?;
            for moved in &changes.moves {
                self.explain(moved, &changes, *commit)?;
            }
            self.note_buried(&changes);
            for fan_out in &changes.fan_outs {
                self.explain_fan_out(fan_out, &changes)?;
            }
            self.check_whole(*commit)?;
            for forgotten in &changes.forgotten {
                self.explain_forgotten(*forgotten)?;
            }
            entities.extend(changes.entities);
        }
        self.answers.rest_on(submitted);
        Ok(entities)
    }

    /// The turn is over.
    ///
    /// # Errors
    /// I1, I6, I13 or I14, when something was left undone.
    pub fn turn_ends(&mut self, rest: Rest<'_>) -> Result<(), Violation> {
        if !rest.has_failed {
            self.check_planned()?;
        }
        self.check_owed(rest.durable)?;
        self.note_durable(rest.durable);
        self.note_deleted(rest.durable);
        if rest.nearly_full {
            self.forwarding.suspended();
        }
        if rest.is_quiet() {
            self.last_quiet = self.turn.now.mono;
            self.turn.quiet = self.turn.index;
            self.answers.check(&rest)?;
            self.watch(&rest)?;
        }
        Ok(())
    }

    fn told(&mut self, command: &Command) {
        match command {
            Command::Send {
                request,
                entity,
                messages,
            } => self.told_send(*request, *entity, messages),
            Command::Settle {
                request,
                subqueue: SubqueueId { entity, subqueue },
                session,
                token,
                outcome,
            } => self.told_settle(*request, (*entity, *subqueue, session), &[*token], outcome),
            Command::SettleMany {
                request,
                subqueue: SubqueueId { entity, subqueue },
                session,
                tokens,
                outcome,
            } => self.told_settle(
                Some(*request),
                (*entity, *subqueue, session),
                tokens,
                outcome,
            ),
            Command::Renew {
                request, tokens, ..
            } => self.told_renew(*request, tokens),
            Command::Peek {
                request,
                subqueue: SubqueueId { entity, subqueue },
                from,
                ..
            } => match subqueue {
                Subqueue::Main => self.told_peek(*request, *entity, None, *from),
                _ => self.answers.expect(*request, Asked::Read(*entity)),
            },
            Command::ReceiveDeferred {
                request,
                subqueue: SubqueueId { entity, .. },
                ..
            } => {
                self.answers.fetches.insert(*request, *entity);
                self.answers.expect(*request, Asked::Read(*entity));
            }
            Command::CancelScheduled {
                request,
                entity,
                numbers,
            } => self.told_cancel(*request, *entity, numbers),
            Command::Redrive {
                request,
                subqueue: SubqueueId { subqueue, .. },
                token,
                ..
            } => self.told_redrive(*request, *subqueue, *token),
            Command::Disconnect { connection } => self.told_disconnect(*connection),
            Command::Leave { connection } => self.told_go(*connection),
            Command::AcceptSession { .. }
            | Command::RenewSession { .. }
            | Command::GetSessionState { .. }
            | Command::SetSessionState { .. }
            | Command::ListSessions { .. }
            | Command::PeekSession { .. }
            | Command::Detach { .. } => self.told_of_session(command),
            Command::Declare {
                request,
                coordinator,
            } => self.told_declare(*request, *coordinator),
            Command::Enlist {
                request,
                transaction,
                operation,
                ..
            } => self.told_enlist(*request, *transaction, operation),
            Command::Discharge {
                request,
                transaction,
                fail,
            } => self.told_discharge(*request, *transaction, *fail),
            Command::EndTransactions {
                connection,
                coordinator,
            } => self.told_end(*connection, Some(*coordinator)),
            Command::DeleteMessages {
                request,
                subqueue: SubqueueId { entity, subqueue },
                enqueued_before,
                count,
                ..
            } => self.told_delete(*request, (*entity, *subqueue), *enqueued_before, *count),
            Command::Administer { request, order, .. } => self.told_order(*request, order),
            Command::AddRule { .. } | Command::RemoveRule { .. } => self.told_rule(command),
            // What receivers want is the clients' business; the rest asks for nothing. A
            // transaction that is doomed may fail as it likes.
            Command::FailTransaction { .. }
            | Command::ListRules { .. }
            | Command::Attach { .. }
            | Command::Credit { .. }
            | Command::Written { .. }
            | Command::Loaded { .. }
            | Command::Durable
            | Command::StoreSpace { .. }
            | Command::SetLimits(_)
            | Command::Tick => {}
        }
    }

    fn told_of_session(&mut self, command: &Command) {
        // No client makes up a name.
        let key = |entity: &EntityId, session: &[u8]| Some((*entity, Session::named(session)?));
        match command {
            Command::AcceptSession {
                receiver,
                entity,
                session,
                ..
            } => self.told_accept(*receiver, *entity, session),
            Command::Detach { receiver } => self.told_leave(*receiver),
            Command::RenewSession {
                request,
                entity,
                session,
            } => {
                if let Some(key) = key(entity, session) {
                    self.told_renew_session(*request, key);
                }
            }
            Command::GetSessionState {
                request,
                entity,
                session,
            } => {
                if let Some(key) = key(entity, session) {
                    self.told_get_state(*request, key);
                }
            }
            Command::SetSessionState {
                request,
                entity,
                session,
                state,
            } => {
                if let Some(key) = key(entity, session) {
                    self.told_set_state(*request, key, state.as_ref());
                }
            }
            Command::ListSessions {
                request,
                entity,
                updated_after,
                skip,
                ..
            } => self.told_list(*request, *entity, *updated_after, *skip),
            Command::PeekSession {
                request,
                entity,
                session,
                from,
                ..
            } => self.told_peek(*request, *entity, Session::named(session), *from),
            _ => {}
        }
    }

    fn told_send(&mut self, request: RequestId, entity: EntityId, messages: &[Incoming]) {
        let ids = self.take_in(messages);
        self.sends.extend(ids.iter().map(|id| (*id, entity)));
        let asked = self.turn.now.wall;
        let queue = self.queue_of(entity);
        if let Some(queue) = queue {
            // A client that sends to a path does not know which entity it is.
            for id in &ids {
                if let Some(entry) = self.entries.get_mut(id) {
                    entry.queue = queue;
                }
            }
        }
        let allowed = queue.is_some_and(|queue| self.queues[queue].status.allows_send());
        let asked = Asked::Send {
            entity,
            ids,
            allowed,
            asked,
        };
        self.answers.expect(request, asked);
    }

    fn told_settle(
        &mut self,
        request: Option<RequestId>,
        (entity, subqueue, session): (EntityId, Subqueue, &Option<Bytes>),
        tokens: &[LockToken],
        outcome: &Outcome,
    ) {
        let ask = ask_of(outcome);
        let standing = self.standing(tokens);
        // There is no dead-letter queue of a dead-letter queue: the lock is kept.
        let allowed = ask != Ask::DeadLetter || subqueue == Subqueue::Main;
        if allowed && standing != Standing::Lost {
            let sure = tokens.len() == 1 && standing == Standing::Good;
            tokens.iter().for_each(|token| self.end(*token, ask, sure));
            if *outcome == Outcome::Undelivered {
                self.give_credit_back(tokens, standing);
            }
        }
        let Some(request) = request else { return };
        let ids = tokens.iter().filter_map(|token| self.tokens.get(token));
        let asked = Asked::Settle {
            entity,
            ids: ids.copied().collect(),
            ask,
            standing: if allowed { standing } else { Standing::Lost },
            holds_session: self.holds(request, entity, session.as_deref()),
        };
        self.answers.expect(request, asked);
    }

    /// Several locks end all or none, so of any of them it is in doubt.
    fn end(&mut self, token: LockToken, ask: Ask, sure: bool) {
        let Some(id) = self.tokens.get(&token) else {
            return;
        };
        self.turn.ends.insert((*id, ask));
        self.free(token, sure);
    }

    /// A lock is over, or it is in doubt.
    pub(super) fn free(&mut self, token: LockToken, sure: bool) {
        let id = self.tokens.get(&token);
        let Some(entry) = id.and_then(|id| self.entries.get_mut(id)) else {
            return;
        };
        if sure {
            entry.free(self.turn.index);
        } else if let Some(lock) = entry.lock.as_mut() {
            lock.hold = Hold::InDoubt;
        }
    }

    fn give_credit_back(&mut self, tokens: &[LockToken], standing: Standing) {
        let ids = tokens.iter().filter_map(|token| self.tokens.get(token));
        let locks = ids.filter_map(|id| self.entries.get(id)?.lock);
        if standing == Standing::Good {
            let receivers = locks.filter_map(|lock| lock.receiver);
            receivers.for_each(|receiver| self.clients.give_credit_back(receiver));
        }
    }

    fn told_renew(&mut self, request: RequestId, tokens: &[LockToken]) {
        let standing = self.lasting(tokens);
        let now = self.turn.now.mono;
        if standing != Standing::Lost {
            for token in tokens {
                let id = self.tokens.get(token);
                let entry = id.and_then(|id| self.entries.get_mut(id));
                let Some(entry) = entry else { continue };
                let duration = self.queues[entry.queue].lock_duration;
                if let Some(lock) = entry.lock.as_mut() {
                    lock.at_most = lock.at_most.max(Mono(now.0 + duration));
                }
            }
        }
        let asked = Asked::Renew {
            tokens: tokens.to_vec(),
            at: now,
            standing,
        };
        self.answers.expect(request, asked);
    }

    fn told_go(&mut self, connection: ConnectionId) {
        self.answers.forget(connection);
        self.told_leave_all(connection);
        self.told_end(connection, None);
    }

    fn told_disconnect(&mut self, connection: ConnectionId) {
        self.told_go(connection);
        if !self.drops_locks {
            return;
        }
        let locks = self
            .entries
            .values_mut()
            .filter_map(|entry| entry.lock.as_mut());
        for lock in locks.filter(|lock| lock.connection == connection) {
            lock.hold = Hold::Ended;
        }
    }

    /// Whether all these locks can be settled, or none of them can, or it is not known.
    pub(super) fn standing(&self, tokens: &[LockToken]) -> Standing {
        let lock = |token: &LockToken| self.entries.get(self.tokens.get(token)?)?.lock;
        let locks = tokens.iter().filter_map(lock);
        let taken = locks.filter_map(|lock| Some(self.is_taken(lock.enlisted?)));
        match (self.lasting(tokens), taken.max()) {
            (Standing::Lost, _) | (_, Some(Standing::Lost)) => Standing::Lost,
            (_, Some(_)) => Standing::Unknown,
            (lasting, None) => lasting,
        }
    }

    /// Whether all these locks are held, or one of them is over, or it is not known.
    fn lasting(&self, tokens: &[LockToken]) -> Standing {
        let now = self.turn.now.mono;
        let mut going = false;
        let mut of = |token: &LockToken| {
            let id = self.tokens.get(token)?;
            let entry = self.entries.get(id).filter(|entry| !entry.buried)?;
            going |= self.queues[entry.queue].going;
            let lock = entry.lock?;
            Some(lock).filter(|lock| lock.token == *token && !lock.is_over(now))
        };
        let locks: Option<Vec<_>> = tokens.iter().map(&mut of).collect();
        match locks {
            None => Standing::Lost,
            Some(locks) if !going && locks.iter().all(|lock| lock.excludes(now)) => Standing::Good,
            Some(_) => Standing::Unknown,
        }
    }
}

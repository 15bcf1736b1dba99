//! Turn: one turn of the shard as the ledger sees it, from its commands to what it leaves undone.
//!
//! The order is fixed: `begin_turn` with the commands, `verify_writes` with the write sets,
//! `verify_output` with each output, `end_turn`. `observe` notes a new kind of command, and
//! `moves.rs` explains what it writes.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Command, ConnectionId, Incoming, LockToken, Mono, Now, Outcome, RequestId,
    SessionCountOnDisconnect, Subqueue, SubqueueId,
};
use bytes::Bytes;
use store::image::NumberKey;
use store::{CommitId, EntityId, SequenceNumber, WriteSet};

use super::administration::Planned;
use super::answers::{Asked, LockState};
use super::entry::Hold;
use super::retries::Retry;
use super::returned::Returned;
use super::settlements::ask_of;
use super::{Ask, Ledger, TurnEnd};
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
    /// Messages that come back with their sessions.
    pub returned: Vec<Returned>,
    /// Dead letters that are to go back by a token that may be good.
    pub redriven: BTreeSet<MessageId>,
    /// How many numbers may be set aside for transactions.
    pub reserved_numbers: BTreeMap<EntityId, u64>,
    /// The last scheduled message of each entity that was activated.
    pub activated: BTreeMap<EntityId, Due>,
    /// Bodies that were removed in the write set at hand.
    pub passed: BTreeMap<NumberKey, Bytes>,
    /// What receivers said of the next delivery of what they abandoned.
    pub retries: BTreeMap<MessageId, Retry>,
    /// How many messages have come to each entity.
    pub arriving: BTreeMap<EntityId, u64>,
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
            returned: Vec::new(),
            redriven: BTreeSet::new(),
            reserved_numbers: BTreeMap::new(),
            activated: BTreeMap::new(),
            passed: BTreeMap::new(),
            retries: BTreeMap::new(),
            arriving: BTreeMap::new(),
            forwarded: BTreeMap::new(),
            planned: Planned::default(),
        }
    }
}

impl Ledger {
    /// The shard is about to be told all this.
    pub fn begin_turn<'a>(&mut self, commands: impl IntoIterator<Item = &'a Command>, now: Now) {
        self.turn = Turn::new(now, Some(&self.turn));
        // Elsewhere what is not enqueued at once never is.
        let mut sends = std::mem::take(&mut self.sends);
        sends.retain(|_, entity| self.detects(*entity));
        self.sends = sends;
        for command in commands {
            self.observe(command);
            self.clients.observe(command);
        }
    }

    /// What the turn submitted. What was asked is not answered before the commit that it rests on.
    /// Returns whose messages were touched.
    ///
    /// # Errors
    /// I1, I2, I3, I5, I6, I8, I9 or I12.
    pub fn verify_writes(
        &mut self,
        sets: &[(CommitId, WriteSet)],
        rests_on: CommitId,
    ) -> Result<BTreeSet<EntityId>, Violation> {
        let mut entities = BTreeSet::new();
        let planned = &self.turn.planned;
        self.routing.note_going(|path| planned.ends(path));
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
            self.note_tombstones(&changes);
            for fan_out in &changes.fan_outs {
                self.explain_fan_out(fan_out, &changes)?;
            }
            self.check_routed()?;
            self.check_whole(*commit)?;
            for forgotten in &changes.forgotten {
                self.explain_forgotten(*forgotten)?;
            }
            entities.extend(changes.entities);
        }
        self.check_returned()?;
        self.answers.rest_on(rests_on);
        Ok(entities)
    }

    /// The turn is over.
    ///
    /// # Errors
    /// I1, I6, I10, I13 or I14, when something was left undone.
    pub fn end_turn(&mut self, turn_end: TurnEnd<'_>) -> Result<(), Violation> {
        if !turn_end.has_failed {
            self.check_planned()?;
            self.check_retries()?;
        }
        self.check_undelivered(turn_end.durable)?;
        self.note_durable(turn_end.durable);
        self.note_deleted(turn_end.durable);
        if turn_end.nearly_full {
            self.forwarding.suspended();
        }
        if turn_end.is_quiet() {
            self.last_quiet = self.turn.now.mono;
            self.turn.quiet = self.turn.index;
            self.answers.check(&turn_end)?;
            self.watch(&turn_end)?;
        }
        Ok(())
    }

    fn observe(&mut self, command: &Command) {
        match command {
            Command::Send {
                request,
                entity,
                messages,
            } => self.observe_send(*request, *entity, messages),
            Command::Settle {
                request,
                subqueue: SubqueueId { entity, subqueue },
                session,
                token,
                outcome,
            } => self.observe_settle(*request, (*entity, *subqueue, session), &[*token], outcome),
            Command::SettleMany {
                request,
                subqueue: SubqueueId { entity, subqueue },
                session,
                tokens,
                outcome,
            } => self.observe_settle(
                Some(*request),
                (*entity, *subqueue, session),
                tokens,
                outcome,
            ),
            Command::Renew {
                request, tokens, ..
            } => self.observe_renew(*request, tokens),
            Command::Peek {
                request,
                subqueue: SubqueueId { entity, subqueue },
                from,
                ..
            } => match subqueue {
                Subqueue::Main => self.observe_peek(*request, *entity, None, *from),
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
            } => self.observe_cancel(*request, *entity, numbers),
            Command::Redrive {
                request,
                subqueue: SubqueueId { subqueue, .. },
                token,
                ..
            } => self.observe_redrive(*request, *subqueue, *token),
            Command::Disconnect { connection } => self.observe_disconnect(*connection),
            Command::LoseReceiver { receiver } => {
                let returned = self.end_locks_with_receiver(*receiver, true);
                self.report.rabbitmq_session_returns += returned;
            }
            Command::Leave { connection } => {
                self.note_returned(*connection, SessionCountOnDisconnect::Keep);
                self.observe_leave_connection(*connection);
            }
            Command::AcceptSession { .. }
            | Command::RenewSession { .. }
            | Command::GetSessionState { .. }
            | Command::SetSessionState { .. }
            | Command::ListSessions { .. }
            | Command::PeekSession { .. }
            | Command::Detach { .. } => self.observe_session_command(command),
            Command::Declare {
                request,
                coordinator,
                ..
            } => self.observe_declare(*request, *coordinator),
            Command::Enlist {
                request,
                transaction,
                operation,
                scope,
                ..
            } => self.observe_enlist(*request, *transaction, operation, *scope),
            Command::Discharge {
                request,
                transaction,
                fail,
            } => self.observe_discharge(*request, *transaction, *fail),
            Command::EndTransactions {
                connection,
                coordinator,
            } => self.observe_end(*connection, Some(*coordinator)),
            Command::DeleteMessages {
                request,
                subqueue: SubqueueId { entity, subqueue },
                enqueued_before,
                count,
                ..
            } => self.observe_delete(*request, (*entity, *subqueue), *enqueued_before, *count),
            Command::Administer { request, order, .. } => self.observe_order(*request, order),
            Command::AddRule { .. } | Command::RemoveRule { .. } => self.observe_rule(command),
            Command::Publish {
                request,
                publication,
            } => self.observe_publish(*request, publication),
            Command::FailTransaction {
                connection,
                transaction,
                ..
            } => self.observe_failure(*connection, *transaction),
            Command::CreateNode { .. }
            | Command::OpenNode { .. }
            | Command::CloseNode { .. }
            | Command::ListRules { .. }
            | Command::PeekSchedule { .. }
            | Command::ShowSessionState { .. }
            | Command::Attach { .. }
            | Command::AttachSender { .. }
            | Command::Subscribe { .. }
            | Command::Credit { .. }
            | Command::Written { .. }
            | Command::Loaded { .. }
            | Command::Durable
            | Command::StoreSpace { .. }
            | Command::SetLimits(_)
            | Command::AdvanceClock { .. }
            | Command::Introduce { .. }
            | Command::Tick => {}
        }
    }

    fn observe_session_command(&mut self, command: &Command) {
        // No client makes up a name.
        let key = |entity: &EntityId, session: &[u8]| Some((*entity, Session::named(session)?));
        match command {
            Command::AcceptSession {
                receiver,
                entity,
                session,
                ..
            } => self.observe_accept(*receiver, *entity, session),
            Command::Detach { receiver } => self.observe_leave(*receiver),
            Command::RenewSession {
                request,
                entity,
                session,
            } => {
                if let Some(key) = key(entity, session) {
                    self.observe_renew_session(*request, key);
                }
            }
            Command::GetSessionState {
                request,
                entity,
                session,
            } => {
                if let Some(key) = key(entity, session) {
                    self.observe_get_state(*request, key);
                }
            }
            Command::SetSessionState {
                request,
                entity,
                session,
                state,
            } => {
                if let Some(key) = key(entity, session) {
                    self.observe_set_state(*request, key, state.as_ref());
                }
            }
            Command::ListSessions {
                request,
                entity,
                updated_after,
                skip,
                ..
            } => self.observe_list(*request, *entity, *updated_after, *skip),
            Command::PeekSession {
                request,
                entity,
                session,
                from,
                ..
            } => self.observe_peek(*request, *entity, Session::named(session), *from),
            _ => {}
        }
    }

    fn observe_send(&mut self, request: RequestId, entity: EntityId, messages: &[Incoming]) {
        let ids = self.record_submitted(messages);
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
            most: self.note_arriving(entity, ids.len()),
            ids,
            allowed,
            asked,
        };
        self.answers.expect(request, asked);
    }

    fn observe_settle(
        &mut self,
        request: Option<RequestId>,
        (entity, subqueue, session): (EntityId, Subqueue, &Option<Bytes>),
        tokens: &[LockToken],
        outcome: &Outcome,
    ) {
        let ask = ask_of(outcome);
        let lock_state = self.lock_state(tokens);
        // There is no dead-letter queue of a dead-letter queue: the lock is kept.
        let allowed = ask != Ask::DeadLetter || subqueue == Subqueue::Main;
        if allowed && lock_state != LockState::Lost {
            let sure = tokens.len() == 1 && lock_state == LockState::Held;
            tokens.iter().for_each(|token| self.end(*token, ask, sure));
            if let Outcome::Abandon { retry, .. } = outcome {
                self.note_retry(entity, tokens, *retry, sure);
            }
            if *outcome == Outcome::Undelivered {
                self.return_credit(tokens, lock_state);
            }
        }
        let Some(request) = request else { return };
        let ids = tokens.iter().filter_map(|token| self.tokens.get(token));
        let asked = Asked::Settle {
            entity,
            ids: ids.copied().collect(),
            ask,
            lock_state: if allowed { lock_state } else { LockState::Lost },
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

    fn return_credit(&mut self, tokens: &[LockToken], lock_state: LockState) {
        let ids = tokens.iter().filter_map(|token| self.tokens.get(token));
        let locks = ids.filter_map(|id| self.entries.get(id)?.lock);
        if lock_state == LockState::Held {
            let receivers = locks.filter_map(|lock| lock.receiver);
            receivers.for_each(|receiver| self.clients.return_credit(receiver));
        }
    }

    fn observe_renew(&mut self, request: RequestId, tokens: &[LockToken]) {
        let lock_state = self.lasting(tokens);
        let now = self.turn.now.mono;
        if lock_state != LockState::Lost {
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
            lock_state,
        };
        self.answers.expect(request, asked);
    }

    fn observe_leave_connection(&mut self, connection: ConnectionId) {
        self.answers.forget(connection);
        self.observe_leave_all(connection);
        self.observe_end(connection, None);
    }

    fn observe_disconnect(&mut self, connection: ConnectionId) {
        self.note_returned(connection, self.session_counts);
        self.observe_leave_connection(connection);
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
}

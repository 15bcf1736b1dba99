//! Turn: one turn of the shard as the ledger sees it, from what it is told to what it leaves.
//!
//! The order is fixed: `turn_begins` with the commands, `wrote` with the write sets, `said` with
//! each output, `turn_ends`. A new kind of command is noted here and explained in `moves.rs`.

use std::collections::{BTreeMap, BTreeSet};

use broker::{
    Command, ConnectionId, Incoming, LockToken, Mono, Now, Outcome, ReadRequest, RequestId,
    Subqueue,
};
use store::{CommitId, EntityId, SequenceNumber, WriteSet};

use super::answers::{Asked, Standing};
use super::clients::Source;
use super::entry::Hold;
use super::{Ask, Ledger};
use crate::books::Due;
use crate::message::{self, MessageId};
use crate::violation::Violation;

/// What may explain the writes of the turn under way.
#[derive(Debug)]
pub(super) struct Turn {
    pub now: Now,
    /// Locks that are to end by a token that may be good.
    pub ends: BTreeSet<(MessageId, Ask)>,
    /// The last scheduled message of each entity that was activated.
    pub activated: BTreeMap<EntityId, Due>,
    /// The last message of each entity that went on from it.
    pub forwarded: BTreeMap<EntityId, SequenceNumber>,
}

impl Turn {
    pub(super) fn new(now: Now) -> Self {
        Self {
            now,
            ends: BTreeSet::new(),
            activated: BTreeMap::new(),
            forwarded: BTreeMap::new(),
        }
    }
}

/// How things stand when a turn is over.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named for what they are")]
pub struct Rest<'a> {
    pub durable: CommitId,
    pub submitted: CommitId,
    /// Nothing new is accepted.
    pub nearly_full: bool,
    /// Reads that the broker waits for.
    pub reads: &'a [ReadRequest],
}

impl Rest<'_> {
    /// Whether everything decided was said.
    pub(super) fn is_quiet(&self) -> bool {
        self.durable == self.submitted
    }

    /// Whether the broker waits for something of an entity's.
    pub(super) fn is_reading(&self, of: EntityId) -> bool {
        use store::Query::{Entries, EntryPoints, Groups, Points, Range};
        self.reads.iter().any(|read| match read.query {
            Range { entity, .. }
            | Points { entity, .. }
            | Entries { entity, .. }
            | EntryPoints { entity, .. }
            | Groups { entity, .. } => entity == of,
        })
    }
}

impl Ledger {
    /// The shard is about to be told all this.
    pub fn turn_begins(&mut self, commands: &[Command], now: Now) {
        self.turn = Turn::new(now);
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
            self.sets += 1;
            let changes = self.books.apply(set)?;
            for counted in &changes.counts {
                self.explain_count(counted)?;
            }
            self.note_cancelled(&changes, *commit);
            for moved in &changes.moves {
                self.explain(moved, *commit)?;
            }
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
    /// I1, I6 or I14, when something was left undone.
    pub fn turn_ends(&mut self, rest: Rest<'_>) -> Result<(), Violation> {
        self.check_owed(rest.durable)?;
        self.undurable.retain(|_, commit| *commit > rest.durable);
        if rest.is_quiet() {
            self.last_quiet = self.turn.now.mono;
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
                entity,
                subqueue,
                token,
                outcome,
            } => self.told_settle(*request, (*entity, *subqueue), &[*token], outcome),
            Command::SettleMany {
                request,
                entity,
                subqueue,
                tokens,
                outcome,
            } => self.told_settle(Some(*request), (*entity, *subqueue), tokens, outcome),
            Command::Renew {
                request, tokens, ..
            } => self.told_renew(*request, tokens),
            Command::Peek {
                request, entity, ..
            }
            | Command::ReceiveDeferred {
                request, entity, ..
            } => self.answers.expect(*request, Asked::Read(*entity)),
            Command::CancelScheduled {
                request,
                entity,
                numbers,
            } => self.told_cancel(*request, *entity, numbers),
            Command::Disconnect { connection } => self.told_disconnect(*connection),
            // What receivers want is the clients' business; the rest asks for nothing. No client
            // here asks for sessions or transactions: an answer about one is a violation.
            Command::AcceptSession { .. }
            | Command::RenewSession { .. }
            | Command::GetSessionState { .. }
            | Command::SetSessionState { .. }
            | Command::ListSessions { .. }
            | Command::PeekSession { .. }
            | Command::Declare { .. }
            | Command::Enlist { .. }
            | Command::Doom { .. }
            | Command::Discharge { .. }
            | Command::EndTransactions { .. }
            | Command::EnsureQueue { .. }
            | Command::Attach { .. }
            | Command::Credit { .. }
            | Command::Detach { .. }
            | Command::Written { .. }
            | Command::Loaded { .. }
            | Command::Room { .. }
            | Command::Tick => {}
        }
    }

    fn told_send(&mut self, request: RequestId, entity: EntityId, messages: &[Incoming]) {
        let ids = messages
            .iter()
            .filter_map(|sent| message::id_of(&sent.payload));
        let ids: Vec<MessageId> = ids.collect();
        self.sends.extend(ids.iter().map(|id| (*id, entity)));
        let asked = self.turn.now.wall;
        self.answers
            .expect(request, Asked::Send { entity, ids, asked });
    }

    fn told_settle(
        &mut self,
        request: Option<RequestId>,
        (entity, subqueue): Source,
        tokens: &[LockToken],
        outcome: &Outcome,
    ) {
        let ask = ask_of(outcome);
        let standing = self.standing(tokens);
        // There is no dead-letter queue of a dead-letter queue: the lock is kept.
        let allowed = ask != Ask::DeadLetter || subqueue == Subqueue::Main;
        if allowed && standing != Standing::Lost {
            for token in tokens {
                self.end(*token, ask, tokens.len() == 1);
            }
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
        };
        self.answers.expect(request, asked);
    }

    /// Several locks end all or none, so of any of them it is in doubt.
    fn end(&mut self, token: LockToken, ask: Ask, sure: bool) {
        let Some(id) = self.tokens.get(&token) else {
            return;
        };
        self.turn.ends.insert((*id, ask));
        if let Some(lock) = self.entries.get_mut(id).and_then(|e| e.lock.as_mut()) {
            lock.hold = if sure { Hold::Ended } else { Hold::InDoubt };
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
        let standing = self.standing(tokens);
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

    fn told_disconnect(&mut self, connection: ConnectionId) {
        self.answers.forget(connection);
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

    /// Whether all these locks are held, or none of them can be settled, or it is not known.
    fn standing(&self, tokens: &[LockToken]) -> Standing {
        let now = self.turn.now.mono;
        let of = |token: &LockToken| {
            let id = self.tokens.get(token)?;
            let lock = self.entries.get(id)?.lock?;
            Some(lock).filter(|lock| lock.token == *token && !lock.is_over(now))
        };
        let locks: Option<Vec<_>> = tokens.iter().map(of).collect();
        match locks {
            None => Standing::Lost,
            Some(locks) if locks.iter().all(|lock| lock.excludes(now)) => Standing::Good,
            Some(_) => Standing::Unknown,
        }
    }
}

fn ask_of(outcome: &Outcome) -> Ask {
    match outcome {
        Outcome::Complete => Ask::Complete,
        Outcome::Abandon { .. } => Ask::Abandon,
        Outcome::Defer { .. } => Ask::Defer,
        Outcome::DeadLetter { .. } => Ask::DeadLetter,
        Outcome::Release | Outcome::Undelivered => Ask::Release,
    }
}

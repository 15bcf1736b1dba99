//! Enlist: what becomes part of a transaction, and what the shard says to that.

use broker::{
    Incoming, Operation, Outcome, RequestId, SendError, SettleError, Subqueue, SubqueueId,
    TransactionId,
};
use store::{EntityId, SequenceNumber};

use super::{
    Ask, Asked, BTreeSet, LIFE, Ledger, LockState, LockToken, MessageId, Mono, Part, Session,
    Stage, Violation, Work, ask_of, wrong,
};

impl Ledger {
    pub(in crate::ledger) fn observe_enlist(
        &mut self,
        request: RequestId,
        id: TransactionId,
        operation: &Operation,
        scope: Option<EntityId>,
    ) {
        let (work, lock_state) = self.work_of(request, operation);
        let now = self.turn.now.mono;
        let transaction = self.transactions.all.get_mut(&id);
        let open = transaction.filter(|transaction| {
            transaction.stage == Stage::Open && transaction.connection == request.connection
        });
        let Some(transaction) = open else {
            let (part, lock_state) = (None, LockState::Unknown);
            let asked = Asked::Enlist {
                id,
                part,
                lock_state,
            };
            return self.answers.expect(request, asked);
        };
        // Its clock may have run out, noticed or not.
        let late = transaction.until.is_some_and(|until| until <= now);
        let lock_state = if late { LockState::Unknown } else { lock_state };
        if lock_state != LockState::Lost {
            let until = Mono(now.0 + LIFE);
            transaction.until.get_or_insert(until);
        }
        let part = Some(transaction.parts.len());
        if lock_state != LockState::Lost
            && let Work::Settle { locks, .. } = &work
        {
            for (token, message) in locks.clone() {
                if let Some(lock) = self.lock_mut(message, token) {
                    lock.enlisted = lock.enlisted.or(Some(id));
                }
            }
        }
        if let Some(transaction) = self.transactions.all.get_mut(&id) {
            transaction.parts.push(Part {
                work,
                scope,
                lock_state,
                taken: None,
                done: BTreeSet::new(),
                set: false,
                seen: false,
            });
        }
        let asked = Asked::Enlist {
            id,
            part,
            lock_state,
        };
        self.answers.expect(request, asked);
    }

    /// What an operation is to do, and whether it should be taken in.
    fn work_of(&mut self, request: RequestId, operation: &Operation) -> (Work, LockState) {
        match operation {
            Operation::Send { entity, messages } => self.send_work(*entity, messages),
            Operation::Settle {
                subqueue: SubqueueId { entity, subqueue },
                tokens,
                outcome,
                ..
            } => self.settle_work(*entity, *subqueue, tokens, outcome),
            Operation::SetSessionState {
                entity,
                session,
                state,
            } => match Session::named(session) {
                Some(session) => {
                    let key = (*entity, session);
                    let (lock_state, _) = self.held_for(request, key);
                    let value = state.clone();
                    // The disk may be nearly full.
                    let sure = lock_state == LockState::Lost;
                    let lock_state = if sure { lock_state } else { LockState::Unknown };
                    (Work::State { key, value }, lock_state)
                }
                None => (Work::Other, LockState::Unknown),
            },
            Operation::Cancel { .. } => (Work::Other, LockState::Unknown),
        }
    }

    fn send_work(&mut self, entity: EntityId, messages: &[Incoming]) -> (Work, LockState) {
        let ids = self.record_submitted(messages);
        let wall = self.turn.now.wall;
        let later = |sent: &Incoming| sent.scheduled.is_some_and(|due| due > wall);
        if messages.iter().any(later) {
            *self.turn.reserved_numbers.entry(entity).or_default() += messages.len() as u64;
        }
        let work = Work::Send {
            entity,
            ids,
            first: None,
        };
        // There may be no room, and there may be no session.
        (work, LockState::Unknown)
    }

    fn settle_work(
        &mut self,
        entity: EntityId,
        subqueue: Subqueue,
        tokens: &[LockToken],
        outcome: &Outcome,
    ) -> (Work, LockState) {
        let ask = ask_of(outcome);
        let allowed = ask != Ask::DeadLetter || subqueue == Subqueue::Main;
        let lock_state = if allowed {
            self.lock_state(tokens)
        } else {
            LockState::Lost
        };
        let lock = |token: &LockToken| Some((*token, *self.tokens.get(token)?));
        let locks: Vec<(LockToken, MessageId)> = tokens.iter().filter_map(lock).collect();
        let work = Work::Settle { entity, locks, ask };
        (work, lock_state)
    }

    /// The shard says whether a send is part of its transaction.
    pub(in crate::ledger) fn verify_send_enlisted(
        &mut self,
        asked: &Asked,
        result: &Result<SequenceNumber, SendError>,
    ) -> Result<(), Violation> {
        let number = result.as_ref().ok().filter(|number| number.0 > 0);
        let part = self.verify_enlisted(asked, result.is_ok())?;
        if let (Some(number), Some(part)) = (number, part)
            && let Work::Send { first, .. } = &mut part.work
        {
            *first = Some(*number);
        }
        Ok(())
    }

    /// The shard says whether a settlement is part of its transaction.
    pub(in crate::ledger) fn verify_settlement_enlisted(
        &mut self,
        asked: &Asked,
        result: &Result<(), SettleError>,
    ) -> Result<(), Violation> {
        if let Asked::Enlist { id, lock_state, .. } = asked {
            let about_it = matches!(result, Err(SettleError::Transaction(_)));
            let unsound = match lock_state {
                LockState::Held => result.is_err() && !about_it,
                LockState::Lost => result.is_ok(),
                LockState::Unknown => false,
            };
            if unsound {
                let what = format!("a settlement within {id:?}, {lock_state:?}, was {result:?}");
                return Err(Violation::new("I3", what));
            }
        }
        self.verify_enlisted(asked, result.is_ok()).map(drop)
    }

    /// The shard says whether something is part of its transaction.
    pub(in crate::ledger) fn verify_enlisted(
        &mut self,
        asked: &Asked,
        taken: bool,
    ) -> Result<Option<&mut Part>, Violation> {
        let &Asked::Enlist { id, part, .. } = asked else {
            return Ok(None);
        };
        let Some(index) = part else {
            if taken {
                return Err(wrong(format!(
                    "something was enlisted in {id:?}, which is over"
                )));
            }
            return Ok(None);
        };
        if !taken {
            self.release_locks(id, index);
        }
        let Some(transaction) = self.transactions.all.get_mut(&id) else {
            return Ok(None);
        };
        let mut scopes = transaction.parts.iter().filter_map(Part::taken_scope);
        let before = scopes.next();
        let Some(part) = transaction.parts.get_mut(index) else {
            return Ok(None);
        };
        part.taken = Some(taken);
        if let (Some(before), Some(scope)) = (before, part.taken_scope())
            && before != scope
        {
            let what = format!("{id:?} is about {before:?}, and took in what is about {scope:?}");
            return Err(wrong(what));
        }
        if !taken && part.seen {
            return Err(wrong(format!("{part:?} of {id:?} was refused and done")));
        }
        Ok(Some(part))
    }

    fn release_locks(&mut self, id: TransactionId, index: usize) {
        let of = |part: &Part| match &part.work {
            Work::Settle { locks, .. } => locks.clone(),
            _ => Vec::new(),
        };
        let transaction = self.transactions.all.get(&id);
        let Some(transaction) = transaction else {
            return;
        };
        let refused = transaction.parts.get(index).map(of).unwrap_or_default();
        let mut others = transaction.parts.iter().enumerate();
        let others: Vec<_> = others
            .by_ref()
            .filter(|(other, part)| *other != index && part.taken != Some(false))
            .flat_map(|(_, part)| of(part))
            .collect();
        for (token, message) in refused {
            if others.contains(&(token, message)) {
                continue;
            }
            if let Some(lock) = self.lock_mut(message, token)
                && lock.enlisted == Some(id)
            {
                lock.enlisted = None;
            }
        }
    }
}

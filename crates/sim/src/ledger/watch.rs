//! Watch: whether the broker goes on, looked at whenever everything it decided was said. (I14, I6,
//! I10)
//!
//! Nothing may be left undone for long: a message that is free while a receiver wants it, a drain,
//! a message past its deadline, one that is due, a lock past its time. Each may last for a limited
//! number of looks, which are turns with nothing pending, before it counts as forgotten.

use std::collections::{BTreeMap, BTreeSet};

use broker::{LockToken, Mono, ReceiverId, Subqueue};
use store::{EntityId, Part};

use super::clients::{Clients, Source};
use super::entry::Hold;
use super::sessions::Key;
use super::{Ledger, Queue, TurnEnd};
use crate::books::Due;
use crate::message::MessageId;
use crate::violation::Violation;

mod sessions;

/// A look at something undone, while the broker waits for no read of that entity.
const IDLE: u32 = 250;
/// A look while it does, or works for another namespace: what time brings is done in small pieces,
/// some of which are read first.
const BUSY: u32 = 1;
/// More than this and it counts as forgotten: 60 idle looks, 20 for each namespace that has its
/// turn. Sound runs see 28, and 500 others.
const PATIENCE: u32 = 15_000;
/// How many messages are looked at for one that is free.
const LOOK_AT: usize = 64;

/// How much has been waited for each thing.
#[derive(Debug, Default)]
pub(super) struct Watch {
    unserved: BTreeMap<Source, u32>,
    draining: BTreeMap<ReceiverId, u32>,
    overdue: Option<(MessageId, u32)>,
    run_out: Option<(LockToken, u32)>,
    /// The next scheduled message of an entity, if it is due.
    late: BTreeMap<EntityId, (Due, u32)>,
    sessions: sessions::Watch,
    /// When locks run out, as far as was known when they began.
    locks: BTreeSet<(Mono, LockToken)>,
}

impl Watch {
    /// A receiver was given something.
    pub(super) fn fed(&mut self, clients: &Clients, receiver: ReceiverId, session: Option<Key>) {
        if let Some(key) = session {
            self.sessions.fed(key);
        }
        if let Some(source) = clients.source(receiver) {
            self.unserved.remove(&source);
        }
    }

    /// A lock has begun.
    pub(super) fn locked(&mut self, token: LockToken, until: Mono) {
        self.locks.insert((until, token));
    }
}

impl Ledger {
    /// One look, at a time when everything decided was said.
    pub(super) fn watch(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        self.watch_receivers(turn_end)?;
        self.watch_drains(turn_end)?;
        self.watch_deadlines(turn_end)?;
        self.watch_schedules(turn_end)?;
        self.watch_forwarding(turn_end)?;
        self.watch_sessions(turn_end)?;
        self.watch_locks(turn_end)
    }

    /// What is due becomes available.
    fn watch_schedules(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let wall = self.turn.now.wall.0;
        let mut before = std::mem::take(&mut self.watch.late);
        let scheduled = |queue: &&Queue| self.books.tally(queue.id, Part::Scheduled).0 > 0;
        for queue in self.queues.iter().filter(scheduled) {
            let first = self.books.first_due(queue.id);
            let Some(due) = first.filter(|(at, _)| *at <= wall) else {
                continue;
            };
            let same = before.remove(&queue.id).filter(|(seen, _)| *seen == due);
            let waited = same.map_or(0, |(_, waited)| waited) + cost(turn_end, queue.id);
            check("I10", waited, || {
                format!("{due:?} of {} is due and stays", queue.path)
            })?;
            self.watch.late.insert(queue.id, (due, waited));
        }
        Ok(())
    }

    fn watch_receivers(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let mut before = std::mem::take(&mut self.watch.unserved);
        for source in self.clients.wanted() {
            if self.is_by_session(source.0, source.1) || !self.has_free(source) {
                continue;
            }
            let waited = before.remove(&source).unwrap_or(0) + cost(turn_end, source.0);
            check("I14", waited, || {
                format!("a message of {source:?} is free and wanted, and not delivered")
            })?;
            self.watch.unserved.insert(source, waited);
        }
        Ok(())
    }

    /// Whether something there could be delivered.
    fn has_free(&self, (entity, subqueue): Source) -> bool {
        let wall = self.turn.now.wall.0;
        let expires = subqueue == Subqueue::Main;
        let rows = self.books.rows(entity, subqueue.part()).take(LOOK_AT);
        let mut lasting = rows.filter(|(_, row)| !expires || row.expires_ms > wall);
        lasting.any(|(id, _)| self.is_free(id))
    }

    fn is_free(&self, id: MessageId) -> bool {
        let now = self.turn.now.mono;
        self.entries.get(&id).is_none_or(|entry| entry.is_free(now))
    }

    fn watch_drains(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let mut before = std::mem::take(&mut self.watch.draining);
        for (receiver, source) in self.clients.draining() {
            if !self.may_drain(receiver) {
                continue;
            }
            let waited = before.remove(&receiver).unwrap_or(0) + cost(turn_end, source.0);
            check("I14", waited, || {
                format!("the drain of {receiver:?} is not answered")
            })?;
            self.watch.draining.insert(receiver, waited);
        }
        Ok(())
    }

    /// A message that is past its deadline and not locked leaves its queue.
    fn watch_deadlines(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let mut overdue = self.books.overdue(self.turn.now.wall.0).take(LOOK_AT);
        let first = overdue.find(|(id, _)| self.is_free(*id));
        let waited = wait(&mut self.watch.overdue, turn_end, first);
        check("I6", waited, || {
            format!("{first:?} is past its deadline and stays")
        })
    }

    /// A lock that runs out is ended, which the count shows. In a dead-letter queue nothing
    /// shows it but the next delivery.
    fn watch_locks(&mut self, turn_end: &TurnEnd<'_>) -> Result<(), Violation> {
        let now = self.turn.now.mono;
        let mut past = None;
        while let Some(&(until, token)) = self.watch.locks.first()
            && until < now
        {
            let runs = self.runs_until(token);
            past = runs.filter(|(until, _)| *until < now);
            if past.is_some() {
                break;
            }
            self.watch.locks.pop_first();
            // It was renewed.
            self.watch
                .locks
                .extend(runs.map(|(until, _)| (until, token)));
        }
        let token = self.watch.locks.first().map(|(_, token)| *token);
        let first = token.zip(past.map(|(_, entity)| entity));
        let waited = wait(&mut self.watch.run_out, turn_end, first);
        check("I14", waited, || {
            format!("{first:?} has run out and is not ended")
        })
    }

    /// Until when a lock in a queue itself runs, if nothing is known to have ended it.
    fn runs_until(&self, token: LockToken) -> Option<(Mono, EntityId)> {
        let id = self.tokens.get(&token)?;
        let lock = self.entries.get(id)?.lock?;
        let place = self.books.place(*id)?;
        let runs = lock.token == token
            && lock.hold == Hold::Held
            && self.books.is_live(place.entity)
            && matches!(place.part, Part::Active | Part::Deferred);
        runs.then_some((lock.at_most, place.entity))
    }
}

pub(super) fn cost(turn_end: &TurnEnd<'_>, entity: EntityId) -> u32 {
    if turn_end.is_busy_elsewhere || turn_end.is_reading(entity) {
        BUSY
    } else {
        IDLE
    }
}

/// How much the same thing has been waited for, this look included.
fn wait<T: Copy + Eq>(
    seen: &mut Option<(T, u32)>,
    turn_end: &TurnEnd<'_>,
    now: Option<(T, EntityId)>,
) -> u32 {
    *seen = now.map(|(now, entity)| {
        let before = seen.filter(|(before, _)| *before == now);
        let waited = before.map_or(0, |(_, waited)| waited);
        (now, waited + cost(turn_end, entity))
    });
    seen.map_or(0, |(_, waited)| waited)
}

pub(super) fn check(
    invariant: &'static str,
    waited: u32,
    what: impl Fn() -> String,
) -> Result<(), Violation> {
    if waited > PATIENCE {
        return Err(Violation::new(invariant, what()));
    }
    Ok(())
}

//! Alarms: when each entity wants a tick, by both clocks.
//!
//! An entity has one alarm for each clock. It may be earlier than needed, never later. Both clocks
//! have their turns, so that a flood of one keeps nothing of the other from its time.

use std::collections::BTreeSet;

use store::EntityId;

use crate::api::time::{Mono, Now, Wall};

/// When an entity wants a tick. It may be earlier than needed, never later.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Alarm {
    pub mono: Option<Mono>,
    pub wall: Option<Wall>,
}

impl Alarm {
    /// The same, `ms` milliseconds earlier.
    pub(crate) fn earlier(self, ms: u64) -> Self {
        Self {
            mono: self.mono.map(|at| Mono(at.0.saturating_sub(ms))),
            wall: self.wall.map(|at| Wall(at.0.saturating_sub(ms))),
        }
    }
}

/// The deadlines of all entities, one alarm each, in the broker's time.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    mono: BTreeSet<(Mono, EntityId)>,
    wall: BTreeSet<(Wall, EntityId)>,
    /// Whose turn it is.
    wall_next: bool,
}

impl Alarms {
    /// The first alarm of all.
    pub(crate) fn first(&self) -> Alarm {
        Alarm {
            mono: self.mono.first().map(|(at, _)| *at),
            wall: self.wall.first().map(|(at, _)| *at),
        }
    }

    /// Changes an entity's alarm.
    pub(crate) fn set(&mut self, entity: EntityId, old: Alarm, new: Alarm) {
        if old.mono != new.mono {
            old.mono.map(|at| self.mono.remove(&(at, entity)));
            new.mono.map(|at| self.mono.insert((at, entity)));
        }
        if old.wall != new.wall {
            old.wall.map(|at| self.wall.remove(&(at, entity)));
            new.wall.map(|at| self.wall.insert((at, entity)));
        }
    }

    /// Whether an alarm is due.
    pub(crate) fn is_due(&self, now: Now) -> bool {
        let (mono, wall) = self.due(now);
        mono.or(wall).is_some()
    }

    /// The next entity whose alarm is due. Both clocks have their turns, so that a flood of locks
    /// that run out keeps nothing from its time, nor the other way round.
    pub(crate) fn next_due(&mut self, now: Now) -> Option<EntityId> {
        let (mono, wall) = self.due(now);
        self.wall_next = !self.wall_next;
        if self.wall_next {
            mono.or(wall)
        } else {
            wall.or(mono)
        }
    }

    /// By each clock the first entity whose alarm is due.
    fn due(&self, now: Now) -> (Option<EntityId>, Option<EntityId>) {
        let mono = self.mono.first().filter(|(at, _)| *at <= now.mono);
        let wall = self.wall.first().filter(|(at, _)| *at <= now.wall);
        (mono.map(|due| due.1), wall.map(|due| due.1))
    }
}

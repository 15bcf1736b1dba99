//! Idle: when an entity was used last, and when it has not been used for too long.
//!
//! Within a process idle time is monotonic, so a wall clock that jumps deletes nothing and keeps
//! nothing alive; it only bridges a restart, by the time that the head keeps. That is written with
//! the head's other changes, or once a minute for its own sake, and what may be missing of it is
//! given to the entity. Uses that last are looked for: a receiver that waits every 30 seconds, so
//! that the head keeps it, and a message that is scheduled when its time would be up. An entity
//! that is not to be deleted costs nothing. (docs/spec/entities.md#15)

use store::{EntityId, Part};

use crate::api::time::{Mono, Now, Wall};
use crate::context::Context;
use crate::entities::directory::Directory;
use crate::queue::Queue;
use crate::queue::kind::Kind;

/// How often receivers that wait are looked for.
const LOOK_MS: u64 = 30_000;
/// A head is not written more often than this when nothing but its last use has changed.
const WRITE_MS: u64 = 60_000;
/// After a restart clients have so long to come back, however long the broker was away.
const RETURN_MS: u64 = 60_000;

/// Since when an entity has been unused.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// Its last use, or the start of the process.
    since: Mono,
    /// How long it had not been used before that.
    before_ms: u64,
    /// When uses that last were looked for.
    looked: Mono,
    /// Its last use as the stored head has it.
    written: Wall,
}

impl Queue {
    /// The time of an entity that is new or recovered begins to run.
    pub(crate) fn start_idle(&mut self, now: Now) {
        let used = self.times.created.0.max(self.rows.head.accessed_ms);
        let unused = now.wall.0.saturating_sub(used.saturating_add(WRITE_MS));
        let most = self.settings.auto_delete_on_idle.saturating_sub(RETURN_MS);
        self.idle = Idle {
            since: now.mono,
            before_ms: unused.min(most),
            looked: now.mono,
            written: Wall(self.rows.head.accessed_ms),
        };
    }

    /// A client uses the entity.
    pub(crate) fn note_access(&mut self, cx: &mut Context<'_>) {
        let Now { wall, mono } = cx.now;
        self.idle.since = mono;
        self.idle.before_ms = 0;
        self.rows.head.accessed_ms = wall.0;
        if wall.0.abs_diff(self.idle.written.0) >= WRITE_MS {
            self.rows.touch(cx);
        }
    }

    /// The head is written as it is.
    pub(crate) fn access_is_written(&mut self) {
        self.idle.written = Wall(self.rows.head.accessed_ms);
    }

    /// When it will have been unused for too long.
    fn idle_until(&self) -> Option<Mono> {
        let allowed = self.settings.auto_delete_on_idle;
        let left = allowed.saturating_sub(self.idle.before_ms);
        (allowed != u64::MAX).then_some(self.idle.since.after(left))
    }

    /// When it is to be looked at.
    pub(crate) fn idle_alarm(&self) -> Option<Mono> {
        let until = self.idle_until()?;
        let last = self.idle.since.max(self.idle.looked);
        let look = last.after(LOOK_MS);
        Some(if self.has_receivers() {
            until.min(look)
        } else {
            until
        })
    }

    fn has_receivers(&self) -> bool {
        let attached = self.subs.iter().any(|sub| sub.attached > 0);
        let sessions = self.sessions.as_ref();
        attached || sessions.is_some_and(|sessions| sessions.has_waiters())
    }

    fn is_in_use(&self, cx: &Context<'_>) -> bool {
        let clients = &cx.shared.clients;
        let waits = |slot| clients.get(slot).waits();
        self.rows.count(Part::Scheduled) > 0 || clients.receivers_at(self.id).any(waits)
    }

    /// Whether it has been unused for too long.
    pub(crate) fn is_idle_for_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(until) = self.idle_until() else {
            return false;
        };
        self.idle.looked = cx.now.mono;
        if self.is_in_use(cx) {
            self.note_access(cx);
            return false;
        }
        until <= cx.now.mono
    }
}

impl Directory {
    /// A command uses an entity without changing what is in it.
    pub(crate) fn note_use(&mut self, entity: EntityId, cx: &mut Context<'_>) {
        if let Some(queue) = self.get_mut(entity) {
            queue.note_access(cx);
        }
    }
}

/// The use of a subscription counts as use of its topic. (docs/spec/entities.md#15)
pub(crate) fn note_uses_below(directory: &mut Directory, topic: EntityId) {
    let Some(Kind::Topic(of_topic)) = directory.get(topic).map(|queue| &queue.kind) else {
        unreachable!("it was found to be a topic in this step");
    };
    let below = of_topic.subscriptions.iter();
    let below = below.map(|id| {
        directory
            .get(*id)
            .expect("a subscription that goes is taken out")
    });
    let Some(used) = below.map(|queue| queue.idle.since).max() else {
        return;
    };
    let queue = directory
        .get_mut(topic)
        .expect("it was found to be a topic in this step");
    if used > queue.idle.since {
        queue.idle.since = used;
        queue.idle.before_ms = 0;
    }
}

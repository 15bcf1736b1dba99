//! Idle: when an entity was used last, and when it has not been used for too long.
//!
//! Within a process idle time is monotonic, so a wall clock that jumps deletes nothing and keeps
//! nothing alive; it only bridges a restart, by the time that the head keeps. That is written with
//! the head's other changes, or once a minute for its own sake, and what may be missing of it is
//! given to the entity. Uses that last are looked for: a receiver that waits every 30 seconds, so
//! that the head keeps it, a topic's subscriptions as often, and a message that is scheduled when
//! its time would be up. An entity that is not to be deleted costs nothing.
//! (docs/spec/entities.md#15)

use crate::api::time::{Mono, Now, Wall};
use crate::context::Context;
use crate::queue::rows::Rows;

/// How long an empty transfer queue stays, in milliseconds.
pub(super) const TRANSFER_MS: u64 = 300_000;
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

impl Idle {
    /// The time of an entity that is new or recovered begins to run. It was created or changed at
    /// `changed`, and used by a client at `accessed`.
    pub(crate) fn start(changed: Wall, accessed: Wall, allowed_ms: u64, now: Now) -> Self {
        let used = changed.0.max(accessed.0);
        let unused = now.wall.0.saturating_sub(used.saturating_add(WRITE_MS));
        let most = allowed_ms.saturating_sub(RETURN_MS);
        Self {
            since: now.mono,
            before_ms: unused.min(most),
            looked: now.mono,
            written: accessed,
        }
    }

    /// A client uses the entity.
    pub(crate) fn note_access(&mut self, rows: &mut Rows, cx: &mut Context<'_>) {
        let Now { wall, mono } = cx.now;
        self.note_use_at(mono);
        rows.head.accessed_ms = wall.0;
        if wall.0.abs_diff(self.written.0) >= WRITE_MS {
            rows.touch(cx);
        }
    }

    /// Its last use.
    pub(crate) fn last_use(&self) -> Mono {
        self.since
    }

    /// What has been used with it counts as its use.
    pub(crate) fn note_use_at(&mut self, used: Mono) {
        if used >= self.since {
            self.since = used;
            self.before_ms = 0;
        }
    }

    /// The head is written as it is.
    pub(crate) fn is_written(&mut self, accessed: Wall) {
        self.written = accessed;
    }

    /// When it will have been unused for too long.
    pub(crate) fn until(&self, allowed_ms: u64) -> Option<Mono> {
        let left = allowed_ms.saturating_sub(self.before_ms);
        (allowed_ms != u64::MAX).then_some(self.since.after(left))
    }

    /// When it is to be looked at.
    pub(crate) fn alarm(&self, allowed_ms: u64, has_receivers: bool) -> Option<Mono> {
        let until = self.until(allowed_ms)?;
        let last = self.since.max(self.looked);
        let look = last.after(LOOK_MS);
        Some(if has_receivers {
            until.min(look)
        } else {
            until
        })
    }

    /// Uses that last are looked for now.
    pub(crate) fn look(&mut self, now: Mono) {
        self.looked = now;
    }
}

//! Unapplied: the groups that are durable and not in the index yet.
//!
//! The committing thread adds groups here and goes on. The indexer takes all of them when there
//! are enough, when a reader needs one, or after a second: a message that is settled before that
//! never reaches the index. At an upper bound the committer waits.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use journal::{Handle, Moves, SealedSegment};
use store::{CommitId, WriteSet};

/// Writes that are applied at once. Enough that most messages that are settled soon are in one
/// batch with their sending; a write here takes about 130 bytes.
const APPLY_FROM_WRITES: usize = 32_768;
/// The same in bytes of what writes hold besides.
const APPLY_FROM_BYTES: u64 = 8 << 20;
/// The committer waits at this many.
const MAX_WRITES: usize = 4 * APPLY_FROM_WRITES;
const MAX_BYTES: u64 = 4 * APPLY_FROM_BYTES;
/// Nothing waits longer.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// A group that is in the journal.
#[derive(Debug, Default)]
pub(crate) struct DurableGroup {
    /// With places for bodies.
    pub sets: Vec<WriteSet>,
    pub moves: Moves,
    pub writes: usize,
    /// What its record takes without bodies.
    pub bytes: u64,
    pub last: CommitId,
    pub position: u64,
    /// The segment that ended before it, and the files of the staged bodies that it names.
    pub sealed: Vec<SealedSegment>,
    /// What its record takes as a whole.
    pub journal_bytes: u64,
    /// What has to be synced before the index may have it, in a store that acknowledges sooner.
    pub unsynced: Option<Arc<Handle>>,
}

impl DurableGroup {
    /// Whether it copies an entity, and has to be applied alone: what it copies is read from the
    /// index.
    pub fn has_copy(&self) -> bool {
        self.sets.iter().any(WriteSet::has_copy)
    }
}

/// Between the committer, the indexer and readers.
#[derive(Default)]
pub(crate) struct Unapplied {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    groups: Vec<DurableGroup>,
    writes: usize,
    bytes: u64,
    /// When the first of `groups` came.
    since: Option<Instant>,
    /// The newest commit that a reader asked for.
    wanted: CommitId,
    /// The newest commit that was taken.
    taken: CommitId,
    /// No group will be added any more.
    ended: bool,
    /// No group will be taken any more.
    stopped: bool,
}

impl State {
    fn is_enough(&self) -> bool {
        self.ended
            || self.writes >= APPLY_FROM_WRITES
            || self.bytes >= APPLY_FROM_BYTES
            || self.is_wanted()
    }

    fn is_wanted(&self) -> bool {
        let newest = self.groups.last().map(|group| group.last);
        self.wanted > self.taken && newest >= Some(self.wanted)
    }

    fn is_too_much(&self) -> bool {
        !self.stopped && (self.writes >= MAX_WRITES || self.bytes >= MAX_BYTES)
    }
}

impl Unapplied {
    /// Adds a group, and returns once there is not too much.
    pub fn add(&self, group: DurableGroup) {
        let state = self.push(group);
        let waited = self.changed.wait_while(state, |state| state.is_too_much());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Adds a group, however much there is.
    pub fn add_without_waiting(&self, group: DurableGroup) {
        drop(self.push(group));
    }

    fn push(&self, group: DurableGroup) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let was_enough = !state.groups.is_empty() && state.is_enough();
        let is_first = state.groups.is_empty();
        state.writes += group.writes;
        state.bytes += group.bytes;
        state.since.get_or_insert_with(Instant::now);
        state.groups.push(group);
        if is_first || state.is_enough() && !was_enough {
            self.changed.notify_all();
        }
        state
    }

    /// Whether there is not too much.
    pub fn has_room(&self) -> bool {
        !self.lock().is_too_much()
    }

    /// Has everything up to `id` applied soon.
    pub fn request_apply(&self, id: CommitId) {
        let mut state = self.lock();
        if id > state.wanted {
            state.wanted = id;
            if state.is_wanted() {
                self.changed.notify_all();
            }
        }
    }

    /// Takes what there is once it is time, and nothing when there will be no more. With
    /// `look_up`, it returns after a second even if there is nothing to take.
    pub fn take(&self, look_up: bool) -> Option<Vec<DurableGroup>> {
        let mut state = self.lock();
        let began = Instant::now();
        while !state.is_enough() {
            let since = state.since.or(look_up.then_some(began));
            state = match since {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(since) => {
                    let Some(left) = MAX_DELAY.checked_sub(since.elapsed()) else {
                        break;
                    };
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        let groups = std::mem::take(&mut state.groups);
        (state.writes, state.bytes, state.since) = (0, 0, None);
        if let Some(newest) = groups.last() {
            state.taken = newest.last;
        }
        let ended = state.ended && groups.is_empty();
        drop(state);
        self.changed.notify_all();
        (!ended).then_some(groups)
    }

    /// No group will be added any more.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// No group will be taken any more.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

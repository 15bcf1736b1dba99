//! Worked: what a store with a flipped bit is used for before it is looked at. Messages and copies
//! are settled, dead-lettered and moved, old segments are removed, and the store is closed.

use std::time::Duration;

use index::opening;
use index::settled::SettledRanges;
use journal::Moves;
use store::BodyPointer;

use super::sample::{SUBSCRIPTIONS, TOPIC, size_in};
use super::*;
use crate::commit::committer::Submission;
use crate::retention::{Retention, RetentionTiming};

/// Thousands of which few messages are left, and all.
const NEARLY_SETTLED: u64 = 44;
const THOUSANDS: u64 = 50;
/// Messages are left of those thousands at this distance.
const LEFT_OVER: u64 = 97;
/// How often retention looks at all segments.
const LOOKS: usize = 4;

/// Why a store stopped, and whether it had done all of the work by then.
pub(super) struct Stop {
    pub why: String,
    pub is_done: bool,
}

/// Uses a store of many messages and closes it.
///
/// # Errors
/// When it stops.
pub(super) fn work(mut store: RocksStore, path: &Path) -> Result<(), Stop> {
    let at = |step, is_done| {
        move |error| Stop {
            why: format!("{step}: {error}"),
            is_done,
        }
    };
    settle_many(&mut store).map_err(at("settling", false))?;
    release_copies(&mut store).map_err(at("settling copies", false))?;
    move_left_over(&mut store).map_err(at("moving", false))?;
    store.close().map_err(at("closing", true))?;
    remove_segments(path).map_err(at("removing segments", true))
}

/// Waits until a commit is durable and in the index.
fn finish(store: &RocksStore, id: CommitId) -> Result<(), StoreError> {
    store.progress.wait_for(id)?;
    store.unapplied.request_apply(id);
    store.progress.wait_until_applied(id)
}

fn settle_many(store: &mut RocksStore) -> Result<(), StoreError> {
    for thousand in 0..THOUSANDS {
        let first = 10_000 + thousand * 1_000;
        // Each of these was settled already.
        let is_there = |at: &u64| !at.is_multiple_of(23);
        let all = (0..1_000).filter(is_there);
        let id = if thousand < NEARLY_SETTLED {
            settle(
                store,
                all.filter(|at| at % LEFT_OVER != 1).map(|at| first + at),
            )
        } else {
            let dead = all.clone().filter(|at| at % 23 == 7);
            dead_letter(store, dead.map(|at| first + at), size_in(thousand));
            settle(store, all.filter(|at| at % 23 == 5).map(|at| first + at))
        };
        store.progress.wait_for(id)?;
    }
    finish(store, store.last())
}

/// Takes one copy of a message, and the last one of another.
fn release_copies(store: &mut RocksStore) -> Result<(), StoreError> {
    for base in [0, 100] {
        for (number, subscription) in [(base + 1, 0), (base + 2, 1)] {
            let pointer = BodyPointer {
                home: TOPIC,
                number: SequenceNumber(number),
            };
            let mut set = WriteSet::default();
            let entity = SUBSCRIPTIONS[subscription];
            conformance::release(&mut set, pointer, entity, Part::Active);
            let id = store.submit(set);
            finish(store, id)?;
        }
    }
    Ok(())
}

/// Writes the bodies that few are left of to the newest segment.
fn move_left_over(store: &mut RocksStore) -> Result<(), StoreError> {
    let mut moves = Moves::new();
    let mut retention = retention(&store.open_store)?;
    // Each look is at one segment; its number of bodies has to be the same twice.
    for _look in 0..3 * LOOKS {
        moves.extend(retention.remaining_bodies(&SettledRanges::default())?);
    }
    if !moves.is_empty() {
        let submitter = store.submitter.as_ref().expect("it is open");
        let moved = submitter.submissions.send(Submission::Moves(moves));
        moved.map_err(|_| StoreError::Poisoned("the committer has ended".into()))?;
    }
    // The moves come before these.
    for number in [90_001, 90_002] {
        let id = send(store, [number], 100);
        finish(store, id)?;
    }
    Ok(())
}

/// Removes the segments that have nothing any more from a closed store.
fn remove_segments(path: &Path) -> Result<(), StoreError> {
    let (open_store, _) = open_store::open(path, &options(Durability::Synced))?;
    let mut retention = retention(&open_store)?;
    for _look in 0..LOOKS {
        if retention.collect(true, &SettledRanges::default())? {
            open_store.database.flush()?;
        }
    }
    Ok(())
}

fn retention(open_store: &OpenStore) -> Result<Retention, StoreError> {
    let (database, files) = (open_store.database.clone(), open_store.files.clone());
    let sealed = opening::known_segments(&*database)?.into_values();
    let applied = database.permanent_position()?;
    let mut retention = Retention::new(database, files, 0, sealed.collect(), applied);
    retention.timing = RetentionTiming {
        check_interval: Duration::ZERO,
        count_interval: Duration::ZERO,
        unchanged_for: Duration::ZERO,
    };
    Ok(retention)
}

//! Space of settled messages: their tables and segments are removed, and other ones stay.

use index::settled::SettledRanges;

use super::*;
use crate::commit::committer::Submission;
use crate::retention::RetentionTiming;

#[test]
fn space_of_settled_messages_is_freed_and_other_messages_stay() {
    let directory = new_directory();
    // Little memory makes small files, of which many lie inside a settled range.
    let options = Options {
        memory_bytes: 0,
        ..Options::default()
    };
    let mut store = RocksStore::open(directory.path(), options, Arc::new(|| ())).expect("opened");
    let last = 300_000;
    // A dead letter's body and a message that is never settled, in the middle of it all.
    let (dead, held) = (30_001, 100_002);
    for first in (1..=last).step_by(1_000) {
        send(&mut store, first..first + 1_000, 600);
    }
    store.progress.wait_for(store.last()).expect("committed");
    dead_letter(&mut store, [dead], 600);
    for first in (1..=last).step_by(500) {
        let done = (first..first + 500).filter(|number| ![dead, held].contains(number));
        let id = settle(&mut store, done);
        store.progress.wait_for(id).expect("committed");
    }
    store.close().expect("closed");
    // What the last flush has made permanent is given up by the next opening.
    let store = open(directory.path());
    while size_of_journal(directory.path()) > 30_000_000 {
        std::thread::yield_now();
    }
    let image = store.image().expect("readable");
    let kept: Vec<_> = image.bodies.keys().map(|key| key.1.0).collect();
    assert_eq!(kept, [dead, held]);
    assert_eq!(numbers_in(&store), [held]);
    let found = read(
        &store,
        store.last(),
        &range(QUEUE, Part::DeadLetter, 0, u64::MAX),
    );
    assert_eq!(found[0].body, Some(body_of(found[0].row.body, 600)));
    store.close().expect("closed");
    assert_eq!(numbers_in(&open(directory.path())), [held]);
}

#[test]
fn a_few_messages_that_stay_do_not_keep_a_segment() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let (body, dead) = (100_000, [7, 70, 170]);
    for first in (1..=200).step_by(20) {
        let id = send(&mut store, first..first + 20, body);
        store.progress.wait_for(id).expect("committed");
    }
    settle(
        &mut store,
        (1..=200).filter(|number| !dead.contains(number)),
    );
    let before = store.image().expect("readable").bodies;
    let (database, files) = (&store.open_store.database, &store.open_store.files);
    let mut retention = Retention::new(
        database.clone(),
        files.clone(),
        0,
        index::opening::known_segments(&**database)
            .expect("read")
            .into_values()
            .collect(),
        u64::MAX,
    );
    retention.timing = RetentionTiming {
        check_interval: Duration::ZERO,
        count_interval: Duration::ZERO,
        unchanged_for: Duration::ZERO,
    };
    let mut moved = Vec::new();
    for _look in 0..20 {
        let moves = retention
            .remaining_bodies(&SettledRanges::default())
            .expect("counted");
        moved.extend(moves.iter().map(|(pointer, _)| pointer.number.0));
        let submitter = store.submitter.as_ref().expect("open");
        submitter
            .submissions
            .send(Submission::Moves(moves))
            .expect("taken");
    }
    assert!(moved.contains(&7) && moved.contains(&70), "{moved:?}");
    // In the newest segment now; those that they were in go.
    let first = directory.path().join("journal/0000000000000001.journal");
    while first.exists() {
        let id = feed_one(&mut store);
        store.progress.wait_for(id).expect("committed");
        std::thread::yield_now();
    }
    let kept = store.image().expect("readable").bodies;
    assert!(before.iter().all(|(key, body)| kept.get(key) == Some(body)));
    let id = settle(&mut store, dead);
    store.progress.wait_for(id).expect("committed");
    let copy = new_directory();
    copy_at_rest(&store, directory.path(), copy.path());
    drop(store);
    let image = open(copy.path()).image().expect("readable");
    let left = image.bodies.keys().filter(|key| dead.contains(&key.1.0));
    assert_eq!(
        left.count(),
        0,
        "a move does not bring back what is settled"
    );
}

#[test]
fn segments_that_wait_for_nothing_else_are_worth_a_flush() {
    for (messages, is_worth_it_at_once) in [(16, true), (4, false)] {
        let directory = new_directory();
        let mut store = open(directory.path());
        for number in 1..=messages {
            send(&mut store, [number], 3 * MIB);
        }
        settle(&mut store, 1..=messages);
        store.close().expect("closed");
        let options = Options::default();
        let (open_store, _) = open_store::open(directory.path(), &options).expect("opened");
        let (database, files) = (open_store.database.clone(), open_store.files.clone());
        let known = index::opening::known_segments(&*database).expect("read");
        // As if what has settled them were applied and not permanent yet.
        let applied = u64::MAX;
        let sealed = known.into_values().collect();
        let mut retention = Retention::new(database, files, 0, sealed, applied);
        retention.timing.check_interval = Duration::ZERO;
        assert_eq!(
            retention.collect(false, &SettledRanges::default()),
            Ok(is_worth_it_at_once)
        );
        assert_eq!(
            retention.collect(true, &SettledRanges::default()),
            Ok(!is_worth_it_at_once)
        );
        assert_eq!(
            retention.collect(true, &SettledRanges::default()),
            Ok(false),
            "one at a time"
        );
        assert!(size_of_journal(directory.path()) > 0, "nothing goes before");
    }
}

/// Sends a message, whose number is unlike all others, and settles it.
fn feed_one(store: &mut RocksStore) -> CommitId {
    let number = 1_000 + store.last().0;
    send(store, [number], 200_000);
    settle(store, [number])
}

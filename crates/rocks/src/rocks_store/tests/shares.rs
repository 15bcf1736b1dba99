//! Shared bodies: counts in memory, on disk, and in one group with everything else.

use store::Write;
use store::conformance::{publish, release};

use super::*;

const TOPIC: EntityId = EntityId(5);
const ONE: EntityId = EntityId(6);
const OTHER: EntityId = EntityId(7);

fn at(number: u64) -> BodyPointer {
    BodyPointer {
        home: TOPIC,
        number: SequenceNumber(number),
    }
}

fn submit(store: &mut RocksStore, fill: impl FnOnce(&mut WriteSet)) -> CommitId {
    let mut set = WriteSet::default();
    fill(&mut set);
    store.submit(set)
}

fn publish_all(store: &mut RocksStore, numbers: impl IntoIterator<Item = u64>, len: usize) {
    submit(store, |set| {
        for number in numbers {
            publish(set, at(number), &[ONE, OTHER], Part::Active, len);
        }
    });
}

fn release_all(store: &mut RocksStore, entity: EntityId, numbers: impl IntoIterator<Item = u64>) {
    submit(store, |set| {
        for number in numbers {
            release(set, at(number), entity, Part::Active);
        }
    });
}

/// Submits a first message of its own and holds it, so that what follows becomes one group.
fn hold_a_group(store: &mut RocksStore) {
    store.progress.wait_for(store.last()).expect("committed");
    store.hooks.hold(Sync::Now);
    send(store, [1], 10);
    store.hooks.wait_until_held();
}

/// How many copies are left of each body of the topic.
fn copies_left(store: &RocksStore) -> Vec<(u64, u32)> {
    let image = store.image().expect("everything is readable");
    assert_eq!(image.audit_bodies(), []);
    let bodies = image.bodies.keys().filter(|(home, _)| *home == TOPIC);
    bodies.map(|key| (key.1.0, image.shares[key])).collect()
}

#[test]
fn what_is_published_and_settled_in_one_group_leaves_nothing_behind() {
    let directory = new_directory();
    let mut store = open(directory.path());
    hold_a_group(&mut store);
    for number in 1..=100 {
        publish_all(
            &mut store,
            [number],
            if number == 50 { 3 * MIB } else { 1_000 },
        );
        release_all(&mut store, OTHER, [number]);
    }
    release_all(&mut store, ONE, 1..=100);
    store.hooks.release();
    assert_eq!(copies_left(&store), []);
    let statistics = store.statistics();
    store.close().expect("closed");
    let snapshot = statistics.snapshot();
    assert_eq!(snapshot.groups, 2);
    let image = open(directory.path()).image().expect("readable");
    // The message that the group was held with.
    assert_eq!((image.messages.len(), image.bodies.len()), (1, 1));
}

#[test]
fn one_group_shares_and_releases_what_is_new_known_and_only_on_disk() {
    let directory = new_directory();
    let mut store = open(directory.path());
    publish_all(&mut store, 1..=40, 10);
    // Far apart, so that each has a page of its own.
    publish_all(&mut store, (1..=20).map(|step| step * 100_000), 10);
    store.close().expect("closed");
    let mut store = open(directory.path());
    publish_all(&mut store, 41..=60, 10);
    hold_a_group(&mut store);
    publish_all(&mut store, 61..=80, 10);
    let far = |step: u64| step * 100_000;
    release_all(&mut store, ONE, (31..=70).chain((1..=10).map(far)));
    release_all(&mut store, OTHER, (35..=65).rev());
    release_all(&mut store, OTHER, (6..=15).map(far));
    let copy = new_directory();
    copy_at_rest(&store, directory.path(), copy.path());
    store.hooks.release();
    let two = |numbers: std::ops::RangeInclusive<u64>| numbers.map(|number| (number, 2));
    let one = |numbers: std::ops::RangeInclusive<u64>| numbers.map(|number| (number, 1));
    let mut expected: Vec<_> = two(1..=30)
        .chain(one(31..=34))
        .chain(one(66..=70))
        .collect();
    expected.extend(two(71..=80));
    expected.extend((1..=5).chain(11..=15).map(|step| (far(step), 1)));
    expected.extend((16..=20).map(|step| (far(step), 2)));
    assert_eq!(copies_left(&store), expected);
    store.close().expect("closed");
    assert_eq!(copies_left(&open(directory.path())), expected);
    let before: Vec<_> = two(1..=60)
        .chain((1..=20).map(|step| (far(step), 2)))
        .collect();
    assert_eq!(copies_left(&open(copy.path())), before, "after a crash");
}

#[test]
fn counts_that_memory_has_no_room_for_are_read_again() {
    let directory = new_directory();
    let mut store = open(directory.path());
    // One on each page of neighbours, and more than are kept in memory.
    let numbers = || (1..=18_000).map(|page| page * 64);
    publish_all(&mut store, numbers(), 10);
    store.progress.wait_for(store.last()).expect("committed");
    release_all(&mut store, ONE, numbers());
    assert_eq!(
        copies_left(&store),
        numbers().map(|number| (number, 1)).collect::<Vec<_>>()
    );
    release_all(&mut store, OTHER, numbers().rev());
    assert_eq!(copies_left(&store), []);
}

#[test]
fn a_removed_home_takes_the_counts_of_its_group_along() {
    let directory = new_directory();
    let mut store = open(directory.path());
    publish_all(&mut store, 1..=5, 10);
    hold_a_group(&mut store);
    publish_all(&mut store, 6..=9, 10);
    release_all(&mut store, ONE, 3..=7);
    submit(&mut store, |set| {
        for entity in [TOPIC, ONE, OTHER] {
            set.push(Write::RemoveEntity(entity));
        }
    });
    store.hooks.release();
    let image = store.image().expect("everything is readable");
    assert_eq!((image.shares.len(), image.bodies.len()), (0, 1));
}

#[test]
fn a_release_of_a_body_that_is_not_shared_removes_nothing() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, [1, 2], 10);
    submit(&mut store, |set| {
        for number in [1, 3] {
            let number = SequenceNumber(number);
            let pointer = BodyPointer {
                home: QUEUE,
                number,
            };
            set.push(Write::ReleaseBody { pointer });
        }
    });
    let image = store.image().expect("everything is readable");
    assert_eq!(image.audit_bodies(), []);
    assert_eq!(image.bodies.len(), 2);
}

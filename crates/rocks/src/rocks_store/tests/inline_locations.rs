//! Locations of bodies in the rows that they came with, and their rows of their own.

use index::image;
use index::{Batch, Family, Tables};
use journal::key::{self, single};
use journal::value;
use store::Write;

use super::*;

fn everything(store: &RocksStore, part: Part) -> Vec<store::StoredMessage> {
    read(store, store.last(), &range(QUEUE, part, 0, u64::MAX))
}

/// How many bodies have rows of their own in the index, once it has heard of everything.
fn rows_of_bodies(store: &RocksStore) -> usize {
    everything(store, Part::Active);
    let database = &*store.open_store.database;
    let mut count = 0;
    image::each(database, Family::Body, |_, _| {
        count += 1;
        Some(Ok(()))
    })
    .expect("readable");
    count
}

fn check_bodies(store: &RocksStore, part: Part, expected: impl IntoIterator<Item = u64>) {
    let found = everything(store, part);
    let expected: Vec<_> = expected.into_iter().collect();
    assert_eq!(conformance::numbers(&found), expected);
    for message in found {
        let body = body_of(message.row.body, message.row.size as usize);
        assert_eq!(message.body, Some(body), "{}", message.number);
    }
}

fn check_nothing_is_left(store: &RocksStore) {
    assert_eq!(rows_of_bodies(store), 0);
    let image = store.image().expect("readable");
    assert_eq!((image.messages.len(), image.bodies.len()), (0, 0));
}

#[test]
fn a_message_is_one_row_and_goes_with_it() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, 1..=20, 300);
    check_bodies(&store, Part::Active, 1..=20);
    assert_eq!(rows_of_bodies(&store), 0);
    settle(&mut store, 1..=20);
    check_nothing_is_left(&store);
}

#[test]
fn a_body_outlives_the_row_it_came_with() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, 1..=20, 300);
    check_bodies(&store, Part::Active, 1..=20);
    let dead = || [3].into_iter().chain(5..=15);
    dead_letter(&mut store, dead(), 300);
    check_bodies(&store, Part::DeadLetter, dead());
    assert_eq!(rows_of_bodies(&store), 12);
    store.close().expect("closed");
    let mut store = open(directory.path());
    check_bodies(&store, Part::DeadLetter, dead());
    let mut set = WriteSet::default();
    for number in dead() {
        remove(&mut set, QUEUE, Part::DeadLetter, number);
    }
    store.submit(set);
    settle(
        &mut store,
        (1..=20).filter(|number| !dead().any(|it| it == *number)),
    );
    check_nothing_is_left(&store);
}

#[test]
fn a_row_that_is_put_again_keeps_its_inline_location() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, 1..=3, 300);
    check_bodies(&store, Part::Active, 1..=3);
    for _time in 0..2 {
        let mut set = WriteSet::default();
        let number = SequenceNumber(2);
        let row = conformance::row_of(QUEUE, number, 300);
        set.push(store::Write::PutMessage {
            entity: QUEUE,
            part: Part::Active,
            number,
            row,
        });
        store.submit(set);
        check_bodies(&store, Part::Active, 1..=3);
    }
    settle(&mut store, 1..=3);
    check_nothing_is_left(&store);
}

/// Makes the index what it was up to format 3: every body has a row of its own.
fn separate_all(store: &RocksStore) {
    let database = &*store.open_store.database;
    let mut batch = database.batch(0);
    image::each(database, Family::Message, |key, value| {
        let (entity, _, number) = key::parse_message(key)?;
        let row = value::decode_row(entity, number, value).expect("a row");
        let location = value::location_in_row(value).expect("a place beside it");
        batch.put(Family::Body, key::body(row.body, 0), location);
        batch.put(
            Family::Message,
            key,
            value::encode_row(entity, number, &row),
        );
        Some(Ok(()))
    })
    .expect("readable");
    batch.delete(Family::State, single::INLINE_ONLY);
    database.write(batch).expect("written");
}

#[test]
fn bodies_that_have_rows_of_their_own_go_with_their_messages() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, 1..=20, 300);
    check_bodies(&store, Part::Active, 1..=20);
    separate_all(&store);
    assert_eq!(rows_of_bodies(&store), 20);
    store.close().expect("closed");
    let format = directory.path().join("format");
    fs::write(format, "railbus-store 3\n").expect("written");
    let mut store = open(directory.path());
    send(&mut store, 21..=30, 300);
    check_bodies(&store, Part::Active, 1..=30);
    assert_eq!(rows_of_bodies(&store), 20);
    assert_eq!(
        store.open_store.database.single(single::INLINE_ONLY),
        Ok(None)
    );
    dead_letter(&mut store, [7, 21], 300);
    check_bodies(&store, Part::DeadLetter, [7, 21]);
    settle(&mut store, (1..=6).chain(8..=20).chain(22..=30));
    let mut set = WriteSet::default();
    remove(&mut set, QUEUE, Part::DeadLetter, 7);
    store.submit(set);
    assert_eq!(rows_of_bodies(&store), 1);
    store.close().expect("closed");
    // What is left has parted from its row, so nothing has to be deleted for those that come.
    let mut store = open(directory.path());
    assert!(store.open_store.database.single(single::INLINE_ONLY) != Ok(None));
    let mut set = WriteSet::default();
    remove(&mut set, QUEUE, Part::DeadLetter, 21);
    store.submit(set);
    check_nothing_is_left(&store);
}

#[test]
fn a_copied_body_outlives_the_row_it_came_with() {
    const COPY: EntityId = EntityId(30);
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, 1..=20, 300);
    let mut set = WriteSet::default();
    set.push(Write::Copy {
        from: QUEUE,
        to: COPY,
    });
    store.submit(set);
    assert_eq!(rows_of_bodies(&store), 20);
    let mut set = WriteSet::default();
    for number in (1..=20).map(SequenceNumber) {
        set.push(Write::RemoveMessage {
            entity: QUEUE,
            part: Part::Active,
            number,
        });
    }
    store.submit(set);
    store.close().expect("closed");
    let mut store = open(directory.path());
    let copied = range(COPY, Part::Active, 0, u64::MAX);
    let copied = read(&store, store.last(), &copied);
    assert_eq!(conformance::numbers(&copied), Vec::from_iter(1..=20));
    for message in copied {
        assert_eq!(message.body, Some(body_of(message.row.body, 300)));
    }
    let mut set = WriteSet::default();
    for number in (1..=20).map(SequenceNumber) {
        set.push(Write::RemoveMessage {
            entity: COPY,
            part: Part::Active,
            number,
        });
        set.push(Write::RemoveBody {
            pointer: conformance::row_of(QUEUE, number, 300).body,
        });
    }
    store.submit(set);
    check_nothing_is_left(&store);
}

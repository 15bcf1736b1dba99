//! Damage at rest: the scrubber and `verify` find it, name it once, and leave the rest alone.

use std::path::PathBuf;

use store::{Query, StoreError};

use super::*;
use crate::damage::scrubber::{Scrubber, StopScrub};
use crate::damage::verify::verify;

/// Flips a bit in the body of a message, in whatever file of the journal that is.
fn flip_body(root: &Path, number: u64, len: usize) -> PathBuf {
    let pointer = BodyPointer {
        home: QUEUE,
        number: SequenceNumber(number),
    };
    let body = body_of(pointer, len);
    for entry in fs::read_dir(root.join("journal")).expect("listed") {
        let path = entry.expect("listed").path();
        let content = fs::read(&path).expect("read");
        if let Some(at) = content.windows(len).position(|bytes| bytes == &body[..]) {
            // In place: a new file would not be the one that the store has open.
            let file = fs::File::options().write(true).open(&path).expect("opened");
            let wrong = [content[at + 7] ^ 4];
            std::os::unix::fs::FileExt::write_all_at(&file, &wrong, at as u64 + 7)
                .expect("written");
            return path;
        }
    }
    panic!("message {number} is in no segment");
}

fn scrubber(store: &RocksStore) -> Scrubber {
    Scrubber {
        open_store: store.open_store.clone(),
        damage: store.damage.clone(),
        statistics: store.statistics.clone(),
        stop: Arc::new(StopScrub::default()),
        pace: u64::MAX,
    }
}

/// A store with messages that are permanent in the index.
fn store_at_rest(root: &Path) -> RocksStore {
    let mut store = open(root);
    send(&mut store, 1..=300, 500);
    let id = dead_letter(&mut store, 20..=30, 500);
    store.progress.wait_for(id).expect("committed");
    store.unapplied.request_apply(store.last());
    let applied = store.progress.wait_until_applied(store.last());
    applied.expect("applied");
    store.open_store.database.flush().expect("flushed");
    store
}

fn options() -> Options {
    Options {
        memory_bytes: 24 << 20,
        ..Options::default()
    }
}

#[test]
fn the_scrubber_finds_a_damaged_body_and_counts_it_once() {
    let directory = new_directory();
    let store = store_at_rest(directory.path());
    let scrubber = scrubber(&store);
    scrubber.pass().expect("read");
    assert_eq!(store.statistics.snapshot().damaged, 0);
    assert!(store.statistics.snapshot().scrubbed > 300 * 500);
    flip_body(directory.path(), 25, 500);
    flip_body(directory.path(), 200, 500);
    for _pass in 0..2 {
        scrubber.pass().expect("read");
        assert_eq!(store.statistics.snapshot().damaged, 2);
    }
    let reader = store.reader();
    let one = |number| reader.read(CommitId(0), &range(QUEUE, Part::Active, number, number + 1));
    assert!(matches!(one(200), Err(StoreError::Corrupt { .. })));
    assert_eq!(store.statistics.snapshot().damaged, 2, "it was known");
    assert!(one(199).is_ok() && one(201).is_ok());
}

#[test]
fn a_reader_that_meets_damage_counts_it() {
    let directory = new_directory();
    let store = store_at_rest(directory.path());
    let path = flip_body(directory.path(), 7, 500);
    for _attempt in 0..2 {
        let found = store
            .reader()
            .read(CommitId(0), &range(QUEUE, Part::Active, 7, 8));
        let Err(StoreError::Corrupt { detail, .. }) = found else {
            panic!("{found:?}");
        };
        assert!(detail.contains(&path.display().to_string()), "{detail}");
        assert_eq!(store.statistics.snapshot().damaged, 1);
    }
}

#[test]
fn verifying_a_closed_store_names_what_is_damaged() {
    let directory = new_directory();
    store_at_rest(directory.path()).close().expect("closed");
    let mut pieces = 0;
    let verified = verify(directory.path(), &options(), |_| pieces += 1).expect("read");
    // The heads of this store do not count its messages.
    assert_eq!(verified.damage.len(), 1, "{verified:?}");
    assert!(
        verified.damage[0].starts_with("a head is damaged"),
        "{verified:?}"
    );
    assert!(!verified.is_in_use && pieces > 1);
    assert!(verified.progress.bytes > 300 * 500);
    let path = flip_body(directory.path(), 25, 500);
    let verified = verify(directory.path(), &options(), |_| {}).expect("read");
    let expected = format!("message #25 of entity {}: a body is damaged: ", QUEUE.0);
    assert_eq!(verified.damage.len(), 1, "{verified:?}");
    assert!(verified.damage[0].starts_with(&expected), "{verified:?}");
    assert!(
        verified.damage[0].contains(&path.display().to_string()),
        "{verified:?}"
    );
}

#[test]
fn verifying_a_store_in_use_finds_the_same_and_disturbs_nothing() {
    let directory = new_directory();
    let mut store = store_at_rest(directory.path());
    let verified = verify(directory.path(), &options(), |_| {}).expect("read");
    assert!(verified.is_in_use);
    assert_eq!(verified.damage, [""; 0]);
    assert!(verified.progress.bytes > 300 * 500);
    flip_body(directory.path(), 25, 500);
    let verified = verify(directory.path(), &options(), |_| {}).expect("read");
    assert_eq!(verified.damage.len(), 1, "{verified:?}");
    assert!(
        verified.damage[0].starts_with("message #25 of "),
        "{verified:?}"
    );
    let id = settle(&mut store, 100..=110);
    store.progress.wait_for(id).expect("committed");
    assert_eq!(numbers_in(&store).len(), 300 - 11 - 11);
    store.close().expect("closed");
}

#[test]
fn damage_to_a_table_does_not_end_verifying() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let mut last = CommitId(0);
    for entity in 1..=3 {
        let mut set = WriteSet::default();
        for number in 1..=400 {
            put(&mut set, EntityId(entity), Part::Active, number, 50);
        }
        last = store.submit(set);
    }
    store.progress.wait_for(last).expect("committed");
    store.close().expect("closed");
    let db = directory.path().join("db");
    let tables = fs::read_dir(&db).expect("listed").flatten();
    let sizes = tables.map(|table| (table.metadata().expect("there").len(), table.path()));
    let of_rows = sizes.filter(|(_, path)| path.extension().is_some_and(|found| found == "sst"));
    let (_, largest) = of_rows.max().expect("there are tables");
    let mut content = fs::read(&largest).expect("read");
    content[100] ^= 1;
    fs::write(&largest, content).expect("written");
    let verified = verify(directory.path(), &options(), |_| {}).expect("read");
    let text = verified.damage.join("\n");
    assert!(text.contains(&largest.display().to_string()), "{text}");
    // The last entity at least is in other blocks.
    assert!(verified.progress.rows >= 400, "{verified:?}");
    let query = |entity| Query::Range {
        entity: EntityId(entity),
        part: Part::Active,
        from: SequenceNumber(0),
        until: SequenceNumber(1_000),
        limit: usize::MAX,
        bodies: true,
        max_bytes: usize::MAX,
    };
    let store = open(directory.path());
    let read = |entity| store.reader().read(CommitId(0), &query(entity));
    assert!(read(1).is_err());
    let found = read(3).and_then(Found::into_messages).expect("undamaged");
    assert_eq!(found.len(), 400);
}

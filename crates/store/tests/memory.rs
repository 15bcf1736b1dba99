//! The memory store keeps the contract, and its disk does what a simulator tells it.

use proptest::prelude::*;
use store::conformance::{self, Harness, put, range, remove};
use store::image::Breach;
use store::{CommitId, EntityId, Image, MemoryDisk, MemoryStore, Part, SequenceNumber};
use store::{Store, StoreError, WriteSet};

const QUEUE: EntityId = EntityId(1);

struct Memory;

impl Harness for Memory {
    type Store = MemoryStore;

    fn create(&mut self) -> MemoryStore {
        MemoryDisk::new().open()
    }

    fn make_durable(&mut self, store: &mut MemoryStore, id: CommitId) {
        store.disk().sync_to(id);
    }

    fn reopen(&mut self, store: MemoryStore) -> MemoryStore {
        store.disk().sync_all();
        store.disk().open()
    }

    fn crash(&mut self, store: MemoryStore) -> MemoryStore {
        store.disk().crash()
    }

    fn image(&mut self, store: &mut MemoryStore) -> Image {
        store.disk().with_current(Image::clone)
    }
}

fn send(number: u64) -> WriteSet {
    let mut set = WriteSet::default();
    put(&mut set, QUEUE, Part::Active, number, 10);
    set
}

fn numbers_in(store: &MemoryStore) -> Vec<u64> {
    conformance::numbers(&conformance::read(
        store,
        CommitId(0),
        &range(QUEUE, Part::Active, 0, 99),
    ))
}

#[test]
fn the_memory_store_keeps_the_contract() {
    conformance::run(&mut Memory);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_random_log_ends_as_the_model_says(words in prop::collection::vec(any::<u64>(), 1..400)) {
        conformance::random_log(&mut Memory, &words);
    }
}

#[test]
fn nothing_is_durable_before_the_disk_says_so() {
    let disk = MemoryDisk::new();
    let mut store = disk.open();
    for number in 1..=3 {
        store.submit(send(number));
    }
    assert_eq!(store.durable(), CommitId(0));
    disk.sync_to(CommitId(2));
    assert_eq!(store.durable(), CommitId(2));
    assert_eq!(numbers_in(&store), [1, 2, 3]);
    assert_eq!(disk.with_durable(|image| image.messages.len()), 2);
}

#[test]
fn a_crash_loses_exactly_what_was_not_durable() {
    let disk = MemoryDisk::new();
    let mut store = disk.open();
    for number in 1..=4 {
        store.submit(send(number));
    }
    disk.sync_to(CommitId(1));
    assert_eq!(numbers_in(&disk.crash_after(CommitId(3))), [1, 2, 3]);
}

#[test]
fn a_store_from_before_the_crash_is_dead() {
    let disk = MemoryDisk::new();
    let mut old = disk.open();
    let reader = old.reader();
    let mut new = disk.crash();
    old.submit(send(1));
    disk.sync_all();
    assert_eq!(old.durable(), CommitId(0));
    assert!(matches!(old.failure(), Some(StoreError::Poisoned(_))));
    let answer = reader.read(CommitId(0), &range(QUEUE, Part::Active, 0, 9));
    assert!(matches!(answer, Err(StoreError::Poisoned(_))));
    assert_eq!(new.submit(send(2)), CommitId(1));
    assert_eq!(numbers_in(&new), [2]);
}

#[test]
fn a_failed_disk_acknowledges_nothing_more_until_it_is_opened_again() {
    let disk = MemoryDisk::new();
    let mut store = disk.open();
    store.submit(send(1));
    disk.sync_all();
    disk.fail("fsync: input/output error");
    store.submit(send(2));
    disk.sync_all();
    assert_eq!(store.durable(), CommitId(1));
    assert_eq!(
        store.failure(),
        Some(StoreError::Io("fsync: input/output error".into()))
    );
    assert!(
        store
            .reader()
            .read(CommitId(1), &range(QUEUE, Part::Active, 0, 9))
            .is_err()
    );
    let store = disk.crash();
    assert_eq!(store.failure(), None);
    assert_eq!(numbers_in(&store), [1]);
}

#[test]
fn an_automatic_disk_makes_each_set_durable_at_once() {
    let mut store = MemoryStore::new();
    assert_eq!(store.submit(send(1)), store.durable());
    assert_eq!(numbers_in(&store.disk().crash()), [1]);
}

#[test]
fn a_nearly_full_disk_says_so_and_recovers() {
    let store = MemoryStore::new();
    store.disk().set_nearly_full(true);
    assert!(store.is_nearly_full());
    store.disk().set_nearly_full(false);
    assert!(!store.is_nearly_full());
}

#[test]
fn writes_that_break_the_contract_are_reported() {
    let mut store = MemoryStore::new();
    store.submit(send(1));
    assert_eq!(store.disk().breaches(), []);
    let mut twice = WriteSet::default();
    remove(&mut twice, QUEUE, Part::Active, 1);
    remove(&mut twice, QUEUE, Part::Active, 1);
    store.submit(twice);
    let row = (QUEUE, Part::Active, SequenceNumber(1));
    assert_eq!(store.disk().breaches()[0], Breach::RowNotThere(row));
    assert_eq!(store.disk().breaches().len(), 2);
}

#[test]
fn the_audit_finds_orphans_and_dangling_pointers() {
    let mut store = MemoryStore::new();
    store.submit(send(1));
    store.submit(send(2));
    let mut half = WriteSet::default();
    let mut whole = WriteSet::default();
    remove(&mut whole, QUEUE, Part::Active, 1);
    half.push(whole.into_vec().remove(0));
    store.submit(half);
    let found = store.disk().with_current(Image::audit_bodies);
    assert_eq!(found.len(), 1);
    assert!(found[0].to_string().contains("has no row"), "{}", found[0]);
}

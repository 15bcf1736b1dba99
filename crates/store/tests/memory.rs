//! The memory store keeps the contract, and its disk obeys the simulator.

use proptest::prelude::*;
use store::audit::Finding;
use store::conformance::{self, Harness, publish, put, range, release, remove};
use store::image::ContractViolation;
use store::{BodyPointer, CommitId, EntityId, Image, MemoryDisk, MemoryStore, Part};
use store::{SequenceNumber, Store, StoreError, Write, WriteSet};

const QUEUE: EntityId = EntityId(1);
const SHARED: BodyPointer = BodyPointer {
    home: EntityId(9),
    number: SequenceNumber(5),
};

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

fn numbers_in(store: &MemoryStore, after: CommitId) -> Vec<u64> {
    conformance::numbers(&conformance::read(
        store,
        after,
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
    assert_eq!(numbers_in(&store, CommitId(3)), [1, 2, 3]);
    assert_eq!(disk.with_durable(|image| image.messages.len()), 2);
}

#[test]
fn a_read_sees_no_more_than_it_must() {
    let disk = MemoryDisk::new();
    let mut store = disk.open();
    for number in 1..=3 {
        store.submit(send(number));
    }
    disk.sync_to(CommitId(2));
    assert_eq!(numbers_in(&store, CommitId(1)), [1, 2]);
}

#[test]
fn a_crash_loses_exactly_what_was_not_durable() {
    let disk = MemoryDisk::new();
    let mut store = disk.open();
    for number in 1..=4 {
        store.submit(send(number));
    }
    disk.sync_to(CommitId(1));
    assert_eq!(
        numbers_in(&disk.crash_after(CommitId(3)), CommitId(0)),
        [1, 2, 3]
    );
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
    assert_eq!(numbers_in(&new, CommitId(1)), [2]);
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
    assert_eq!(numbers_in(&store, CommitId(0)), [1]);
}

#[test]
fn an_automatic_disk_makes_each_set_durable_at_once() {
    let mut store = MemoryStore::new();
    assert_eq!(store.submit(send(1)), store.durable());
    assert_eq!(numbers_in(&store.disk().crash(), CommitId(0)), [1]);
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
    assert_eq!(store.disk().violations(), []);
    let mut twice = WriteSet::default();
    remove(&mut twice, QUEUE, Part::Active, 1);
    remove(&mut twice, QUEUE, Part::Active, 1);
    store.submit(twice);
    let row = (QUEUE, Part::Active, SequenceNumber(1));
    assert_eq!(
        store.disk().violations()[0],
        ContractViolation::RowNotThere(row)
    );
    assert_eq!(store.disk().violations().len(), 2);
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

fn submit(store: &mut MemoryStore, fill: impl FnOnce(&mut WriteSet)) {
    let mut set = WriteSet::default();
    fill(&mut set);
    store.submit(set);
}

#[test]
fn sharing_and_releasing_out_of_turn_is_reported_and_removes_no_body() {
    let mut store = MemoryStore::new();
    let pointer = SHARED;
    let own = BodyPointer {
        home: QUEUE,
        number: SequenceNumber(1),
    };
    submit(&mut store, |set| {
        set.push(Write::ShareBody { pointer, copies: 2 });
    });
    submit(&mut store, |set| {
        publish(set, pointer, &[QUEUE], Part::Active, 10);
    });
    store.submit(send(1));
    submit(&mut store, |set| {
        set.push(Write::ReleaseBody { pointer: own });
        set.push(Write::ShareBody {
            pointer: own,
            copies: 0,
        });
    });
    let expected = [
        ContractViolation::SharedWrongly(pointer),
        ContractViolation::SharedWrongly(pointer),
        ContractViolation::NotShared(own),
        ContractViolation::SharedWrongly(own),
    ];
    assert_eq!(store.disk().violations(), expected);
    assert_eq!(store.disk().with_current(|image| image.bodies.len()), 2);
    assert_eq!(store.disk().with_current(Image::audit_bodies), []);
}

#[test]
fn more_releases_than_copies_and_removing_what_others_share_is_reported() {
    let mut store = MemoryStore::new();
    let pointer = SHARED;
    submit(&mut store, |set| {
        publish(set, pointer, &[QUEUE], Part::Active, 10);
        release(set, pointer, QUEUE, Part::Active);
        set.push(Write::ReleaseBody { pointer });
    });
    assert_eq!(
        store.disk().violations(),
        [ContractViolation::NotShared(pointer)]
    );
    assert!(
        store
            .disk()
            .with_current(|image| *image == Image::default())
    );
    submit(&mut store, |set| {
        publish(set, pointer, &[QUEUE], Part::Active, 10);
        set.push(Write::RemoveBody { pointer });
    });
    assert_eq!(
        store.disk().violations()[1..],
        [ContractViolation::SharedBodyRemoved(pointer)]
    );
}

#[test]
fn the_audit_compares_counts_of_copies_with_the_rows() {
    let check = |fill: &dyn Fn(&mut WriteSet), rows, copies| {
        let mut store = MemoryStore::new();
        submit(&mut store, |set| {
            publish(set, SHARED, &[QUEUE, EntityId(2)], Part::Active, 10);
        });
        assert_eq!(store.disk().with_current(Image::audit_bodies), []);
        submit(&mut store, fill);
        let body = (SHARED.home, SHARED.number);
        let finding = Finding::Misshared { body, rows, copies };
        let found = store.disk().with_current(Image::audit_bodies);
        assert!(found.contains(&finding), "{found:?}");
    };
    let pointer = SHARED;
    check(&|set| set.push(Write::ReleaseBody { pointer }), 2, Some(1));
    check(
        &|set| {
            set.push(Write::RemoveMessage {
                entity: QUEUE,
                part: Part::Active,
                number: pointer.number,
            });
        },
        1,
        Some(2),
    );
    check(
        &|set| {
            release(set, pointer, QUEUE, Part::Active);
            set.push(Write::RemoveMessage {
                entity: EntityId(2),
                part: Part::Active,
                number: pointer.number,
            });
            set.push(Write::RemoveBody { pointer });
        },
        0,
        Some(1),
    );
}

#[test]
fn the_audit_finds_a_body_with_several_rows_and_no_count() {
    let mut store = MemoryStore::new();
    store.submit(send(1));
    let row = conformance::row_of(QUEUE, SequenceNumber(1), 10);
    submit(&mut store, |set| {
        set.push(Write::PutMessage {
            entity: EntityId(2),
            part: Part::Active,
            number: SequenceNumber(1),
            row,
        });
    });
    let finding = Finding::Misshared {
        body: (QUEUE, SequenceNumber(1)),
        rows: 2,
        copies: None,
    };
    assert_eq!(store.disk().with_current(Image::audit_bodies), [finding]);
}

//! The embedded store keeps the contract, and refuses what it cannot do.

use std::fs;
use std::path::Path;
use std::time::Duration;

use journal::log::Sync;
use proptest::prelude::*;
use rocksdb::WaitForCompactOptions;
use store::conformance::{self, Harness, body_of, put, range, read, remove};
use store::{BodyPointer, EntityId, Found, Part, SequenceNumber};
use tempfile::TempDir;

use super::*;
use crate::options::Durability;

mod backup;
mod bit_flips;
mod caller_commits;
mod damage;
mod damaged_rows;
mod inline_locations;
mod interrupted;
mod scrub;
mod shares;
mod side_by_side;
mod space;
mod staged;

const QUEUE: EntityId = EntityId(1);
const MIB: usize = 1 << 20;

/// Stores in directories of their own; a crash goes on with a copy of the files.
struct Rocks {
    directory: TempDir,
    durability: Durability,
}

impl Rocks {
    fn new(durability: Durability) -> Self {
        Self {
            directory: new_directory(),
            durability,
        }
    }

    fn open(&self) -> RocksStore {
        try_open(self.directory.path(), self.durability).expect("the store opens")
    }
}

impl Harness for Rocks {
    type Store = RocksStore;

    fn create(&mut self) -> RocksStore {
        self.directory = new_directory();
        self.open()
    }

    fn make_durable(&mut self, store: &mut RocksStore, id: CommitId) {
        store.progress.wait_for(id).expect("the store is well");
    }

    fn reopen(&mut self, store: RocksStore) -> RocksStore {
        store.close().expect("the store closes well");
        self.open()
    }

    fn crash(&mut self, store: RocksStore) -> RocksStore {
        let copy = new_directory();
        store.hooks.hold(Sync::Later);
        copy_at_rest(&store, self.directory.path(), copy.path());
        store.hooks.release();
        drop(store);
        self.directory = copy;
        self.open()
    }

    fn image(&mut self, store: &mut RocksStore) -> Image {
        store.image().expect("everything is readable")
    }
}

fn new_directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn options(durability: Durability) -> Options {
    Options {
        durability,
        memory_bytes: 24 << 20,
        ..Options::default()
    }
}

fn try_open(path: &Path, durability: Durability) -> Result<RocksStore, StoreError> {
    RocksStore::open(path, options(durability), Arc::new(|| ()))
}

fn open(path: &Path) -> RocksStore {
    try_open(path, Durability::Synced).expect("the store opens")
}

/// Copies the files of an open store that cannot write at the moment.
fn copy_at_rest(store: &RocksStore, from: &Path, to: &Path) {
    let durable = store.progress.durable();
    store.unapplied.request_apply(durable);
    let applied = store.progress.wait_until_applied(durable);
    applied.expect("the index is well");
    // No segment goes meanwhile.
    let _files = store.open_store.database.files.read();
    let idle = store
        .open_store
        .database
        .db
        .wait_for_compact(&WaitForCompactOptions::default());
    idle.expect("flushes and compactions end");
    // A record that was let through before the hold may still be on its way. The witness of a
    // crashed machine is never ahead of its log, so it is copied first.
    fs::copy(from.join("witness"), to.join("witness")).expect("copied");
    copy_files(from, to);
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("created");
    for entry in fs::read_dir(from).expect("listed") {
        let entry = entry.expect("listed");
        let target = to.join(entry.file_name());
        // What is being given back may be gone any moment.
        if target.exists() || target.extension().is_some_and(|found| found == "gone") {
            continue;
        }
        if entry.file_type().expect("known").is_dir() {
            copy_files(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn send(store: &mut RocksStore, numbers: impl IntoIterator<Item = u64>, len: usize) -> CommitId {
    let mut set = WriteSet::default();
    for number in numbers {
        put(&mut set, QUEUE, Part::Active, number, len);
    }
    store.submit(set)
}

fn settle(store: &mut RocksStore, numbers: impl IntoIterator<Item = u64>) -> CommitId {
    let mut set = WriteSet::default();
    for number in numbers {
        remove(&mut set, QUEUE, Part::Active, number);
    }
    store.submit(set)
}

/// Messages leave the rows that their bodies came with.
fn dead_letter(
    store: &mut RocksStore,
    numbers: impl IntoIterator<Item = u64>,
    len: usize,
) -> CommitId {
    let mut set = WriteSet::default();
    for number in numbers.into_iter().map(SequenceNumber) {
        set.push(store::Write::RemoveMessage {
            entity: QUEUE,
            part: Part::Active,
            number,
        });
        set.push(store::Write::PutMessage {
            entity: QUEUE,
            part: Part::DeadLetter,
            number,
            row: conformance::row_of(QUEUE, number, len),
        });
    }
    store.submit(set)
}

fn size_of_journal(root: &Path) -> u64 {
    let files = fs::read_dir(root.join("journal")).expect("listed");
    files
        .flatten()
        .filter(|file| {
            file.path()
                .extension()
                .is_some_and(|found| found == "journal")
        })
        .filter_map(|file| file.metadata().ok())
        .map(|file| file.len())
        .sum()
}

fn numbers_in(store: &RocksStore) -> Vec<u64> {
    conformance::numbers(&read(
        store,
        store.last(),
        &range(QUEUE, Part::Active, 0, u64::MAX),
    ))
}

#[test]
fn the_embedded_store_keeps_the_contract() {
    conformance::run(&mut Rocks::new(Durability::Synced));
}

#[test]
fn the_embedded_store_keeps_the_contract_without_syncing() {
    conformance::run(&mut Rocks::new(Durability::Buffered));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_random_log_ends_as_the_model_says(words in prop::collection::vec(any::<u64>(), 1..250)) {
        conformance::random_log(&mut Rocks::new(Durability::Synced), &words);
    }
}

#[test]
fn a_directory_in_use_is_refused() {
    let directory = new_directory();
    let store = open(directory.path());
    let second = try_open(directory.path(), Durability::Synced).err();
    let path = directory.path().display().to_string();
    assert_eq!(second, Some(StoreError::Locked { path }));
    store.close().expect("closed");
    open(directory.path());
}

#[test]
fn a_failed_write_poisons_the_store_and_wakes_its_owner() {
    let directory = new_directory();
    let (sender, woken) = mpsc::channel();
    let wake = Arc::new(move || sender.send(()).unwrap_or_default());
    let mut store = RocksStore::open(directory.path(), Options::default(), wake).expect("opened");
    let first = send(&mut store, [1], 10);
    store.progress.wait_for(first).expect("committed");
    store.hooks.fail_next();
    let second = send(&mut store, [2], 10);
    let third = send(&mut store, [3], 10);
    assert!(matches!(
        store.progress.wait_for(third),
        Err(StoreError::Poisoned(_))
    ));
    assert_eq!(
        store.failure(),
        Some(StoreError::Io("injected fault".into()))
    );
    assert_eq!(store.durable(), first);
    let answer = store
        .reader()
        .read(second, &range(QUEUE, Part::Active, 0, 9));
    assert!(matches!(answer, Err(StoreError::Poisoned(_))), "{answer:?}");
    assert!(
        woken.iter().take(2).count() == 2,
        "once for the commit, once for the failure"
    );
    assert_eq!(store.close(), Err(StoreError::Io("injected fault".into())));
    assert_eq!(numbers_in(&open(directory.path())), [1]);
}

#[test]
fn closing_reports_a_last_commit_that_failed() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let first = send(&mut store, [1], 10);
    store.progress.wait_for(first).expect("committed");
    store.hooks.fail_next();
    send(&mut store, [2], 10);
    let store: Box<dyn Store> = Box::new(store);
    assert_eq!(store.close(), Err(StoreError::Io("injected fault".into())));
    assert_eq!(numbers_in(&open(directory.path())), [1]);
}

#[test]
fn closing_reports_a_last_sync_that_failed() {
    let directory = new_directory();
    let mut store = try_open(directory.path(), Durability::Buffered).expect("the store opens");
    store.hooks.hold(Sync::Now);
    let last = send(&mut store, [1], 10);
    store.progress.wait_for(last).expect("acknowledged");
    // Whether this is the sync of every second or the last one, it comes after the message.
    store.hooks.fail_next();
    store.hooks.release();
    let store: Box<dyn Store> = Box::new(store);
    assert_eq!(store.close(), Err(StoreError::Io("injected fault".into())));
}

#[test]
fn large_bodies_survive_a_crash_and_go_with_their_messages() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, [1], 3 * MIB);
    send(&mut store, [2], 40 * MIB);
    let id = send(&mut store, [3], 3 * MIB);
    store.progress.wait_for(id).expect("committed");
    let copy = new_directory();
    copy_at_rest(&store, directory.path(), copy.path());
    drop(store);
    let mut store = open(copy.path());
    assert_eq!(store.image().expect("readable").bodies.len(), 3);
    settle(&mut store, [2]);
    let image = store.image().expect("readable");
    let kept: Vec<_> = image.bodies.keys().map(|key| key.1.0).collect();
    assert_eq!(kept, [1, 3]);
}

#[test]
fn a_store_near_a_full_disk_says_so_and_still_settles() {
    let directory = new_directory();
    let options = Options {
        reserve_bytes: Some(u64::MAX / 4),
        ..Options::default()
    };
    let mut store = RocksStore::open(directory.path(), options, Arc::new(|| ())).expect("opened");
    assert!(store.is_nearly_full());
    send(&mut store, 1..=3, 10);
    let id = settle(&mut store, [2]);
    store.progress.wait_for(id).expect("committed");
    assert!(store.is_nearly_full());
    assert_eq!(numbers_in(&store), [1, 3]);
    assert!(!open(new_directory().path()).is_nearly_full());
}

#[test]
fn many_sets_become_durable_in_few_groups() {
    let directory = new_directory();
    let mut store = open(directory.path());
    store.hooks.hold(Sync::Now);
    let first = send(&mut store, [1], 10);
    store.hooks.wait_until_held();
    let mut last = first;
    for number in 2..=500 {
        last = send(&mut store, [number], 10);
    }
    assert_eq!(store.durable(), CommitId(0));
    store.hooks.release();
    store.progress.wait_for(last).expect("committed");
    let statistics = store.statistics();
    store.close().expect("closed");
    let snapshot = statistics.snapshot();
    assert_eq!(
        (snapshot.groups, snapshot.sets, snapshot.writes),
        (2, 500, 1_000)
    );
    assert_eq!(snapshot.messages, 500);
    assert_eq!(snapshot.commit_us.iter().sum::<u64>(), 2);
}

#[test]
fn closing_makes_everything_submitted_durable() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, 1..=2_000, 100);
    settle(&mut store, 1..=10);
    store.close().expect("closed");
    assert_eq!(
        numbers_in(&open(directory.path())),
        (11..=2_000).collect::<Vec<_>>()
    );
}

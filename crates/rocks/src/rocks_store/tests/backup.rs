//! Backups hold every acknowledged commit and no settled message, and only whole ones are
//! restored.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use store::{BackupError, Head, Write};

use super::*;
use crate::backup::restore::{RestoreError, restore};
use crate::damage::contents::Contents;

/// Messages that the feeder leaves in the queue.
const BACKLOG: u64 = 10;
const LENGTH: usize = 700;

/// Sends message after message, one a set, and removes each once ten more are there.
fn feed(store: &mut RocksStore) -> CommitId {
    let number = store.last().0 + 1;
    let mut set = WriteSet::default();
    put(&mut set, QUEUE, Part::Active, number, LENGTH);
    if number > BACKLOG {
        remove(&mut set, QUEUE, Part::Active, number - BACKLOG);
    }
    let count = number.min(BACKLOG);
    set.push(head(number, count, count * LENGTH as u64));
    store.submit(set)
}

fn head(last: u64, count: u64, bytes: u64) -> Write {
    let mut head = Head::empty();
    head.next_number = SequenceNumber(last + 1);
    let active = head.part_mut(Part::Active);
    (active.count, active.bytes) = (count, bytes);
    let entity = QUEUE;
    Write::PutHead { entity, head }
}

/// A store with twenty sets fed, of which ten messages are left.
fn fed(directory: &TempDir, durability: Durability) -> RocksStore {
    let mut store = try_open(directory.path(), durability).expect("the store opens");
    for _ in 0..20 {
        feed(&mut store);
    }
    store.progress.wait_for(store.last()).expect("committed");
    store
}

fn back_up(store: &RocksStore, target: &Path) -> Result<u64, BackupError> {
    let backup = store.backup().expect("the store is open");
    backup.back_up(target).map(|made| made.position)
}

/// A closed store's backup in a directory of its own.
fn backup_of_twenty() -> (TempDir, PathBuf) {
    let directory = new_directory();
    let store = fed(&directory, Durability::Synced);
    let target = directory.path().join("backup");
    back_up(&store, &target).expect("made");
    store.close().expect("closed");
    (directory, target)
}

fn restored(source: &Path, target: &Path) -> Result<Contents, RestoreError> {
    restore(source, target, &Options::default())
}

#[test]
fn a_backup_made_while_commits_go_on_ends_between_two_of_them() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let (backup, progress) = (store.backup().expect("open"), store.progress.clone());
    let enough = AtomicBool::new(false);
    let mut made = Vec::new();
    let store = std::thread::scope(|scope| {
        let feeder = scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                let id = feed(&mut store);
                if id.0.is_multiple_of(64) {
                    store.progress.wait_for(id).expect("committed");
                }
            }
            store
        });
        progress.wait_for(CommitId(100)).expect("committed");
        for name in ["one", "two", "three", "four"] {
            let target = directory.path().join(name);
            let acknowledged = progress.durable();
            let position = backup.back_up(&target).expect("made").position;
            made.push((target, acknowledged, position));
            // Proves that commits went on.
            progress
                .wait_for(CommitId(acknowledged.0 + 200))
                .expect("committed");
        }
        enough.store(true, Ordering::Relaxed);
        feeder.join().expect("fed")
    });
    store.close().expect("closed");
    for (index, (source, acknowledged, position)) in made.into_iter().enumerate() {
        let target = directory.path().join(format!("restored-{index}"));
        let contents = restored(&source, &target).expect("whole");
        assert_eq!((contents.position, contents.messages), (position, BACKLOG));
        let store = open(&target);
        let numbers = numbers_in(&store);
        let last = *numbers.last().expect("there are ten");
        assert!(last >= acknowledged.0, "{last} of {acknowledged:?}");
        assert_eq!(numbers, (last - BACKLOG + 1..=last).collect::<Vec<_>>());
        assert!(store.image().expect("readable").audit().is_empty());
    }
}

#[test]
fn a_restored_store_goes_on_where_the_backup_ends() {
    let (directory, source) = backup_of_twenty();
    let target = directory.path().join("restored");
    restored(&source, &target).expect("whole");
    let mut store = open(&target);
    let id = send(&mut store, [21], LENGTH);
    store.progress.wait_for(id).expect("committed");
    store.close().expect("closed");
    let expected: Vec<_> = (11..=21).collect();
    assert_eq!(numbers_in(&open(&target)), expected);
    // The store it was made of had its own way, and the backup is as it was.
    assert_eq!(numbers_in(&open(directory.path())).len(), 10);
    let again = restored(&source, &directory.path().join("again")).expect("whole");
    assert_eq!(again.messages, BACKLOG);
}

#[test]
fn a_backup_of_a_buffered_store_holds_what_was_acknowledged_and_not_yet_synced() {
    let directory = new_directory();
    let store = fed(&directory, Durability::Buffered);
    let target = directory.path().join("backup");
    let position = back_up(&store, &target).expect("made");
    let contents = restored(&target, &directory.path().join("restored")).expect("whole");
    assert_eq!((contents.position, contents.messages), (position, BACKLOG));
}

#[test]
fn large_and_shared_bodies_are_in_a_backup() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let mut set = WriteSet::default();
    put(&mut set, QUEUE, Part::Active, 1, 3 * MIB);
    let pointer = BodyPointer {
        home: EntityId(9),
        number: SequenceNumber(2),
    };
    conformance::publish(&mut set, pointer, &[QUEUE], Part::Active, 100);
    set.push(head(2, 2, 3 * MIB as u64 + 100));
    let id = store.submit(set);
    store.progress.wait_for(id).expect("committed");
    let image = store.image().expect("readable");
    let source = directory.path().join("backup");
    back_up(&store, &source).expect("made");
    let target = directory.path().join("restored");
    restored(&source, &target).expect("whole");
    assert_eq!(open(&target).image().expect("readable"), image);
}

#[test]
fn an_empty_store_can_be_backed_up() {
    let directory = new_directory();
    let source = directory.path().join("backup");
    back_up(&open(directory.path()), &source).expect("made");
    let contents = restored(&source, &directory.path().join("restored"));
    assert_eq!(contents, Ok(Contents::default()));
}

#[test]
fn a_place_that_is_taken_or_elsewhere_is_refused_and_the_store_is_well() {
    let directory = new_directory();
    let mut store = fed(&directory, Durability::Synced);
    let taken = directory.path().join("taken");
    fs::create_dir(&taken).expect("created");
    let path = taken.display().to_string();
    assert_eq!(back_up(&store, &taken), Err(BackupError::Exists { path }));
    let elsewhere = Path::new("/proc/backup");
    let path = elsewhere.display().to_string();
    let refused = back_up(&store, elsewhere);
    assert_eq!(refused, Err(BackupError::OtherFileSystem { path }));
    // What only the last step finds out: no file system has such names.
    let unwritable = directory.path().join("n".repeat(1_000));
    let refused = back_up(&store, &unwritable);
    assert!(matches!(refused, Err(BackupError::Io(_))), "{refused:?}");
    assert!(!directory.path().join("staging").exists());
    let id = feed(&mut store);
    store.progress.wait_for(id).expect("committed");
    back_up(&store, &directory.path().join("free")).expect("made");
}

#[test]
fn a_nearly_full_disk_is_not_filled_by_backups() {
    let directory = new_directory();
    let options = Options {
        reserve_bytes: Some(u64::MAX / 4),
        ..Options::default()
    };
    let store = RocksStore::open(directory.path(), options, Arc::new(|| ())).expect("opened");
    let refused = back_up(&store, &directory.path().join("backup"));
    assert_eq!(refused, Err(BackupError::NearlyFull));
    let backup = store.backup().expect("it is open");
    assert_eq!(backup.check_space(), Err(BackupError::NearlyFull));
}

#[test]
fn one_backup_is_made_at_a_time() {
    let directory = new_directory();
    let mut store = fed(&directory, Durability::Synced);
    let backup = store.backup().expect("open");
    store.hooks.hold(Sync::Now);
    feed(&mut store);
    store.hooks.wait_until_held();
    let (first, second) = (directory.path().join("1"), directory.path().join("2"));
    std::thread::scope(|scope| {
        let one = scope.spawn(|| backup.back_up(&first));
        while !directory.path().join("staging").join("format").exists() {
            std::thread::yield_now();
        }
        assert_eq!(backup.back_up(&second), Err(BackupError::Busy));
        store.hooks.release();
        one.join().expect("no panic").expect("made");
    });
    assert_eq!(numbers_in_backup(&first), (12..=21).collect::<Vec<_>>());
    assert!(!second.exists());
}

fn numbers_in_backup(source: &Path) -> Vec<u64> {
    let directory = new_directory();
    let target = directory.path().join("restored");
    restored(source, &target).expect("whole");
    numbers_in(&open(&target))
}

#[test]
fn a_store_that_failed_or_was_closed_makes_no_backup() {
    let directory = new_directory();
    let mut store = fed(&directory, Durability::Synced);
    let backup = store.backup().expect("open");
    store.hooks.fail_next();
    let id = feed(&mut store);
    assert!(store.progress.wait_for(id).is_err());
    let target = directory.path().join("backup");
    let failed = backup.back_up(&target);
    assert!(matches!(failed, Err(BackupError::Store(_))), "{failed:?}");
    drop(store);
    let closed = backup.back_up(&target);
    assert!(matches!(closed, Err(BackupError::Store(_))), "{closed:?}");
    assert!(!target.exists());
}

#[test]
fn what_a_crash_leaves_of_a_backup_goes_at_the_next_opening() {
    let directory = new_directory();
    fed(&directory, Durability::Synced).close().expect("closed");
    let staging = directory.path().join("staging");
    fs::create_dir_all(staging.join("db")).expect("created");
    fs::write(staging.join("db").join("1.sst"), "half").expect("written");
    drop(open(directory.path()));
    assert!(!staging.exists());
}

#[test]
fn a_backup_is_restored_to_an_empty_place_only() {
    let (directory, source) = backup_of_twenty();
    let target = directory.path().join("restored");
    fs::create_dir(&target).expect("created");
    fs::write(target.join("note"), "mine").expect("written");
    let path = target.display().to_string();
    let refused = restored(&source, &target);
    assert_eq!(refused, Err(RestoreError::NotEmpty { path }));
    assert_eq!(fs::read_dir(&target).expect("listed").count(), 1);
    fs::remove_file(target.join("note")).expect("removed");
    assert_eq!(restored(&source, &target).expect("whole").messages, BACKLOG);
    let left = directory.path().join("other.restoring");
    fs::create_dir(&left).expect("created");
    let path = left.display().to_string();
    let refused = restored(&source, &directory.path().join("other"));
    assert_eq!(refused, Err(RestoreError::Interrupted { path }));
}

#[test]
fn what_is_no_backup_is_refused_by_what_it_lacks() {
    let (directory, source) = backup_of_twenty();
    let target = directory.path().join("restored");
    let path = source.display().to_string();
    for (part, missing) in [
        ("db", "database"),
        ("witness", "witness"),
        ("format", "format file"),
    ] {
        fs::rename(source.join(part), source.join("away")).expect("renamed");
        let refused = restored(&source, &target);
        let path = path.clone();
        assert_eq!(refused, Err(RestoreError::NoBackup { path, missing }));
        fs::rename(source.join("away"), source.join(part)).expect("renamed");
    }
    assert_eq!(restored(&source, &target).expect("whole").messages, BACKLOG);
}

#[test]
fn a_backup_without_one_of_its_files_is_refused_and_leaves_nothing() {
    let (directory, source) = backup_of_twenty();
    let target = directory.path().join("restored");
    let files: Vec<_> = fs::read_dir(source.join("db"))
        .expect("listed")
        .map(|entry| entry.expect("listed").path())
        .filter(|path| !path.file_name().is_some_and(is_of_no_consequence))
        .collect();
    assert!(files.len() >= 5, "{files:?}");
    let away = directory.path().join("away");
    for file in files {
        fs::rename(&file, &away).expect("renamed");
        let refused = restored(&source, &target);
        assert!(
            matches!(refused, Err(RestoreError::Unusable { .. })),
            "without {}: {refused:?}",
            file.display()
        );
        assert!(!target.exists() && !directory.path().join("restored.restoring").exists());
        fs::rename(&away, &file).expect("renamed");
    }
}

/// A log without records, and options that are never read.
fn is_of_no_consequence(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("OPTIONS") || name.ends_with(".log")
}

#[test]
fn a_flipped_bit_in_a_backup_is_found_or_changes_nothing() {
    let (directory, source) = backup_of_twenty();
    let mut refusals = 0;
    for step in 0..60 {
        let copy = new_directory();
        copy_files(&source, copy.path());
        let tables: Vec<_> = fs::read_dir(copy.path().join("db"))
            .expect("listed")
            .map(|entry| entry.expect("listed").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
            .collect();
        let table = &tables[step % tables.len()];
        let mut content = fs::read(table).expect("read");
        let bit = (step * 104_729) % (content.len() * 8);
        content[bit / 8] ^= 1 << (bit % 8);
        fs::write(table, content).expect("written");
        let target = directory.path().join(format!("restored-{step}"));
        match restored(copy.path(), &target) {
            Err(RestoreError::Unusable { .. }) => refusals += 1,
            Err(other) => panic!("{other}"),
            Ok(_) => {
                let image = open(&target).image().expect("readable");
                assert_eq!(image.messages.len(), 10);
                for (&(home, number), body) in &image.bodies {
                    assert_eq!(*body, body_of(BodyPointer { home, number }, LENGTH));
                }
            }
        }
    }
    assert!(refusals > 20, "{refusals} of 60 were found");
}

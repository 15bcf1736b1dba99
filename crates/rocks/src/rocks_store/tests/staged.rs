//! Large bodies that are on the disk before their set: after any event in between they are there
//! with their message, and go with it.

use std::path::PathBuf;

use bytes::Bytes;
use index::settled::SettledRanges;
use journal::STAGED_FROM;
use store::{Query, Stager, StoredMessage, Write};

use super::*;

const LARGE: usize = STAGED_FROM + (1 << 20) + 1_000;

/// The files of staged bodies.
fn staged_files(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join("journal")).expect("listed");
    let paths = entries.map(|entry| entry.expect("listed").path());
    let staged = paths.filter(|path| path.extension().is_some_and(|found| found == "body"));
    let mut staged: Vec<_> = staged.collect();
    staged.sort();
    staged
}

fn stager(store: &RocksStore) -> Arc<dyn Stager> {
    Store::stager(store).expect("it has one")
}

fn staged_set(store: &RocksStore, number: u64) -> WriteSet {
    let mut set = WriteSet::default();
    put(&mut set, QUEUE, Part::Active, number, LARGE);
    for (_, body) in set.bodies_mut() {
        *body = stager(store).stage(body.clone());
    }
    set
}

/// Returns when the message is durable.
fn send_staged(store: &mut RocksStore, number: u64) {
    let set = staged_set(store, number);
    let id = store.submit(set);
    store.progress.wait_for(id).expect("committed");
}

fn crash(store: RocksStore, directory: &TempDir) -> TempDir {
    let copy = new_directory();
    store.hooks.hold(Sync::Later);
    copy_at_rest(&store, directory.path(), copy.path());
    store.hooks.release();
    drop(store);
    copy
}

/// Everything is as it should be, and these messages are there.
fn check(store: &RocksStore, numbers: &[u64]) {
    assert_eq!(numbers_in(store), numbers);
    let image = store.image().expect("readable");
    let bodies: Vec<_> = image.bodies.keys().map(|key| key.1.0).collect();
    assert_eq!(bodies, numbers);
    for ((home, number), body) in &image.bodies {
        let pointer = BodyPointer {
            home: *home,
            number: *number,
        };
        assert!(*body == body_of(pointer, body.len()), "{pointer:?}");
    }
}

fn with_body(store: &RocksStore, number: u64) -> Result<Vec<StoredMessage>, StoreError> {
    let query = Query::Points {
        entity: QUEUE,
        part: Part::Active,
        numbers: vec![SequenceNumber(number)],
        bodies: true,
        max_bytes: usize::MAX,
    };
    let found = store.reader().read(store.last(), &query)?;
    found.into_messages()
}

/// Removes everything that is not needed, and opens the store again.
fn collected(directory: &Path) -> RocksStore {
    let options = Options {
        memory_bytes: 24 << 20,
        ..Options::default()
    };
    let (open_store, recovered) = open_store::open(directory, &options).expect("opened");
    let database = open_store.database.clone();
    database.flush().expect("flushed");
    let mut retention = Retention::new(
        database.clone(),
        open_store.files.clone(),
        options.segment_bytes(),
        recovered.sealed,
        recovered.position,
    );
    retention.timing.check_interval = Duration::ZERO;
    retention
        .collect(true, &SettledRanges::default())
        .expect("looked at");
    retention
        .collect(true, &SettledRanges::default())
        .expect("given up");
    drop((open_store, recovered.index, database, retention));
    open(directory)
}

#[test]
fn a_staged_body_is_in_no_record_and_survives_every_crash() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send_staged(&mut store, 1);
    send(&mut store, [2], 10);
    assert!(size_of_journal(directory.path()) < LARGE as u64);
    check(&store, &[1, 2]);
    // Known from the record only; then from the index, with the segment still to be read; then from
    // the index alone.
    let directory = crash(store, &directory);
    let store = open(directory.path());
    check(&store, &[1, 2]);
    store.open_store.database.flush().expect("flushed");
    let directory = crash(store, &directory);
    let store = open(directory.path());
    check(&store, &[1, 2]);
    store.close().expect("closed");
    check(&open(directory.path()), &[1, 2]);
    assert_eq!(staged_files(directory.path()).len(), 1);
}

#[test]
fn a_staged_body_without_a_set_is_gone_after_a_crash() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send_staged(&mut store, 1);
    let set = staged_set(&store, 2);
    assert_eq!(staged_files(directory.path()).len(), 2);
    let copy = crash(store, &directory);
    drop(set);
    assert_eq!(staged_files(copy.path()).len(), 2);
    check(&open(copy.path()), &[1]);
    assert_eq!(staged_files(copy.path()).len(), 1);
}

#[test]
fn a_staged_body_that_is_never_put_goes_with_its_last_handle() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let set = staged_set(&store, 1);
    let again = set.clone();
    drop(set);
    store.open_store.files.remove_abandoned().expect("removed");
    assert_eq!(staged_files(directory.path()).len(), 1);
    drop(again);
    store.open_store.files.remove_abandoned().expect("removed");
    assert_eq!(staged_files(directory.path()), Vec::<PathBuf>::new());
    send_staged(&mut store, 2);
    check(&store, &[2]);
}

#[test]
fn a_staged_body_goes_with_its_message_whatever_crashes_in_between() {
    let directory = new_directory();
    let mut store = open(directory.path());
    for number in 1..=3 {
        send_staged(&mut store, number);
    }
    store.open_store.database.flush().expect("flushed");
    let id = settle(&mut store, [2]);
    store.progress.wait_for(id).expect("committed");
    // That it is settled stands in the journal only.
    let directory = crash(store, &directory);
    check(&open(directory.path()), &[1, 3]);
    check(&collected(directory.path()), &[1, 3]);
    assert_eq!(staged_files(directory.path()).len(), 2);
    // The file is gone and the index has not noted it.
    let mut store = open(directory.path());
    let id = settle(&mut store, [1]);
    store.progress.wait_for(id).expect("committed");
    store.unapplied.request_apply(id);
    store.progress.wait_until_applied(id).expect("applied");
    store.open_store.database.flush().expect("flushed");
    let directory = crash(store, &directory);
    fs::remove_file(&staged_files(directory.path())[0]).expect("removed");
    check(&open(directory.path()), &[3]);
    check(&collected(directory.path()), &[3]);
}

#[test]
fn bytes_that_are_put_again_are_written_again_unless_in_the_same_group() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let set = staged_set(&store, 1);
    let Some(Write::PutBody { body, .. }) = set.as_slice().first().cloned() else {
        panic!("a body comes first");
    };
    let move_to = |number: u64, body: &Bytes| {
        let mut set = WriteSet::default();
        put(&mut set, QUEUE, Part::Active, number, LARGE);
        for (_, put) in set.bodies_mut() {
            *put = body.clone();
        }
        remove(&mut set, QUEUE, Part::Active, number - 1);
        set
    };
    store.hooks.hold(Sync::Now);
    // The committer is busy with the first; the next two are one group.
    send(&mut store, [100], 10);
    store.hooks.wait_until_held();
    store.submit(set);
    store.submit(move_to(2, &body));
    store.hooks.release();
    store.progress.wait_for(store.last()).expect("committed");
    assert_eq!(staged_files(directory.path()).len(), 1);
    assert!(size_of_journal(directory.path()) < LARGE as u64);
    let bodies = |store: &RocksStore| {
        let image = store.image().expect("readable");
        let large = image
            .bodies
            .into_iter()
            .filter(|(_, body)| body.len() == LARGE);
        let large: Vec<_> = large
            .map(|((_, number), found)| (number.0, found == body))
            .collect();
        large
    };
    assert_eq!(bodies(&store), [(2, true)]);
    let directory = crash(store, &directory);
    let mut store = open(directory.path());
    assert_eq!(bodies(&store), [(2, true)]);
    store.submit(move_to(3, &body));
    store.progress.wait_for(store.last()).expect("committed");
    assert!(size_of_journal(directory.path()) > LARGE as u64);
    store.close().expect("closed");
    let store = collected(directory.path());
    assert_eq!(bodies(&store), [(3, true)]);
    assert_eq!(staged_files(directory.path()), Vec::<PathBuf>::new());
}

#[test]
fn damage_of_a_staged_body_is_its_own_messages_alone() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send_staged(&mut store, 1);
    send(&mut store, [2], 10);
    store.progress.wait_for(store.last()).expect("committed");
    let directory = crash(store, &directory);
    let file = &staged_files(directory.path())[0];
    let mut content = fs::read(file).expect("read");
    content[LARGE / 2] ^= 1;
    fs::write(file, content).expect("written");
    let store = open(directory.path());
    let refused = with_body(&store, 1);
    assert!(
        matches!(refused, Err(StoreError::Corrupt { .. })),
        "{refused:?}"
    );
    assert_eq!(with_body(&store, 2).map(|found| found.len()), Ok(1));
}

#[test]
fn a_staged_body_that_is_missing_is_not_passed_over() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send_staged(&mut store, 1);
    let directory = crash(store, &directory);
    fs::remove_file(&staged_files(directory.path())[0]).expect("removed");
    let refused = try_open(directory.path(), Durability::Synced).err();
    assert!(
        matches!(refused, Some(StoreError::Corrupt { .. })),
        "{refused:?}"
    );
    let options = Options {
        repair: true,
        ..Options::default()
    };
    let accepted = RocksStore::open(directory.path(), options, Arc::new(|| ()));
    let refused = with_body(&accepted.expect("accepted"), 1);
    assert!(
        matches!(refused, Err(StoreError::Corrupt { .. })),
        "{refused:?}"
    );
}

#[test]
fn commits_go_on_while_a_body_is_being_staged() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let hooks = store.open_store.staging_hooks.clone();
    hooks.hold(Sync::Now);
    let stager = stager(&store);
    let pointer = BodyPointer {
        home: QUEUE,
        number: SequenceNumber(1),
    };
    let staging = std::thread::spawn(move || stager.stage(body_of(pointer, LARGE)));
    hooks.wait_until_held();
    let id = send(&mut store, [2], 10);
    store.progress.wait_for(id).expect("committed meanwhile");
    hooks.release();
    assert_eq!(staging.join().expect("staged"), body_of(pointer, LARGE));
    check(&store, &[2]);
}

#[test]
fn what_can_not_be_staged_comes_back_and_is_written_with_its_record() {
    let directory = new_directory();
    let mut store = open(directory.path());
    store.open_store.staging_hooks.fail_next();
    send_staged(&mut store, 1);
    assert!(size_of_journal(directory.path()) > LARGE as u64);
    check(&store, &[1]);
    store.open_store.files.remove_abandoned().expect("removed");
    assert_eq!(staged_files(directory.path()), Vec::<PathBuf>::new());
    let stager = stager(&store);
    store.close().expect("closed");
    let body = Bytes::from(vec![1; LARGE]);
    assert_eq!(stager.stage(body.clone()).as_ptr(), body.as_ptr());
    assert_eq!(staged_files(directory.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_backup_has_the_staged_bodies_that_are_put_and_no_others() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send_staged(&mut store, 1);
    let set = staged_set(&store, 2);
    let target = directory.path().join("backup");
    let backup = store.backup().expect("open");
    backup.back_up(&target).expect("made");
    assert_eq!(staged_files(&target).len(), 1);
    // What is put and settled after it is still in it.
    store.submit(set);
    settle(&mut store, [1, 2]);
    store.close().expect("closed");
    check(&collected(directory.path()), &[]);
    assert_eq!(staged_files(directory.path()), Vec::<PathBuf>::new());
    let restored = directory.path().join("restored");
    fs::create_dir(&restored).expect("made");
    copy_files(&target, &restored);
    check(&open(&restored), &[1]);
}

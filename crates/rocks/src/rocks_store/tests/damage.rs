//! Damage: flipped bits, cut and missing files are refused or harmless, never silent.

use std::path::PathBuf;

use super::*;

fn logs(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join("db")).expect("listed");
    let paths = entries.map(|entry| entry.expect("listed").path());
    let logs = paths.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.collect()
}

/// The only log file with something in it.
fn log_file(root: &Path) -> PathBuf {
    let logs = logs(root).into_iter();
    logs.max_by_key(|log| fs::metadata(log).expect("there").len())
        .expect("there is a log")
}

fn flip(path: &Path, bit: usize) {
    let mut content = fs::read(path).expect("read");
    content[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, content).expect("written");
}

/// A closed store of 100 commits, all of them in the log only.
fn closed_store() -> TempDir {
    let directory = new_directory();
    let mut store = open(directory.path());
    for number in 1..=100 {
        let id = send(&mut store, [number], 500);
        store.progress.wait_for(id).expect("committed");
    }
    store.close().expect("closed");
    directory
}

#[test]
fn a_newer_format_is_refused_before_the_database_is_touched() {
    let directory = closed_store();
    fs::write(directory.path().join("format"), "railbus-store 2\n").expect("written");
    let refused = try_open(directory.path(), Durability::Synced).err();
    assert_eq!(
        refused,
        Some(StoreError::NewerFormat { found: 2, known: 1 })
    );
    fs::write(directory.path().join("format"), "something else\n").expect("written");
    let refused = try_open(directory.path(), Durability::Synced).err();
    assert!(
        matches!(refused, Some(StoreError::Corrupt { .. })),
        "{refused:?}"
    );
    fs::write(directory.path().join("format"), "railbus-store 1\n").expect("written");
    assert_eq!(numbers_in(&open(directory.path())).len(), 100);
}

#[test]
fn a_flipped_bit_in_the_log_is_refused_and_the_log_kept() {
    let directory = closed_store();
    let log = log_file(directory.path());
    let name = log.file_name().expect("a name").to_owned();
    flip(&log, fs::read(&log).expect("read").len() * 4);
    let damaged = fs::read(&log).expect("read");
    for _attempt in 0..2 {
        let refused = try_open(directory.path(), Durability::Synced).err();
        match refused {
            Some(StoreError::LostCommits {
                recovered,
                witnessed: 100,
                ..
            }) => {
                assert!((10..90).contains(&recovered), "recovered {recovered}");
            }
            other => panic!("not refused as it should be: {other:?}"),
        }
    }
    let kept = fs::read(directory.path().join("rescue").join(name)).expect("kept");
    assert!(kept == damaged, "the damaged log is kept as it was");
}

#[test]
fn an_accepted_loss_opens_with_what_is_left_and_is_asked_once() {
    let directory = closed_store();
    let log = log_file(directory.path());
    let len = fs::metadata(&log).expect("there").len();
    fs::File::options()
        .write(true)
        .open(&log)
        .and_then(|file| file.set_len(len / 2))
        .expect("cut");
    let options = Options {
        accept_data_loss: true,
        ..Options::default()
    };
    let store = RocksStore::open(directory.path(), options, Arc::new(|| ())).expect("accepted");
    let left = numbers_in(&store);
    assert_eq!(left, (1..=left.len() as u64).collect::<Vec<_>>());
    assert!((10..90).contains(&left.len()), "{} left", left.len());
    store.close().expect("closed");
    assert_eq!(numbers_in(&open(directory.path())), left);
    let kept = fs::read_dir(directory.path()).expect("listed");
    let names = kept.map(|entry| entry.expect("listed").file_name().into_string());
    assert!(
        names
            .flatten()
            .any(|name| name.starts_with("rescue-after-"))
    );
}

#[test]
fn no_flipped_bit_in_the_log_loses_or_changes_anything_silently() {
    let whole = closed_store();
    let bits = fs::metadata(log_file(whole.path())).expect("there").len() as usize * 8;
    for step in 0..40 {
        let directory = new_directory();
        copy_files(whole.path(), directory.path());
        // Steps of a prime number of bits: headers, keys, lengths and bodies all get their turn.
        flip(&log_file(directory.path()), (step * 104_729 + step) % bits);
        if let Ok(store) = try_open(directory.path(), Durability::Synced) {
            let image = store.image().expect("readable");
            assert_eq!(image.messages.len(), 100, "after flipping bit {step}");
            for (&(home, number), body) in &image.bodies {
                assert_eq!(*body, body_of(BodyPointer { home, number }, 500));
            }
        }
    }
}

#[test]
fn a_missing_log_is_refused() {
    let directory = closed_store();
    fs::remove_file(log_file(directory.path())).expect("removed");
    assert!(try_open(directory.path(), Durability::Synced).is_err());
}

#[test]
fn a_log_that_is_cut_or_missing_before_newer_ones_is_refused() {
    let whole = new_directory();
    let mut store = open(whole.path());
    for half in [1..=50, 51..=100] {
        let id = send(&mut store, half, 500);
        store.progress.wait_for(id).expect("committed");
        // The bodies' table is written and a new log begun; the rows are in the old one only.
        let database = &store.opened.database;
        let flushed = database.db.flush_cf(database.families().body);
        flushed.expect("flushed");
    }
    store.close().expect("closed");
    for cut in [true, false] {
        let directory = new_directory();
        copy_files(whole.path(), directory.path());
        let oldest = logs(directory.path()).into_iter().min().expect("a log");
        let length = fs::metadata(&oldest).expect("there").len();
        assert!(length > 0, "the rows of the first half are in it");
        if cut {
            let log = fs::File::options().write(true).open(&oldest);
            log.expect("opened").set_len(length / 2).expect("cut");
        } else {
            fs::remove_file(&oldest).expect("removed");
        }
        assert!(try_open(directory.path(), Durability::Synced).is_err());
    }
}

#[test]
fn a_damaged_witness_is_refused_unless_accepted() {
    let directory = closed_store();
    fs::write(directory.path().join("witness"), [7; 5_000]).expect("written");
    let refused = try_open(directory.path(), Durability::Synced).err();
    assert!(
        matches!(refused, Some(StoreError::Corrupt { .. })),
        "{refused:?}"
    );
    let options = Options {
        accept_data_loss: true,
        ..Options::default()
    };
    let store = RocksStore::open(directory.path(), options, Arc::new(|| ())).expect("accepted");
    assert_eq!(numbers_in(&store).len(), 100);
}

#[test]
fn no_flipped_bit_in_a_table_serves_a_wrong_body() {
    let whole = new_directory();
    let mut store = open(whole.path());
    send(&mut store, 1..=60, 300);
    let last = send(&mut store, 61..=64, 40_000);
    store.progress.wait_for(last).expect("committed");
    let database = &store.opened.database;
    database
        .db
        .flush_cf(database.families().body)
        .expect("flushed");
    store.close().expect("closed");
    let entries = fs::read_dir(whole.path().join("db")).expect("listed");
    let names = entries.map(|entry| {
        entry
            .expect("listed")
            .file_name()
            .into_string()
            .expect("text")
    });
    let tables: Vec<_> = names
        .filter(|name| name.ends_with(".sst") || name.ends_with(".blob"))
        .collect();
    assert_eq!(tables.len(), 2, "{tables:?}");
    for step in 0..40 {
        let directory = new_directory();
        copy_files(whole.path(), directory.path());
        let path = directory.path().join("db").join(&tables[step % 2]);
        let bits = fs::metadata(&path).expect("there").len() as usize * 8;
        flip(&path, step * 104_729 % bits);
        let Ok(store) = try_open(directory.path(), Durability::Synced) else {
            continue;
        };
        let query = range(QUEUE, Part::Active, 0, 100);
        let found = store.reader().read(CommitId(0), &query);
        let Ok(found) = found.and_then(Found::into_messages) else {
            continue;
        };
        assert_eq!(found.len(), 64);
        for message in found {
            let expected = body_of(message.row.body, message.row.size as usize);
            assert!(
                message.body == Some(expected),
                "{} after step {step}",
                message.number
            );
        }
    }
}

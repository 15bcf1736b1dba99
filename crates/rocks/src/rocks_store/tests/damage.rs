//! Damage: flipped bits, cut and missing files are refused or harmless, never silent.

use std::path::PathBuf;

use journal::file_system::os;
use journal::value::FORMAT;

use super::*;

fn segments(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join("journal")).expect("listed");
    let mut segments: Vec<_> = entries.map(|entry| entry.expect("listed").path()).collect();
    segments.sort();
    segments
}

fn first_segment(root: &Path) -> PathBuf {
    segments(root).into_iter().next().expect("there is one")
}

/// How much of it is in use, about: behind that are zeros.
fn used(segment: &Path) -> usize {
    let content = fs::read(segment).expect("read");
    content
        .iter()
        .rposition(|byte| *byte != 0)
        .expect("it has something")
        + 1
}

fn flip(path: &Path, bit: usize) {
    let mut content = fs::read(path).expect("read");
    content[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, content).expect("written");
}

/// A store of 100 commits that crashed, all of them in the journal only.
fn crashed_store() -> TempDir {
    let directory = new_directory();
    let mut store = open(directory.path());
    for number in 1..=100 {
        let id = send(&mut store, [number], 500);
        store.progress.wait_for(id).expect("committed");
    }
    let copy = new_directory();
    copy_at_rest(&store, directory.path(), copy.path());
    copy
}

#[test]
fn a_newer_format_is_refused_before_the_database_is_touched() {
    let directory = crashed_store();
    let newer = format!("railbus-store {}\n", FORMAT + 1);
    fs::write(directory.path().join("format"), newer).expect("written");
    let refused = try_open(directory.path(), Durability::Synced).err();
    assert_eq!(
        refused,
        Some(StoreError::NewerFormat {
            found: FORMAT + 1,
            known: FORMAT
        })
    );
    fs::write(directory.path().join("format"), "something else\n").expect("written");
    let refused = try_open(directory.path(), Durability::Synced).err();
    assert!(
        matches!(refused, Some(StoreError::Corrupt { .. })),
        "{refused:?}"
    );
    fs::write(directory.path().join("format"), "railbus-store 3\n").expect("written");
    assert_eq!(numbers_in(&open(directory.path())).len(), 100);
}

#[test]
fn a_flipped_bit_in_the_log_is_refused_and_the_log_kept() {
    let directory = crashed_store();
    let log = first_segment(directory.path());
    // In the writes of a record, not in a body.
    let content = fs::read(&log).expect("read");
    let middle = used(&log) / 2;
    let record = content[middle..]
        .windows(8)
        .position(|bytes| bytes == 51_u64.to_be_bytes());
    flip(&log, (middle + record.expect("a record")) * 8);
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
    let kept = fs::read(log).expect("kept");
    assert!(kept == damaged, "the damaged log is kept as it was");
}

#[test]
fn an_accepted_loss_opens_with_what_is_left_and_is_asked_once() {
    let directory = crashed_store();
    let log = first_segment(directory.path());
    let len = used(&log) as u64;
    fs::File::options()
        .write(true)
        .open(&log)
        .and_then(|file| file.set_len(len / 2))
        .expect("cut");
    let options = Options {
        repair: true,
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
    let whole = crashed_store();
    let bits = used(&first_segment(whole.path())) * 8;
    let mut found = 0;
    for step in 0..80 {
        let directory = new_directory();
        copy_files(whole.path(), directory.path());
        // Steps of a prime number of bits: headers, keys, lengths and bodies all get their turn.
        flip(
            &first_segment(directory.path()),
            (step * 104_729 + step) % bits,
        );
        let image = try_open(directory.path(), Durability::Synced).and_then(|store| store.image());
        match image {
            Err(StoreError::Corrupt { .. } | StoreError::LostCommits { .. }) => found += 1,
            Err(other) => panic!("{other}"),
            Ok(image) => {
                assert_eq!(image.messages.len(), 100, "after flipping bit {step}");
                for (&(home, number), body) in &image.bodies {
                    assert_eq!(*body, body_of(BodyPointer { home, number }, 500));
                }
            }
        }
    }
    assert!(found > 70, "{found} of 80 were found");
}

#[test]
fn a_damaged_body_sets_its_own_message_aside_only() {
    let directory = crashed_store();
    let log = first_segment(directory.path());
    let content = fs::read(&log).expect("read");
    let pointer = BodyPointer {
        home: QUEUE,
        number: SequenceNumber(50),
    };
    let body = body_of(pointer, 500);
    let at = content.windows(500).position(|bytes| bytes == &body[..]);
    flip(&log, (at.expect("the body") + 100) * 8);
    let store = open(directory.path());
    let reader = store.reader();
    let one = |number| reader.read(CommitId(0), &range(QUEUE, Part::Active, number, number + 1));
    assert!(matches!(one(50), Err(StoreError::Corrupt { .. })));
    for number in (1..=100).filter(|number| *number != 50) {
        assert!(one(number).is_ok(), "{number}");
    }
}

#[test]
fn what_was_not_written_to_its_end_never_comes_back() {
    let directory = crashed_store();
    let log = first_segment(directory.path());
    let mut content = fs::read(&log).expect("read");
    // The last body was on its way when the power went.
    content[used(&log) - 10..].fill(0);
    fs::write(&log, content).expect("written");
    drop(Witness::open(&os(), &directory.path().join("witness"), 99).expect("written"));
    let mut store = open(directory.path());
    assert_eq!(numbers_in(&store), (1..=99).collect::<Vec<_>>());
    let id = send(&mut store, [100], 700);
    store.progress.wait_for(id).expect("committed");
    let copy = new_directory();
    copy_at_rest(&store, directory.path(), copy.path());
    let store = open(copy.path());
    let found = read(&store, store.last(), &range(QUEUE, Part::Active, 0, 200));
    assert_eq!(found.len(), 100);
    assert_eq!(found[99].row.size, 700, "the one that was acknowledged");
}

#[test]
fn a_damaged_record_does_not_take_along_bodies_that_the_index_knows() {
    let directory = new_directory();
    let mut store = open(directory.path());
    for number in 1..=20 {
        let id = send(&mut store, [number], 500);
        store.progress.wait_for(id).expect("committed");
    }
    store.unapplied.request_apply(store.last());
    store
        .progress
        .wait_until_applied(store.last())
        .expect("applied");
    store.open_store.database.flush().expect("flushed");
    let whole = new_directory();
    copy_at_rest(&store, directory.path(), whole.path());
    let middle = used(&first_segment(whole.path())) / 2;
    // In its first record, and in the middle of it.
    for at in [40, middle] {
        let copy = new_directory();
        copy_files(whole.path(), copy.path());
        let log = first_segment(copy.path());
        let content = fs::read(&log).expect("read");
        let record = content[at.min(middle)..]
            .windows(8)
            .position(|bytes| bytes == 11_u64.to_be_bytes());
        flip(
            &log,
            if at == middle {
                at + record.expect("a record")
            } else {
                at
            } * 8,
        );
        let refused = try_open(copy.path(), Durability::Synced).err();
        assert!(
            matches!(refused, Some(StoreError::Corrupt { .. })),
            "{at}: {refused:?}"
        );
        let options = Options {
            repair: true,
            ..Options::default()
        };
        let store = RocksStore::open(copy.path(), options, Arc::new(|| ())).expect("accepted");
        assert_eq!(numbers_in(&store).len(), 20, "no body was damaged");
    }
}

#[test]
fn nothing_depends_on_the_begin_of_a_segment() {
    let directory = crashed_store();
    let log = first_segment(directory.path());
    for byte in 0..32 {
        flip(&log, byte * 8 + byte % 8);
    }
    assert_eq!(numbers_in(&open(directory.path())).len(), 100);
}

/// A store of 100 commits after a power cut: the witness on the disk is an older one.
fn store_after_a_power_cut() -> TempDir {
    let directory = crashed_store();
    drop(Witness::open(&os(), &directory.path().join("witness"), 20).expect("written"));
    directory
}

/// Where the record with message `number` has that number in its writes.
fn number_in_record(log: &Path, number: u64) -> usize {
    let content = fs::read(log).expect("read");
    let mut found = content.windows(8).enumerate();
    let (at, _) = found
        .find(|(at, bytes)| {
            *bytes == number.to_be_bytes() && content[at - 8..*at] == QUEUE.0.to_be_bytes()
        })
        .expect("a record");
    at
}

#[test]
fn damage_to_what_later_commits_follow_is_not_taken_for_an_interrupted_write() {
    let directory = store_after_a_power_cut();
    let log = first_segment(directory.path());
    let at = number_in_record(&log, 60);
    // More than one bit.
    flip(&log, at * 8);
    flip(&log, at * 8 + 11);
    let refused = try_open(directory.path(), Durability::Synced).err();
    let Some(StoreError::LostCommits {
        recovered: 59,
        witnessed: 99,
        hint,
    }) = refused
    else {
        panic!("not refused as it should be: {refused:?}");
    };
    let place = format!("{} is damaged from byte ", log.display());
    assert!(hint.starts_with(&place), "{hint}");
}

#[test]
fn a_flipped_bit_in_the_last_commit_is_not_taken_for_an_interrupted_write() {
    let directory = store_after_a_power_cut();
    let log = first_segment(directory.path());
    let at = number_in_record(&log, 100);
    for bit in [at * 8, (at - 33) * 8 + 3, (at - 29) * 8 + 4, (at - 10) * 8] {
        flip(&log, bit);
        let refused = try_open(directory.path(), Durability::Synced).err();
        assert!(
            matches!(
                refused,
                Some(StoreError::LostCommits {
                    recovered: 99,
                    witnessed: 100,
                    ..
                })
            ),
            "bit {bit}: {refused:?}"
        );
        flip(&log, bit);
    }
    assert_eq!(numbers_in(&open(directory.path())).len(), 100);
}

#[test]
fn a_flipped_bit_in_a_body_of_the_last_commit_affects_its_message_only() {
    let directory = store_after_a_power_cut();
    let log = first_segment(directory.path());
    flip(&log, (used(&log) - 100) * 8);
    let store = open(directory.path());
    let reader = store.reader();
    let one = |number| reader.read(CommitId(0), &range(QUEUE, Part::Active, number, number + 1));
    assert!(matches!(one(100), Err(StoreError::Corrupt { .. })));
    assert!((1..100).all(|number| one(number).is_ok()));
}

#[test]
fn an_interrupted_write_is_cut_off_and_the_start_goes_on() {
    let directory = store_after_a_power_cut();
    let log = first_segment(directory.path());
    let mut content = fs::read(&log).expect("read");
    // The last record was on its way when the power went: its end is missing.
    let from = number_in_record(&log, 100) + 8;
    content[from..].fill(0);
    fs::write(&log, content).expect("written");
    assert_eq!(numbers_in(&open(directory.path())).len(), 99);
}

#[test]
fn a_missing_log_is_refused() {
    let directory = crashed_store();
    fs::remove_file(first_segment(directory.path())).expect("removed");
    assert!(try_open(directory.path(), Durability::Synced).is_err());
}

#[test]
fn a_segment_that_is_cut_or_missing_before_newer_ones_is_refused() {
    let directory = new_directory();
    let mut store = open(directory.path());
    for number in 1..=6 {
        let id = send(&mut store, [number], 3 * MIB);
        store.progress.wait_for(id).expect("committed");
    }
    let whole = new_directory();
    copy_at_rest(&store, directory.path(), whole.path());
    drop(store);
    assert!(segments(whole.path()).len() > 2);
    for cut in [true, false] {
        let directory = new_directory();
        copy_files(whole.path(), directory.path());
        let oldest = first_segment(directory.path());
        if cut {
            let length = fs::metadata(&oldest).expect("there").len();
            let log = fs::File::options().write(true).open(&oldest);
            log.expect("opened").set_len(length / 2).expect("cut");
        } else {
            fs::remove_file(&oldest).expect("removed");
        }
        assert!(try_open(directory.path(), Durability::Synced).is_err());
    }
}

#[test]
fn a_segment_that_is_needed_and_missing_is_refused_after_a_good_end_too() {
    let directory = new_directory();
    let mut store = open(directory.path());
    for number in 1..=6 {
        send(&mut store, [number], 3 * MIB);
    }
    store.close().expect("closed");
    // The next opening notes what had ended.
    open(directory.path()).close().expect("closed");
    fs::remove_file(first_segment(directory.path())).expect("removed");
    let refused = try_open(directory.path(), Durability::Synced).err();
    assert!(
        matches!(refused, Some(StoreError::Corrupt { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_damaged_or_missing_witness_is_refused_unless_accepted() {
    for is_missing in [false, true] {
        for is_closed in [false, true] {
            let directory = crashed_store();
            if is_closed {
                open(directory.path()).close().expect("closed");
            }
            let witness = directory.path().join("witness");
            if is_missing {
                fs::remove_file(&witness).expect("removed");
            } else {
                fs::write(&witness, [7; 5_000]).expect("written");
            }
            let refused = try_open(directory.path(), Durability::Synced).err();
            let text = refused.expect("refused").to_string();
            let path = witness.display().to_string();
            assert!(text.contains(&path) && text.contains("--repair"), "{text}");
            let options = Options {
                repair: true,
                ..Options::default()
            };
            let store =
                RocksStore::open(directory.path(), options, Arc::new(|| ())).expect("accepted");
            assert_eq!(numbers_in(&store).len(), 100);
            store.close().expect("closed");
            open(directory.path());
        }
    }
}

#[test]
fn no_flipped_bit_in_a_table_serves_a_wrong_body() {
    let whole = new_directory();
    let mut store = open(whole.path());
    send(&mut store, (1..=60).chain(65..=70), 300);
    send(&mut store, 61..=64, 40_000);
    // Bodies that outlive the row they came with have rows of their own.
    let last = dead_letter(&mut store, 65..=70, 300);
    store.progress.wait_for(last).expect("committed");
    store.close().expect("closed");
    let entries = fs::read_dir(whole.path().join("db")).expect("listed");
    let names = entries.map(|entry| {
        entry
            .expect("listed")
            .file_name()
            .into_string()
            .expect("text")
    });
    let tables: Vec<_> = names.filter(|name| name.ends_with(".sst")).collect();
    assert_eq!(tables.len(), 3, "{tables:?}");
    for step in 0..40 {
        let directory = new_directory();
        copy_files(whole.path(), directory.path());
        let path = directory.path().join("db").join(&tables[step % 3]);
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

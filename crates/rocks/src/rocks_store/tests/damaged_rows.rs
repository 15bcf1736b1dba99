//! Damaged rows: what a table has in a damaged block is told, and all else is found.

use std::ops::Range;
use std::path::PathBuf;

use index::settled::SettledRanges;
use index::{Batch, Family, Tables, opening};
use store::{EntryKey, Index, Query, StoreError};

use super::*;
use crate::damage::walk::Walk;
use crate::retention::{Retention, RetentionTiming};

const MESSAGES: u64 = 3_000;

/// A closed store of messages whose rows are in one table, and that table.
fn store_with_a_table() -> (TempDir, PathBuf) {
    let directory = new_directory();
    let mut store = open(directory.path());
    let id = send(&mut store, 1..=MESSAGES, 20);
    store.progress.wait_for(id).expect("committed");
    store.close().expect("closed");
    let tables = fs::read_dir(directory.path().join("db")).expect("listed");
    let tables = tables.map(|entry| entry.expect("listed").path());
    let tables = tables.filter(|path| path.extension().is_some_and(|kind| kind == "sst"));
    let largest = tables.max_by_key(|path| fs::metadata(path).expect("there").len());
    (directory, largest.expect("there is one"))
}

fn flip(path: &Path, byte: usize) {
    let mut content = fs::read(path).expect("read");
    content[byte] ^= 1;
    fs::write(path, content).expect("written");
}

/// Damages the largest table of a closed store that has entries and delivery counts.
fn flip_in_states(directory: &Path) {
    let store = open(directory);
    let tables = store.open_store.database.db.live_files().expect("listed");
    let states = tables
        .iter()
        .filter(|it| it.column_family_name == "default");
    let largest = states.max_by_key(|it| it.size).expect("there is one");
    let name = largest.name.trim_start_matches('/').to_owned();
    let middle = largest.size / 3;
    store.close().expect("closed");
    flip(&directory.join("db").join(name), middle);
}

fn rows(from: u64, limit: usize) -> Query {
    Query::Range {
        entity: QUEUE,
        part: Part::Active,
        from: SequenceNumber(from),
        until: SequenceNumber(MESSAGES + 1),
        limit,
        bodies: false,
        max_bytes: usize::MAX,
    }
}

/// Reads all rows as the broker does, and returns the numbers that were found, and those that could
/// not be read. Nothing is found twice.
fn read_past_damage(store: &RocksStore) -> (Vec<u64>, Vec<Range<u64>>) {
    let reader = store.reader();
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    let (mut from, mut limit) = (0, usize::MAX);
    while from <= MESSAGES {
        match reader.read(CommitId(0), &rows(from, limit)) {
            Ok(rows) => {
                let numbers = conformance::numbers(&rows.into_messages().expect("messages"));
                let is_cut_off = numbers.len() == limit;
                found.extend(&numbers);
                from = match numbers.last() {
                    Some(last) if is_cut_off => last + 1,
                    _ => MESSAGES + 1,
                };
                limit = usize::MAX;
            }
            Err(StoreError::UnreadableRows {
                intact: 0,
                from: begin,
                until,
                ..
            }) => {
                damaged.push(begin.0..until.0);
                assert!(until.0 > from, "it does not go on");
                from = until.0;
            }
            Err(StoreError::UnreadableRows { intact, .. }) => {
                assert!(intact < limit, "no fewer are asked for");
                limit = intact;
            }
            Err(error) => panic!("{error}"),
        }
    }
    (found, damaged)
}

#[test]
fn rows_of_other_blocks_are_found_and_the_damage_is_counted_once() {
    let (directory, table) = store_with_a_table();
    flip(&table, 20_000);
    let store = open(directory.path());
    let (found, damaged) = read_past_damage(&store);
    let [damaged] = &damaged[..] else {
        panic!("{damaged:?}");
    };
    assert!(
        (50..400).contains(&(damaged.end - damaged.start)),
        "{damaged:?}"
    );
    let expected: Vec<_> = (1..damaged.start).chain(damaged.end..=MESSAGES).collect();
    assert!(found == expected, "{damaged:?}, and {} found", found.len());
    assert_eq!(store.statistics.snapshot().damaged, 1);
    for number in [damaged.start - 1, damaged.end] {
        let query = range(QUEUE, Part::Active, number, number + 1);
        assert_eq!(read(&store, CommitId(0), &query).len(), 1);
    }
    let number = SequenceNumber;
    let points = |numbers| Query::Points {
        entity: QUEUE,
        part: Part::Active,
        numbers,
        bodies: true,
        max_bytes: usize::MAX,
    };
    let beside = points(vec![number(damaged.start - 2), number(damaged.start - 1)]);
    assert_eq!(read(&store, CommitId(0), &beside).len(), 2);
    let across = points(vec![number(damaged.start - 1), number(damaged.start)]);
    let refused = store.reader().read(CommitId(0), &across);
    assert!(
        matches!(refused, Err(StoreError::Corrupt { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_walk_goes_on_behind_a_damaged_block_of_the_same_entity() {
    let (directory, table) = store_with_a_table();
    flip(&table, 20_000);
    flip(&table, 60_000);
    let store = open(directory.path());
    let (found, damaged) = read_past_damage(&store);
    assert_eq!(damaged.len(), 2);
    let mut walk = Walk::new(&store.open_store.database, &store.open_store.files);
    let (mut rows, mut damage) = (0, 0);
    while let Some(piece) = walk.next().expect("read") {
        rows += piece.rows;
        damage += piece.damage.len();
    }
    assert_eq!(damage, 2);
    assert!(rows >= found.len() as u64, "{rows} rows");
}

#[test]
fn settling_all_that_can_be_read_keeps_what_cannot() {
    let (directory, table) = store_with_a_table();
    flip(&table, 20_000);
    let mut store = open(directory.path());
    let (found, _) = read_past_damage(&store);
    let id = settle(&mut store, found);
    store.unapplied.request_apply(id);
    store.progress.wait_until_applied(id).expect("applied");
    let (left, damaged) = read_past_damage(&store);
    assert_eq!((left.len(), damaged.len()), (0, 1));
}

/// The counts are in a table of another family.
#[test]
fn a_copy_has_all_rows_but_those_that_cannot_be_read() {
    let copy = store::EntityId(30);
    let (directory, table) = store_with_a_table();
    flip(&table, 20_000);
    flip(&table, 60_000);
    let mut store = open(directory.path());
    let (found, damaged) = read_past_damage(&store);
    assert_eq!(damaged.len(), 2);
    let mut set = WriteSet::default();
    set.push(store::Write::Copy {
        from: QUEUE,
        to: copy,
    });
    store.submit(set);
    let copied = read(
        &store,
        store.last(),
        &range(copy, Part::Active, 0, u64::MAX),
    );
    assert_eq!(conformance::numbers(&copied), found);
    store.close().expect("closed");
    let store = open(directory.path());
    let copied = read(&store, CommitId(0), &range(copy, Part::Active, 0, u64::MAX));
    assert_eq!(copied.len(), found.len());
}

#[test]
fn messages_whose_delivery_counts_are_damaged_are_told_of_and_all_others_found() {
    let directory = new_directory();
    let mut store = open(directory.path());
    send(&mut store, 1..=MESSAGES, 20);
    let mut set = WriteSet::default();
    // The first and the last messages have none, and need none of the damaged block.
    for number in 500..=MESSAGES - 500 {
        set.push(store::Write::PutDeliveryCount {
            entity: QUEUE,
            number: SequenceNumber(number),
            count: 7,
        });
    }
    let id = store.submit(set);
    store.progress.wait_for(id).expect("committed");
    store.close().expect("closed");
    flip_in_states(directory.path());

    let store = open(directory.path());
    let (found, damaged) = read_past_damage(&store);
    let [range] = &damaged[..] else {
        panic!("{damaged:?}");
    };
    assert!((500..MESSAGES).contains(&range.start), "{range:?}");
    let expected: Vec<_> = (1..range.start).chain(range.end..=MESSAGES).collect();
    assert!(found == expected, "{range:?}, and {} found", found.len());
}

/// Where a message is in the schedule.
fn due(number: u64) -> EntryKey {
    EntryKey::by_u64(number * 1_000, SequenceNumber(number))
}

/// Reads a schedule as the broker does, and returns the numbers that were found, and the stretches
/// that could not be read.
fn read_schedule(store: &RocksStore) -> (Vec<u64>, Vec<Range<EntryKey>>) {
    const MOST: usize = 1_000;
    let reader = store.reader();
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    let end = EntryKey::by_u64(u64::MAX, SequenceNumber::MAX);
    let (mut from, mut limit) = (due(0), MOST);
    while from < end {
        let query = Query::Entries {
            entity: QUEUE,
            index: Index::Schedule,
            from: from.clone(),
            until: end.clone(),
            limit,
            max_bytes: usize::MAX,
        };
        match reader.read(CommitId(0), &query) {
            Ok(entries) => {
                let entries = entries.into_entries().expect("entries");
                found.extend(entries.iter().map(|entry| entry.key.number.0));
                from = match entries.last() {
                    Some(last) if entries.len() == limit => EntryKey {
                        number: last.key.number.next(),
                        ..last.key.clone()
                    },
                    _ => end.clone(),
                };
                limit = MOST;
            }
            Err(StoreError::UnreadableEntries {
                intact: 0, until, ..
            }) => {
                assert!(until > from, "it does not go on");
                lost.push(from..until.clone());
                from = until;
            }
            Err(StoreError::UnreadableEntries { intact, .. }) => {
                assert!(intact < limit, "no fewer are asked for");
                limit = intact;
            }
            Err(error) => panic!("{error}"),
        }
    }
    (found, lost)
}

#[test]
fn what_is_scheduled_before_and_behind_a_damaged_block_is_found() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let mut set = WriteSet::default();
    for number in 1..=MESSAGES {
        let noise = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        set.push(store::Write::PutEntry {
            entity: QUEUE,
            index: Index::Schedule,
            key: due(number),
            value: noise.repeat(4).into(),
        });
    }
    let id = store.submit(set);
    store.progress.wait_for(id).expect("committed");
    store.close().expect("closed");
    flip_in_states(directory.path());

    let store = open(directory.path());
    let (found, lost) = read_schedule(&store);
    let [lost] = &lost[..] else {
        panic!("{lost:?}");
    };
    let (expected, gone): (Vec<_>, Vec<_>) =
        (1..=MESSAGES).partition(|number| !lost.contains(&due(*number)));
    assert!(found == expected, "{lost:?}, and {} found", found.len());
    assert!((20..1_000).contains(&gone.len()), "{}", gone.len());
    assert_eq!(store.statistics.snapshot().damaged, 1);
}

/// Blocks of rows, of the index, the properties and the footer all get their turn.
#[test]
fn wherever_a_table_is_damaged_each_row_is_found_or_told_of() {
    let (whole, table) = store_with_a_table();
    let len = usize::try_from(fs::metadata(&table).expect("there").len()).expect("small");
    let name = table.strip_prefix(whole.path()).expect("below");
    // More of the end, where there are no rows.
    let places = (0..12).map(|step| step * len / 12 + step * 37);
    let ends = (0..24).map(|step| len - 1 - step * 83);
    let mut told = 0;
    for byte in places.chain(ends) {
        let directory = new_directory();
        copy_files(whole.path(), directory.path());
        flip(&directory.path().join(name), byte);
        let Ok(store) = try_open(directory.path(), Durability::Synced) else {
            continue;
        };
        let (found, damaged) = read_past_damage(&store);
        told += usize::from(!damaged.is_empty());
        let is_damaged = |number: &u64| damaged.iter().any(|range| range.contains(number));
        let expected: Vec<_> = (1..=MESSAGES)
            .filter(|number| !is_damaged(number))
            .collect();
        assert!(found == expected, "byte {byte}: {damaged:?}");
    }
    assert!(told > 10, "{told} were told of");
}

/// Waits until the index has heard of everything, and has looked for segments to remove.
fn work(store: &mut RocksStore) {
    for number in 0..3 {
        let id = send(store, [MESSAGES + 10 + number], 20);
        store.progress.wait_for(id).expect("committed");
        store.unapplied.request_apply(id);
        store.progress.wait_until_applied(id).expect("applied");
    }
}

#[test]
fn a_damaged_block_neither_stops_the_search_for_old_segments_nor_ends_one() {
    let (directory, table) = store_with_a_table();
    flip(&table, 20_000);
    let store = open(directory.path());
    let (_, damaged) = read_past_damage(&store);
    store.close().expect("closed");
    let options = Options::default();
    let (open_store, _) = open_store::open(directory.path(), &options).expect("opened");
    let (database, files) = (open_store.database.clone(), open_store.files.clone());
    let known = opening::known_segments(&*database).expect("read");
    let sealed: Vec<_> = known.into_values().collect();
    assert!(!sealed.is_empty());
    let mut retention = Retention::new(database.clone(), files, 0, sealed, u64::MAX);
    retention.timing = RetentionTiming {
        check_interval: Duration::ZERO,
        count_interval: Duration::ZERO,
        unchanged_for: Duration::ZERO,
    };
    // The rows before the damage are gone, so that it is looked at.
    let mut batch = database.batch(0);
    for number in 1..damaged[0].start {
        let number = SequenceNumber(number);
        batch.delete(
            Family::Message,
            journal::key::message(QUEUE, Part::Active, number),
        );
    }
    database.write(batch).expect("written");
    for _look in 0..4 {
        let settled = SettledRanges::default();
        assert_eq!(retention.collect(true, &settled), Ok(false));
        let moves = retention.remaining_bodies(&settled).expect("counted");
        assert!(moves.is_empty(), "what is damaged stays where it is");
    }
}

#[test]
fn messages_of_a_damaged_block_can_be_settled_and_moved_and_all_others_stay() {
    let (directory, table) = store_with_a_table();
    flip(&table, 20_000);
    let mut store = open(directory.path());
    let (found, damaged) = read_past_damage(&store);
    let (from, until) = (damaged[0].start, damaged[0].end);
    // One alone, neighbours, and a run that reaches over both ends of the damage.
    dead_letter(&mut store, [from + 1], 20);
    dead_letter(&mut store, from + 3..from + 6, 20);
    dead_letter(&mut store, from - 20..from, 20);
    dead_letter(&mut store, from + 10..until + 20, 20);
    settle(&mut store, [from + 2]);
    work(&mut store);
    store.close().expect("closed");
    let store = open(directory.path());
    let dead = range(QUEUE, Part::DeadLetter, 0, from);
    let dead = read(&store, CommitId(0), &dead);
    let expected: Vec<_> = (from - 20..from).collect();
    assert_eq!(conformance::numbers(&dead), expected);
    let whole = range(QUEUE, Part::DeadLetter, until, u64::MAX);
    let whole = read(&store, CommitId(0), &whole);
    let expected: Vec<_> = (until..until + 20).collect();
    assert_eq!(conformance::numbers(&whole), expected, "with their bodies");
    let lost = range(QUEUE, Part::DeadLetter, from, until);
    let refused = store.reader().read(CommitId(0), &lost);
    assert!(
        refused.is_err_and(|error| error.is_damage()),
        "those whose bodies are lost are told of"
    );
    let left = found.iter().filter(|number| **number <= MESSAGES);
    let left = left.filter(|number| !(from - 20..until + 20).contains(*number));
    let (still, _) = read_past_damage(&store);
    let still: Vec<_> = still.into_iter().filter(|it| *it <= MESSAGES).collect();
    assert_eq!(still, left.copied().collect::<Vec<_>>());
    assert_eq!(store.failure(), None);
}

#[test]
fn a_table_that_is_damaged_and_has_to_be_rewritten_fails_the_store() {
    let (directory, table) = store_with_a_table();
    flip(&table, 20_000);
    let mut store = open(directory.path());
    let database = &store.open_store.database;
    let all = (None::<&[u8]>, None::<&[u8]>);
    let messages = database.families().message;
    database.db.compact_range_cf(messages, all.0, all.1);
    let id = send(&mut store, [MESSAGES + 1], 20);
    store.unapplied.request_apply(id);
    assert!(store.progress.wait_until_applied(id).is_err());
    let failure = store.failure().expect("it failed").to_string();
    assert!(failure.contains(&table.display().to_string()), "{failure}");
}

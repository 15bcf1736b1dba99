//! Interrupted or damaged: a start tells what a power cut interrupted from what was damaged later.

use std::collections::BTreeSet;
use std::path::PathBuf;

use journal::file_system::os;
use journal::witness::Witness;
use store::StoreError;

use super::*;

/// The polynomial of CRC32C, reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;
const PAGE: usize = 4_096;
const HEADER: usize = 24;

fn segments(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join("journal")).expect("listed");
    let paths = entries.map(|entry| entry.expect("listed").path());
    let mut segments: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "journal"))
        .collect();
    segments.sort();
    segments
}

/// A copy of a store after a power cut, whose witness is an older one.
fn after_a_power_cut(store: &RocksStore, from: &Path, witnessed: u64) -> TempDir {
    let copy = new_directory();
    copy_at_rest(store, from, copy.path());
    drop(Witness::open(&os(), &copy.path().join("witness"), witnessed).expect("written"));
    copy
}

#[test]
fn a_damaged_body_before_a_later_segment_affects_its_message_only() {
    let directory = new_directory();
    let mut store = open(directory.path());
    // In two segments, and too few for the index to be made permanent.
    for number in 1..=5 {
        let id = send(&mut store, [number], 2 * MIB);
        store.progress.wait_for(id).expect("committed");
    }
    let whole = after_a_power_cut(&store, directory.path(), 1);
    drop(store);
    assert_eq!(segments(whole.path()).len(), 2);
    for number in 2..=4 {
        let copy = new_directory();
        copy_files(whole.path(), copy.path());
        let pointer = BodyPointer {
            home: QUEUE,
            number: SequenceNumber(number),
        };
        let body = body_of(pointer, 2 * MIB);
        let place = segments(copy.path()).into_iter().find_map(|path| {
            let content = fs::read(&path).expect("read");
            let mut pages = content.windows(64);
            pages
                .position(|bytes| bytes == &body[..64])
                .map(|at| (path, at))
        });
        let (path, at) = place.expect("it is in a segment");
        let mut content = fs::read(&path).expect("read");
        content[at + 1_000..at + 1_010].fill(0x5A);
        fs::write(&path, content).expect("written");
        let store = open(copy.path());
        for other in 1..=5 {
            let query = range(QUEUE, Part::Active, other, other + 1);
            let found = store.reader().read(CommitId(0), &query);
            if other == number {
                assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{number}");
            } else {
                assert_eq!(found.and_then(Found::into_messages).expect("read").len(), 1);
            }
        }
    }
}

/// A record in a segment: where it begins, and how long its writes are.
fn find_record(segment: &[u8], id: u64, position: u64) -> (usize, usize) {
    let is_record = |at: &usize| {
        let header = &segment[*at..*at + HEADER];
        header[16..] == position.to_be_bytes() && {
            let writes = writes_of(header);
            let stored = u32::from_be_bytes(header[..4].try_into().expect("four bytes"));
            at + HEADER + writes <= segment.len() && stored == checksum(segment, id, *at, writes)
        }
    };
    let at = (32..segment.len() - HEADER)
        .find(is_record)
        .expect("it is there");
    (at, writes_of(&segment[at..]))
}

fn writes_of(header: &[u8]) -> usize {
    let writes = u32::from_be_bytes(header[4..8].try_into().expect("four bytes"));
    (writes & 0x7FFF_FFFF) as usize
}

/// What the record at `at` should have as its checksum.
fn checksum(segment: &[u8], id: u64, at: usize, writes: usize) -> u32 {
    let covered = &segment[at + 4..at + HEADER + writes];
    crc32c::crc32c_append(crc32c::crc32c(&id.to_be_bytes()), covered)
}

/// How the checksum of `len` bytes changes if one bit of them changes.
fn one_bit_changes(len: usize) -> BTreeSet<u32> {
    let mut change = POLYNOMIAL;
    let mut changes = BTreeSet::new();
    for _bit in 0..len * 8 {
        changes.insert(change);
        let carry = if change & 1 == 1 { POLYNOMIAL } else { 0 };
        change = (change >> 1) ^ carry;
    }
    changes
}

#[test]
fn an_interrupted_record_is_cut_off_even_if_one_bit_would_explain_its_checksum() {
    let directory = new_directory();
    let mut store = open(directory.path());
    for numbers in [1..=1, 2..=2, 3..=1_500] {
        let id = send(&mut store, numbers, 10);
        store.progress.wait_for(id).expect("committed");
    }
    let copy = after_a_power_cut(&store, directory.path(), 2);
    let path = segments(copy.path()).remove(0);
    let id = u64::from_str_radix(&path.file_stem().expect("named").to_string_lossy(), 16);
    let id = id.expect("a number");
    let mut segment = fs::read(&path).expect("read");
    let (at, writes) = find_record(&segment, id, 3);
    assert!(writes > 4 * PAGE, "{writes} bytes of writes");
    // One page has what an earlier use of the file left, by chance with such a checksum.
    let page = (at + HEADER).next_multiple_of(PAGE) + PAGE;
    segment[page..page + PAGE].fill(0xA7);
    let stored = u32::from_be_bytes(segment[at..at + 4].try_into().expect("four bytes"));
    let changes = one_bit_changes(8 + HEADER - 4 + writes);
    let is_explained = |chance: u64| {
        segment[page..page + 8].copy_from_slice(&chance.to_be_bytes());
        changes.contains(&(stored ^ checksum(&segment, id, at, writes)))
    };
    assert!((0..1 << 20).any(is_explained), "such a page exists");
    fs::write(&path, segment).expect("written");
    assert_eq!(numbers_in(&open(copy.path())), [1, 2]);
}

#[test]
fn a_missing_current_file_is_refused() {
    let directory = new_directory();
    let mut store = open(directory.path());
    let id = send(&mut store, 1..=10, 10);
    store.progress.wait_for(id).expect("committed");
    store.close().expect("closed");
    fs::remove_file(directory.path().join("db/CURRENT")).expect("removed");
    let refused = try_open(directory.path(), Durability::Synced).err();
    assert!(
        matches!(&refused, Some(StoreError::Corrupt { detail, .. }) if detail.contains("CURRENT")),
        "{refused:?}"
    );
}

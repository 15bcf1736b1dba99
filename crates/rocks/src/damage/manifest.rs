//! Manifest: a check of the file in which RocksDB lists its tables, before RocksDB reads it.
//!
//! RocksDB takes some flipped bits there for a write that a crash interrupted, and loops without an
//! end at others. The file is a log: blocks of 32 KiB with records, each with a checksum of its
//! kind and its bytes, but not of its length. A record whose end is missing at the end of the file
//! is allowed, unless a shorter length makes its checksum right: then the length is damaged.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use store::StoreError;

use journal::directory::{Layout, io_error};
use journal::value::damaged;

const BLOCK: usize = 32 << 10;
/// Checksum 4, length 2, kind 1; little-endian.
const HEADER: usize = 7;
/// A record in one piece, or its first, a further or its last piece.
const KINDS: std::ops::RangeInclusive<u8> = 1..=4;
/// What RocksDB adds to a checksum that it stores.
const MASK_DELTA: u32 = 0xA282_EAD8;

/// Checks the manifest of the database of a store. Without one the store has to be new.
pub(crate) fn check(layout: &Layout) -> Result<(), StoreError> {
    let folder = &layout.database();
    let current = folder.join("CURRENT");
    let name = match fs::read(&current) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let listing = |error| io_error("listing", layout.root(), &error);
            return match first_content(layout).map_err(listing)? {
                None => Ok(()),
                Some(path) => {
                    let detail = format!("it is not there, but {} is", path.display());
                    Err(unusable(&current, &detail))
                }
            };
        }
        read => read.map_err(|error| io_error("reading", &current, &error))?,
    };
    let path = manifest_path(folder, &name)
        .ok_or_else(|| unusable(&current, "it does not name a manifest"))?;
    let content = match fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let detail = format!("it names {}, which is not there", path.display());
            return Err(unusable(&current, &detail));
        }
        read => read.map_err(|error: io::Error| io_error("reading", &path, &error))?,
    };
    match first_damage(&content) {
        None => Ok(()),
        Some(at) => Err(unusable(&path, &format!("the record at byte {at}"))),
    }
}

/// A file that only a store has that had been opened to its end. RocksDB makes its manifest before
/// the file that names it, so a crash can leave that alone.
fn first_content(layout: &Layout) -> io::Result<Option<PathBuf>> {
    if layout.witness().exists() {
        return Ok(Some(layout.witness()));
    }
    for folder in [layout.journal(), layout.database()] {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            let kind = path.extension().and_then(|kind| kind.to_str());
            if kind.is_some_and(|kind| ["journal", "body", "sst", "log"].contains(&kind)) {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

fn unusable(path: &Path, detail: &str) -> StoreError {
    let detail = format!("{}: {detail}. Restore a backup", path.display());
    damaged("the list of tables", detail)
}

fn manifest_path(folder: &Path, name: &[u8]) -> Option<PathBuf> {
    let name = std::str::from_utf8(name).ok()?.strip_suffix('\n')?;
    let number = name.strip_prefix("MANIFEST-")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| folder.join(name))
}

/// Where the first damaged record begins.
fn first_damage(content: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < content.len() {
        let left = &content[at..];
        if left.iter().all(|byte| *byte == 0) {
            // Space that was taken for more, and not written to.
            return None;
        }
        let in_block = BLOCK - at % BLOCK;
        if in_block < HEADER {
            if left[..in_block.min(left.len())]
                .iter()
                .any(|byte| *byte != 0)
            {
                return Some(at);
            }
            at += in_block;
            continue;
        }
        let Some((header, rest)) = left.split_first_chunk::<HEADER>() else {
            // A header that was not written to its end.
            return None;
        };
        let room = &rest[..rest.len().min(in_block - HEADER)];
        match check_record(*header, room) {
            Record::Whole(len) => at += HEADER + len,
            Record::Interrupted if rest.len() < in_block - HEADER => return None,
            Record::Interrupted | Record::Damaged => return Some(at),
        }
    }
    None
}

enum Record {
    /// The number of bytes behind its header.
    Whole(usize),
    /// It is longer than what is left.
    Interrupted,
    Damaged,
}

/// Checks a record that has at most `room` behind its header.
fn check_record(header: [u8; HEADER], room: &[u8]) -> Record {
    let [c0, c1, c2, c3, l0, l1, kind] = header;
    let stored = u32::from_le_bytes([c0, c1, c2, c3]);
    let len = usize::from(u16::from_le_bytes([l0, l1]));
    if let Some(bytes) = room.get(..len) {
        let found = masked(crc32c::crc32c_append(crc32c::crc32c(&[kind]), bytes));
        return if found == stored && KINDS.contains(&kind) {
            Record::Whole(len)
        } else {
            Record::Damaged
        };
    }
    let mut crc = crc32c::crc32c(&[kind]);
    for byte in room {
        crc = crc32c::crc32c_append(crc, &[*byte]);
        if masked(crc) == stored {
            return Record::Damaged;
        }
    }
    Record::Interrupted
}

fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, bytes: &[u8]) -> Vec<u8> {
        let crc = masked(crc32c::crc32c_append(crc32c::crc32c(&[kind]), bytes));
        let len = u16::try_from(bytes.len()).expect("short");
        let mut record = crc.to_le_bytes().to_vec();
        record.extend_from_slice(&len.to_le_bytes());
        record.push(kind);
        record.extend_from_slice(bytes);
        record
    }

    fn sample() -> Vec<u8> {
        [
            record(1, b"first"),
            record(1, &[7; 300]),
            record(1, b"the last one"),
        ]
        .concat()
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let whole = sample();
        assert_eq!(first_damage(&whole), None);
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(first_damage(&flipped).is_some(), "bit {bit}");
        }
    }

    #[test]
    fn an_end_that_was_not_written_is_allowed() {
        let whole = sample();
        for len in 0..whole.len() {
            assert_eq!(first_damage(&whole[..len]), None, "{len}");
        }
        let taken = [&whole[..], &[0; 100]].concat();
        assert_eq!(first_damage(&taken), None);
    }

    #[test]
    fn records_that_cross_a_block_are_read() {
        let mut content = record(1, &vec![3; BLOCK - HEADER - HEADER - 10]);
        content.extend(record(2, b"0123456789"));
        assert_eq!(content.len(), BLOCK);
        content.extend(record(4, b"and the rest"));
        content.extend(record(1, &vec![4; BLOCK - HEADER - 12 - HEADER - 3]));
        assert_eq!(content.len(), 2 * BLOCK - 3);
        content.extend([0; 3]);
        content.extend(record(1, b"next"));
        assert_eq!(first_damage(&content), None);
        content[2 * BLOCK - 2] = 1;
        assert_eq!(first_damage(&content), Some(2 * BLOCK - 3));
    }

    #[test]
    fn a_current_file_that_names_nothing_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(directory.path());
        let folder = layout.database();
        fs::create_dir(&folder).expect("made");
        assert_eq!(check(&layout), Ok(()));
        for name in [
            "MANIFEST-000005",
            "MANIFEST-\n",
            "LANIFEST-000005\n",
            "MANIFEST-000005\n",
        ] {
            fs::write(folder.join("CURRENT"), name).expect("written");
            assert!(check(&layout).is_err(), "{name:?}");
        }
        fs::write(folder.join("MANIFEST-000005"), sample()).expect("written");
        assert_eq!(check(&layout), Ok(()));
    }

    #[test]
    fn a_store_without_a_current_file_has_to_be_new() {
        let directory = tempfile::tempdir().expect("a directory");
        let layout = Layout::new(directory.path());
        for folder in [layout.database(), layout.journal()] {
            fs::create_dir(folder).expect("made");
        }
        // As a crash leaves it that interrupted the first start.
        fs::write(layout.database().join("MANIFEST-000001"), sample()).expect("written");
        assert_eq!(check(&layout), Ok(()));
        for path in [
            layout.witness(),
            layout.database().join("000008.sst"),
            layout.database().join("000009.log"),
            layout.journal().join("0000000000000001.journal"),
        ] {
            fs::write(&path, "something").expect("written");
            let refused = check(&layout).expect_err("it is not new").to_string();
            assert!(refused.contains(&path.display().to_string()), "{refused}");
            fs::remove_file(&path).expect("removed");
        }
        assert_eq!(check(&layout), Ok(()));
    }
}

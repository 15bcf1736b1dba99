//! The file of a namespace's backup: a line that says what it is, then records.
//!
//! A record is the length of its content, its kind, its content and a checksum of all of them and
//! of its place among the records; so a record that is damaged, missing, or in another's place is
//! found. The last record counts the others: a file that was cut short has none.

#![allow(missing_docs, reason = "the texts say it")]

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use bytes::Bytes;

use super::codec::Record;

/// The first line, up to the number of the format.
const TITLE: &[u8] = b"railbus backup of a namespace ";
const FORMAT: &[u8] = b"1\n";
/// Length 4, kind 1; little-endian.
const HEADER: usize = 5;
const CHECKSUM: usize = 4;
/// More than any record has: the largest messages have 100 MiB.
const MAX_RECORD: u32 = 256 << 20;

/// Why a file is no backup, or cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("the file is not a backup of a namespace")]
    NoBackup,
    #[error("this backup was made by a newer version of this program")]
    Newer,
    #[error("the backup is damaged before byte {0}")]
    Damaged(u64),
    #[error("the backup is not complete: it ends after {0} bytes")]
    CutShort(u64),
    #[error("the backup cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

/// Writes a new file.
pub struct FileWriter {
    file: BufWriter<File>,
    records: u64,
    bytes: u64,
}

impl FileWriter {
    /// Makes the file, over what an interrupted backup has left there.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(TITLE)?;
        file.write_all(FORMAT)?;
        Ok(Self {
            file,
            records: 0,
            bytes: (TITLE.len() + FORMAT.len()) as u64,
        })
    }

    pub fn write(&mut self, record: &Record) -> Result<(), FileError> {
        let (kind, content) = record.encode();
        let length = u32::try_from(content.len()).ok();
        let length = length.filter(|length| *length <= MAX_RECORD);
        let length = length.ok_or_else(too_large)?;
        let header = header_of(length, kind);
        self.file.write_all(&header)?;
        self.file.write_all(&content)?;
        let checksum = checksum_of(self.records, &header, &content);
        self.file.write_all(&checksum.to_le_bytes())?;
        self.records += 1;
        self.bytes += (HEADER + content.len() + CHECKSUM) as u64;
        Ok(())
    }

    /// Writes the last record and puts all of it on stable storage. Returns the bytes.
    pub fn finish(mut self) -> Result<u64, FileError> {
        self.write(&Record::End {
            records: self.records,
        })?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(self.bytes)
    }
}

/// Reads a file from its beginning.
pub struct FileReader {
    file: BufReader<File>,
    records: u64,
    at: u64,
    length: u64,
}

impl FileReader {
    pub fn open(path: &Path) -> Result<Self, FileError> {
        // Asked first, since opening a pipe waits for its writer.
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(FileError::NoBackup);
        }
        let file = File::open(path)?;
        let mut reader = Self {
            file: BufReader::new(file),
            records: 0,
            at: 0,
            length: metadata.len(),
        };
        let mut title = [0; TITLE.len()];
        let mut format = [0; FORMAT.len()];
        let read = reader.file.read_exact(&mut title);
        if no_end(read)?.is_none() || title != TITLE {
            return Err(FileError::NoBackup);
        }
        let read = reader.file.read_exact(&mut format);
        if no_end(read)?.is_none() {
            return Err(FileError::CutShort(reader.length));
        }
        if format != FORMAT {
            return Err(FileError::Newer);
        }
        reader.at = (TITLE.len() + FORMAT.len()) as u64;
        Ok(reader)
    }

    /// The next record; the last one is [`Record::End`].
    pub fn next(&mut self) -> Result<Record, FileError> {
        let mut header = [0; HEADER];
        self.read(&mut header)?;
        let [l0, l1, l2, l3, kind] = header;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if u64::from(length) > self.length.saturating_sub(self.at) {
            // Its length is damaged, or the file is cut: there is no telling.
            return Err(FileError::CutShort(self.length));
        }
        if length > MAX_RECORD {
            return Err(FileError::Damaged(self.at));
        }
        let mut content = vec![0; usize::try_from(length).map_err(|_| too_large())?];
        self.read(&mut content)?;
        let mut checksum = [0; CHECKSUM];
        self.read(&mut checksum)?;
        if checksum_of(self.records, &header, &content) != u32::from_le_bytes(checksum) {
            return Err(FileError::Damaged(self.at));
        }
        let record = Record::decode(kind, Bytes::from(content));
        let record = record.ok_or(FileError::Damaged(self.at))?;
        if let Record::End { records } = record
            && (records != self.records || self.at != self.length)
        {
            return Err(FileError::Damaged(self.at));
        }
        self.records += 1;
        Ok(record)
    }

    fn read(&mut self, to: &mut [u8]) -> Result<(), FileError> {
        let read = self.file.read_exact(to);
        no_end(read)?.ok_or(FileError::CutShort(self.length))?;
        self.at += to.len() as u64;
        Ok(())
    }
}

/// Reads a file to its end.
///
/// # Errors
/// When it is no whole backup.
pub fn check(path: &Path) -> Result<(), FileError> {
    let mut file = FileReader::open(path)?;
    while !matches!(file.next()?, Record::End { .. }) {}
    Ok(())
}

/// `None` if the file has ended.
fn no_end(read: io::Result<()>) -> Result<Option<()>, FileError> {
    match read {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn header_of(length: u32, kind: u8) -> [u8; HEADER] {
    let [l0, l1, l2, l3] = length.to_le_bytes();
    [l0, l1, l2, l3, kind]
}

fn checksum_of(place: u64, header: &[u8], content: &[u8]) -> u32 {
    let checksum = crc32c::crc32c(&place.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(checksum, header), content)
}

fn too_large() -> FileError {
    FileError::Io(ErrorKind::FileTooLarge.into())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use store::{Entry, EntryKey, Index, SequenceNumber};

    use super::super::codec;
    use super::*;

    fn entry(number: u64) -> Record {
        Record::Entry {
            entity: 0,
            index: Index::SessionState,
            entry: Entry {
                key: EntryKey::new(&b"one"[..], SequenceNumber(number)),
                value: Bytes::from_static(b"a state"),
            },
        }
    }

    fn path(name: &str) -> PathBuf {
        let name = format!("railbus-{}-{name}", std::process::id());
        std::env::temp_dir().join(name)
    }

    /// A file with two entries and the last record.
    fn sample(path: &Path) -> Vec<u8> {
        written(path, &[entry(1), entry(2)])
    }

    /// A file with these records and the last one.
    fn written(path: &Path, records: &[Record]) -> Vec<u8> {
        let mut file = FileWriter::create(path).expect("it is made");
        for record in records {
            file.write(record).expect("it is written");
        }
        let bytes = file.finish().expect("it is written");
        let content = fs::read(path).expect("it is there");
        assert_eq!(content.len() as u64, bytes);
        content
    }

    fn checked(path: &Path, content: &[u8]) -> Result<(), FileError> {
        fs::write(path, content).expect("it is written");
        check(path)
    }

    #[test]
    fn what_was_written_is_read() {
        let path = path("read");
        sample(&path);
        let mut file = FileReader::open(&path).expect("it is a backup");
        assert_eq!(file.next().expect("a record"), entry(1));
        assert_eq!(file.next().expect("a record"), entry(2));
        assert_eq!(file.next().expect("a record"), Record::End { records: 2 });
        fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn every_flipped_bit_and_every_missing_end_is_found() {
        let path = path("damage");
        // All but the last, which the file has itself.
        let records = codec::sample();
        let whole = written(&path, &records[..records.len() - 1]);
        checked(&path, &whole).expect("it is whole");
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(checked(&path, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..whole.len() {
            assert!(checked(&path, &whole[..length]).is_err(), "{length}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert!(checked(&path, &longer).is_err(), "it has more");
        fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn a_length_that_no_record_has_is_found_before_it_is_read() {
        let path = path("length");
        let whole = sample(&path);
        let at = TITLE.len() + FORMAT.len();
        for length in [u32::MAX, MAX_RECORD + 1, MAX_RECORD] {
            let mut hostile = whole.clone();
            hostile[at..at + 4].copy_from_slice(&length.to_le_bytes());
            let found = checked(&path, &hostile);
            assert!(matches!(found, Err(FileError::CutShort(_))), "{found:?}");
        }
        // A file with holes is long enough for it.
        let mut hostile = whole.clone();
        hostile[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        fs::write(&path, hostile).expect("it is written");
        let file = File::options().write(true).open(&path);
        let grown = file.and_then(|file| file.set_len(5 << 30));
        grown.expect("it is grown");
        let found = check(&path);
        assert!(matches!(found, Err(FileError::Damaged(_))), "{found:?}");
        fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn records_in_another_order_are_found() {
        let path = path("order");
        let whole = sample(&path);
        let title = TITLE.len() + FORMAT.len();
        // The two entries are of one length; the last record has a number.
        let entry = (whole.len() - title - HEADER - 8 - CHECKSUM) / 2;
        let (first, second) = whole[title..title + 2 * entry].split_at(entry);
        let end = &whole[title + 2 * entry..];
        let swapped = [&whole[..title], second, first, end].concat();
        assert_eq!(swapped.len(), whole.len());
        let found = checked(&path, &swapped);
        assert!(matches!(found, Err(FileError::Damaged(_))), "{found:?}");
        let lacking = [&whole[..title], first, end].concat();
        let found = checked(&path, &lacking);
        assert!(matches!(found, Err(FileError::Damaged(_))), "{found:?}");
        fs::remove_file(path).expect("it is there");
    }
}

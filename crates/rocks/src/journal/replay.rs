//! Replay: reads the groups from the journal that the index did not get before the process ended.
//!
//! Positions of records follow each other without a gap, across segments too. A segment ends at
//! the first bytes that are no record; a record that a power cut interrupted is such bytes. The
//! witness, not this module, decides whether the end that was found is the right one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use store::{BodyPointer, StoreError, WriteSet};

use super::Moves;
use super::codec::{self, Decoded, RecordedBody};
use super::files::Files;
use super::journal_location;
use super::record::{FIRST, HEADER, Header, MOST_WRITES, segment_header};
use super::segment::SealedSegment;
use crate::directory::io_error;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct ReplayedJournal {
    /// Of the last record.
    pub position: u64,
    /// The segments that had to be read and have something in them.
    pub sealed: Vec<SealedSegment>,
    /// Those without a record that counts.
    pub useless: Vec<u64>,
    /// The files of staged bodies that the records name which were read.
    pub staged: BTreeMap<u64, SealedSegment>,
    /// The files of staged bodies that no record names and the index does not know.
    pub unnamed: Vec<u64>,
    /// Segments that could have had more in them than was found, by where that would begin: they
    /// end before what the index has for good, and no other goes on there.
    pub doubtful: BTreeMap<u64, u64>,
    /// The least id for a new segment.
    pub next_id: u64,
}

impl ReplayedJournal {
    /// Keeps a segment that could not be read to its end for a body that should be in it.
    pub fn keep_for(&mut self, segment: u64, pointer: BodyPointer) {
        self.useless.retain(|id| *id != segment);
        self.unnamed.retain(|id| *id != segment);
        let known = self.sealed.iter().position(|sealed| sealed.id == segment);
        let known = known.unwrap_or_else(|| {
            self.sealed.push(SealedSegment::empty(segment));
            self.sealed.len() - 1
        });
        self.sealed[known].body_ranges.add(pointer);
    }

    /// A staged body is durable before the record that names it, so nothing is verified here.
    fn name_staged(&mut self, position: u64, recorded: &RecordedBody) {
        let RecordedBody { pointer, location } = recorded;
        let file = self.staged.entry(location.segment);
        let file = file.or_insert_with(|| SealedSegment::empty(location.segment));
        file.position = position;
        file.bytes = location.end();
        file.body_ranges.add(*pointer);
    }
}

/// Where to begin.
pub(crate) struct ReplayStart<'a> {
    /// The index has everything up to this position for good.
    pub position: u64,
    /// Segments of which the index knows what is in them: nothing that it does not have.
    pub known: &'a BTreeSet<u64>,
    /// Up to here records were acknowledged, so they were whole. If a body in one is damaged now,
    /// that is found when it is read; it does not end the journal.
    pub witnessed: u64,
}

/// Reads the segments of `files` and hands on each record that the index does not have.
pub(crate) fn replay(
    files: &Files,
    from: &ReplayStart<'_>,
    mut apply: impl FnMut(u64, WriteSet, Moves) -> Result<(), StoreError>,
) -> Result<ReplayedJournal, StoreError> {
    let mut recovered = ReplayedJournal {
        position: from.position,
        next_id: files.next_id(from.known)?,
        ..ReplayedJournal::default()
    };
    // Where the segment before ends, if that is known.
    let mut before: Option<(u64, u64, u64)> = None;
    let listing = |error| io_error("listing", &files.path(0), &error);
    for id in files.segments().map_err(listing)? {
        if from.known.contains(&id) {
            continue;
        }
        let reading = |error| io_error("reading", &files.path(id), &error);
        let Some(file) = files.whole(id).map_err(reading)? else {
            continue;
        };
        let mut segment = Segment::open(id, &file).map_err(reading)?;
        let mut first = None;
        while let Some(record) = segment.next(from.witnessed).map_err(reading)? {
            if record.position > recovered.position {
                if record.position != recovered.position + 1 {
                    break;
                }
                recovered.position = record.position;
                apply(record.position, record.said.set, record.said.moves)?;
            }
            for recorded in &record.said.staged {
                recovered.name_staged(record.position, recorded);
            }
            first.get_or_insert(record.position);
            segment.sealed.position = record.position;
            segment.sealed.bytes = segment.offset;
            for recorded in record.said.bodies {
                segment.sealed.body_ranges.add(recorded.pointer);
            }
        }
        // Read from memory it may be, and what comes behind it must not outlive it.
        file.sync_data().map_err(reading)?;
        let end = (id, segment.sealed.position, segment.offset);
        if let Some((id, position, offset)) = before.replace(end)
            && first != Some(position + 1)
        {
            recovered.doubtful.insert(id, offset);
        }
        if segment.sealed.position == 0 {
            recovered.useless.push(id);
        } else {
            recovered.sealed.push(segment.sealed);
        }
    }
    if let Some((id, position, offset)) = before
        && position < from.position
    {
        recovered.doubtful.insert(id, offset);
    }
    recovered.unnamed = files.staged().map_err(listing)?;
    let is_named = |id: &u64| from.known.contains(id) || recovered.staged.contains_key(id);
    recovered.unnamed.retain(|id| !is_named(id));
    Ok(recovered)
}

/// A segment that is being read.
struct Segment<'a> {
    file: &'a File,
    len: u64,
    /// Of the next record.
    offset: u64,
    sealed: SealedSegment,
}

struct ReplayedRecord {
    position: u64,
    said: Decoded,
}

impl<'a> Segment<'a> {
    fn open(id: u64, file: &'a File) -> io::Result<Self> {
        let mut header = [0; FIRST as usize];
        let is_ours = match file.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
            read => read.map(|()| header == segment_header(id))?,
        };
        let len = if is_ours { file.metadata()?.len() } else { 0 };
        Ok(Self {
            file,
            len,
            offset: FIRST,
            sealed: SealedSegment::empty(id),
        })
    }

    /// The next record, if there is one that is whole.
    fn next(&mut self, witnessed: u64) -> io::Result<Option<ReplayedRecord>> {
        let Some(header) = self.header()? else {
            return Ok(None);
        };
        let mut writes = vec![0; header.writes as usize];
        self.file
            .read_exact_at(&mut writes, self.offset + HEADER as u64)?;
        if !header.matches(self.sealed.id, &writes) {
            return Ok(None);
        }
        let bodies_at = self.offset + HEADER as u64 + u64::from(header.writes);
        let Some(said) = codec::decode(&writes, self.sealed.id, bodies_at) else {
            return Ok(None);
        };
        if header.position > witnessed && !self.are_whole(&said.bodies)? {
            return Ok(None);
        }
        self.offset += header.len();
        let position = header.position;
        Ok(Some(ReplayedRecord { position, said }))
    }

    /// The header of a record that could be in the file.
    fn header(&self) -> io::Result<Option<Header>> {
        let mut header = [0; HEADER];
        if self.len.saturating_sub(self.offset) < HEADER as u64 {
            return Ok(None);
        }
        self.file.read_exact_at(&mut header, self.offset)?;
        let left = self.len - self.offset;
        Ok(Header::parse(&header)
            .filter(|header| header.writes <= MOST_WRITES && header.len() <= left))
    }

    fn are_whole(&self, bodies: &[RecordedBody]) -> io::Result<bool> {
        let mut bytes = Vec::new();
        for RecordedBody { pointer, location } in bodies {
            if location.end() > self.len {
                return Ok(false);
            }
            bytes.resize(location.len as usize, 0);
            self.file.read_exact_at(&mut bytes, location.offset)?;
            if journal_location::checksum(*pointer, &bytes) != location.checksum {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

//! Segment reader: the records of one segment, one after the other.
//!
//! A segment is read up to the first bytes that are no record. They are the end, or a record that a
//! power cut interrupted, or damage. [`look_ahead`](SegmentReader::look_ahead) tells damage by the
//! records behind it, and [`is_damaged_record`](SegmentReader::is_damaged_record) by its size.
//!
//! The start of a segment is written for a look at the files; nothing depends on it, since the
//! checksum of each record covers the id that the file is named for.

use std::io;
use std::ops::Range;

use crate::bit_error::{WrongBit, wrong_bit};
use crate::codec::{self, Decoded, RecordedBody};
use crate::file_system::File;
use crate::journal_location::{self, JournalLocation};
use crate::record::{FIRST, HEADER, Header, MOST_WRITES};
use crate::segment::SealedSegment;
use crate::staged::STAGED_FROM;

/// Writes up to this size are looked at bit by bit, which is more than a group has. Bodies have no
/// contents that could be looked at: in larger ones one bit explains too many differences.
const MOST_WRITES_LOOKED_AT: usize = 16 << 20;
const MOST_BODY_LOOKED_AT: usize = STAGED_FROM;
/// The least that a disk writes whole or not at all, in bytes.
const SECTOR: u64 = 512;
/// What the checksum of a record covers besides its writes: the id, and a header without checksum.
const COVERED: usize = ID + HEADER - 4;
const ID: usize = 8;

/// A segment that is being read.
pub(crate) struct SegmentReader<'a> {
    file: &'a dyn File,
    len: u64,
    /// Of the next record.
    pub offset: u64,
    pub sealed: SealedSegment,
    /// The position of the first record of the next segment, if that says that everything before
    /// it was synced.
    pub synced_next: Option<u64>,
}

/// A record whose checksum is right.
pub(crate) struct ReadRecord {
    pub offset: u64,
    pub position: u64,
    pub follows_synced: bool,
    pub said: Decoded,
    /// With its header.
    len: u64,
}

impl<'a> SegmentReader<'a> {
    pub fn open(id: u64, file: &'a dyn File) -> io::Result<Self> {
        Ok(Self {
            file,
            len: file.len()?,
            offset: FIRST,
            sealed: SealedSegment::empty(id),
            synced_next: None,
        })
    }

    /// The position of the first record, if that says that everything before it was synced.
    pub fn synced_first(&self) -> io::Result<Option<u64>> {
        let first = self.record_at(FIRST)?;
        let first = first.filter(|record| record.follows_synced);
        Ok(first.map(|record| record.position))
    }

    /// The next record, if there is one that is whole. A body of a record up to `witnessed` was
    /// whole; if it is damaged now, that is found when it is read.
    pub fn next(&mut self, witnessed: u64) -> io::Result<Option<ReadRecord>> {
        let Some(record) = self.record_at(self.offset)? else {
            return Ok(None);
        };
        if record.position > witnessed
            && !self.are_whole(&record.said.bodies)?
            && !self.is_followed(&record)?
        {
            return Ok(None);
        }
        self.offset += record.len;
        Ok(Some(record))
    }

    /// Goes back to before `record`, which was read last.
    pub fn put_back(&mut self, record: &ReadRecord) {
        self.offset = record.offset;
    }

    /// Goes on behind a record that cannot be read, if the index has it, up to `applied`. Returns
    /// whether there is another record there.
    pub fn skip_applied(&mut self, applied: u64) -> io::Result<bool> {
        let Some(record) = self.behind_damaged()? else {
            return Ok(false);
        };
        let damaged = record.position.saturating_sub(1);
        if damaged > applied {
            return Ok(false);
        }
        self.offset = record.offset;
        self.sealed.position = damaged;
        Ok(true)
    }

    /// Whether the next record was written after `record` had been synced.
    fn is_followed(&self, record: &ReadRecord) -> io::Result<bool> {
        let expected = record.position + 1;
        let next = self.record_at(self.offset + record.len)?;
        let is_next = next.is_some_and(|next| next.follows_synced && next.position == expected);
        Ok(is_next || self.synced_next == Some(expected))
    }

    /// The record at `offset`, if its checksum is right.
    fn record_at(&self, offset: u64) -> io::Result<Option<ReadRecord>> {
        let Some(header) = self.header(offset)? else {
            return Ok(None);
        };
        let left = self.len - offset;
        if header.writes > MOST_WRITES || header.len() > left {
            return Ok(None);
        }
        let writes = self.writes(offset, &header)?;
        if !header.matches(self.sealed.id, &writes) {
            return Ok(None);
        }
        let bodies_at = offset + HEADER as u64 + u64::from(header.writes);
        let said = codec::decode(&writes, self.sealed.id, bodies_at);
        Ok(said.map(|said| ReadRecord {
            offset,
            position: header.position,
            follows_synced: header.follows_synced,
            said,
            len: header.len(),
        }))
    }

    /// What would be a header at `offset`.
    fn header(&self, offset: u64) -> io::Result<Option<Header>> {
        let mut header = [0; HEADER];
        if self.len.saturating_sub(offset) < HEADER as u64 {
            return Ok(None);
        }
        self.file.read_exact_at(&mut header, offset)?;
        Ok(Header::parse(&header))
    }

    fn writes(&self, offset: u64, header: &Header) -> io::Result<Vec<u8>> {
        let mut writes = vec![0; header.writes as usize];
        self.file
            .read_exact_at(&mut writes, offset + HEADER as u64)?;
        Ok(writes)
    }

    /// Whether all bodies are there, but for a flipped bit, which is found when they are read.
    fn are_whole(&self, bodies: &[RecordedBody]) -> io::Result<bool> {
        self.are_bodies(bodies, |location, found| {
            let len = location.len as usize;
            if len > MOST_BODY_LOOKED_AT {
                return Ok(false);
            }
            match wrong_bit(location.checksum, found, len) {
                None => Ok(false),
                Some(WrongBit::OfChecksum) => Ok(true),
                Some(WrongBit::OfByte(byte, _)) => {
                    let at = location.offset + byte as u64;
                    Ok(!self.is_unwritten(at, location.offset..location.end())?)
                }
            }
        })
    }

    /// Whether all bodies have their checksums, or one that is accepted: it is told where the body
    /// should be and the checksum that was found there.
    fn are_bodies(
        &self,
        bodies: &[RecordedBody],
        is_accepted: impl Fn(&JournalLocation, u32) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let mut bytes = Vec::new();
        for RecordedBody { pointer, location } in bodies {
            if location.end() > self.len {
                return Ok(false);
            }
            bytes.resize(location.len as usize, 0);
            self.file.read_exact_at(&mut bytes, location.offset)?;
            let found = journal_location::checksum(*pointer, &bytes);
            if found != location.checksum && !is_accepted(location, found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The records behind the end that was found. `position` is that of the last record that
    /// counts; some that are found may come before it.
    ///
    /// Only places are looked at where the journal itself would have put a record: the start of the
    /// segment, and behind the next record, of which one bit may be wrong. The bytes elsewhere may
    /// be an earlier use's bodies, which clients chose.
    pub fn look_ahead(&self, position: u64) -> io::Result<Vec<ReadRecord>> {
        let mut found = Vec::new();
        let mut next = match self.record_at(self.offset)? {
            Some(record) if self.offset == FIRST && record.position > position => Some(record),
            _ => self.behind_damaged()?,
        };
        while let Some(record) = next {
            let after = self.record_at(record.offset + record.len)?;
            next = after.filter(|after| after.position == record.position + 1);
            found.push(record);
        }
        Ok(found)
    }

    /// The position of the record that would be next here, if one was read before it. The index
    /// may be further: what it has can be damaged in front of what it does not have.
    pub fn expected(&self) -> Option<u64> {
        (self.offset != FIRST).then_some(self.sealed.position + 1)
    }

    /// The record behind the one that begins where the end was found and has one wrong bit in its
    /// header, or any damage behind that.
    fn behind_damaged(&self) -> io::Result<Option<ReadRecord>> {
        let Some(header) = self.header(self.offset)? else {
            return Ok(None);
        };
        let expected = self.expected();
        let is_off = |position: u64| (header.position ^ position).count_ones() > 1;
        // Behind the start of a segment are zeros, as long as it has no record.
        let is_empty = header.position == 0 && header.checksum == 0;
        if expected.map_or(is_empty, is_off) {
            return Ok(None);
        }
        let writes = (0..32).map(|bit| Header {
            writes: header.writes ^ (1 << bit),
            ..header
        });
        let bodies = (0..64).map(|bit| Header {
            bodies: header.bodies ^ (1 << bit),
            ..header
        });
        for candidate in std::iter::once(header).chain(writes).chain(bodies) {
            let Some(offset) = self.offset.checked_add(candidate.len()) else {
                continue;
            };
            let record = self.record_at(offset)?;
            let is_next = |record: &ReadRecord| {
                let before = record.position.saturating_sub(1);
                expected.map_or(!is_off(before), |expected| expected == before)
            };
            if let Some(record) = record.filter(is_next) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Whether a record `position` was written where the end was found, and one of its bits was
    /// flipped. With that bit put right it says what can be said, and its bodies are there.
    pub fn is_damaged_record(&self, position: u64) -> io::Result<bool> {
        let Some(header) = self.header(self.offset)? else {
            return Ok(false);
        };
        // The end of a segment is followed by zeros, or by what another use of the file left.
        let is_empty = header.position == 0 && header.checksum == 0;
        if is_empty || (header.position ^ position).count_ones() > 1 {
            return Ok(false);
        }
        // A wrong length hides the rest.
        let lengths = (0..32).map(|bit| header.writes ^ (1 << bit));
        for writes in std::iter::once(header.writes).chain(lengths) {
            let end = self.offset + HEADER as u64 + u64::from(writes);
            if writes as usize > MOST_WRITES_LOOKED_AT || end > self.len {
                continue;
            }
            let candidate = Header { writes, ..header };
            let bytes = self.writes(self.offset, &candidate)?;
            let found = candidate.expected(self.sealed.id, &bytes);
            let repaired = if writes == header.writes {
                let wrong = wrong_bit(header.checksum, found, COVERED + bytes.len());
                let is_damage = self.is_damage(wrong, end)?;
                wrong
                    .filter(|_| is_damage)
                    .and_then(|wrong| repaired(candidate, bytes, wrong))
            } else {
                (found == header.checksum).then_some((candidate, bytes))
            };
            if let Some((header, writes)) = repaired
                && header.position == position
                && self.is_sound(&header, &writes)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a record at the end that was found says what a record can say, and has its bodies.
    fn is_sound(&self, header: &Header, writes: &[u8]) -> io::Result<bool> {
        let bodies_at = self.offset + (HEADER + writes.len()) as u64;
        let Some(said) = codec::decode(writes, self.sealed.id, bodies_at) else {
            return Ok(false);
        };
        let bodies: u64 = said
            .bodies
            .iter()
            .map(|body| u64::from(body.location.len))
            .sum();
        Ok(bodies == header.bodies && self.are_bodies(&said.bodies, |_, _| Ok(false))?)
    }

    /// Whether a bit error in the record that ends at `end` is one, and not the only bit of a
    /// sector that was not written.
    fn is_damage(&self, wrong: Option<WrongBit>, end: u64) -> io::Result<bool> {
        let byte = match wrong {
            None => return Ok(false),
            Some(WrongBit::OfChecksum) => return Ok(true),
            Some(WrongBit::OfByte(byte, _)) => byte,
        };
        // The id of the segment is covered too, and stands nowhere.
        let Some(behind_checksum) = byte.checked_sub(ID) else {
            return Ok(false);
        };
        let at = self.offset + 4 + behind_checksum as u64;
        Ok(!self.is_unwritten(at, self.offset..end)?)
    }

    /// Whether the sector of the byte `at` has nothing but zeros in `range`.
    fn is_unwritten(&self, at: u64, range: Range<u64>) -> io::Result<bool> {
        let begin = (at / SECTOR * SECTOR).max(range.start);
        let end = (at / SECTOR * SECTOR + SECTOR).min(range.end);
        let mut bytes = vec![0; usize::try_from(end - begin).unwrap_or_default()];
        self.file.read_exact_at(&mut bytes, begin)?;
        Ok(bytes.iter().all(|byte| *byte == 0))
    }
}

/// A record with the one wrong bit of its header or its writes put right.
fn repaired(header: Header, mut writes: Vec<u8>, wrong: WrongBit) -> Option<(Header, Vec<u8>)> {
    let WrongBit::OfByte(byte, bit) = wrong else {
        return Some((header, writes));
    };
    if let Some(at) = byte.checked_sub(COVERED) {
        writes[at] ^= 1 << bit;
        return Some((header, writes));
    }
    // The id stands in the name of the file.
    let at = byte.checked_sub(ID)?;
    let mut bytes = header.encode();
    bytes[HEADER + ID - COVERED + at] ^= 1 << bit;
    let repaired = Header::parse(&bytes)?;
    Some((repaired, writes))
}

//! Record: one group in the journal.
//!
//! ```text
//! segment:  magic 4, version 4, id 8, CRC32C of these 4, nothing until 32, records
//! record:   CRC32C 4, length of writes 4, length of bodies 8, position 8, writes, bodies
//! ```
//!
//! All big-endian. The checksum covers the segment's id, the rest of the header and the writes,
//! which hold a checksum of each body. So neither the rest of a file's earlier use nor a record
//! whose end was never written is taken for a record.
//!
//! The highest bit of the length of writes is set if everything before the record was on stable
//! storage when the record was written. What lies before such a record and cannot be read is
//! damaged; it is not what a power cut interrupted. Stores before format 6 have no such bit.

use crate::value::Fields;

/// Where a segment's first record is.
pub const FIRST: u64 = 32;
/// What stands before a record's writes.
pub const HEADER: usize = 24;
/// A record with more bytes of writes than this is not ours.
pub const MOST_WRITES: u32 = 1 << 30;

/// In the length of writes: see the head of this module.
const FOLLOWS_SYNCED: u32 = 1 << 31;

const MAGIC: [u8; 4] = *b"RBJL";
const VERSION: u32 = 1;

/// The begin of a segment.
pub fn segment_header(id: u64) -> [u8; FIRST as usize] {
    let mut header = [0; FIRST as usize];
    header[..4].copy_from_slice(&MAGIC);
    header[4..8].copy_from_slice(&VERSION.to_be_bytes());
    header[8..16].copy_from_slice(&id.to_be_bytes());
    let checksum = crc32c::crc32c(&header[..16]);
    header[16..20].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// What stands before the writes of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    pub checksum: u32,
    pub writes: u32,
    /// Everything before the record was on stable storage when it was written.
    pub follows_synced: bool,
    pub bodies: u64,
    pub position: u64,
}

impl Header {
    /// For a record with `writes`, whose checksum is not known yet.
    pub fn new(position: u64, writes: &[u8], bodies: u64, follows_synced: bool) -> Option<Self> {
        Some(Self {
            checksum: 0,
            writes: u32::try_from(writes.len())
                .ok()
                .filter(|len| *len <= MOST_WRITES)?,
            follows_synced,
            bodies,
            position,
        })
    }

    /// The same with its checksum in the segment `id`.
    pub fn with_checksum(mut self, id: u64, writes: &[u8]) -> Self {
        self.checksum = self.expected(id, writes);
        self
    }

    pub fn encode(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&self.checksum.to_be_bytes());
        header[4..].copy_from_slice(&self.covered());
        header
    }

    pub fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let (checksum, writes) = (fields.u32()?, fields.u32()?);
        Some(Self {
            checksum,
            writes: writes & !FOLLOWS_SYNCED,
            follows_synced: writes & FOLLOWS_SYNCED != 0,
            bodies: fields.u64()?,
            position: fields.u64()?,
        })
    }

    /// Whether these are the writes that the record was made with.
    pub fn matches(&self, id: u64, writes: &[u8]) -> bool {
        self.checksum == self.expected(id, writes)
    }

    /// The whole record.
    pub fn len(&self) -> u64 {
        (HEADER as u64 + u64::from(self.writes)).saturating_add(self.bodies)
    }

    fn covered(&self) -> [u8; HEADER - 4] {
        let mut bytes = [0; HEADER - 4];
        let flag = if self.follows_synced {
            FOLLOWS_SYNCED
        } else {
            0
        };
        bytes[..4].copy_from_slice(&(self.writes | flag).to_be_bytes());
        bytes[4..12].copy_from_slice(&self.bodies.to_be_bytes());
        bytes[12..].copy_from_slice(&self.position.to_be_bytes());
        bytes
    }

    /// The checksum that a record with this header and `writes` has in the segment `id`.
    pub fn expected(&self, id: u64, writes: &[u8]) -> u32 {
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&id.to_be_bytes()), &self.covered());
        crc32c::crc32c_append(checksum, writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_another_segment_position_or_length_is_not_taken() {
        let writes = b"some writes";
        let header = Header::new(9, writes, 100, true).expect("it is small");
        let header = header.with_checksum(3, writes);
        assert_eq!(Header::parse(&header.encode()), Some(header));
        assert!(header.matches(3, writes));
        assert!(!header.matches(4, writes));
        assert!(!header.matches(3, b"other write"));
        let moved = Header {
            position: 8,
            ..header
        };
        let longer = Header {
            bodies: 101,
            ..header
        };
        let unsynced = Header {
            follows_synced: false,
            ..header
        };
        assert!(!moved.matches(3, writes) && !longer.matches(3, writes));
        assert!(!unsynced.matches(3, writes));
        assert_eq!(header.len(), 24 + 11 + 100);
    }
}

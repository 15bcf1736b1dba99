//! Journal location: the segment, offset and length of a body in the journal, as the index has it.

use bytes::Bytes;
use store::{BodyLocation, BodyPointer};

use crate::key;
use crate::value::Fields;

/// Bodies that get a new place: first the body itself, then the place as a value of the index.
pub type Moves = Vec<(BodyPointer, Bytes)>;

/// A body's location. The body never moves without a new location in the index.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JournalLocation {
    pub segment: u64,
    pub offset: u64,
    pub len: u32,
    /// CRC32C of the body and of the pointer to it.
    pub checksum: u32,
}

impl JournalLocation {
    pub const BYTES: usize = 24;

    /// Whether a byte of it lies at `end` or behind. An empty body has none.
    #[must_use]
    pub fn reaches(&self, end: u64) -> bool {
        self.len > 0 && self.offset.saturating_add(u64::from(self.len)) > end
    }

    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.segment.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.len.to_be_bytes());
        bytes[20..].copy_from_slice(&self.checksum.to_be_bytes());
        bytes
    }

    pub fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            segment: fields.u64()?,
            offset: fields.u64()?,
            len: fields.u32()?,
            checksum: fields.u32()?,
        })
    }

    /// As the broker keeps it meanwhile.
    pub fn to_body_location(self) -> BodyLocation {
        let checked = u64::from(self.len) << 32 | u64::from(self.checksum);
        BodyLocation([self.segment, self.offset, checked])
    }

    /// The location that the broker kept, if any; it may be out of date.
    pub fn from_body_location(body_location: BodyLocation) -> Option<Self> {
        let BodyLocation([segment, offset, checked]) = body_location;
        let location = Self {
            segment,
            offset,
            len: u32::try_from(checked >> 32).ok()?,
            checksum: u32::try_from(checked & u64::from(u32::MAX)).ok()?,
        };
        (body_location != BodyLocation::UNKNOWN).then_some(location)
    }

    /// Where the body ends.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }
}

/// A CRC32C over whose body it is and its bytes: one that was damaged or belongs to another
/// message is never served.
pub fn checksum(pointer: BodyPointer, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&key::body(pointer, 0)), body)
}

/// The same of `len` bytes whose CRC32C is known.
pub fn checksum_of(pointer: BodyPointer, crc: u32, len: usize) -> u32 {
    crc32c::crc32c_combine(crc32c::crc32c(&key::body(pointer, 0)), crc, len)
}

//! Chunk: a body, or a piece of a large one, as a value of the `body` family.
//!
//! Bodies lie in the journal, and a value here is a body's location; it may also stand in a
//! message's row. Values of format 1 are still read: a body of at most 1 MiB is one chunk, a
//! larger one several, of which the first has their number. Each value has a CRC32C over its key,
//! its header and its bytes.

use store::{BodyPointer, StoreError};

use crate::journal_location::JournalLocation;
use crate::key;
use crate::value::{self, Fields, damaged};

/// The most bytes of a body in one chunk.
pub const CHUNK: usize = 1 << 20;

const WHOLE: u8 = 0;
const FIRST: u8 = 1;
const FURTHER: u8 = 2;
const ELSEWHERE: u8 = 3;

/// How long a place is as a value.
pub const LOCATION: usize = 4 + 1 + JournalLocation::BYTES;

/// A decoded chunk.
#[derive(Debug, Eq, PartialEq)]
pub enum Chunk<'a> {
    Whole(&'a [u8]),
    /// The first of several.
    First {
        chunks: u32,
        total: u64,
        bytes: &'a [u8],
    },
    Further(&'a [u8]),
    /// The whole body is in the journal.
    Elsewhere(JournalLocation),
}

/// Encodes where a body lies.
pub fn encode_location(pointer: BodyPointer, location: JournalLocation) -> [u8; LOCATION] {
    let mut value = [ELSEWHERE; LOCATION];
    value[5..].copy_from_slice(&location.encode());
    let checksum = checksum(&key::body(pointer, 0), &[], &value[4..]);
    value[..4].copy_from_slice(&checksum.to_be_bytes());
    value
}

/// The place of its own body in a message's row, if it stands there.
pub fn location_in_row(
    own: BodyPointer,
    row: &[u8],
) -> Result<Option<JournalLocation>, StoreError> {
    let Some(value) = value::location_in_row(row) else {
        return Ok(None);
    };
    match decode(own, 0, value)? {
        Chunk::Elsewhere(location) => Ok(Some(location)),
        _ => Err(damaged("a body", format!("{own:?} stands in a row"))),
    }
}

/// The same without a check of its checksum, for a caller that checks it if the location is wrong.
pub fn unchecked_location_in_row(row: &[u8]) -> Option<JournalLocation> {
    JournalLocation::parse(&mut Fields(
        &value::location_in_row(row)?[LOCATION - JournalLocation::BYTES..],
    ))
}

fn checksum(key: &[u8], header: &[u8], bytes: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(key), header);
    crc32c::crc32c_append(crc, bytes)
}

/// Decodes and verifies a chunk.
pub fn decode<'a>(
    pointer: BodyPointer,
    index: u32,
    value: &'a [u8],
) -> Result<Chunk<'a>, StoreError> {
    parse(pointer, index, value).ok_or_else(|| {
        damaged(
            "a body",
            format!("{pointer:?} chunk {index} fails its checksum"),
        )
    })
}

fn parse(pointer: BodyPointer, index: u32, value: &[u8]) -> Option<Chunk<'_>> {
    let mut fields = Fields(value);
    let expected = fields.u32()?;
    // The three pieces of the checksum lie next to each other: header and bytes in one go.
    if checksum(&key::body(pointer, index), &[], fields.0) != expected {
        return None;
    }
    match fields.u8()? {
        WHOLE if index == 0 => Some(Chunk::Whole(fields.0)),
        FIRST if index == 0 => {
            let (chunks, total) = (fields.u32()?, fields.u64()?);
            let bytes = fields.0;
            Some(Chunk::First {
                chunks,
                total,
                bytes,
            })
        }
        FURTHER if index > 0 => Some(Chunk::Further(fields.0)),
        ELSEWHERE if index == 0 => {
            let location = JournalLocation::parse(&mut fields)?;
            fields.0.is_empty().then_some(Chunk::Elsewhere(location))
        }
        _ => None,
    }
}

#[cfg(test)]
pub mod old {
    //! How bodies were written in format 1.

    use super::*;

    /// How many chunks a body of `len` bytes takes.
    pub fn chunks_of(len: usize) -> u32 {
        u32::try_from(len.div_ceil(CHUNK).max(1)).expect("a body is smaller than 4 PiB")
    }

    /// Encodes a body that is one chunk into `value`.
    pub fn encode_whole(pointer: BodyPointer, body: &[u8], value: &mut Vec<u8>) {
        encode(&key::body(pointer, 0), &[WHOLE], body, value);
    }

    /// Encodes chunk number `index` of a large body into `value`.
    pub fn encode_piece(pointer: BodyPointer, body: &[u8], index: u32, value: &mut Vec<u8>) {
        let start = index as usize * CHUNK;
        let bytes = &body[start..body.len().min(start + CHUNK)];
        let key = key::body(pointer, index);
        if index > 0 {
            return encode(&key, &[FURTHER], bytes, value);
        }
        let mut header = [FIRST; 13];
        header[1..5].copy_from_slice(&chunks_of(body.len()).to_be_bytes());
        header[5..].copy_from_slice(&(body.len() as u64).to_be_bytes());
        encode(&key, &header, bytes, value);
    }

    fn encode(key: &[u8], header: &[u8], bytes: &[u8], value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&checksum(key, header, bytes).to_be_bytes());
        value.extend_from_slice(header);
        value.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use store::{EntityId, SequenceNumber};

    use super::old::*;
    use super::*;

    const POINTER: BodyPointer = BodyPointer {
        home: EntityId(1),
        number: SequenceNumber(2),
    };

    #[test]
    fn a_whole_body_comes_back() {
        let mut value = Vec::new();
        encode_whole(POINTER, b"hello", &mut value);
        assert_eq!(decode(POINTER, 0, &value), Ok(Chunk::Whole(b"hello")));
    }

    #[test]
    fn a_place_comes_back_and_every_flipped_bit_is_noticed() {
        let location = JournalLocation {
            segment: 1,
            offset: 2,
            len: 3,
            checksum: 4,
        };
        let value = encode_location(POINTER, location);
        assert_eq!(decode(POINTER, 0, &value), Ok(Chunk::Elsewhere(location)));
        for bit in 0..value.len() * 8 {
            let mut flipped = value;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(POINTER, 0, &flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut value = Vec::new();
        encode_whole(POINTER, b"a body of some bytes", &mut value);
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(POINTER, 0, &flipped).is_err(), "bit {bit}");
        }
        for len in 0..value.len() {
            assert!(decode(POINTER, 0, &value[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn a_body_under_a_foreign_key_is_refused() {
        let mut value = Vec::new();
        encode_whole(POINTER, b"mine", &mut value);
        let foreign = BodyPointer {
            number: SequenceNumber(3),
            ..POINTER
        };
        assert!(decode(foreign, 0, &value).is_err());
    }

    #[test]
    fn the_first_piece_tells_of_the_others() {
        let body = vec![7; 2 * CHUNK + 1];
        let mut value = Vec::new();
        encode_piece(POINTER, &body, 0, &mut value);
        let total = body.len() as u64;
        let expected = Chunk::First {
            chunks: 3,
            total,
            bytes: &body[..CHUNK],
        };
        assert_eq!(decode(POINTER, 0, &value), Ok(expected));
        encode_piece(POINTER, &body, 2, &mut value);
        assert_eq!(decode(POINTER, 2, &value), Ok(Chunk::Further(&body[..1])));
    }
}

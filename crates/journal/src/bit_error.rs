//! Bit errors: whether bytes fail their CRC32C because of one flipped bit.
//!
//! A record that a power cut interrupted lacks whole sectors. One that differs by a single bit from
//! what its checksum covers was written to its end and damaged later, unless that bit is the only
//! one in its sector: then the sector may not have been written. Of the 2^32 checksums one bit
//! explains 8 for each byte, so a small share of interrupted records looks damaged too: the caller
//! looks at what the record says with that bit put right.

/// The polynomial of CRC32C, reflected: the checksum's change if the last bit changes.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The bit that is wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WrongBit {
    OfChecksum,
    /// This bit of that byte, the lowest being 0.
    OfByte(usize, u8),
}

/// The one flipped bit, in `len` bytes or in their checksum, that explains that these bytes have
/// the checksum `computed` instead of `stored`.
pub(crate) fn wrong_bit(stored: u32, computed: u32, len: usize) -> Option<WrongBit> {
    let difference = stored ^ computed;
    if difference.is_power_of_two() {
        return Some(WrongBit::OfChecksum);
    }
    // The checksum's change if a bit changes, from the last one to the first.
    let mut change = POLYNOMIAL;
    for bit in 0..len.saturating_mul(8) {
        if change == difference {
            let in_byte = 7 - u8::try_from(bit % 8).expect("below 8");
            return Some(WrongBit::OfByte(len - 1 - bit / 8, in_byte));
        }
        let carry = if change & 1 == 1 { POLYNOMIAL } else { 0 };
        change = (change >> 1) ^ carry;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_single_bit_is_recognised_and_no_pair_of_bits_is() {
        let bytes: Vec<_> = (0..97_u8).collect();
        let stored = crc32c::crc32c(&bytes);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let place = WrongBit::OfByte(bit / 8, u8::try_from(bit % 8).expect("below 8"));
            let found = wrong_bit(stored, crc32c::crc32c(&flipped), bytes.len());
            assert_eq!(found, Some(place));
            flipped[(bit / 8 + 31) % bytes.len()] ^= 1;
            let found = wrong_bit(stored, crc32c::crc32c(&flipped), bytes.len());
            assert_eq!(found, None);
        }
        for bit in 0..32 {
            let found = wrong_bit(stored ^ (1 << bit), stored, bytes.len());
            assert_eq!(found, Some(WrongBit::OfChecksum));
        }
        assert_eq!(wrong_bit(stored, stored, bytes.len()), None);
    }
}

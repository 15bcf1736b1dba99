//! Bit errors: whether bytes fail their CRC32C because of one flipped bit.
//!
//! A record that a power cut interrupted lacks whole pages. One that differs by a single bit from
//! what its checksum covers was written to its end and damaged later.

/// The polynomial of CRC32C, reflected: the checksum's change if the last bit changes.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// Whether one flipped bit, in `len` bytes or in their checksum, explains that these bytes have the
/// checksum `computed` instead of `stored`.
pub(crate) fn is_one_bit(stored: u32, computed: u32, len: usize) -> bool {
    let difference = stored ^ computed;
    if difference.is_power_of_two() {
        return true;
    }
    // The checksum's change if a bit changes, from the last one to the first.
    let mut change = POLYNOMIAL;
    for _bit in 0..len.saturating_mul(8) {
        if change == difference {
            return true;
        }
        let carry = if change & 1 == 1 { POLYNOMIAL } else { 0 };
        change = (change >> 1) ^ carry;
    }
    false
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
            assert!(is_one_bit(stored, crc32c::crc32c(&flipped), bytes.len()));
            flipped[(bit / 8 + 31) % bytes.len()] ^= 1;
            assert!(!is_one_bit(stored, crc32c::crc32c(&flipped), bytes.len()));
        }
        for bit in 0..32 {
            assert!(is_one_bit(stored ^ (1 << bit), stored, bytes.len()));
        }
        assert!(!is_one_bit(stored, stored, bytes.len()));
    }
}

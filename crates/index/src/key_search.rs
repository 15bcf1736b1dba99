//! Key search: where keys can be read again behind a damaged block.
//!
//! RocksDB does not tell where a block ends that it cannot read, but a seek behind it succeeds. The
//! end is looked for by ever larger steps, and then between the last two of them. So what can be
//! read is passed over only where it is less than what is damaged before it. A failure that may
//! pass, such as one for want of memory, ends the search: it tells nothing of what is damaged.

use store::StoreError;

/// The least key above `from` from which on `read` meets no damage, or `until`. At `from` it does.
///
/// # Errors
/// What `read` fails with for another reason than damage.
pub fn readable_from<const N: usize, T>(
    from: [u8; N],
    until: [u8; N],
    mut read: impl FnMut(&[u8; N]) -> Result<T, StoreError>,
) -> Result<[u8; N], StoreError> {
    let mut can_read = |key: &[u8; N]| unless_damaged(read(key)).map(|found| found.is_some());
    let (mut damaged, mut readable) = (from, until);
    for bit in 0..N * 8 {
        match add_bit(damaged, bit).filter(|key| *key < readable) {
            None => break,
            Some(key) if can_read(&key)? => {
                readable = key;
                break;
            }
            Some(key) => damaged = key,
        }
    }
    loop {
        let middle = middle(&damaged, &readable);
        if middle <= damaged {
            return Ok(readable);
        }
        if can_read(&middle)? {
            readable = middle;
        } else {
            damaged = middle;
        }
    }
}

/// What was read; nothing if it met damage.
///
/// # Errors
/// What it failed with for another reason.
pub fn unless_damaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A key as a number, and two to the power of `bit`.
fn add_bit<const N: usize>(mut key: [u8; N], bit: usize) -> Option<[u8; N]> {
    let mut carry = 1_u8 << (bit % 8);
    for byte in key.iter_mut().rev().skip(bit / 8) {
        let (sum, is_carried) = byte.overflowing_add(carry);
        *byte = sum;
        if !is_carried {
            return Some(key);
        }
        carry = 1;
    }
    None
}

/// The number in the middle of two keys.
fn middle<const N: usize>(one: &[u8; N], other: &[u8; N]) -> [u8; N] {
    let mut sum = [0_u16; N];
    let mut carry = 0;
    for at in (0..N).rev() {
        let both = u16::from(one[at]) + u16::from(other[at]) + carry;
        sum[at] = both & 0xFF;
        carry = both >> 8;
    }
    let mut half = [0; N];
    for at in 0..N {
        let both = (carry << 8) | sum[at];
        half[at] = u8::try_from(both >> 1 & 0xFF).expect("eight bits");
        carry = both & 1;
    }
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> [u8; 4] {
        number.to_be_bytes()
    }

    fn damaged_unless(can_read: bool) -> Result<(), StoreError> {
        let damage = || journal::value::damaged("a block", "its checksum is wrong");
        can_read.then_some(()).ok_or_else(damage)
    }

    #[test]
    fn the_end_of_a_damaged_stretch_is_found() {
        for (from, end) in [
            (0, 1),
            (255, 256),
            (5, 700),
            (100_000, u32::MAX - 1),
            (7, u32::MAX),
        ] {
            let read = |at: &[u8; 4]| damaged_unless(u32::from_be_bytes(*at) >= end);
            let found = readable_from(key(from), key(u32::MAX), read);
            assert_eq!(found, Ok(key(end)), "{from}");
        }
    }

    #[test]
    fn what_lies_between_two_damaged_stretches_is_not_passed_over() {
        let is_damaged = |at: u32| (10..110).contains(&at) || (210..310).contains(&at);
        let read = |at: &[u8; 4]| damaged_unless(!is_damaged(u32::from_be_bytes(*at)));
        assert_eq!(readable_from(key(10), key(999), read), Ok(key(110)));
    }

    #[test]
    fn a_failure_that_may_pass_ends_the_search_and_is_no_damage() {
        let failure = StoreError::Io("too many open files".into());
        for at_most in 0..12 {
            let mut looked = 0;
            let read = |at: &[u8; 4]| {
                looked += 1;
                if looked > at_most {
                    return Err(failure.clone());
                }
                damaged_unless(u32::from_be_bytes(*at) >= 700)
            };
            let found = readable_from(key(5), key(u32::MAX), read);
            assert_eq!(found, Err(failure.clone()), "after {at_most}");
        }
    }

    #[test]
    fn few_keys_are_looked_at() {
        let mut looked = 0;
        let from = [0x7F; 21];
        let mut end = [0x7F; 21];
        end[12] = 0x80;
        let found = readable_from(from, [u8::MAX; 21], |at| {
            looked += 1;
            damaged_unless(*at >= end)
        });
        assert_eq!(found, Ok(end));
        assert!(looked < 2 * 21 * 8, "{looked}");
    }
}

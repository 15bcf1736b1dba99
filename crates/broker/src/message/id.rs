//! Id: what a message id is known by, and what is remembered of it.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use store::SequenceNumber;

use crate::api::incoming::Incoming;
use crate::api::time::Wall;

/// What a message id is known by: half of its SHA-256, so that a client cannot make two that
/// collide.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct IdHash(pub(crate) [u8; 16]);

impl IdHash {
    /// The hash of a message's id, if it has one.
    pub(crate) fn of(message: &Incoming) -> Option<Self> {
        message.message_id.as_ref().map(|id| Self::of_id(id))
    }

    /// The hash of an encoded id, whatever the encoding: it is that of the shortest one.
    /// (docs/spec/entities.md#19)
    pub(crate) fn of_id(id: &[u8]) -> Self {
        let digest: [u8; 32] = match id {
            // A text or bytes with a long length that fits in a short one.
            [long @ (0xb0 | 0xb1), 0, 0, 0, short, value @ ..] => {
                let mut hash = Sha256::new();
                hash.update([long - 0x10, *short]);
                hash.update(value);
                hash.finalize().into()
            }
            [0x53, 0] | [0x80, 0, 0, 0, 0, 0, 0, 0, 0] => Sha256::digest([0x44]).into(),
            [0x80, 0, 0, 0, 0, 0, 0, 0, small] => Sha256::digest([0x53, *small]).into(),
            _ => Sha256::digest(id).into(),
        };
        Self(*digest.first_chunk().expect("32 bytes begin with 16"))
    }

    /// Two independent numbers for the filter.
    pub(crate) fn halves(self) -> (u64, u64) {
        let whole = u128::from_be_bytes(self.0);
        let low = u64::try_from(whole & u128::from(u64::MAX)).expect("64 bits are left");
        let high = u64::try_from(whole >> 64).expect("64 bits are left");
        (high, low)
    }
}

/// When an id was accepted, and with which message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Acceptance {
    pub at: Wall,
    pub number: SequenceNumber,
}

impl Acceptance {
    /// As the entry of an id keeps it.
    pub fn encode(self) -> Bytes {
        let mut value = [0; 16];
        value[..8].copy_from_slice(&self.at.0.to_be_bytes());
        value[8..].copy_from_slice(&self.number.0.to_be_bytes());
        Bytes::copy_from_slice(&value)
    }

    pub fn decode(value: &[u8]) -> Option<Self> {
        let (at, number) = value.split_first_chunk()?;
        Some(Self {
            at: Wall(u64::from_be_bytes(*at)),
            number: SequenceNumber(u64::from_be_bytes(number.try_into().ok()?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(one: &[u8], other: &[u8], is_same: bool) {
        let equal = IdHash::of_id(one) == IdHash::of_id(other);
        assert_eq!(equal, is_same, "{one:x?} and {other:x?}");
    }

    #[test]
    fn encodings_of_one_id_are_one_id() {
        check(&[0xa1, 1, b'x'], &[0xb1, 0, 0, 0, 1, b'x'], true);
        check(&[0xa0, 1, b'x'], &[0xb0, 0, 0, 0, 1, b'x'], true);
        check(&[0x44], &[0x53, 0], true);
        check(&[0x44], &[0x80, 0, 0, 0, 0, 0, 0, 0, 0], true);
        check(&[0x53, 7], &[0x80, 0, 0, 0, 0, 0, 0, 0, 7], true);
    }

    #[test]
    fn ids_of_other_types_or_values_are_others() {
        check(&[0xa1, 1, b'x'], &[0xb0, 0, 0, 0, 1, b'x'], false);
        check(&[0xa1, 1, b'7'], &[0x53, 7], false);
        check(&[0x53, 7], &[0x80, 0, 0, 0, 0, 0, 0, 1, 7], false);
        check(&[0x53, 1], &[0x44], false);
    }
}

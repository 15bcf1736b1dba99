//! Id: what a message id is known by, and what is remembered of it.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use store::SequenceNumber;

use crate::api::command::Incoming;
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

    /// The hash of an encoded id.
    pub(crate) fn of_id(id: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(id).into();
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

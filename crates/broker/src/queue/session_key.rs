//! Key: a session's name in memory, and where the store keeps what belongs to it.
//!
//! Rows know a session by a hash of its id only, which is what its entries are grouped by: so a
//! message can leave its session's order although its id is not at hand. An entry's value tells the
//! id, so sessions that share a hash are told apart. The hash is part of what is stored and must
//! never change.

use bytes::Bytes;
use store::{EntryKey, Part, SequenceNumber};

/// A session of one queue. Keys are ordered by hash.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct SessionKey {
    pub hash: u64,
    /// An allocation of its own, since it stays and what it came in would be pinned.
    pub id: Box<[u8]>,
}

impl SessionKey {
    pub(crate) fn new(id: &[u8]) -> Self {
        Self {
            hash: mixed(fnv(FNV_BASIS, id)),
            id: id.into(),
        }
    }

    /// The least key of this hash or a greater one.
    pub(crate) fn from_hash(hash: u64) -> Self {
        let id = Box::default();
        Self { hash, id }
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.id)
    }

    /// Where the store keeps what a listing needs to know of the session's state.
    pub(crate) fn state_note(&self) -> EntryKey {
        EntryKey::by_u64(self.hash, self.second())
    }

    /// Where the store keeps the session's state.
    pub(crate) fn state(&self) -> EntryKey {
        EntryKey::new(longer_group(self.hash, 0), self.second())
    }

    /// A hash that has nothing to do with the first one.
    fn second(&self) -> SequenceNumber {
        let hash = mixed(fnv(!FNV_BASIS, &self.id));
        SequenceNumber(hash.min(u64::MAX - 1))
    }
}

/// The place of an available or locked message in its session's order.
pub(crate) fn active(hash: u64, number: SequenceNumber) -> EntryKey {
    EntryKey::by_u64(hash, number)
}

/// The place of a message among those of its session in the same part.
pub(crate) fn of(part: Part, hash: u64, number: SequenceNumber) -> EntryKey {
    match part {
        Part::Active => active(hash, number),
        part => EntryKey::new(longer_group(hash, part as u8), number),
    }
}

/// Longer than the first group of any session, so that it stands behind all of them.
fn longer_group(hash: u64, last: u8) -> Bytes {
    let mut group = hash.to_be_bytes().to_vec();
    group.push(last);
    Bytes::from(group)
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a.
fn fnv(basis: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(basis, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Spreads a hash over all bits; no two hashes become the same.
fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_what_they_were_when_they_were_stored() {
        let hash = |id: &str| SessionKey::new(id.as_bytes()).hash;
        assert_eq!(hash(""), 0xefd0_1f60_ba99_2926);
        assert_ne!(hash("a"), hash("b"));
        let key = SessionKey::new(b"a");
        assert_ne!(key.state().group, key.state_note().group);
        assert_eq!(key.state_note().group_u64(), Some(key.hash));
    }
}

//! Key: a session's name in memory, and where the store keeps what belongs to it.
//!
//! Rows know a session by a hash of its id only, which is what its entries are grouped by: so a
//! message can leave its session's order although its id is not at hand. An entry's value tells the
//! id, so sessions that share a hash are told apart. The hash is part of what is stored and must
//! never change.

use std::borrow::Cow;
use std::cmp::Ordering;

use bytes::Bytes;
use filter::fold_session_id;
use serde::{Deserialize, Serialize};
use store::{EntryKey, Part, SequenceNumber};

/// How the ids of one queue's sessions are compared. (docs/spec/entities.md#18)
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SessionIds {
    /// As they are: queues of before ids were folded, until a start finds no session in them.
    #[default]
    Exact,
    /// Whatever their letter case.
    Folded,
}

impl SessionIds {
    /// The key of the session of this id.
    pub(crate) fn key(self, id: &[u8]) -> SessionKey {
        let folded = match self {
            Self::Exact => Cow::Borrowed(id),
            Self::Folded => fold_session_id(id),
        };
        SessionKey {
            hash: mixed(fnv(FNV_BASIS, &folded)),
            folded: match folded {
                Cow::Borrowed(_) => None,
                Cow::Owned(folded) => Some(folded.into()),
            },
            id: id.into(),
            ids: self,
        }
    }
}

/// Whether two ids name one session: they differ in letter case at most.
#[must_use]
pub fn is_same_session(one: &[u8], other: &[u8]) -> bool {
    one == other || fold_session_id(one) == fold_session_id(other)
}

/// A session of one queue. Keys are ordered by hash.
#[derive(Clone, Debug)]
pub(crate) struct SessionKey {
    pub hash: u64,
    /// The id as it was seen first, in an allocation of its own: it stays, and what it came in
    /// would be pinned.
    pub id: Box<[u8]>,
    /// What it is compared by, where that is not the id itself.
    folded: Option<Box<[u8]>>,
    ids: SessionIds,
}

impl Ord for SessionKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_hash = self.hash.cmp(&other.hash);
        by_hash.then_with(|| self.compared().cmp(other.compared()))
    }
}

impl PartialOrd for SessionKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SessionKey {}

impl SessionKey {
    /// Whether an id names this session.
    pub(crate) fn is_of(&self, id: &[u8]) -> bool {
        match self.ids {
            SessionIds::Exact => *self.id == *id,
            SessionIds::Folded => *self.id == *id || *self.compared() == *fold_session_id(id),
        }
    }

    fn compared(&self) -> &[u8] {
        self.folded.as_deref().unwrap_or(&self.id)
    }

    /// The least key of this hash or a greater one.
    pub(crate) fn from_hash(hash: u64) -> Self {
        Self {
            hash,
            id: Box::default(),
            folded: None,
            ids: SessionIds::Exact,
        }
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

    /// Whether an entry at this key is a session's state, and not its note.
    pub(crate) fn is_state(key: &EntryKey) -> bool {
        key.group_u64().is_none()
    }

    /// A hash that has nothing to do with the first one.
    fn second(&self) -> SequenceNumber {
        let hash = mixed(fnv(!FNV_BASIS, self.compared()));
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
        for ids in [SessionIds::Exact, SessionIds::Folded] {
            let hash = |id: &str| ids.key(id.as_bytes()).hash;
            assert_eq!(hash(""), 0xefd0_1f60_ba99_2926);
            assert_ne!(hash("a"), hash("b"));
            let key = ids.key(b"a");
            assert_ne!(key.state().group, key.state_note().group);
            assert_eq!(key.state_note().group_u64(), Some(key.hash));
        }
        assert_eq!(
            SessionIds::Folded.key(b"A").hash,
            SessionIds::Exact.key(b"a").hash
        );
    }

    #[test]
    fn folded_ids_are_one_session_whatever_their_case() {
        for (one, other) in [("Order-7", "oRDER-7"), ("ÄPFEL", "äpfel"), ("ΣΑΣ", "σας")] {
            let (one, other) = (one.as_bytes(), other.as_bytes());
            let key = SessionIds::Folded.key(one);
            assert_eq!(key, SessionIds::Folded.key(other));
            assert_eq!(key.state(), SessionIds::Folded.key(other).state());
            assert!(key.is_of(other) && is_same_session(one, other));
            assert_eq!(&*key.id, one);
            let exact = SessionIds::Exact.key(one);
            assert_ne!(exact, SessionIds::Exact.key(other));
            assert!(exact.is_of(one) && !exact.is_of(other));
        }
        // Full folding would make two letters of one.
        assert!(!is_same_session("straße".as_bytes(), b"strasse"));
        assert!(!is_same_session(b"a", b"b"));
    }
}
